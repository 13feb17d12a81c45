"""Matrix: rooms, also encrypted ones, through matrix-nio."""

"""Sessions as training data: trajectories in the formats of other tools, filters, compression, statistics."""

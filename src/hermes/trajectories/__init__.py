"""Sessions as training data: trajectories in the formats that other tools read, filters, compression, statistics."""

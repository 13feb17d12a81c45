"""Building blocks for every layer: files and locks, delays, tasks, bounded maps. Nothing here depends on Hermes."""

"""Building blocks that every layer may use: files and locks, delays, tasks, bounded maps. Nothing here knows Hermes."""

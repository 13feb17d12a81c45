"""Updates: a new version in an environment beside the old one, tried out before it takes over, and back again."""

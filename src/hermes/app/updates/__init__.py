"""Updates: installs a new version beside the old one, tries it out before it takes over, and can go back."""

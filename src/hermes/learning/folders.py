"""Folders for this user alone, whatever the umask says, with all that is missing above them."""

from pathlib import Path


def make_private(folder: Path) -> Path:
    """Makes the folder and its missing parents; what exists stays as it is."""
    missing = [folder]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    return folder

"""Tells which files are recordings of sound, by their names."""

RECORDINGS = frozenset(
    (".wav", ".mp3", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".flac", ".amr", ".weba")
)


def is_recording(name: str) -> bool:
    """Whether a file is a recording, by its name."""
    return name.lower().endswith(tuple(RECORDINGS))

"""A temporary HERMES_HOME."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary_home() -> Iterator[Path]:
    """An empty home folder, removed with everything in it at the end."""
    with tempfile.TemporaryDirectory(prefix="hermes-home-") as folder:
        yield Path(folder)

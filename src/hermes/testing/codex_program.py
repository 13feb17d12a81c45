"""The real codex program for tests, installed from npm into a cache on first use."""

import os
from pathlib import Path

from hermes.codex.binary import native
from hermes.testing.fetched import fetched, find_node

VERSION = "0.166.0"


def installed_codex() -> Path:
    """The program of the supported version. NotFetched says why there is none."""
    folder = fetched(f"codex-{VERSION}", _fetch, os.environ)
    return native(folder / "node_modules" / ".bin" / "codex")


def _fetch(folder: Path) -> None:
    find_node(os.environ).install(f"@openai/codex@{VERSION}", folder, os.environ)

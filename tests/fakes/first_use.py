"""Libraries that take a second to import: each worker of a run reads all tests, and few of them run these."""

from importlib import import_module
from typing import Any


class OnFirstUse:
    """Stands for a module until somebody wants something of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, wanted: str) -> Any:
        if wanted.startswith("_"):  # pytest asks each name in a module what it is
            raise AttributeError(wanted)
        return getattr(import_module(self._name), wanted)

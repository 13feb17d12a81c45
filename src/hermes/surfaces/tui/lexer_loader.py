"""Loads the syntax highlighting of code in a thread, so that text keeps streaming in meanwhile."""

import asyncio
from collections.abc import Callable

from hermes.primitives.tasks import BackgroundTasks

_COMMON_LANGUAGE = "python"


class LexerLoader:
    """Knows which lexers are loaded. Calls `on_loaded` when a requested one is."""

    def __init__(self, on_loaded: Callable[[], object]) -> None:
        self._on_loaded = on_loaded
        self._loaded = {""}
        self._loading: set[str] = set()
        self._tasks = BackgroundTasks("loading a lexer")

    def is_loaded(self, language: str) -> bool:
        """Returns whether code in this language can be coloured without a wait. If not, loads what is missing."""
        if language in self._loaded:
            return True
        if language not in self._loading:
            self._loading.add(language)
            self._tasks.start(self._load(language))
        return False

    async def warm(self) -> None:
        """Loads in advance what most replies need, even plain text."""
        await self._load(_COMMON_LANGUAGE)

    async def _load(self, language: str) -> None:
        try:
            await asyncio.to_thread(_load, language)
        finally:
            self._loading.discard(language)
            self._loaded.add(language)
        self._on_loaded()


def _load(language: str) -> None:
    from hermes.surfaces.terminal.markdown import render, syntax

    syntax.load(language)
    render.Markdown(colours=True, ascii_only=False).whole("`x`", 80)

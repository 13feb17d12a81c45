"""Implements the `Keeper` port: saves what a call may change before it runs, once per turn.

A turn that only reads costs nothing. If something can't be saved, the call still runs; the user is told then, and again
when the turn is undone.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.ports import ToolContext
from hermes.primitives.recent import RecentDict
from hermes.text.translation import translator
from hermes.tools.shadow.repository import ShadowFailed
from hermes.tools.shadow.shadows import Shadows

t = translator(__name__)


if TYPE_CHECKING:  # loaded only when a turn changes something
    from hermes.tools.files.open_buffers import OpenBuffers
    from hermes.tools.shadow.turn_record import Unkept

log = logging.getLogger("hermes.tools")

_MAX_REMEMBERED_TURNS = 256  # that are remembered
_MAX_UNSAVED_FILES_NAMED = 3  # if several could not be saved


class _Kept:
    """What this process has saved for a turn."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.files: set[bytes] = set()
        self.whole = False
        self.lock = asyncio.Lock()


class ShadowKeeper:
    """Saves files in the shadow repository of each working directory."""

    def __init__(self, shadows: Shadows) -> None:
        self._shadows = shadows
        self.buffers_of: Callable[[str], OpenBuffers | None] = lambda _: None
        """Returns the unsaved files of the editor that a session runs in; None without an editor."""
        self._turns: RecentDict[str, _Kept] = RecentDict(_MAX_REMEMBERED_TURNS)
        self._told: set[tuple[Path, str]] = set()

    async def keep(self, context: ToolContext, paths: tuple[Path, ...]) -> None:
        """Saves these files, or the whole working directory if none are named, before their first change in a turn."""
        from hermes.tools.shadow.turn_record import Unkept

        await self._save_buffers(context.session, paths)
        kept = self._turns.get_or_make(context.turn, lambda: _Kept(context.cwd))
        # A parallel call must wait until the files that both may change are saved.
        async with kept.lock:
            try:
                unkept = await asyncio.to_thread(self._keep, context, kept, paths)
            except (ShadowFailed, OSError) as error:
                unkept = [
                    Unkept(
                        os.fsencode(context.cwd),
                        await asyncio.to_thread(self._failed, context, error),
                    )
                ]
        self._report_unsaved(context, unkept)

    async def _save_buffers(self, session: str, paths: tuple[Path, ...]) -> None:
        """Makes the editor save its buffers first, so that undo restores what the user had on the screen."""
        buffers = self.buffers_of(session)
        if buffers is not None:
            from hermes.tools.files.open_buffers import save_buffers

            await asyncio.to_thread(save_buffers, buffers, paths)

    async def finish(self, turn: str, workspace: Path) -> None:
        """Saves the state at the end of a turn, however it ended. Does nothing if the turn changed nothing."""
        self._turns.pop(turn, None)
        if not self._shadows.has(workspace, turn):
            return
        shadow = self._shadows.at(workspace)
        try:
            await asyncio.to_thread(shadow.end, turn)
            await asyncio.to_thread(self._tidy)
        except (ShadowFailed, OSError) as error:
            log.warning("the end of turn %s was not saved for undo: %s", turn, error)

    def _keep(
        self, context: ToolContext, kept: _Kept, paths: tuple[Path, ...]
    ) -> "list[Unkept]":
        shadow = self._shadows.at(context.cwd)
        folders = [path for path in paths if path.is_dir() and not path.is_symlink()]
        files = {_canonical(path) for path in paths if path not in folders} - kept.files
        unkept: list[Unkept] = []
        if files:
            unkept += shadow.keep_files(
                context.session, context.turn, sorted(files), late=kept.whole
            )
            kept.files |= files
        if (folders or not paths) and not kept.whole:
            unkept += shadow.keep_whole(context.session, context.turn)
            kept.whole = True
        return unkept

    def _failed(self, context: ToolContext, error: Exception) -> str:
        why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        try:
            self._shadows.at(context.cwd).note_failure(
                context.session, context.turn, why
            )
        except (ShadowFailed, OSError):
            log.warning(
                "turn %s: could not record that saving files failed: %s",
                context.turn,
                error,
            )
        return why

    def _report_unsaved(self, context: ToolContext, unkept: "Iterable[Unkept]") -> None:
        """Tells the user, once for each file, what undo can't restore."""
        from hermes.tools.shadow.turn_diff import display

        here = {os.fsencode(context.cwd), os.fsencode(os.path.realpath(context.cwd))}
        news: list[str] = []
        for note in unkept:
            key = (context.cwd, note.why + os.fsdecode(note.path))
            if key not in self._told:
                self._told.add(key)
                name = (
                    "this folder"
                    if note.path in here
                    else display(note.path, context.cwd)
                )
                news.append(f"{name} ({note.why})")
        if news:
            more = (
                f" and {len(news) - _MAX_UNSAVED_FILES_NAMED:,} more"
                if len(news) > _MAX_UNSAVED_FILES_NAMED
                else ""
            )
            sentence = t.logged(
                "Not saved, so undo can't restore it: {news}{more}.",
                news=", ".join(news[:_MAX_UNSAVED_FILES_NAMED]),
                more=more,
            )
            log.warning("%s", sentence)
            context.show(sentence + "\n")

    def _tidy(self) -> None:
        from hermes.tools.shadow.prune import sweep

        dropped = sweep(self._shadows)
        if dropped:
            log.info("%s", dropped)


def _canonical(path: Path) -> bytes:
    """The path with the links above it resolved, but not the last part."""
    return os.fsencode(Path(os.path.realpath(path.parent)) / path.name)

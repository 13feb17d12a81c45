"""Undo, redo and retry turns, show what a turn changed, and branch a session."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec

from hermes.app.undo import Rewind, UndoReport, shadows_of
from hermes.commands.command import Arg, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.sessions import open_log
from hermes.commands.views import Block, DiffBlock, TextResult, line, message
from hermes.text.formats import first_line
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


_MAX_UNDO_FILES_LISTED = 10
_MAX_QUOTED_TURN_CHARACTERS = 60

Force = Annotated[bool, "also restore files that were changed since"]


class UndoResult(msgspec.Struct, frozen=True, kw_only=True):
    """Turns that were undone or restored, and what happened to their files."""

    report: UndoReport
    action: Literal["undo", "redo", "retry", "files"]
    overwrite: str
    """What to type to have changed files overwritten."""
    in_chat: bool = False

    def document(self) -> Any:
        return self.report

    def view(self, _now: float) -> Iterable[Block]:
        yield line(self._summary() if self.in_chat else self._numbers())
        yield from map(line, self._files())

    def _summary(self) -> str:
        count = len(self.report.turns)
        match self.action:
            case "redo":
                return t(
                    "Restored the last turn.",
                    "Restored the last {count} turns.",
                    count=count,
                )
            case "retry":
                return t(
                    "Undid the last turn. Asking again.",
                    "Undid the last {count} turns. Asking again.",
                    count=count,
                )
            case "files":
                return t(
                    "Restored the files of the last turn. The conversation stays.",
                    "Restored the files of the last {count} turns. The conversation stays.",
                    count=count,
                )
            case _:
                return t(
                    "Undid the last turn. /redo restores it.",
                    "Undid the last {count} turns. /redo restores them.",
                    count=count,
                )

    def _numbers(self) -> str:
        count = len(self.report.turns)
        text = first_line(self.report.text)
        if len(text) > _MAX_QUOTED_TURN_CHARACTERS:
            text = f"{text[: _MAX_QUOTED_TURN_CHARACTERS - 1].rstrip()}…"
        if self.action == "redo":
            return t("Redone: {count:,} turn.", "Redone: {count:,} turns.", count=count)
        if not text:
            return t("Undone: {count:,} turn.", "Undone: {count:,} turns.", count=count)
        return t(
            'Undone: {count:,} turn, from "{text}" on.',
            'Undone: {count:,} turns, from "{text}" on.',
            count=count,
            text=text,
        )

    def _files(self) -> Iterator[str]:
        files = self.report.files
        if files.restored:
            yield t(
                "{count:,} file restored:",
                "{count:,} files restored:",
                count=len(files.restored),
            )
            yield from _listed([(name, "") for name in files.restored])
        elif not files.conflicts and not files.unkept:
            yield shown_reason(self.report.note) or t("No files had changed.")
        if files.conflicts:
            yield t(
                "{count:,} file left as it is now:",
                "{count:,} files left as they are now:",
                count=len(files.conflicts),
            )
            yield from _listed(files.conflicts)
            yield t(
                "To restore it too: {overwrite}",
                "To restore them too: {overwrite}",
                count=len(files.conflicts),
                overwrite=self.overwrite,
            )
        if files.unkept:
            yield t("Hermes has no copy of these, so they are as they are now:")
            yield from _listed(files.unkept)


class TurnDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn changed in files."""

    diff: str

    def view(self, _now: float) -> Iterable[Block]:
        yield DiffBlock(self.diff) if self.diff else line(t("No files were changed."))


@command("sessions undo", slash="undo turns", role="user", scope="chat", group="Changes")  # fmt: skip
async def undo(
    context: CommandContext,
    session: SessionId,
    *,
    turns: Annotated[
        int, Arg("how many turns (default: 1)", metavar="N", at_least=1)
    ] = 1,
    force: Force = False,
    keep_files: Annotated[bool, "leave all files as they are"] = False,
) -> UndoResult:
    """Undo the last turn, or the last N: file changes, and what the model remembers of them."""
    rewind = await _rewind(context)
    report = await asyncio.to_thread(
        rewind.undo, session, turns=turns, force=force, files=not keep_files
    )
    if context.conversation is not None:
        context.conversation.rewound(report.text)
        return UndoResult(
            report=report,
            action="undo",
            overwrite=t("/redo, then /undo force"),
            in_chat=True,
        )
    again = t("hermes sessions redo {session}, then undo with --force", session=session)
    return UndoResult(report=report, action="undo", overwrite=again)


async def restore_files(
    context: CommandContext, session: str, turns: int
) -> UndoResult:
    """Restores the files of the last turns and leaves the conversation as it is."""
    rewind = await _rewind(context)
    report = await asyncio.to_thread(rewind.restore_files, session, turns=turns)
    context.chat.rewound("")
    return UndoResult(
        report=report, action="files", overwrite="/undo force", in_chat=True
    )


@command("sessions redo", slash="redo", role="user", scope="chat", group="Changes")
async def redo(
    context: CommandContext, session: SessionId, *, force: Force = False
) -> UndoResult:
    """Restore the turns that the last undo removed."""
    rewind = await _rewind(context)
    report = await asyncio.to_thread(rewind.redo, session, force=force)
    if context.conversation is not None:
        context.conversation.rewound("")
        return UndoResult(
            report=report,
            action="redo",
            overwrite=t("/undo, then /redo force"),
            in_chat=True,
        )
    again = t("hermes sessions undo {session}, then redo with --force", session=session)
    return UndoResult(report=report, action="redo", overwrite=again)


@command(slash="retry", role="user", group="Changes")
async def retry(
    context: CommandContext, session: SessionId, *, force: Force = False
) -> UndoResult | TextResult:
    """Undo the last turn and send the same message again."""
    chat = context.chat
    rewind = await _rewind(context)
    report = await asyncio.to_thread(rewind.retry, session, force=force, via=chat.via)
    chat.rewound("")
    await chat.resume()
    if chat.via:
        return message()  # the reply is the answer
    return UndoResult(
        report=report, action="retry", overwrite="/retry force", in_chat=True
    )


@command("sessions diff", slash="diff", role="user", scope="observe", group="Changes")
async def diff(
    context: CommandContext,
    session: SessionId,
    *,
    turn: Annotated[
        str, Arg("the id of a turn (default: the last)", metavar="TURN")
    ] = "",
) -> TurnDiff:
    """Show what a turn changed in files."""
    open_log(context)
    rewind = Rewind(context.app, shadows_of(context.app))
    return TurnDiff(diff=await asyncio.to_thread(rewind.diff, session, turn=turn))


@command(
    "sessions branch", slash="branch back", role="owner", scope="chat", group="Changes"
)
async def branch(
    context: CommandContext,
    session: SessionId,
    *,
    back: Annotated[
        int, Arg("leave out the last N turns", metavar="N", at_least=1)
    ] = 0,
    at: Annotated[
        int | None, Arg("copy only rows up to this one", metavar="SEQ", at_least=1)
    ] = None,
) -> TextResult:
    """Copy a session to a new one, optionally without its last turns."""
    rewind = await _rewind(context)
    made = await asyncio.to_thread(
        rewind.branch, session, at=at, back=back, surface=context.surface.name
    )
    if context.conversation is None:
        return message(
            t(
                "Created session {made} from that point. Continue it with: hermes --resume {made}",
                made=made,
            )
        )
    await context.conversation.enter(made, recap=False)
    return message(
        t(
            "Session {made}, a copy of {session}. To return: /resume {session}",
            made=made,
            session=session,
        )
    )


async def _rewind(context: CommandContext) -> Rewind:
    if context.conversation is not None:
        await context.conversation.require_idle()
    open_log(context)
    return Rewind(context.app, shadows_of(context.app))


def _listed(files: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, why in files[:_MAX_UNDO_FILES_LISTED]:
        yield f"  {name} ({shown_reason(why)})" if why else f"  {name}"
    if len(files) > _MAX_UNDO_FILES_LISTED:
        yield t("  … and {count:,} more", count=len(files) - _MAX_UNDO_FILES_LISTED)

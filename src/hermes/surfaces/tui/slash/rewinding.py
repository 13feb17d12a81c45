"""Commands that go back: undo, redo, another try, a branch, and what a turn changed."""

import asyncio
from typing import TYPE_CHECKING

from hermes.app.attachments import typed_part
from hermes.app.undo import Rewind, UndoReport, shadows_of
from hermes.errors import UsageError
from hermes.surfaces.terminal.text import clean, cut, one_line
from hermes.surfaces.terminal.text import count as plural
from hermes.surfaces.tui.styled_text import CYAN, DIM, GREEN, RED, painted

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation

_LISTED = 8  # files that are named
_DIFF_LINES = 400


async def undo(chat: "ChatConversation", words: str) -> None:
    """Takes turns back, files and conversation; `force` also where files were changed since."""
    if await chat.is_busy():
        return
    count, force = _read(words)
    report = await asyncio.to_thread(
        _rewind(chat).undo, chat.session, turns=count, force=force
    )
    turns = "The last turn is" if count == 1 else f"The last {count} turns are"
    _tell(
        chat,
        report,
        f"{turns} taken back. /redo brings {'it' if count == 1 else 'them'} again.",
    )
    chat.screen.offer(typed_part(report.text))


async def redo(chat: "ChatConversation", words: str) -> None:
    """Brings back what the last undo took."""
    if await chat.is_busy():
        return
    force = _forced(words, "redo")
    report = await asyncio.to_thread(_rewind(chat).redo, chat.session, force=force)
    _tell(chat, report, "What was taken back is there again.")


async def retry(chat: "ChatConversation", words: str) -> None:
    """Takes the last turn back and says the same again."""
    if await chat.is_busy():
        return
    force = _forced(words, "retry")
    report = await asyncio.to_thread(_rewind(chat).retry, chat.session, force=force)
    _tell(chat, report, "The last turn is taken back, and asked again.")
    chat.follow(resumes=True)


async def diff(chat: "ChatConversation", _: str) -> None:
    """Shows what the last turn changed."""
    text = await asyncio.to_thread(_rewind(chat).diff, chat.session)
    lines = clean(text).rstrip("\n").split("\n") if text else []
    for line in lines[:_DIFF_LINES]:
        look = {"+": GREEN, "-": RED, "@": CYAN}.get(
            line[:1], "" if line[:1] == " " else DIM
        )
        chat.screen.line(painted(((line, look),), enabled=chat.screen.style.enabled))
    if len(lines) > _DIFF_LINES:
        chat.view.say(f"... {plural(len(lines) - _DIFF_LINES, 'more line')}")
    if not lines:
        chat.view.say("The last turn changed no files that are kept.")


async def branch(chat: "ChatConversation", count: str) -> None:
    """Goes on in a copy of the session, perhaps without its last turns; the original stays as it is."""
    if await chat.is_busy():
        return
    if count and not count.isdecimal():
        raise UsageError(
            "How many turns are left out? Give a number.", hint="/branch 2"
        )
    before = chat.session
    session = await asyncio.to_thread(
        _rewind(chat).branch, before, back=int(count or 0), surface="cli"
    )
    chat.enter(session)
    chat.view.say(f"Session {session}, a copy of {before}. Back: /resume {before}")


def _rewind(chat: "ChatConversation") -> Rewind:
    return Rewind(chat.app, shadows_of(chat.app))


def _read(words: str) -> tuple[int, bool]:
    """`3 force`: how many turns, and whether changed files are overwritten."""
    count, force = 1, False
    for word in words.split():
        if word == "force":
            force = True
        elif word.isdecimal():
            count = int(word)
        else:
            raise UsageError(
                f"{word!r} is not understood.", hint="/undo, /undo 2, /undo force"
            )
    return count, force


def _forced(words: str, command: str) -> bool:
    """`force`, or nothing."""
    if words.strip() not in {"", "force"}:
        raise UsageError(
            f"/{command} takes no {words.strip()!r}.",
            hint=f"/{command}, or /{command} force",
        )
    return bool(words.strip())


def _tell(chat: "ChatConversation", report: UndoReport, done: str) -> None:
    """What came of it: files that are as before, files that were left alone and why."""
    chat.agent.toolbox.forget_files(chat.session)
    chat.view.say(done)
    room = chat.screen.columns - 3
    files = report.files
    if files.restored:
        names = ", ".join(map(one_line, files.restored[:_LISTED]))
        more = (
            f" and {len(files.restored) - _LISTED} more"
            if len(files.restored) > _LISTED
            else ""
        )
        chat.view.say(f"Files as before: {names}{more}")
    for name, why in files.conflicts[:_LISTED]:
        chat.screen.line(
            chat.screen.style.yellow(
                cut(f"  left alone: {one_line(name)}: {one_line(why)}", room)
            )
        )
    if files.conflicts:
        chat.view.say(
            "To overwrite what was changed since: the same command with the word force."
        )
    for name, why in files.unkept[:_LISTED]:
        chat.screen.line(
            chat.screen.style.yellow(
                cut(f"  not kept: {one_line(name)}: {one_line(why)}", room)
            )
        )
    if report.note:
        chat.view.say(report.note, alarming=True)

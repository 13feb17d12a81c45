"""Commands about sessions: another one, this one's name, its past, its way out."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import HermesError, UsageError
from hermes.schema.events import SessionTitled
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.surfaces.terminal.open_agent import SessionTarget, begin, find_place
from hermes.surfaces.terminal.run_options import RunOptions
from hermes.surfaces.terminal.text import TextScreen, ago, cut, one_line

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation

_LISTED = 10
_READ_AGAIN = 10


async def new(chat: "ChatConversation", _: str) -> None:
    """Begins a new session in the same folder."""
    before = chat.session
    if await _change(
        chat, SessionTarget(None, Path(chat.app.store.sessions.find(before).cwd or "."))
    ):
        about = {
            "platform": "cli",
            "user": "",
            "session_id": before,
            "new_session_id": chat.session,
        }
        chat.app.bus.publish("gateway.session.reset", about)


async def resume(chat: "ChatConversation", name: str) -> None:
    """Goes on with another session."""
    if not name:
        await recent(chat, "")
        chat.view.say("Go on with one: /resume ID")
    elif await _change(chat, find_place(chat.app, RunOptions(resume=name))):
        await chat.go_on()


async def _change(chat: "ChatConversation", place: SessionTarget) -> bool:
    if await chat.is_busy():
        return False
    if place.before is not None and place.before.id == chat.session:
        chat.view.say("This is that session.")
        return False
    chat.forget_if_empty()
    session = await asyncio.to_thread(begin, chat.app, place, "cli")
    chat.enter(session)
    chat.view.say(f"Session {session}")
    return True


async def recent(chat: "ChatConversation", _: str) -> None:
    """Lists the sessions used last."""
    now = chat.app.clock.now()
    for info in chat.app.store.sessions.recent(limit=_LISTED):
        mark = "*" if info.id == chat.session else " "
        text = f"{mark} {info.id}  {ago(info.updated, now)}  {one_line(info.title)}"
        chat.screen.line(cut(text, chat.screen.columns - 1))


async def title(chat: "ChatConversation", text: str) -> None:
    """Names the session, or tells its name."""
    if text:
        await asyncio.to_thread(
            chat.app.record, chat.session, SessionTitled(title=text)
        )
    info = chat.app.store.sessions.find(chat.session)
    chat.view.say(f"Title: {one_line(info.title) or '(none yet)'}")


async def history(chat: "ChatConversation", count: str) -> None:
    """Shows the last messages again."""
    from hermes.surfaces.terminal.transcript import transcript

    if count and not count.isdecimal():
        raise UsageError("How many messages? Give a number.", hint="/history 20")
    most = int(count or _READ_AGAIN)
    rows = await asyncio.to_thread(
        lambda: list(chat.app.store.log.every_event(chat.session))
    )
    said = [
        index
        for index, row in enumerate(rows)
        if isinstance(row.event, UserMessage | AssistantMessage)
    ]
    start = said[-most] if len(said) >= most and most else 0
    for line in transcript(rows[start:], _screen(chat)):
        chat.screen.line(line)


async def search(chat: "ChatConversation", words: str) -> None:
    """Finds messages in all sessions."""
    from hermes.surfaces.terminal.search_results import hit_lines

    if not words:
        raise UsageError("What is to be found?", hint="/search WORDS")
    hits = await asyncio.to_thread(chat.app.store.search.find, words, limit=10)
    for line in hit_lines(hits, words, _screen(chat), chat.app.clock.now()):
        chat.screen.line(line)
    chat.view.say(
        "Go on with one: /resume ID"
        if hits
        else "Nothing was found. All words must be in one message."
    )


async def export(chat: "ChatConversation", name: str) -> None:
    """Writes the session to a new file."""
    path = _place(chat, name or f"{chat.session}.jsonl")
    try:
        await asyncio.to_thread(_write, chat, path)
    except FileExistsError as error:
        raise HermesError(
            f"There is a file {path} already; nothing was written.",
            hint="Give another name.",
        ) from error
    except OSError as error:
        raise HermesError(
            f"{path} can't be written ({(error.strerror or '').lower()})."
        ) from error
    chat.view.say(f"Written to {path}")


def _place(chat: "ChatConversation", name: str) -> Path:
    return (
        Path(chat.app.store.sessions.find(chat.session).cwd or ".")
        / Path(name).expanduser()
    )


def _write(chat: "ChatConversation", path: Path) -> None:
    store = chat.app.store
    with path.open("x", encoding="utf-8") as file:
        if path.suffix != ".md":
            file.writelines(f"{line}\n" for line in store.transfer.export(chat.session))
            return
        info = store.sessions.find(chat.session)
        file.write(f"# {one_line(info.title) or info.id}\n")
        for message in store.log.messages(chat.session):
            if (
                isinstance(message, UserMessage | AssistantMessage)
                and message.text.strip()
            ):
                who = "You" if isinstance(message, UserMessage) else "Hermes"
                file.write(f"\n## {who}\n\n{message.text.strip()}\n")


def _screen(chat: "ChatConversation") -> TextScreen:
    return TextScreen(chat.screen.columns - 1, chat.screen.style)

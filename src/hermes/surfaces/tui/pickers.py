"""The lists that a chat at a live screen offers: sessions, models, and turns to go back to."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.app import App
from hermes.app.attachments import typed_part
from hermes.app.undo import Rewind, RewindPoint, shadows_of
from hermes.commands.command import Command
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.store.sessions import SessionInfo
from hermes.surfaces.terminal.text import ago, count, one_line
from hermes.surfaces.tui.live_screen import LiveScreen
from hermes.surfaces.tui.overlays.picker import Picked, Picker, PickerItem, PickerText

if TYPE_CHECKING:
    from hermes.surfaces.tui.chat_port import TerminalChat
    from hermes.surfaces.tui.conversation import ChatConversation

_MAX_SESSIONS = 500
_PREVIEW_ROWS = 60  # of the log
_MAX_PREVIEW_CHARACTERS = 600  # of one message
_EXTENTS = (
    PickerItem("both", "Conversation and files"),
    PickerItem("conversation", "Conversation only", "files stay as they are"),
    PickerItem("files", "Files only", "the conversation stays"),
)


async def pick(
    chat: "ChatConversation",
    text: PickerText,
    items: Sequence[PickerItem],
    *,
    start: int = 0,
) -> Picked | None:
    """Lets the person choose. Returns None if they did not, or the screen can't show a list."""
    if not isinstance(chat.screen, LiveScreen):
        return None
    picker = Picker(text, items, chat.screen.marks, start=start)
    await chat.screen.show(picker)
    return picker.picked


async def pick_argument(port: "TerminalChat", command: Command) -> str | None:
    """Returns the argument for a command that was typed alone, chosen from a list.

    Empty if the command has no list; None if the person left the list without a choice.
    """
    if not isinstance(port.chat.screen, LiveScreen):
        return ""
    match command.slash:
        case "resume" | "sessions":
            return await _pick_session(port.chat)
        case "model":
            return await _pick_model(port)
        case _:
            return ""


async def pick_rewind(chat: "ChatConversation") -> tuple[RewindPoint, str] | None:
    """Returns the turn to go back to, and `both`, `conversation` or `files`."""
    rewind = Rewind(chat.app, shadows_of(chat.app))
    points = await asyncio.to_thread(rewind.points, chat.session)
    items = [
        PickerItem(
            point.turn,
            one_line(typed_part(point.text)) or "(no message)",
            "the last turn" if point.turns == 1 else f"{point.turns} turns back",
            lambda point=point: _turn_preview(rewind, chat.session, point),
        )
        for point in points
    ]
    title = "Go back to just before which message?"
    found = await pick(
        chat, PickerText(title=title, nothing="There is no turn to undo."), items
    )
    if found is None:
        return None
    what = await pick(chat, PickerText(title="Restore what?"), _EXTENTS)
    if what is None:
        return None
    point = next(one for one in points if one.turn == found.item.key)
    return point, what.item.key


async def _pick_session(chat: "ChatConversation") -> str | None:
    infos = await asyncio.to_thread(chat.app.store.sessions.recent, limit=_MAX_SESSIONS)
    others = [info for info in infos if info.id != chat.session and info.messages]
    now = time.time()
    items = [
        PickerItem(
            info.id,
            one_line(info.title) or "(no title)",
            _session_detail(info, now),
            lambda info=info: _session_preview(chat.app, info),
        )
        for info in others
    ]
    text = PickerText(
        title="Continue which session?", nothing="No other sessions yet.", enter="open"
    )
    found = await pick(chat, text, items)
    return found.item.key if found else None


async def _pick_model(port: "TerminalChat") -> str | None:
    names = await port.model_names()
    if not names:
        return ""
    current = port.agent.describe(port.session).name
    items = [
        PickerItem(name, name, _model_facts(name, is_current=name == current))
        for name in names
    ]
    start = names.index(current) if current in names else 0
    found = await pick(
        port.chat, PickerText(title="Which model answers?"), items, start=start
    )
    return found.item.key if found else None


def _model_facts(name: str, *, is_current: bool) -> str:
    from hermes.providers.catalogue import UNKNOWN, facts_of
    from hermes.text.plurals import short_number

    facts = facts_of(name)
    window = (
        "" if facts is UNKNOWN else f"{short_number(facts.window)} tokens of context"
    )
    return ", ".join(filter(None, ("current" if is_current else "", window)))


def _session_detail(info: SessionInfo, now: float) -> str:
    parts = (ago(info.updated, now), count(info.messages, "message"), info.surface)
    return " · ".join(part for part in parts if part)


def _session_preview(app: App, info: SessionInfo) -> str:
    """Returns how a session ended: its last messages; then its folder and id."""
    rows = app.store.log.events(
        info.id, after=max(0, info.head - _PREVIEW_ROWS), limit=_PREVIEW_ROWS
    )
    messages: list[str] = []
    for row in rows:
        match row.event:
            case UserMessage(text=text, origin="user"):
                messages.append(f"› {_shortened(typed_part(text))}")
            case AssistantMessage(text=text) if text.strip():
                messages.append(_shortened(text))
            case _:
                pass
    return "\n".join([*messages[-2:], "", info.cwd, info.id])


def _turn_preview(rewind: Rewind, session: str, point: RewindPoint) -> str:
    """Returns the message, and what its turn changed in files."""
    diff = _without_headers(rewind.diff(session, turn=point.turn))
    return f"{_shortened(typed_part(point.text))}\n\n{diff or 'No files were changed.'}"


def _without_headers(diff: str) -> str:
    """Returns a diff in which each file is named once."""
    lines: list[str] = []
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            lines.append(line.rpartition(" b/")[2])
        elif not line.startswith(("index ", "--- ", "+++ ")):
            lines.append(line)
    return "\n".join(lines)


def _shortened(text: str) -> str:
    text = text.strip()
    if len(text) <= _MAX_PREVIEW_CHARACTERS:
        return text
    return text[: _MAX_PREVIEW_CHARACTERS - 1].rstrip() + "…"

"""The slash commands of a chat: one table, from which help is made too. A command is an async function of the chat."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from hermes.surfaces.terminal.style import columns as aligned
from hermes.surfaces.terminal.text import ago, cut, money, one_line

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import Chat


class Slash(NamedTuple):
    """One line of the table."""

    name: str
    value: str
    summary: str
    run: "Callable[[Chat, str], Awaitable[None]]"


async def _help(chat: "Chat", _: str) -> None:
    rows = [(f"/{slash.name} {slash.value}".rstrip(), slash.summary) for slash in SLASHES]
    if chat.screen.columns < 60:
        for name, summary in rows:
            chat.screen.line(f"{name}  {chat.screen.style.dim(summary)}")
    else:
        for line in aligned(rows):
            chat.screen.line(line)
    chat.view.say("A \\ at the end of a line begins another. What you type while Hermes works waits for its turn.")


async def _new(chat: "Chat", _: str) -> None:
    await chat.change_session("")


async def _resume(chat: "Chat", name: str) -> None:
    if name:
        await chat.change_session(name)
    else:
        await _sessions(chat, "")
        chat.view.say("Go on with one: /resume ID")


async def _sessions(chat: "Chat", _: str) -> None:
    now = chat.app.clock.now()
    for info in chat.app.store.sessions.recent(limit=10):
        mark = "*" if info.id == chat.session else " "
        text = f"{mark} {info.id}  {ago(info.updated, now)}  {one_line(info.title)}"
        chat.screen.line(cut(text, chat.screen.columns - 1))


async def _title(chat: "Chat", title: str) -> None:
    if title:
        await chat.rename(title)
    info = chat.app.store.sessions.find(chat.session)
    chat.view.say(f"Title: {one_line(info.title) or '(none yet)'}")


async def _model(chat: "Chat", name: str) -> None:
    if name:
        await chat.change_model(name)
    model = chat.agent.describe()
    chat.view.say(f"{model.provider} {model.name}. Another: /model NAME, or /model PROVIDER:NAME")


async def _cost(chat: "Chat", _: str) -> None:
    rows = chat.app.store.sessions.usage(session=chat.session)
    tokens = sum(row.input_tokens + row.output_tokens for row in rows)
    cost = money(sum(row.cost_usd for row in rows)) or "$0"
    unpriced = sum(row.unpriced_calls for row in rows)
    rest = f", and {unpriced:,} calls whose price is not known" if unpriced else ""
    chat.view.say(f"{sum(row.calls for row in rows):,} calls, {tokens:,} tokens, {cost}{rest}")


async def _status(chat: "Chat", _: str) -> None:
    info = chat.app.store.sessions.find(chat.session)
    model = chat.agent.describe()
    rows = [
        ("session", info.id),
        ("title", one_line(info.title)),
        ("model", f"{model.provider} {model.name}"),
        ("folder", info.cwd),
        ("approvals", chat.approvals),
        ("now", "working" if chat.view.busy else "waiting for you"),
    ]
    for line in aligned([row for row in rows if row[1]], indent=0):
        chat.screen.line(cut(line, chat.screen.columns - 1))


async def _steer(chat: "Chat", text: str) -> None:
    if text:
        await chat.submit(text, delivery="steer")
    else:
        chat.view.say("Say what the model should know now: /steer TEXT")


async def _stop(chat: "Chat", _: str) -> None:
    if chat.view.busy:
        await chat.agent.service.interrupt(chat.session, by="cli")
    else:
        chat.view.say("Nothing is running.")


async def _quit(chat: "Chat", _: str) -> None:
    chat.quit()


SLASHES = (
    Slash("help", "", "this list", _help),
    Slash("new", "", "begin a new session", _new),
    Slash("resume", "ID", "go on with another session", _resume),
    Slash("sessions", "", "the sessions used last", _sessions),
    Slash("title", "TEXT", "name this session", _title),
    Slash("model", "NAME", "which model answers; change it", _model),
    Slash("cost", "", "what this session took", _cost),
    Slash("status", "", "session, model, folder", _status),
    Slash("steer", "TEXT", "tell the model something while it works", _steer),
    Slash("stop", "", "stop the running turn", _stop),
    Slash("quit", "", "leave; the session stays", _quit),
)


def find_slash(name: str) -> Slash | None:
    """The command of that name, or the only one that begins so."""
    exact = [slash for slash in SLASHES if slash.name == name]
    begun = [slash for slash in SLASHES if name and slash.name.startswith(name)]
    return next(iter(exact), begun[0] if len(begun) == 1 else None)

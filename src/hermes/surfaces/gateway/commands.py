"""Slash commands in a chat: one table, with who may use each. Skills are commands too."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from hermes.app import App
from hermes.app.agent import ApprovalMode, ModelInfo
from hermes.app.agent_pool import Staff
from hermes.app.session_service import SessionService
from hermes.app.undo import Rewind, UndoReport, shadows_of
from hermes.core.answers import approval_hash
from hermes.errors import SessionNotFound
from hermes.learning.change import LearningError
from hermes.schema.events import ApprovalRequested, SessionTitled
from hermes.store.chats import Binding
from hermes.surfaces.gateway.access import Role
from hermes.surfaces.gateway.adapter import Inbound
from hermes.surfaces.gateway.questions import Verdict, choice, number_of, verdict_of

if TYPE_CHECKING:
    from hermes.surfaces.gateway.chat_sessions import ChatSessions
    from hermes.surfaces.gateway.deliveries import Deliveries

_COMMAND = re.compile(
    r"/(?P<name>[A-Za-z0-9_\-]{1,64})(?:@\S+)?(?:\s+(?P<words>.*))?\s*", re.DOTALL
)
_ALIASES = {
    "start": "help",
    "reset": "new",
    "clear": "new",
    "cost": "usage",
    "yes": "approve",
    "no": "deny",
}
_MODES: tuple[ApprovalMode, ...] = ("ask", "auto-edit", "full")
_SHOWN = 10  # sessions
_HOW = "Say /approve, /approve session, /approve always or /deny, with the number of a request if several wait."


class Asking(NamedTuple):
    """Who says what where."""

    key: str
    inbound: Inbound
    role: Role
    binding: Binding

    @property
    def via(self) -> str:
        """How the log names the message."""
        return f"{self.key}#{self.inbound.id}"


class Command(NamedTuple):
    """One line of the table."""

    name: str
    value: str
    summary: str
    run: Callable[["Commands", Asking, str], Awaitable[str]]
    only: Literal["owner", ""] = ""


class Commands:
    """What follows a slash."""

    def __init__(
        self, app: App, staff: Staff, office: "Deliveries", rooms: "ChatSessions"
    ) -> None:
        self._app = app
        self._staff = staff
        self._office = office
        self._rooms = rooms
        self._rewind = Rewind(app, shadows_of(app))
        self.reload: Callable[[], str] = lambda: "This gateway can't be reloaded."

    async def run(self, asking: Asking) -> str | None:
        """The answer to a command, empty when it answers itself; None when it is none."""
        found = _COMMAND.fullmatch(asking.inbound.text)
        if not found:
            return None
        name = found["name"].lower()
        name, words = _ALIASES.get(name, name), (found["words"] or "").strip()
        command = next((one for one in COMMANDS if one.name == name), None)
        if command is None:
            return await self._skill(asking, name, words)
        if command.only == "owner" and asking.role != "owner":
            return f"Only an owner can use /{name}."
        self._office.tell(f"gateway.command.{name}", asking.binding)
        return await command.run(self, asking, words)

    async def help(self, asking: Asking, _: str) -> str:
        rows = [
            f"/{one.name} {one.value}".rstrip() + f" — {one.summary}"
            for one in COMMANDS
            if one.only != "owner" or asking.role == "owner"
        ]
        return "\n".join(
            [
                "Just write what you need.",
                "",
                *rows,
                "",
                *await asyncio.to_thread(self._skills),
            ]
        )

    async def new(self, asking: Asking, _: str) -> str:
        await self._stop(asking)
        self._office.tell("gateway.session.end", asking.binding)
        await self._rooms.begin(asking.key, asking.inbound, asking.role)
        return "A new session has begun. The old one is kept."

    async def stop(self, asking: Asking, _: str) -> str:
        return "" if await self._stop(asking) else "Nothing is running."

    async def status(self, asking: Asking, _: str) -> str:
        session = asking.binding.session
        info = self._app.store.sessions.find(session)
        running = self._app.store.leases.holder(session) is not None
        model = self._staff.agent(session).describe(session)
        return "\n".join(
            [
                f"Session: `{session}`" + (f" — {info.title}" if info.title else ""),
                f"Engine: {'codex' if model.engine == 'codex' else 'Hermes'}",
                f"Model: {_model(model)}",
                f"Folder: `{info.cwd}`",
                f"{info.messages} messages, {info.turns} turns; {'working now' if running else 'idle'}",
                f"You are: {asking.role}",
                f"In a terminal: `hermes --resume {session}`",
            ]
        )

    async def retry(self, asking: Asking, _: str) -> str:
        session = asking.binding.session
        await asyncio.to_thread(self._rewind.retry, session, via=asking.via)
        await self._staff.service(session).resume(session)
        return ""

    async def undo(self, asking: Asking, words: str) -> str:
        turns = int(words) if words.isdecimal() else 1
        return _undone(
            await asyncio.to_thread(
                self._rewind.undo, asking.binding.session, turns=turns
            )
        )

    async def redo(self, asking: Asking, _: str) -> str:
        report = await asyncio.to_thread(self._rewind.redo, asking.binding.session)
        return f"Back again: {report.text[:200]}"

    async def model(self, asking: Asking, words: str) -> str:
        if not words:
            names = [
                choice.name for choice in await asyncio.to_thread(self._staff.choices)
            ]
            session = asking.binding.session
            now = self._staff.agent(session).describe(session)
            others = "\n".join(f"- `{name}`" for name in names[:20])
            return f"{_model(now)} answers." + (f" Others:\n{others}" if others else "")
        name = "" if words in {"default", "off"} else words
        from hermes.providers.build import build_model
        from hermes.settings.load import load_secrets

        secrets = load_secrets(home=self._app.home)
        await build_model(
            self._app.settings, secrets, model=name
        ).close()  # raises when there is no such model
        await asyncio.wrap_future(self._app.store.chats.set_model(asking.key, name))
        return f"From the next message on {name or 'the model of the settings'} answers here."

    async def usage(self, asking: Asking, _: str) -> str:
        rows = await asyncio.to_thread(
            self._app.store.sessions.usage, session=asking.binding.session
        )
        calls, cost = sum(row.calls for row in rows), sum(row.cost_usd for row in rows)
        tokens = sum(row.input_tokens + row.output_tokens for row in rows)
        unknown = sum(row.unpriced_calls for row in rows)
        note = f" ({unknown} calls have no known price)" if unknown else ""
        return (
            f"This session: {calls} model calls, {tokens:,} tokens, ${cost:.4f}{note}"
        )

    async def approve(self, asking: Asking, words: str) -> str:
        number, word = _named(words)
        verdict = verdict_of(word or "once")
        return await self._answer(asking, number, verdict) if verdict else _HOW

    async def deny(self, asking: Asking, words: str) -> str:
        found = re.match(
            r"#?(\d{4}(?=\s)|\d+$)\s*", words
        )  # any other number belongs to the reason
        number, reason = (found[1], words[found.end() :]) if found else ("", words)
        return await self._answer(asking, number, "deny", reason)

    async def resume(self, asking: Asking, words: str) -> str:
        if not words:
            infos = await asyncio.to_thread(
                self._app.store.sessions.recent, limit=_SHOWN
            )
            return (
                "\n".join(f"- `{info.id}` {info.title}" for info in infos)
                + "\n\n/resume ID goes on with one."
            )
        binding = await self._rooms.move(asking.key, asking.inbound, words)
        return f"This chat goes on with `{binding.session}`."

    async def title(self, asking: Asking, words: str) -> str:
        if not words:
            return "Which title?"
        await asyncio.to_thread(
            self._app.record, asking.binding.session, SessionTitled(title=words[:200])
        )
        return f"It is called {words[:200]} now."

    async def compress(self, asking: Asking, _: str) -> str:
        done = await self._staff.agent(asking.binding.session).compress(
            asking.binding.session
        )
        return (
            f"There is room again: about {done.before:,} tokens became {done.after:,}."
        )

    async def approvals(self, _: Asking, words: str) -> str:
        mode = next((one for one in _MODES if one == words), None)
        if mode is None:
            return f"Which of {', '.join(_MODES)}? It counts for every chat until the gateway is started again."
        self._staff.use(approvals=mode)
        await self._staff.settle_allowed()
        return f"From now on, in every chat: {mode}."

    async def restart(self, _: Asking, __: str) -> str:
        return self.reload()

    async def _stop(self, asking: Asking) -> bool:
        session = asking.binding.session
        if self._app.store.leases.holder(session) is None:
            return False
        by = f"{asking.inbound.chat.platform} ({asking.inbound.person.name})"
        await self._staff.service(session).interrupt(session, by=by)
        return True

    async def _answer(
        self, asking: Asking, number: str, verdict: Verdict, reason: str = ""
    ) -> str:
        """Answers a request of this chat's session, or one that others asked here; without a number the only one."""
        if not self._office.may_approve(asking.role):
            return "Only an owner can answer this."
        others = self._app.store.chats.shown(asking.key)
        waiting = [
            (session, asked)
            for session in dict.fromkeys((asking.binding.session, *others))
            for asked in await _open_requests(self._staff.service(session), session)
        ]
        meant = [one for one in waiting if number in ("", number_of(*one))]
        if not waiting:
            return "Nothing waits for an approval here."
        if not meant:
            return f"No request {number} waits here.\n\n{choice(waiting)}"
        if len(meant) > 1:
            return choice(meant)
        session, asked = meant[0]
        by = f"{asking.inbound.chat.platform} ({asking.inbound.person.name or asking.inbound.person.id})"
        service, shown = self._staff.service(session), approval_hash(asked)
        counted = await service.answer(
            session, asked.call_id, verdict, by=by, shown=shown, reason=reason
        )
        return "" if counted else "Somebody was faster, or it has expired."

    def _skills(self) -> Iterable[str]:
        learning = self._staff.agent().learner.learning
        try:
            return [
                f"/{skill.name.replace('-', '_')} — {skill.description}"
                for skill in learning.commands(_RESERVED)
            ]
        except (LearningError, OSError):
            return []

    async def _skill(self, asking: Asking, name: str, words: str) -> str | None:
        """A skill by its name, with _ for - where a platform does not know that; None when it is just text."""
        learning = self._staff.agent(asking.binding.session).learner.learning
        lines = [
            f"/{one} {words}".rstrip()
            for one in dict.fromkeys((name, name.replace("_", "-")))
        ]
        for line in lines:
            if (
                text := await asyncio.to_thread(learning.called, line, _RESERVED)
            ) is not None:
                break
        else:
            return f"There is no command /{name}. /help shows what there is."
        session = asking.binding.session
        await self._staff.service(session).submit(session, text, via=asking.via)
        return ""


async def _open_requests(
    service: SessionService, session: str
) -> list[ApprovalRequested]:
    try:
        return [
            asked
            for asked in await service.pending(session)
            if isinstance(asked, ApprovalRequested)
        ]
    except SessionNotFound:  # deleted since
        return []


def _named(words: str) -> tuple[str, str]:
    """The number of a request and what else was said."""
    parts = [part.removeprefix("#") for part in words.split()]
    number = next((part for part in parts if part.isdecimal()), "")
    return number, " ".join(part for part in parts if part != number)


def _undone(report: UndoReport) -> str:
    kept = (
        f" {len(report.files.restored)} files are as they were."
        if report.files.restored
        else ""
    )
    return f"Taken back: {report.text[:200]}.{kept} /redo brings it back."


COMMANDS: tuple[Command, ...] = (
    Command("help", "", "this list", Commands.help),
    Command("new", "", "begin a new session", Commands.new),
    Command("stop", "", "stop what is running", Commands.stop),
    Command("status", "", "session, model and folder", Commands.status),
    Command("retry", "", "ask the same again", Commands.retry),
    Command("undo", "N", "take back the last turn, or N of them", Commands.undo),
    Command("redo", "", "bring back what the last undo took", Commands.redo),
    Command("usage", "", "tokens and money of this session", Commands.usage),
    Command("title", "TEXT", "name this session", Commands.title),
    Command("compress", "", "make room in a long conversation", Commands.compress),
    Command(
        "approve",
        "N WORD",
        "allow what waits: once, session or always",
        Commands.approve,
    ),
    Command(
        "deny",
        "N WHY",
        "deny it; the model gets your reason, if you give one",
        Commands.deny,
    ),
    Command(
        "model", "NAME", "which model answers here; change it", Commands.model, "owner"
    ),
    Command(
        "resume", "ID", "go on with a session from elsewhere", Commands.resume, "owner"
    ),
    Command(
        "approvals",
        "MODE",
        "what is not asked: ask, auto-edit or full",
        Commands.approvals,
        "owner",
    ),
    Command(
        "restart",
        "",
        "read the settings anew and connect again",
        Commands.restart,
        "owner",
    ),
)
_RESERVED = frozenset((*(command.name for command in COMMANDS), *_ALIASES))


def _model(info: ModelInfo) -> str:
    return (
        f"{info.provider}:{info.name}"
        if info.name
        else f"{info.provider} with its own model"
    )

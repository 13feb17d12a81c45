"""Slash commands in a chat app: those of the command table that a role may use, and a few that only chat apps have.
Skills are commands too."""

import asyncio
import functools
import logging
import re
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.engine import ApprovalMode
from hermes.app.people_access import Role
from hermes.app.prompt_files import aliased, called_prompt
from hermes.app.session_service import SessionService
from hermes.app.speech import spoken_replies
from hermes.commands.command import Arg, Command, command
from hermes.commands.context import CommandContext
from hermes.commands.markdown import markdown, markdown_of
from hermes.commands.table import CHAT_APP_MODULES, chat_commands, commands_in
from hermes.commands.views import Block, TextResult, message
from hermes.commands.voice import sense_health
from hermes.core.answers import approval_hash
from hermes.errors import HermesError, Refused, SessionBusy, SessionNotFound
from hermes.learning.change import LearningError
from hermes.schema.events import ApprovalRequested, SpokenReplies, SpokenRepliesSet
from hermes.store.chats import Binding
from hermes.surfaces.gateway.adapter import Inbound
from hermes.surfaces.gateway.questions import (
    Verdict,
    choice,
    number_of,
    only_owners_make_rules,
    rule_of,
    verdict_of,
)
from hermes.text.translation import shown_reason, to_translate, translator

if TYPE_CHECKING:
    from hermes.surfaces.gateway.chat_sessions import ChatSessions
    from hermes.surfaces.gateway.deliveries import Deliveries

t = translator(__name__)

log = logging.getLogger("hermes.gateway")
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
_HOW = to_translate(
    "Use /approve, /approve session, /approve always or /deny, with the number of a request if several wait."
)
_SPOKEN_REPLIES: dict[str, str] = {
    "off": to_translate("Replies are not spoken."),
    "on": to_translate("Replies to voice notes are spoken."),
    "tts": to_translate("All replies are spoken."),
}
_DEFAULT_MODEL = ("default", "off")


class CommandRequest(NamedTuple):
    """A command, its sender and its chat."""

    key: str
    inbound: Inbound
    role: Role
    binding: Binding

    @property
    def via(self) -> str:
        """How the log names the message."""
        return f"{self.key}#{self.inbound.id}"

    @property
    def by(self) -> str:
        """How the log names the person."""
        person = self.inbound.person
        return f"{self.inbound.chat.platform} ({person.name or person.id})"


class ChatCommands:
    """Runs the slash commands of chats."""

    def __init__(
        self, app: App, agent: Agent, deliveries: "Deliveries", sessions: "ChatSessions"
    ) -> None:
        self.app = app
        self.agent = agent
        self.deliveries = deliveries
        self.sessions = sessions
        self.reload: Callable[[], str] = lambda: t("This gateway can't be reloaded.")

    async def run(self, request: CommandRequest) -> str | None:
        """The answer to a command, empty when it answers itself; None when it is none."""
        typed = aliased(request.inbound.text, self.app.settings.aliases)
        found = _COMMAND.fullmatch(typed)
        if not found:
            return await self._server_prompt(request, typed)
        name = found["name"].lower()
        name, words = _ALIASES.get(name, name), (found["words"] or "").strip()
        dashed = name.replace("_", "-")  # some platforms know no other
        one = next((one for one in chat_app_commands() if one.slash == dashed), None)
        if one is None:
            return await self._skill(request, name, words)
        if one.role == "owner" and request.role != "owner":
            return t("Only an owner can use /{name}.", name=name)
        chat = AppChat(self, request)
        if one.private and chat.has_audience:
            return t(
                "Other people in this chat would see it. Use it in a private chat with me."
            )
        self.deliveries.publish(f"gateway.command.{name}", request.binding)
        arguments = one.words(words, {"session": chat.session})
        before = await asyncio.to_thread(self._settings_changed_ns)
        with CommandContext(chat, app=self.app, conversation=chat) as context:
            result = await one.run(context, arguments)
            shown = await asyncio.to_thread(markdown, result, time.time())
        chat.is_over = True
        is_changed = await asyncio.to_thread(self._settings_changed_ns) != before
        note = t("Send /restart to use the new settings here.") if is_changed else ""
        return "\n".join(filter(None, (*chat.notes, shown, note)))

    def _settings_changed_ns(self) -> int:
        """When the settings file was written; the gateway reads it at its start and on /restart."""
        try:
            return self.app.home.config.stat().st_mtime_ns
        except OSError:
            return 0

    def skill_lines(self) -> Iterable[str]:
        """The skills as help lists them."""
        learning = self.agent.learner.learning
        try:
            return [
                f"/{skill.name.replace('-', '_')} — {skill.description}"
                for skill in learning.commands(_reserved())
            ]
        except (LearningError, OSError):
            return []

    async def _skill(self, request: CommandRequest, name: str, words: str) -> str:
        """A skill by its name, with _ for - where a platform does not know that."""
        called = self.agent.learner.learning.called
        for one in dict.fromkeys((name, name.replace("_", "-"))):
            line = f"/{one} {words}".rstrip()
            text = await asyncio.to_thread(called, line, _reserved())
            session = request.binding.session
            if text is None and request.role == "owner":
                text = await asyncio.to_thread(self._prompt, session, line)
            if text is not None:
                await self.agent.service.submit(session, text, via=request.via)
                return ""
        said = await self._of_plugin(name, words) if request.role == "owner" else None
        return said or t("There is no command /{name}. /help lists them.", name=name)

    async def _of_plugin(self, name: str, words: str) -> str | None:
        """What a plugin's slash command says; None if no enabled plugin has one of that name."""
        plugins = self.app.plugins
        if plugins is None:
            return None
        from hermes.app.plugin_parts import run_plugin_command

        commands = await asyncio.to_thread(lambda: plugins.commands)
        found = commands.get(name) or commands.get(name.replace("_", "-"))
        if found is None:
            return None
        return await run_plugin_command(found, words) or f"/{name} is done."

    async def _server_prompt(self, request: CommandRequest, typed: str) -> str | None:
        """Sends the prompt of an MCP server that an owner calls; None if the text calls none."""
        if not typed.startswith("/") or request.role != "owner":
            return None
        message = await self.agent.with_server_texts(typed)
        if message.text == typed:
            return None
        session = request.binding.session
        await self.agent.service.submit(session, message.text, via=request.via)
        return "\n".join(map(shown_reason, message.left))

    def _prompt(self, session: str, line: str) -> str | None:
        """The message of a command from a file."""
        folder = self.app.store.sessions.origin(session).working_directory
        return called_prompt(
            self.agent.prompt_files, folder, line, self.agent.check_command
        )


class AppChat:
    """Implements `Conversation` and `Surface` for a chat in an app."""

    def __init__(self, commands: ChatCommands, request: CommandRequest) -> None:
        self.commands = commands
        self.request = request
        self.name = request.inbound.chat.platform
        self.notes: list[str] = []
        """What is said before the result."""
        self.is_over = False
        """Whether the command has returned its result. What it says later is a message of its own."""

    @property
    def session(self) -> str:
        return self.request.binding.session

    @property
    def agent(self) -> Agent:
        return self.commands.agent

    @property
    def approvals(self) -> ApprovalMode:
        return self.agent.mode(self.session)

    @property
    def via(self) -> str:
        return self.request.via

    @property
    def _is_running(self) -> bool:
        return self.commands.app.store.leases.holder(self.session) is not None

    @property
    def has_audience(self) -> bool:
        """A group reads every answer, also where each person in it has a session of their own."""
        return self.request.inbound.chat.kind != "direct"

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        return (
            ("now", "working" if self._is_running else "idle"),
            ("you are", self.request.role),
            ("in a terminal", f"hermes --resume {self.session}"),
        )

    async def require_idle(self) -> None:
        if await self.commands.agent.service.is_busy(self.session):
            raise SessionBusy(
                t("Hermes is working."), hint=t("Stop it first with /stop.")
            )

    async def leave_running(self) -> str:
        return await self._begin()

    async def begin(self) -> str:
        await self.stop()
        return await self._begin()

    async def _begin(self) -> str:
        request = self.request
        self.commands.deliveries.publish("gateway.session.end", request.binding)
        begun = await self.commands.sessions.begin(
            request.key, request.inbound, request.role
        )
        return begun.session

    async def enter(self, name: str, *, recap: bool) -> None:  # noqa: ARG002 - the chat itself shows where it was
        request = self.request
        moved = await self.commands.sessions.move(request.key, request.inbound, name)
        self.notes.append(t("This chat continues `{session}`.", session=moved.session))

    async def resume(self) -> None:
        await self.agent.service.resume(self.session)

    async def stop(self) -> bool:
        if not self._is_running:
            return False
        await self.agent.service.interrupt(self.session, by=self.request.by)
        return True

    def rewound(self, text: str) -> None:
        """Nothing here remembers files or what was typed."""

    async def model_names(self) -> list[str]:
        return [one.name for one in await asyncio.to_thread(self.agent.choices)]

    async def use_model(self, name: str, *, force: bool) -> str:  # noqa: ARG002 - no list is asked for
        from hermes.providers.build import build_model
        from hermes.settings.load import load_secrets

        app = self.commands.app
        chosen = "" if name in _DEFAULT_MODEL else name
        secrets = load_secrets(home=app.home)
        model = build_model(app.settings, secrets, model=chosen)  # raises if unknown
        await model.close()
        stored = app.store.chats.set_model(self.request.key, chosen)
        await asyncio.wrap_future(stored)
        self.agent.forget_choice(self.session)
        answers = chosen or t("the model of the settings")
        return t("From the next message on, this chat uses {model}.", model=answers)

    async def use_approvals(self, mode: ApprovalMode) -> str:
        await self.agent.set_mode(self.session, mode)
        return t("This applies to this chat's session until the gateway restarts.")

    def tell(self, *blocks: Block) -> None:
        """Sends what work in the background found. Progress is not sent: each message would be one more."""
        if self.is_over:
            self.agent.background.start(self._send(markdown_of(blocks)))

    async def _send(self, text: str) -> None:
        try:
            await self.commands.deliveries.send_text(self.request.inbound.chat, text)
        except HermesError as error:
            log.warning("a result could not be sent: %s", error)

    def warn(self, message: str, hint: str = "") -> None:
        self.notes.append(f"{message} {hint}".rstrip())

    def confirm(self, question: str, nothing_done: str) -> bool:
        raise Refused(
            f"{question} {t('This can’t be confirmed here.')}",
            hint=nothing_done,
        )

    def read_secret(self, name: str) -> str:
        raise HermesError(t("A secret is not typed in a chat: {name}.", name=name))


@functools.cache
def chat_app_commands() -> tuple[Command, ...]:
    """Every command of chat apps, in the order of the help."""
    import sys

    shared = [one for one in chat_commands(CHAT_APP_MODULES) if one.role]
    return (*commands_in(sys.modules[__name__]), *shared)


def from_exclamation_mark(text: str) -> str:
    """A message with `!stop` as `/stop`, for platforms that keep commands with a slash to themselves."""
    mark, rest = text[:1], text[1:]
    if mark != "!" or not rest.strip():
        return text
    name = rest.split(maxsplit=1)[0].lower()
    return f"/{rest}" if name in _reserved() else text


@functools.cache
def _reserved() -> frozenset[str]:
    """Names that no skill can take."""
    return frozenset((*(one.slash for one in chat_app_commands()), *_ALIASES))


def _chat(context: CommandContext) -> AppChat:
    return cast("AppChat", context.surface)


@command(slash="help", role="user")
async def show_help(context: CommandContext) -> TextResult:
    """Show this list."""
    chat = _chat(context)
    rows = [
        f"/{one.slash} {one.slash_value}".rstrip() + f" — {one.summary}"
        for one in chat_app_commands()
        if one.role != "owner" or chat.request.role == "owner"
    ]
    skills = await asyncio.to_thread(chat.commands.skill_lines)
    return message(t("Just write what you need."), "", *rows, "", *skills)


@command(slash="approve words", role="user")
async def approve(
    context: CommandContext,
    words: Annotated[str, Arg(metavar="N WORD")] = "",
) -> TextResult:
    """Allow what waits: once, session or always."""
    parts = [part.removeprefix("#") for part in words.split()]
    number = next((part for part in parts if part.isdecimal()), "")
    word = " ".join(part for part in parts if part != number)
    verdict = verdict_of(word or "once")
    if verdict is None:
        return message(t.marked(_HOW))
    return message(await _answer(_chat(context), number, verdict))


@command(slash="deny words", role="user")
async def deny(
    context: CommandContext,
    words: Annotated[str, Arg(metavar="N WHY")] = "",
) -> TextResult:
    """Deny it; the model gets your reason, if you give one."""
    # Only a number of four digits, or one alone, names a request; any other belongs to the reason.
    found = re.match(r"#?(\d{4}(?=\s)|\d+$)\s*", words)
    number, reason = (found[1], words[found.end() :]) if found else ("", words)
    return message(await _answer(_chat(context), number, "deny", reason))


@command(slash="restart", role="owner")
async def restart(context: CommandContext) -> TextResult:
    """Read the settings again and reconnect."""
    return message(_chat(context).commands.reload())


@command(slash="voice mode", role="user")
async def set_spoken_replies(
    context: CommandContext,
    mode: Annotated[str, Arg("on, off or tts", metavar="on|off|tts")] = "",
) -> TextResult:
    """Speak replies: on (to voice notes), tts (all) or off; alone: the current setting."""
    chat = _chat(context)
    app, word = context.app, mode.strip().lower()
    if not word:
        now = await asyncio.to_thread(spoken_replies, app, chat.session)
        return message(
            f"{t.marked(_SPOKEN_REPLIES[now])} {t('Change it with /voice on, off or tts.')}"
        )
    if word not in _SPOKEN_REPLIES:
        return message(t("{mode} is not one of on, off and tts.", mode=mode))
    if word != "off":
        deps = chat.commands.deliveries.speech()
        health = (await asyncio.to_thread(sense_health, deps))[1]
        if health.to_do:
            return message(f"{health.text}. {health.to_do}")
    chosen = SpokenRepliesSet(mode=cast("SpokenReplies", word))
    await asyncio.to_thread(app.record, chat.session, chosen)
    return message(t.marked(_SPOKEN_REPLIES[word]))


async def _answer(
    chat: AppChat, number: str, verdict: Verdict, reason: str = ""
) -> str:
    """Answers a request of this chat's session, or one that others asked here; without a number the only one."""
    commands, request = chat.commands, chat.request
    if not commands.deliveries.may_approve(request.role):
        return t("Only an owner can answer this.")
    if verdict == "always" and request.role != "owner":
        return only_owners_make_rules()
    store = commands.app.store
    others = await store.call(store.chats.shown, request.key)
    service = chat.agent.service
    waiting = [
        (session, asked)
        for session in dict.fromkeys((chat.session, *others))
        for asked in await _open_requests(service, session)
    ]
    meant = [one for one in waiting if number in ("", number_of(*one))]
    if not waiting:
        return t("No approval is pending here.")
    platform = request.inbound.chat.platform
    mark = commands.deliveries.sender(platform).adapter.limits.command_mark
    if not meant:
        unknown = t("Request {number} is not pending here.", number=number)
        return f"{unknown}\n\n{choice(waiting, mark=mark)}"
    if len(meant) > 1:
        return choice(meant, mark=mark)
    session, asked = meant[0]
    counted = await service.answer(
        session,
        asked.call_id,
        verdict,
        by=request.by,
        shown=approval_hash(asked),
        reason=reason,
        rule=rule_of(asked, verdict),
    )
    return (
        "" if counted else t("Somebody already answered, or the request has expired.")
    )


async def _open_requests(
    service: SessionService, session: str
) -> list[ApprovalRequested]:
    try:
        pending = await service.pending(session)
    except SessionNotFound:  # deleted since
        return []
    return [asked for asked in pending if isinstance(asked, ApprovalRequested)]

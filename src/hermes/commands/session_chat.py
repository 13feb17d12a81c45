"""A chat for commands on surfaces that show sessions in a way of their own, such as an editor or a web page.

It implements `Conversation` and `Surface`. Messages of a command before its result are kept in `notes`; the surface
decides how to open another session.
"""

import asyncio
import time
from collections.abc import Iterable

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.engine import ApprovalMode
from hermes.commands.command import Command
from hermes.commands.context import CommandContext
from hermes.commands.markdown import markdown
from hermes.commands.views import Block
from hermes.errors import HermesError, Refused, SessionBusy
from hermes.text.translation import translator

t = translator(__name__)


class SessionChat:
    """The chat of one session."""

    name = ""
    has_audience = False
    via = ""

    def __init__(self, app: App, agent: Agent, session: str) -> None:
        self.app = app
        self.agent = agent
        self.session = session
        self.notes: list[str] = []
        """What is said before the result."""

    @property
    def approvals(self) -> ApprovalMode:
        return self.agent.mode(self.session)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        return (("in a terminal", f"hermes --resume {self.session}"),)

    async def require_idle(self) -> None:
        if await self.agent.service.is_busy(self.session):
            raise SessionBusy(t("Hermes is working."), hint=t("Stop it first."))

    async def begin(self) -> str:
        raise Refused(t("Start a new conversation yourself."))

    async def leave_running(self) -> str:
        raise Refused(t("Start a new conversation yourself; this turn keeps running."))

    async def enter(self, name: str, *, recap: bool) -> None:  # noqa: ARG002 - the port's shape
        self.notes.append(
            t("Open the session `{name}`, or: hermes --resume {name}", name=name)
        )

    async def resume(self) -> None:
        await self.agent.service.resume(self.session)

    async def stop(self) -> bool:
        if not self.agent.service.works_on(self.session):
            return False
        await self.agent.service.interrupt(self.session, by=self.name)
        return True

    def rewound(self, text: str) -> None:
        self.notes.append(t("You had written: {text}", text=text) if text else "")

    async def model_names(self) -> list[str]:
        return [one.name for one in await asyncio.to_thread(self.agent.choices)]

    async def use_model(self, name: str, *, force: bool) -> str:  # noqa: ARG002 - no list is asked for
        await asyncio.to_thread(self.agent.choose, self.session, name)
        return t("From the next message on, {name} answers.", name=name)

    async def use_approvals(self, mode: ApprovalMode) -> str:
        await self.agent.set_mode(self.session, mode)
        return t("This applies to this session.")

    def tell(self, *blocks: Block) -> None:
        """Progress is not shown."""

    def warn(self, message: str, hint: str = "") -> None:
        self.notes.append(f"{message} {hint}".rstrip())

    def confirm(self, question: str, nothing_done: str) -> bool:
        raise Refused(
            t("{question} This can't be confirmed here.", question=question),
            hint=nothing_done,
        )

    def read_secret(self, name: str) -> str:
        raise HermesError(t("Secrets can't be typed into a chat: {name}.", name=name))

    async def run(self, command: Command, words: str) -> str:
        """Runs a command with the words after it. Returns the answer as Markdown."""
        arguments = command.words(words.strip(), {"session": self.session})
        with CommandContext(self, app=self.app, conversation=self) as context:
            result = await command.run(context, arguments)
            shown = await asyncio.to_thread(markdown, result, time.time())
        return "\n".join(filter(None, (*self.notes, shown)))


def find_command(commands: Iterable[Command], name: str) -> Command | None:
    """The command with a slash and this name."""
    return next((one for one in commands if one.slash == name.lower()), None)

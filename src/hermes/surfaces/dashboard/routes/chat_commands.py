"""Slash commands in the chat of the page: goals, background work, agents, worktrees and boards."""

import asyncio
import contextlib
import functools
from typing import Annotated

import msgspec
from msgspec import Meta

from hermes.commands.command import Command
from hermes.commands.session_chat import SessionChat, find_command
from hermes.commands.table import chat_commands
from hermes.errors import NotFound, SessionBusy
from hermes.schema.events import SessionCreated
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.sessions import session_of
from hermes.surfaces.web import override
from hermes.surfaces.web.access import covers
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import translator

t = translator(__name__)


_MODULES = (
    "hermes.commands.goals",
    "hermes.commands.side_work",
    "hermes.commands.worktrees",
    "hermes.commands.kanban_chat",
)


class CommandLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command as a person types it."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    words: Annotated[str, Meta(max_length=100_000)] = ""
    model: Annotated[
        str | None,
        Meta(
            description="Another model from now on; empty for the model in the settings. Ignored while a turn runs."
        ),
    ] = None


class CommandAnswer(msgspec.Struct, frozen=True):
    """What a command says, as Markdown, and the session that the chat goes on in, if it is another one."""

    text: str
    opens: str = ""


class PageChat(SessionChat):
    """A session on the page. `opens` is the session that the page shows next."""

    name = "dashboard"
    opens = ""

    @override
    async def begin(self) -> str:
        await self.stop()
        return await self.leave_running()

    @override
    async def leave_running(self) -> str:
        origin = await asyncio.to_thread(self.app.store.sessions.origin, self.session)
        created = SessionCreated(surface="dashboard", cwd=origin.cwd)
        self.opens = (await asyncio.to_thread(self.app.begin, created)).session
        return self.opens

    @override
    async def enter(self, name: str, *, recap: bool) -> None:  # noqa: ARG002 - the page shows all of it
        self.opens = name


class ChatCommandRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard

    def endpoints(self) -> list[Endpoint]:
        path = "/api/sessions/{id}/commands"
        return [
            Endpoint(
                "POST", path, "chat", self.run, body=CommandLine, answer=CommandAnswer
            )
        ]

    async def run(self, call: EndpointCall) -> CommandAnswer:
        """Runs a slash command in a session. Commands that only an owner may give in a chat app need the scope admin."""
        line: CommandLine = call.body
        one = find_command(_offered(), line.name)
        if one is None:
            known = ", ".join(f"/{known.slash}" for known in _offered())
            raise NotFound(
                t("There is no command /{name} here.", name=line.name),
                hint=t("There are: {known}.", known=known),
            )
        if one.role != "user" and not covers(call.caller.scopes, "admin"):
            raise Refusal(403, t("/{slash} needs the scope 'admin'.", slash=one.slash), t("Nothing was changed."))  # fmt: skip
        info = await session_of(self._board, call)
        if line.model is not None:
            # A turn that runs keeps its model. The page sends the choice again with the next message.
            with contextlib.suppress(SessionBusy):
                await asyncio.to_thread(self._board.agent.choose, info.id, line.model)
        chat = PageChat(self._board.app, self._board.agent, info.id)
        return CommandAnswer(await chat.run(one, line.words), chat.opens)


@functools.cache
def _offered() -> tuple[Command, ...]:
    return tuple(one for one in chat_commands(_MODULES) if one.role)

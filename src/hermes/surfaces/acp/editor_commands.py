"""Slash commands in an editor: those of the command table that work in a chat, and skills."""

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    UnstructuredCommandInput,
)

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.prompt_files import aliased, called_prompt
from hermes.commands.command import Command
from hermes.commands.markdown import markdown_of
from hermes.commands.session_chat import SessionChat, find_command
from hermes.commands.table import CHAT_APP_MODULES, chat_commands
from hermes.commands.views import Block
from hermes.learning.change import LearningError
from hermes.surfaces.web import override

_COMMAND = re.compile(
    r"/(?P<name>[A-Za-z0-9_\-]{1,64})(?:\s+(?P<words>.*))?\s*", re.DOTALL
)
_OF_THE_EDITOR = frozenset(("new", "resume", "sessions", "quit"))
"""Commands that an editor has buttons of its own for."""


class EditorChat(SessionChat):
    """A session in an editor, which begins and opens sessions itself. `send` shows Markdown in it."""

    name = "editor"

    def __init__(
        self, app: App, agent: Agent, session: str, send: Callable[[str], None]
    ) -> None:
        super().__init__(app, agent, session)
        self._send = send
        self._is_over = False

    @override
    def tell(self, *blocks: Block) -> None:
        """Shows what work in the background found. Progress is not shown."""
        if self._is_over:
            self._send(markdown_of(blocks))

    @override
    async def run(self, command: Command, words: str) -> str:
        answer = await super().run(command, words)
        self._is_over = True
        return answer


@functools.cache
def editor_commands() -> tuple[Command, ...]:
    """The commands that are offered."""
    return tuple(
        one
        for one in chat_commands(CHAT_APP_MODULES)
        if one.role and one.slash not in _OF_THE_EDITOR
    )


def available_commands(agent: Agent) -> list[AvailableCommand]:
    """The commands and skills as the protocol lists them. Reads the skills."""
    listed = [
        AvailableCommand(
            name=one.slash, description=one.summary, input=_input(one.slash_value)
        )
        for one in editor_commands()
    ]
    try:
        skills = agent.learner.learning.commands(_reserved())
    except (LearningError, OSError):
        skills = ()
    return (
        listed
        + [*_server_prompts(agent)]
        + [
            AvailableCommand(
                name=skill.name, description=skill.description, input=_input("TEXT")
            )
            for skill in skills
        ]
    )


def _server_prompts(agent: Agent) -> Iterator[AvailableCommand]:
    """The prompts of MCP servers."""
    servers = agent.toolbox.servers
    for name, one in (servers.prompts() if servers is not None else {}).items():
        yield AvailableCommand(
            name=name, description=one.description or name, input=_input(one.usage)
        )


def _input(hint: str) -> AvailableCommandInput | None:
    return (
        AvailableCommandInput(root=UnstructuredCommandInput(hint=hint))
        if hint
        else None
    )


async def run_command(
    app: App, agent: Agent, session: str, typed: str, send: Callable[[str], None]
) -> str | None:
    """The answer to a command as Markdown; None if the text is no command of the table.

    `send` shows what the command has to say after that, such as the end of a sign-in.
    """
    found = _COMMAND.fullmatch(aliased(typed, app.settings.aliases))
    one = find_command(editor_commands(), found["name"]) if found else None
    if found is None or one is None:
        return None
    chat = EditorChat(app, agent, session, send)
    return await chat.run(one, found["words"] or "")


def expanded(app: App, agent: Agent, session: str, typed: str) -> str:
    """The message of a skill or of a command from a file; other text as it is. Reads files."""
    if not typed.startswith("/"):
        return typed
    line = aliased(typed, app.settings.aliases)
    folder = Path(app.store.sessions.origin(session).cwd or ".")
    return (
        agent.learner.learning.called(line, _reserved())
        or called_prompt(agent.prompt_files, folder, line)
        or typed
    )


@functools.cache
def _reserved() -> frozenset[str]:
    """Names that no skill can take."""
    return frozenset((*(one.slash for one in editor_commands()), *_OF_THE_EDITOR))

"""The chat in the terminal as commands see it: the conversation, and the surface that shows what commands print."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.app.agent import Agent, ApprovalMode
from hermes.app.typed_part import typed_part
from hermes.commands.command import Command
from hermes.commands.context import CommandContext
from hermes.commands.model_names import checked_name, listed_names
from hermes.commands.models import model_in_words
from hermes.commands.slash_commands import ContextUse
from hermes.commands.views import Block, Result, TextResult
from hermes.errors import HermesError, Refused, SessionBusy
from hermes.providers.routing import chosen_route
from hermes.settings.load import load_secrets
from hermes.surfaces.terminal.interrupts import is_elsewhere
from hermes.surfaces.terminal.open_agent import (
    SessionTarget,
    begin,
    choose_model,
    find_target,
)
from hermes.surfaces.terminal.render import draw, draw_blocks
from hermes.surfaces.terminal.run_options import RunOptions
from hermes.surfaces.terminal.styled_text import painted
from hermes.surfaces.terminal.text import TextScreen
from hermes.surfaces.tui.context_view import window_rows
from hermes.surfaces.tui.slash_lookup import find_slash, narrowed
from hermes.text.formats import money
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation

t = translator(__name__)

_MAX_COMMAND_RESULT_LINES = 400  # of one result


class TerminalChat:
    """Implements `Conversation` and `Surface` for a chat in the terminal."""

    name = "cli"
    via = ""

    def __init__(self, chat: "ChatConversation") -> None:
        self.chat = chat

    @property
    def session(self) -> str:
        return self.chat.session

    @property
    def agent(self) -> Agent:
        return self.chat.agent

    @property
    def approvals(self) -> ApprovalMode:
        return self.chat.approvals

    @property
    def has_audience(self) -> bool:
        return False

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        chat, line = self.chat, self.chat.view.status
        queued = (
            t("{count:,} message", "{count:,} messages", count=len(chat.view.queued))
            if chat.view.queued
            else ""
        )
        is_working = chat.is_running and not chat.view.is_idle
        return (
            ("context", line.filled()),
            ("cost", money(line.cost)),
            ("sandbox", line.sandbox),
            ("policy", chat.agent.policy.warning),
            ("mcp", self._servers()),
            ("queued", queued),
            ("now", "working" if is_working else t("waiting for you")),
        )

    def _servers(self) -> str:
        """How many servers there are, and which ones can't be used."""
        servers = self.chat.agent.toolbox.servers
        if servers is None:
            return ""
        known = servers.status()
        failed = [one.name for one in known if one.state == "failed"]
        note = f", failed: {', '.join(failed)}; see /mcp" if failed else ""
        return t("{count:,} server", "{count:,} servers", count=len(known)) + note

    async def require_idle(self) -> None:
        if await self.chat.is_busy():
            raise SessionBusy(
                t("Hermes is working."), hint=t("Stop it first with /stop.")
            )

    async def begin(self) -> str:
        before = self.session
        cwd = self.chat.app.store.sessions.find(before).cwd or "."
        await self._change(SessionTarget(None, Path(cwd)))
        about = {"platform": "cli", "user": "", "session_id": before}
        self.chat.app.bus.publish(
            "gateway.session.reset", about | {"new_session_id": self.session}
        )
        return self.session

    async def leave_running(self) -> str:
        cwd = self.chat.app.store.sessions.find(self.session).cwd or "."
        self.chat.detach()
        app, target = self.chat.app, SessionTarget(None, Path(cwd))
        self.chat.switch_to(await asyncio.to_thread(begin, app, target, "cli"))
        return self.session

    async def enter(self, name: str, *, recap: bool) -> None:
        target = find_target(self.chat.app, RunOptions(resume=name))
        await self._change(target)
        if recap:
            self.chat.view.say(t("Session {session}", session=self.session))
            await self.chat.resume()

    async def _change(self, target: SessionTarget) -> None:
        await self.require_idle()
        if target.before is not None and target.before.id == self.session:
            raise HermesError(t("You are already in that session."))
        self.chat.delete_if_empty()
        app = self.chat.app
        self.chat.switch_to(await asyncio.to_thread(begin, app, target, "cli"))

    async def resume(self) -> None:
        self.chat.follow(resumes=True)

    async def stop(self) -> bool:
        chat = self.chat
        if not chat.is_running:
            return False
        if is_elsewhere(chat.app, chat.session):
            await chat.agent.service.interrupt(chat.session, by="cli")
        else:
            chat.halt()
        return True

    def rewound(self, text: str) -> None:
        self.chat.agent.toolbox.forget_files(self.session)
        if text:
            self.chat.screen.suggest(typed_part(text))

    async def model_names(self) -> list[str]:
        app = self.chat.app
        secrets = load_secrets(home=app.home)
        route = chosen_route(app.settings, secrets, self.chat.model)
        if route.embedded or self.agent.describe(self.session).engine == "codex":
            return []
        return await listed_names(route, app.settings, secrets)

    async def use_model(self, name: str, *, force: bool) -> str:
        await self.require_idle()
        chat = self.chat
        route = choose_model(chat.app, RunOptions(model=name), may_ask=False)
        found = ""
        if not force:
            secrets = load_secrets(home=chat.app.home)
            how = f"/model {name} force"
            found = await checked_name(route, chat.app.settings, secrets, force=how)
        await chat.reconfigure(model=name)
        return model_in_words(chat.agent.describe(self.session), found)

    async def use_approvals(self, mode: ApprovalMode) -> str:
        await self.chat.reconfigure(approvals=mode)
        return ""

    def tell(self, *blocks: Block) -> None:
        self._print(draw_blocks(blocks, self._text_screen))

    def notify(self, text: str) -> None:
        """Notifies the person if the window is not looked at."""
        if self.chat.notifier is not None:
            self.chat.notifier.notify(text)

    def warn(self, message: str, hint: str = "") -> None:
        self.chat.view.say(f"{message} {hint}".rstrip(), alarming=True)

    def confirm(self, question: str, nothing_done: str) -> bool:  # noqa: ARG002
        return False

    def read_secret(self, name: str) -> str:
        raise HermesError(
            t("Don't type a secret into a chat: {name}.", name=name),
            hint=t("In a shell: hermes config set {name}", name=name),
        )

    def show(self, result: Result) -> None:
        """Shows what a command found or did."""
        if isinstance(result, TextResult):
            for text in result.lines:
                self.chat.view.answer(text)
        elif isinstance(result, ContextUse):
            screen = self.chat.screen
            rows = window_rows(
                result, screen.columns - 1, ascii_only=screen.marks.bar == "|"
            )
            for row in rows:
                screen.line(painted(row, screen.style))
        else:
            self._print(draw(result, self._text_screen, time.time()))

    @property
    def _text_screen(self) -> TextScreen:
        screen = self.chat.screen
        return TextScreen(screen.columns - 1, screen.style, is_chat=True)

    def _print(self, lines: Iterable[str]) -> None:
        shown = [part for line in lines for part in line.split("\n")]
        for line in shown[:_MAX_COMMAND_RESULT_LINES]:
            self.chat.screen.line(line)
        if len(shown) > _MAX_COMMAND_RESULT_LINES:
            more = t(
                "{count:,} more line",
                "{count:,} more lines",
                count=len(shown) - _MAX_COMMAND_RESULT_LINES,
            )
            self.chat.view.say(f"... {more}")


async def run_slash(chat: "ChatConversation", command: Command, words: str) -> None:
    """Runs a slash command and shows its result."""
    port = TerminalChat(chat)
    if not words.strip():
        from hermes.surfaces.tui.pickers import SIGN_IN_WORDS, pick_argument

        chosen = await pick_argument(port, command)
        if chosen is None:
            return
        if chosen and command.slash == "sessions":
            command = find_slash("resume") or command
        elif command.slash == "model" and chosen.startswith(SIGN_IN_WORDS):
            command = find_slash("auth") or command
        words = chosen
    command, words = narrowed(command, words)
    arguments = command.words(words, {"session": chat.session})
    with CommandContext(port, app=chat.app, conversation=port) as context:
        try:
            found = await command.run(context, arguments)
        except Refused:
            if not await _agrees(chat, command, arguments):
                raise
            found = await command.run(context, arguments)
        port.show(found)


async def _agrees(
    chat: "ChatConversation", command: Command, arguments: Mapping[str, Any]
) -> bool:
    """Asks about the project's agent that `/agent` names. Returns whether the person agreed to it."""
    if command.slash != "agent":
        return False
    from hermes.surfaces.tui.pickers import agree_to_file

    return await agree_to_file(chat, "agent", str(arguments.get("name", "")))

"""Decides what a line of input is: an answer, a decision on a proposal, a command, a skill call or
a message.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.app.attachments import AttachmentFolder, attach
from hermes.app.prompt_files import aliased
from hermes.app.session_service import Delivery
from hermes.commands.table import find_topic
from hermes.errors import HermesError, Refused, for_reader
from hermes.learning.change import MemoryChange, MemoryEdit, Provenance
from hermes.learning.proposals import Proposal
from hermes.primitives.tasks import running
from hermes.schema.events import OwnCommandRan
from hermes.schema.shown_reasons import state_in_words
from hermes.surfaces.terminal.approval import (
    KEY_GRACE_S,
    deliver_answer,
    is_answer,
)
from hermes.surfaces.terminal.question_menu import Act, PersonAnswer
from hermes.surfaces.terminal.run_options import nearest
from hermes.surfaces.terminal.text import one_line
from hermes.surfaces.tui.plain_screen import TypedInput
from hermes.surfaces.tui.proposal_review import ProposalReview
from hermes.surfaces.tui.slash_lookup import (
    find_skill,
    find_slash,
    hook_name,
    reserved,
    slashes,
)
from hermes.text.translation import translator
from hermes.tools.sensitive import Guard

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.surfaces.tui.conversation import ChatConversation

t = translator(__name__)

log = logging.getLogger("hermes.tui")

_MAX_ANSWER_ATTEMPTS = 50
_ANSWER_RETRY_S = 0.1
_PLAIN_COMMANDS = {"exit": "/quit", "quit": "/quit", ":q": "/quit", "help": "/help"}
"""Words that people type alone, as in other programs, and what they mean here."""


class InputRouter:
    """Routes the input of one chat."""

    def __init__(self, chat: "ChatConversation") -> None:
        self._chat = chat
        self._review: ProposalReview | None = None

    async def take(self, typed: TypedInput) -> None:
        """Handles one input. What goes wrong is shown, and the chat goes on."""
        if typed.chosen is not None:
            await self._chosen(typed.chosen)
            return
        try:
            await self._take_typed(typed)
        except HermesError as error:
            self._chat.view.say(for_reader(error), alarming=True)
        except Exception as error:  # noqa: BLE001 - the boundary of an input
            self._report_bug(error, typed.text)
        self._ask_next()

    async def _take_typed(self, typed: TypedInput) -> None:
        await self._chat.settle_mode()
        question = self._question_for(typed)
        if question is not None:
            await self._answer(question, typed)
        elif not await self._take_decision(typed):
            await self._take_message(typed)

    def _report_bug(self, error: Exception, text: str) -> None:
        """Says that an input failed for a reason that nobody foresaw."""
        name = _command_name(text) if text.startswith("/") else ""
        what = f"/{name}" if name else t("Your message")
        log.error("%s failed", what, exc_info=error)
        told = t(
            "{what} failed because of a bug in Hermes: {error}. The conversation is saved and goes on. See: hermes logs",
            what=what,
            error=one_line(f"{type(error).__name__}: {error}").rstrip(":. "),
        )
        self._chat.view.say(told, alarming=True)

    def _question_for(self, typed: TypedInput) -> Mapping[str, Any] | None:
        """Returns the open question, unless the input was a message sent as the question appeared."""
        questions = self._chat.view.questions
        question, menu = questions.current, questions.menu
        if question is None or menu is None:
            return None
        is_command = typed.text.startswith("/") and find_slash(
            _command_name(typed.text)
        )
        if self._chat.screen.animates and not is_command:
            return None  # its menu has keys of its own
        if questions.is_early(typed.at) and not is_answer(menu, typed.text):
            return None
        return question

    async def _answer(self, question: Mapping[str, Any], typed: TypedInput) -> None:
        """Handles a line while a question is open: an answer, or a command."""
        chat, text, questions = self._chat, typed.text, self._chat.view.questions
        if text.startswith("/") and find_slash(_command_name(text)):
            await self._command(typed)
            if questions.current is question:
                chat.screen.menu(questions.menu)
            return
        match await questions.take(text, self._deliver, typed_at=typed.at):
            case "answered":
                pass
            case "unclear":
                chat.view.ask_again()
            case "asked":
                chat.screen.menu(questions.menu)
            case act:
                await self._chosen(act)

    async def _chosen(self, chosen: PersonAnswer | Act) -> None:
        """Does what was chosen in the menu of a question."""
        chat = self._chat
        match chosen:
            case PersonAnswer():
                if await chat.view.questions.give(chosen, self._deliver):
                    return
            case "view":
                await chat.view_question()
            case "edit":
                await chat.edit_plan()
            case "stop":
                chat.drop_mode()
                chat.interrupt()
        if chat.view.questions.current is not None:
            chat.screen.menu(chat.view.questions.menu)

    async def _take_message(self, typed: TypedInput) -> None:
        chat = self._chat
        text = _PLAIN_COMMANDS.get(typed.text.strip().lower(), typed.text)
        text = aliased(text, chat.app.settings.aliases)
        typed = msgspec.structs.replace(typed, text=text)
        if text.startswith("/") and not typed.images:
            await self._command(typed)
        elif text.startswith("!") and text[1:].strip() and not typed.images:
            await self._run_own(text[1:].strip())
        elif is_note(text) and not typed.images:
            await self._note(text[1:].strip())
        elif text.strip():
            await self._send(typed)
        elif chat.view.held:
            await chat.agent.service.resume(chat.session)
            chat.follow()

    def decide(self, proposals: Sequence[Proposal]) -> None:
        """Starts a review of proposals."""
        self._review = ProposalReview(
            self._chat.agent.learner, self._chat.screen, proposals
        )
        self._review.begin()
        asyncio.get_running_loop().call_later(KEY_GRACE_S, self._ask_decision)

    def _ask_next(self) -> None:
        """Asks for the next decision, or shows the prompt."""
        if self._review is not None and self._review.is_over:
            self._review = None
        if self._review is not None:
            asyncio.get_running_loop().call_later(KEY_GRACE_S, self._ask_decision)
        elif not self._chat.is_running:
            self._chat.screen.show_prompt()

    def _ask_decision(self) -> None:
        """Asks for a decision on the proposal shown, unless a question of a turn is open."""
        if self._review is not None and self._chat.view.questions.current is None:
            self._review.ask()

    async def _take_decision(self, typed: TypedInput) -> bool:
        """Passes a line to the review. Returns False if it was no decision, which ends the review."""
        return self._review is not None and await self._review.take(
            typed.text, typed.at
        )

    async def _send(self, typed: TypedInput) -> None:
        chat = self._chat
        folder = AttachmentFolder(
            chat.folder,
            Guard(chat.app.home.root, Path.home()),
            listen=lambda path: _listen(chat.app, path),
            reads_documents=chat.app.settings.media.documents != "off",
            is_elsewhere=chat.agent.names_resource,
        )
        attached = await asyncio.to_thread(attach, typed.text, folder)
        served = await chat.agent.with_server_texts(attached.text)
        for remark in (*attached.left, *served.left):
            chat.view.say(remark)
        delivery: Delivery = "steer" if typed.steers and chat.is_running else "queue"
        skill_text = None
        if served.text.startswith("/"):
            skill_text = await self._called(served.text)
        ran = chat.own_commands.take_blocks()
        await chat.submit(
            (skill_text or served.text) + ran,
            images=(*typed.images, *attached.images),
            delivery=delivery,
        )

    async def _called(self, line: str) -> str | None:
        """Returns the message for a skill or a command from a file. One that comes with the project is asked about."""
        chat = self._chat
        try:
            return await asyncio.to_thread(chat.called, line)
        except Refused:
            from hermes.surfaces.tui.pickers import agree_to_file

            if not await agree_to_file(chat, "command", _command_name(line)):
                raise
        return await asyncio.to_thread(chat.called, line)

    async def _run_own(self, command: str) -> None:
        """Runs a command of the person's own. Its output is kept, and goes to the model with the next message."""
        chat = self._chat
        chat.view.show_own_command(command)
        async with running(chat.animate()):
            result = await chat.own_commands.run(command, chat.folder)
        ran = OwnCommandRan(command=command, output=result.output, code=result.code)
        await asyncio.to_thread(chat.app.record, chat.session, ran)
        is_stopped = chat.own_commands.was_stopped
        ending = state_in_words("interrupted") if is_stopped else result.ending
        chat.view.show_own_result(command, result.output, ending, result.code)

    async def _note(self, text: str) -> None:
        """Keeps a note in the memory."""
        chat = self._chat
        change = MemoryChange((MemoryEdit("add", text),))
        origin = Provenance(by="user", session=chat.session)
        try:
            await asyncio.to_thread(chat.agent.learner.learning.apply, change, origin)
        except HermesError as error:
            chat.view.say(for_reader(error), alarming=True)
        else:
            chat.view.show_note(
                t(
                    "Noted: {text}. New sessions know it; see /memory",
                    text=one_line(text).rstrip(".。"),
                )
            )

    async def _command(self, typed: TypedInput) -> None:
        chat, name = self._chat, _command_name(typed.text)
        rest = typed.text[1 + len(name) :]
        skills: list[str] = []
        if name not in reserved():
            commands = await asyncio.to_thread(chat.skills)
            skills = [command.name for command in commands]
        if skill := find_skill(name, skills):
            await self._send(msgspec.structs.replace(typed, text=f"/{skill}{rest}"))
            return
        if not chat.screen.echoes and not typed.by_key:
            chat.view.echo_command(typed.text)
        slash = find_slash(name)
        if name not in reserved() and (said := await _of_plugin(chat, name, rest)):
            chat.view.say(said)
            return
        if slash is None:
            known = [*(command.slash for command in slashes()), *skills]
            hint = _unknown_hint(name, known)
            chat.view.say(
                t("There is no command /{name}. {hint}", name=name, hint=hint),
                alarming=True,
            )
            return
        about = {"platform": "cli", "user": "", "session_id": chat.session}
        event = f"gateway.command.{hook_name(name, slash)}"
        chat.app.bus.publish(event, about)  # for hooks
        from hermes.surfaces.tui.chat_port import run_slash

        await run_slash(chat, slash, rest)

    async def _deliver(self, given: PersonAnswer) -> bool:
        """Delivers an answer. Retries, because a resumed question is shown before its call waits for it."""
        chat = self._chat
        for _ in range(_MAX_ANSWER_ATTEMPTS):
            if await deliver_answer(chat.agent.service, given, chat.session):
                return True
            if not chat.is_running or chat.view.questions.current is None:
                break
            await asyncio.sleep(_ANSWER_RETRY_S)
        return False


async def _of_plugin(chat: "ChatConversation", name: str, words: str) -> str:
    """What a plugin's slash command says; empty if no enabled plugin has one of that name."""
    plugins = chat.app.plugins
    if plugins is None:
        return ""
    from hermes.app.plugin_parts import run_plugin_command

    found = (await asyncio.to_thread(lambda: plugins.commands)).get(name)
    if found is None:
        return ""
    return await run_plugin_command(found, words.strip()) or f"/{name} is done."


def is_note(text: str) -> bool:
    """Returns whether an input is a note for the memory: one line that begins with `#`, and no Markdown heading."""
    return text.startswith("#") and "\n" not in text and text.strip("# ") != ""


def _command_name(text: str) -> str:
    """Returns the name of a command: the text from the slash to the first space."""
    if text[1:2].isspace():
        return ""
    return next(iter(text[1:].split(None, 1)), "")


def _unknown_hint(name: str, known: list[str]) -> str:
    """What helps after a command that chats don't have."""
    if find_topic(name):
        return f"In a shell: hermes {name}"
    near = nearest(name, known)
    return t("Did you mean /{near}?", near=near) if near else "See /help"


def _listen(app: "App", path: Path) -> str:
    from hermes.app.speech import listener  # only for a recording

    return listener(app)(path)

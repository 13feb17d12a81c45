"""What becomes of a line: the answer to a question, a word on a proposal, a command, a call of a skill, a message."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hermes.app.attachments import AttachmentFolder, attach
from hermes.app.session_service import Delivery
from hermes.errors import HermesError, in_sentences
from hermes.learning.proposals import Proposal
from hermes.surfaces.terminal.answers import hand_over
from hermes.surfaces.terminal.approval import (
    KEY_GRACE_S,
    Given,
    is_word,
    label_for,
    wants_all,
)
from hermes.surfaces.terminal.run_options import nearest
from hermes.surfaces.tui.proposal_review import ProposalReview
from hermes.surfaces.tui.slash.table import (
    find_skill,
    find_slash,
    reserved,
    slashes,
)
from hermes.surfaces.tui.typed_input import TypedInput
from hermes.tools.sensitive import Guard

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation

_MAX_ANSWER_ATTEMPTS = 50  # to hand over an answer
_ANSWER_RETRY_S = 0.1  # seconds between them


class InputRouter:
    """Takes the lines of one chat."""

    def __init__(self, chat: "ChatConversation") -> None:
        self._chat = chat
        self._deciding: ProposalReview | None = None

    async def take(self, typed: TypedInput) -> None:
        """Does what a line asks for."""
        chat, text = self._chat, typed.text
        asked = chat.view.questions.current
        if (
            asked is not None
            and chat.view.questions.is_early(typed.at)
            and not is_word(asked, text)
        ):
            asked = None  # a message whose Enter came when the question did
        if asked is not None and wants_all(asked, text):
            chat.view.show_all()
        elif asked is not None and text.startswith("/") and find_slash(_name(text)):
            await self._command(typed)
            chat.screen.ask(
                label_for(asked, chat.screen.columns)
                if chat.view.questions.current is asked
                else ""
            )
        elif asked is not None:
            if not await chat.view.questions.take(text, self._give, typed_at=typed.at):
                chat.view.ask_again()
        elif await self._decides(typed):
            pass
        elif text.startswith("/") and not typed.images:
            await self._command(typed)
        elif text.strip():
            await self._send(typed)
        elif chat.view.held:
            await chat.agent.service.resume(chat.session)
            chat.follow()
        self._settle()

    def decide(self, proposals: Sequence[Proposal]) -> None:
        """Puts proposals to the person, one after the other."""
        self._deciding = ProposalReview(
            self._chat.agent.learner, self._chat.screen, proposals
        )
        self._deciding.begin()
        asyncio.get_running_loop().call_later(KEY_GRACE_S, self._listen)

    def _settle(self) -> None:
        """What is asked for next."""
        if self._deciding is not None and self._deciding.is_over:
            self._deciding = None
        if self._deciding is not None:
            asyncio.get_running_loop().call_later(KEY_GRACE_S, self._listen)
        elif not self._chat.works:
            self._chat.screen.settle()

    def _listen(self) -> None:
        """Asks for a word on the proposal that is shown; questions of a turn come first."""
        if self._deciding is not None and self._chat.view.questions.current is None:
            self._deciding.ask()

    async def _decides(self, typed: TypedInput) -> bool:
        """Whether a line was a word on a proposal. After anything else the proposals wait on."""
        return self._deciding is not None and await self._deciding.take(
            typed.text, typed.at
        )

    async def _send(self, typed: TypedInput) -> None:
        chat = self._chat
        shelf = AttachmentFolder(chat.folder, Guard(chat.app.home.root, Path.home()))
        attached = await asyncio.to_thread(attach, typed.text, shelf)
        for remark in attached.left:
            chat.view.say(remark)
        delivery: Delivery = "steer" if typed.steers and chat.works else "queue"
        called = None
        if attached.text.startswith("/"):
            called = await asyncio.to_thread(
                chat.agent.learner.learning.called, attached.text, reserved()
            )
        await chat.submit(
            called or attached.text,
            images=(*typed.images, *attached.images),
            delivery=delivery,
        )

    async def _command(self, typed: TypedInput) -> None:
        chat, name = self._chat, _name(typed.text)
        rest = typed.text[1 + len(name) :]
        try:
            skills = (
                []
                if name in reserved()
                else [one.name for one in await asyncio.to_thread(chat.skills)]
            )
            if skill := find_skill(name, skills):
                await self._send(msgspec.structs.replace(typed, text=f"/{skill}{rest}"))
                return
            if not chat.screen.echoes:
                chat.view.say(f"{chat.screen.marks.prompt}{typed.text}")
            slash = find_slash(name)
            if slash is None:
                near = nearest(name, [*(one.slash for one in slashes()), *skills])
                hint = f"Did you mean /{near}?" if near else "See /help"
                chat.view.say(f"There is no command /{name}. {hint}", alarming=True)
            else:
                about = {"platform": "cli", "user": "", "session_id": chat.session}
                chat.app.bus.publish(
                    f"gateway.command.{slash.slash}", about
                )  # hooks hear of commands everywhere
                from hermes.surfaces.tui.slash.chat_port import run_slash

                await run_slash(chat, slash, rest)
        except HermesError as error:
            chat.view.say(in_sentences(error), alarming=True)

    async def _give(self, given: Given) -> bool:
        """Hands over an answer. A resumed question is on the screen a moment before its call waits for it again."""
        chat = self._chat
        for _ in range(_MAX_ANSWER_ATTEMPTS):
            if await hand_over(chat.agent.service, given, chat.session):
                return True
            if not chat.works or chat.view.questions.current is None:
                break
            await asyncio.sleep(_ANSWER_RETRY_S)
        return False


def _name(text: str) -> str:
    """The name of a command: what follows the slash, up to a blank or the line's end."""
    return next(iter(text[1:].split(None, 1)), "") if not text[1:2].isspace() else ""

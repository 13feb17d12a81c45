"""A conversation: takes what a person types to the session service. `chat_view` shows what comes of it."""

import asyncio
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.service import Delivery
from hermes.errors import HermesError, StoreError
from hermes.schema.events import SessionTitled
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.settings.load import load_secrets
from hermes.surfaces.terminal.approval import Word
from hermes.surfaces.terminal.interrupts import Interrupts, is_elsewhere
from hermes.surfaces.terminal.message import not_saved
from hermes.surfaces.terminal.opening import Place, begin, choose_model, find_place
from hermes.surfaces.terminal.question import Approvals, Question
from hermes.surfaces.terminal.signals import INTERRUPTED, SAVED, listen_for_end
from hermes.surfaces.terminal.text import clean, wrap
from hermes.surfaces.terminal.watching import watched
from hermes.surfaces.tui.commands import find_slash
from hermes.surfaces.tui.screen import PlainScreen, Screen
from hermes.surfaces.tui.view import ChatView

if TYPE_CHECKING:
    from hermes.surfaces.tui.live import LiveScreen

_RECALLED = 6  # lines of each of the last messages that a resumed chat shows


def converse(app: App, session: str, question: Question, *, is_live: bool) -> int:
    """The whole conversation. Returns the exit code."""
    return asyncio.run(_converse(app, session, question, is_live=is_live))


async def _converse(app: App, session: str, question: Question, *, is_live: bool) -> int:
    agent = Agent(app, load_secrets(home=app.home), approvals=question.approvals, model=question.model)
    screen = _live_screen() if is_live else PlainScreen()
    chat = Chat(app, agent, screen, session, question)
    screen.on_interrupt = chat.interrupt
    async with screen:
        if is_live:  # a key there; this is for a signal that somebody sends
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, chat.interrupt)
        listen_for_end(chat.end)
        with watched(chat.see):
            if question.resume:
                chat.recall()
            screen.status("")
            warming = asyncio.ensure_future(agent.model.warm())  # while the person types
            await chat.talk()
            warming.cancel()
            await asyncio.wait({warming})
            await chat.agent.model.close()
    chat.say_goodbye()
    return chat.code


def _live_screen() -> "LiveScreen":
    from hermes.surfaces.tui.live import LiveScreen

    return LiveScreen()


class Chat:
    """A conversation: one person, one session at a time."""

    def __init__(self, app: App, agent: Agent, screen: Screen, session: str, question: Question) -> None:
        self.app = app
        self.agent = agent
        self.screen = screen
        self.approvals: Approvals = question.approvals
        self.view = ChatView(screen, session)
        self.code = 0
        self._interrupts = Interrupts(agent.service, session)
        self._following: asyncio.Task[None] | None = None
        self._presses = 0
        self._left = False
        self._elsewhere = False
        self._attached = ExitStack()
        self._attached.enter_context(agent.desk.attached("cli"))

    @property
    def session(self) -> str:
        """The session that is talked in."""
        return self.view.session

    def see(self, event: Mapping[str, Any]) -> None:
        """Takes notice of an event."""
        self._interrupts.see(event)
        self.view.see(event)

    async def talk(self) -> None:
        """Until the person leaves."""
        reading: asyncio.Task[str | None] | None = None
        while True:
            reading = reading or asyncio.ensure_future(self.screen.read())
            following = {self._following} if self._following is not None else set()
            await asyncio.wait({reading, *following}, return_when=asyncio.FIRST_COMPLETED)
            if self._following is not None and self._following.done():
                self._following.result()
                self._following = None
            if reading.done():
                line, reading = reading.result(), None
                if line is None or self._left:
                    break
                self._presses = 0
                await self._take(line)
        if not self._elsewhere:
            await self.agent.service.close()
        self._interrupts.close()
        self._attached.close()

    async def submit(self, text: str, *, delivery: Delivery = "queue") -> None:
        """Hands over a message; it is on disk when this returns."""
        try:
            await self.agent.service.submit(self.session, text, delivery=delivery)
        except StoreError as error:
            self._not_saved(error)
            return
        if self._following is None:
            self._following = asyncio.ensure_future(self._follow())

    def interrupt(self) -> None:
        """Ctrl-C: stops the turn; the second one, or one while nothing runs and then another, leaves."""
        if self._following is not None and is_elsewhere(self.app, self.session):
            self.view.say(SAVED)
            self.code = INTERRUPTED
            self._leave_at_once(elsewhere=True)
            return
        self._presses += 1
        if self._following is not None and self._interrupts.press() == 1:
            return
        if self._following is not None or self._presses > 1:
            self.quit()
        else:
            self.view.say("Ctrl-C again or Ctrl-D to quit.")

    def end(self, code: int) -> None:
        """SIGTERM, or the terminal is gone: leaves; what runs is interrupted and saved."""
        self.code = code
        self._leave_at_once(elsewhere=self._following is not None and is_elsewhere(self.app, self.session))

    def quit(self) -> None:
        """Leaves; what runs is interrupted and saved."""
        if self._following is not None:
            self.view.say("Stopping ...")
        self.screen.leave()

    async def change_session(self, name: str) -> None:
        """Goes on in another session: the one of that name, or a new one."""
        if self._is_busy():
            return
        place = Place(None, Path(self.app.store.sessions.find(self.session).cwd or "."))
        if name:
            place = find_place(self.app, Question(resume=name))
        self._forget_if_empty()
        session = await asyncio.to_thread(begin, self.app, place, "cli")
        self._enter(session)
        self.view.say(f"Session {session}")
        if name:
            self.recall()

    async def change_model(self, name: str) -> None:
        """Lets another model answer from now on."""
        if self._is_busy():
            return
        question = Question(model=name, approvals=self.approvals)
        choose_model(self.app, question, may_ask=False)
        agent = Agent(self.app, load_secrets(home=self.app.home), approvals=self.approvals, model=name)
        agent.describe()
        await self.agent.service.close()
        self._attached.close()
        self._attached.enter_context(agent.desk.attached("cli"))
        self.agent = agent
        self._interrupts = Interrupts(agent.service, self.session)

    async def rename(self, title: str) -> None:
        """Gives the session a title."""
        await asyncio.to_thread(self.app.record, self.session, SessionTitled(title=title))

    def recall(self) -> None:
        """Shows how the session ended before."""
        info = self.app.store.sessions.find(self.session)
        rows = self.app.store.log.events(self.session, after=max(0, info.head - 50))
        messages = [row.event for row in rows if isinstance(row.event, UserMessage | AssistantMessage)]
        said = [message for message in messages if message.text][-2:]
        for message in said:
            mark = self.screen.marks.prompt if isinstance(message, UserMessage) else ""
            lines = list(wrap(clean(mark + message.text.strip()), self.screen.columns - 1))
            shown = lines[-_RECALLED:] if len(lines) > _RECALLED else lines
            for line in ([self.screen.marks.runs] if len(lines) > len(shown) else []) + shown:
                self.screen.line(self.screen.style.dim(line))
        self.screen.line()

    def say_goodbye(self) -> None:
        """The way back."""
        if not self._forget_if_empty():
            print(f"Go on with: hermes --resume {self.session}")

    async def _take(self, line: str) -> None:
        """A line is the answer to a question, a command, or a message."""
        if self.view.questions.current is not None:
            if not await self.view.questions.take(line, self._answer):
                self.view.ask_again()
        elif line.startswith("/"):
            await self._command(line[1:])
        elif line.strip():
            await self.submit(line)
        if self._following is None:
            self.screen.status("")

    async def _command(self, text: str) -> None:
        if not self.screen.echoes:
            self.view.say(f"{self.screen.marks.prompt}/{text}")
        name, _, rest = text.partition(" ")
        slash = find_slash(name)
        try:
            if slash is None:
                self.view.say(f"There is no command /{name}. See /help", alarming=True)
            else:
                await slash.run(self, rest.strip())
        except HermesError as error:
            self.view.say(f"{error.message} {error.hint}".strip(), alarming=True)

    async def _answer(self, call_id: str, word: Word) -> bool:
        return await self.agent.service.answer(self.session, call_id, word, by="cli")

    async def _follow(self) -> None:
        try:
            await self.agent.service.idle(self.session)
        except StoreError as error:
            self._not_saved(error)

    def _not_saved(self, error: StoreError) -> None:
        self.code = 1
        self.view.say(f"{not_saved(error)} {error.hint}".strip(), alarming=True)
        self.screen.status("")

    def _leave_at_once(self, *, elsewhere: bool) -> None:
        """Without what was typed and not yet taken; a turn of another process is left to it."""
        self._left, self._elsewhere = True, elsewhere
        if self._following is not None and not elsewhere:
            self._interrupts.press()
        self.screen.leave()

    def _is_busy(self) -> bool:
        if self._following is not None:
            self.view.say("Hermes works; stop it first with /stop.")
        return self._following is not None

    def _enter(self, session: str) -> None:
        self.view = ChatView(self.screen, session)
        self._interrupts = Interrupts(self.agent.service, session)

    def _forget_if_empty(self) -> bool:
        """A session in which nothing was said is not kept."""
        if self.app.store.sessions.find(self.session).messages:
            return False
        self.app.delete(self.session)
        return True

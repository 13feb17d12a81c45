"""A conversation: takes what a person types to the session service. `view` shows what comes of it.

The turn belongs to the session, not to the terminal: when the terminal is gone, the process works to the turn's end.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.session_service import Delivery
from hermes.errors import StoreError, in_sentences
from hermes.learning.learning_service import SkillCommand
from hermes.learning.proposals import Proposal
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.messages import Image
from hermes.surfaces.terminal.interrupts import Interrupts, is_elsewhere
from hermes.surfaces.terminal.run_options import Approvals, RunOptions
from hermes.surfaces.terminal.signals import EXIT_INTERRUPTED, SAVED
from hermes.surfaces.terminal.stderr_message import not_saved
from hermes.surfaces.tui.double_press import DoublePress
from hermes.surfaces.tui.input_router import InputRouter
from hermes.surfaces.tui.plain_screen import ChatScreen
from hermes.surfaces.tui.resume_summary import cursor_at_end, follow_elsewhere, recall
from hermes.surfaces.tui.session_view import ChatView
from hermes.surfaces.tui.slash.table import reserved
from hermes.surfaces.tui.status_line import StatusLine, foot_of
from hermes.surfaces.tui.tui_events import TuiEventRelay
from hermes.surfaces.tui.typed_input import TypedInput

_REDRAW_INTERVAL_S = 0.1  # seconds between two pictures of what goes on
EXIT_HUNG_UP = 128 + signal.SIGHUP
_TURN_END_TIMEOUT_S = 5.0  # seconds for a turn that is over to be written down
ELSEWHERE = "Another terminal or program works on this session; it answers your message after what it does now."
_LEAVE = "Ctrl-C again or Ctrl-D to quit."
_LEAVE_ELSEWHERE = "Another terminal or program runs this turn: /stop stops it there. Ctrl-C again leaves it alone."
_POLL_S = 0.2  # seconds between two looks whether a turn without a terminal can go on


def folder_of(app: App, session: str) -> Path:
    """Where a session works."""
    return Path(app.store.sessions.find(session).cwd or ".")


class ChatConversation:
    """A conversation: one person, one session at a time."""

    def __init__(
        self,
        app: App,
        agent: Agent,
        screen: ChatScreen,
        session: str,
        question: RunOptions,
    ) -> None:
        self.app = app
        self.agent = agent
        self.screen = screen
        self.approvals: Approvals = question.approvals
        self._model = question.model
        self.view = ChatView(screen, session)
        self.code = 0
        self._interrupts = Interrupts(agent.service, session)
        self._relay = TuiEventRelay(app.bus.publish, session)
        self._cursor = cursor_at_end(self.app, session)
        self._following: asyncio.Task[None] | None = None
        self._holding = BackgroundTasks("holding back what waits")
        self.presses = DoublePress()
        self._taking = InputRouter(self)
        self._left = False
        self._gone = False
        self._elsewhere = False
        self._attached = ExitStack()
        self._attached.enter_context(agent.questions.attached("cli"))

    @property
    def session(self) -> str:
        """The session that is talked in."""
        return self.view.session

    @property
    def folder(self) -> Path:
        """Where the session works."""
        return folder_of(self.app, self.session)

    @property
    def works(self) -> bool:
        """Whether something runs."""
        return self._following is not None

    def see(self, event: Mapping[str, Any]) -> None:
        """Takes notice of an event, and before it of what another process wrote."""
        for one in self._cursor.in_order(event):
            self._interrupts.see(one)
            self.view.see(one)
            self._relay.see(one)

    async def talk(self) -> None:
        """Until the person leaves; a turn that runs when the terminal is gone is finished first."""
        reading: asyncio.Task[TypedInput | None] | None = None
        while True:
            reading = reading or asyncio.ensure_future(self.screen.read())
            following = {self._following} if self._following is not None else set()
            await asyncio.wait(
                {reading, *following}, return_when=asyncio.FIRST_COMPLETED
            )
            if self._following is not None and self._following.done():
                self._settle()
            if reading.done():
                typed, reading = reading.result(), None
                if typed is None or self._left:
                    break
                self.presses.forget()
                await self._taking.take(typed)
        if not self._left and (self._gone or not os.isatty(0)):
            await self._finish_alone()
        if not self._elsewhere:
            await self.agent.service.close()
        self._interrupts.close()
        self._attached.close()

    async def submit(
        self, text: str, *, images: tuple[Image, ...] = (), delivery: Delivery = "queue"
    ) -> None:
        """Hands over a message; it is on disk when this returns."""
        elsewhere = is_elsewhere(self.app, self.session)
        try:
            await self.agent.service.submit(
                self.session, text, images=images, delivery=delivery
            )
        except StoreError as error:
            self._not_saved(error)
            return
        if elsewhere:
            self.view.say(ELSEWHERE)
        self.follow()

    def follow(self, *, resumes: bool = False) -> None:
        """Shows what the session does until it is idle."""
        if self._following is None:
            self._following = asyncio.ensure_future(self._follow(resumes=resumes))

    async def go_on(self) -> None:
        """Shows where the session was; what was cut off is settled, what runs elsewhere is followed."""
        self._cursor = cursor_at_end(self.app, self.session)
        unfinished = recall(self.app, self.view, self.screen)
        if unfinished or await self.agent.service.pending(self.session):
            self.follow(resumes=True)

    def interrupt(self) -> None:
        """Ctrl-C: stops the turn, and if it does not stop, the second one leaves. At rest two in a row leave."""
        elsewhere = self._following is not None and is_elsewhere(self.app, self.session)
        if self._following is not None and not elsewhere and not self.view.rests:
            if not self.halt():
                self.quit()
        elif not self.presses.again():
            self.view.say(_LEAVE_ELSEWHERE if elsewhere else _LEAVE)
        elif not elsewhere:
            self.quit()
        else:
            self.view.say(SAVED)
            self.code = EXIT_INTERRUPTED
            self._leave_at_once(elsewhere=True)

    def halt(self) -> bool:
        """Stops the turn; what waits behind it is kept until the person sends it. False if it was stopped before."""
        if self.view.queued:
            self.view.hold()
            self._holding.start(self.agent.service.hold(self.session))
        return self._interrupts.press() == 1

    def stop(self) -> None:
        """Esc: stops the turn if one runs here, and does nothing else."""
        if self._following is not None and is_elsewhere(self.app, self.session):
            self.view.say(_LEAVE_ELSEWHERE)
        elif self._following is not None and not self.view.rests:
            self.halt()

    def end(self, code: int) -> None:
        """SIGTERM: leaves; what runs is interrupted and saved. The terminal is gone: what runs goes on to its end."""
        self.code = code
        if code == EXIT_HUNG_UP:
            self._gone = True
            self.screen.leave()
        else:
            self._leave_at_once(
                elsewhere=self._following is not None
                and is_elsewhere(self.app, self.session)
            )

    def skills(self) -> list[SkillCommand]:
        """The skills that are commands. Reads files."""
        return self.agent.learner.learning.commands(reserved())

    def decide(self, proposals: Sequence[Proposal]) -> None:
        """Puts proposals to the person, one after the other."""
        self._taking.decide(proposals)

    def quit(self) -> None:
        """Leaves; what runs is interrupted and saved."""
        if self._following is not None:
            self.view.say("Stopping ...")
        self.screen.leave()

    def enter(self, session: str) -> None:
        """Talks in another session from now on."""
        self.view = ChatView(
            self.screen, session, foot=StatusLine(sandbox=self.view.foot.sandbox)
        )
        self._interrupts = Interrupts(self.agent.service, session)
        self._relay = TuiEventRelay(self.app.bus.publish, session)
        self._cursor = cursor_at_end(self.app, session)
        self.refresh()

    async def reconfigure(
        self, *, model: str = "", approvals: Approvals | None = None
    ) -> None:
        """Lets another model answer from now on, or changes what is asked about, at once."""
        self.agent.use(approvals=approvals, model=model or None)
        self.approvals, self._model = approvals or self.approvals, model or self._model
        if approvals:
            await self.agent.settle_allowed(by="cli")
        self.refresh()

    def refresh(self) -> None:
        """Brings the status line up to date with what does not come as an event."""
        self.view.foot = foot_of(self, self.view.foot)
        self.view.tick()

    async def is_busy(self) -> bool:
        """Whether something runs that must be stopped first. A turn that has just ended is waited for."""
        if self._following is not None and not self.view.busy and not self.view.queued:
            await asyncio.wait({self._following}, timeout=_TURN_END_TIMEOUT_S)
            if self._following.done():
                self._settle()
        return self._following is not None

    def forget_if_empty(self) -> bool:
        """A session in which nothing was said is not kept."""
        if self.app.store.sessions.find(self.session).messages:
            return False
        self.app.delete(self.session)
        return True

    def say_goodbye(self) -> None:
        """The way back."""
        if not self.forget_if_empty():
            print(f"Go on with: hermes --resume {self.session}")

    async def _follow(self, *, resumes: bool) -> None:
        ticking = asyncio.ensure_future(self._tick()) if self.screen.animates else None
        try:
            if resumes:
                await follow_elsewhere(self.app, self.session, self._cursor.seq)
                await self.agent.service.resume(self.session)
            await self.agent.service.idle(self.session)
            while is_elsewhere(
                self.app, self.session
            ):  # who has our message is still at work on it
                await follow_elsewhere(self.app, self.session, self._cursor.seq)
                await self.agent.service.settle(self.session)
                await self.agent.service.idle(self.session)
        except StoreError as error:
            self._not_saved(error)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            self.view.cut_off()  # the service ended a turn that did not stop in time
        finally:
            if ticking is not None:
                ticking.cancel()

    def _settle(self) -> None:
        """Nothing runs any more: a wish to stop that came too late stops nothing that comes later."""
        if self._following is not None:
            self._following.result()
        self._following = None
        self._interrupts.forget()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_REDRAW_INTERVAL_S)
            self.view.tick()

    async def _finish_alone(self) -> None:
        """The terminal is gone: works on to the end of the turn, or until it can't go on without a person's word."""
        following = self._following
        if following is None or is_elsewhere(self.app, self.session):
            return
        while not following.done() and not self._left:
            await asyncio.wait({following}, timeout=_POLL_S)
            if not following.done() and self.view.is_stuck:
                # The question is in the log and is asked again when the session is resumed; to end the turn in
                # order would answer it.
                os._exit(self.code or EXIT_HUNG_UP)
        await following
        self._following = None

    def _not_saved(self, error: StoreError) -> None:
        self.code = 1
        self.view.say(in_sentences(error, not_saved(error)), alarming=True)
        self.screen.settle()

    def _leave_at_once(self, *, elsewhere: bool) -> None:
        """Without what was typed and not yet taken; a turn of another process is left to it."""
        self._left, self._elsewhere = True, elsewhere
        if self._following is not None and not elsewhere:
            self._interrupts.press()
        self.screen.leave()

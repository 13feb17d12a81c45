"""The conversation: sends what a person types to the session service, while `view` shows the
session.

A turn belongs to the session, not to the terminal: if the terminal goes away, the process finishes
the turn.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.feed import SessionCursor
from hermes.app.goals.waking import who_wakes
from hermes.app.prompt_files import called_prompt
from hermes.app.session_journal import read_history
from hermes.app.session_service import Delivery
from hermes.errors import HermesError, SessionBusy, StoreError, for_reader
from hermes.learning.learning_service import SkillCommand
from hermes.learning.proposals import Proposal
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.goals import GoalSet
from hermes.schema.messages import Image
from hermes.settings.load import load, load_secrets
from hermes.surfaces.terminal.approval import whole_question
from hermes.surfaces.terminal.interrupts import Interrupts, is_elsewhere
from hermes.surfaces.terminal.open_agent import changed_worktrees
from hermes.surfaces.terminal.run_options import Approvals
from hermes.surfaces.terminal.signals import EXIT_INTERRUPTED, message_saved
from hermes.surfaces.terminal.stderr_message import not_saved
from hermes.surfaces.terminal.styled_text import Row
from hermes.surfaces.tui.input_router import InputRouter
from hermes.surfaces.tui.left_work import LeftWork
from hermes.surfaces.tui.mode_switch import ModeSwitch
from hermes.surfaces.tui.notifications import Notifier
from hermes.surfaces.tui.own_commands import OwnCommands
from hermes.surfaces.tui.past import ShownPast, show_past
from hermes.surfaces.tui.plain_screen import ChatScreen, TypedInput
from hermes.surfaces.tui.resumed_turn import (
    OtherProcessEvents,
    cursor_at_end,
    follow_other_process,
    show_unfinished,
)
from hermes.surfaces.tui.session_view import ChatView
from hermes.surfaces.tui.slash_lookup import reserved
from hermes.surfaces.tui.status_line import (
    StatusLine,
    branch_of,
    current_status,
    status_facts,
)
from hermes.surfaces.tui.tui_events import TuiEventRelay
from hermes.text.translation import to_translate, translator

if TYPE_CHECKING:
    from hermes.surfaces.tui.voice import Dictation, ReplyReader

t = translator(__name__)

_REDRAW_INTERVAL_S = 0.1
EXIT_HUNG_UP = 128 + signal.SIGHUP
_TURN_END_TIMEOUT_S = 5.0  # for the last rows of a turn to be written
ELSEWHERE = to_translate(
    "Another terminal or program is working on this session. It will answer your message next."
)
_OTHER_MODE = to_translate(
    "Another terminal or program is running this turn, with its own approval mode."
)
_LEAVE = to_translate("Ctrl-C again or Ctrl-D to quit.")
_LEAVE_ELSEWHERE = to_translate(
    "Another process is running this turn. /stop stops it there; Ctrl-C again quits and leaves it running."
)
_DOUBLE_PRESS_S = 2.0
_ASKS = ("agent.approval.requested", "agent.question.asked")
_QUESTION_POLL_INTERVAL_S = (
    0.2  # between checks whether a turn without a terminal waits for an answer
)


def folder_of(app: App, session: str) -> Path:
    """Returns the working directory of a session."""
    return Path(app.store.sessions.find(session).cwd or ".")


class DoublePress:
    """Detects two presses of Ctrl-C in a row: remembers one for two seconds, or until another key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = float("-inf")

    def again(self) -> bool:
        """Records a press. Returns whether it is the second in a row."""
        before, self._last = self._last, self._clock()
        return self._last - before <= _DOUBLE_PRESS_S

    def forget(self) -> None:
        """Forgets the last press."""
        self._last = float("-inf")


class ChatConversation:
    """The conversation of one person, in one session at a time."""

    def __init__(
        self,
        app: App,
        agent: Agent,
        screen: ChatScreen,
        session: str,
    ) -> None:
        self.app = app
        self.agent = agent
        self.screen = screen
        self.view = ChatView(screen, session, quiet=self._is_quiet)
        self.code = 0
        self._interrupts = Interrupts(agent.service, session)
        self._relay = TuiEventRelay(app.bus.publish, session)
        self._cursor = cursor_at_end(self.app, session)
        self._following: asyncio.Task[None] | None = None
        self._detached: dict[str, asyncio.Task[None]] = {}
        """Sessions whose turn was moved to the background."""
        self._modes = ModeSwitch(
            lambda: self.approvals, self._use_mode, self._show_mode
        )
        self._holding = BackgroundTasks("work beside the conversation")
        self.ctrl_c = DoublePress()
        self.own_commands = OwnCommands()
        self.notifier: Notifier | None = None
        """Notifies the person; None where nothing can."""
        self.reader: ReplyReader | None = None
        """Reads replies aloud, after `/voice on`."""
        self.dictation: Dictation | None = None
        """The recording that `/dictate` began."""
        self._router = InputRouter(self)
        self.left_work = LeftWork(app, agent)
        self._left = False
        self._hung_up = False
        self._elsewhere = False
        self._attachments = ExitStack()
        self._attachments.enter_context(agent.questions.attached("cli"))

    @property
    def _is_quiet(self) -> bool:
        return self.app.settings.display.layout == "quiet"

    @property
    def session(self) -> str:
        """The id of the current session."""
        return self.view.session

    @property
    def approvals(self) -> Approvals:
        """What runs without asking in the current session."""
        return self.agent.mode(self.session)

    @property
    def folder(self) -> Path:
        """The session's working directory."""
        return folder_of(self.app, self.session)

    @property
    def is_running(self) -> bool:
        """Whether a turn runs or is about to."""
        return self._following is not None

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Handles an event, after any rows before it that another process wrote."""
        self._note_background(event)
        for one in self._cursor.in_order(event):
            self._interrupts.on_event(one)
            self.view.on_event(one)
            self._relay.on_event(one)
            if self.notifier is not None:
                self.notifier.on_event(one, self.session)
            if self.reader is not None:
                self.reader.on_event(one)

    def start_reading_aloud(self) -> None:
        """Reads replies aloud from now on. Raises MediaError if nothing speaks or plays sound."""
        from hermes.app.speech import speech_deps
        from hermes.surfaces.tui.voice import ReplyReader

        if self.reader is None:
            self.reader = ReplyReader(
                speech_deps(self.app), lambda: self.session, self.view.say
            )
            self.reader.start()

    async def stop_reading_aloud(self) -> None:
        """Stops reading replies aloud."""
        if self.reader is not None:
            reader, self.reader = self.reader, None
            await reader.close()

    async def start_dictation(self, finish: Callable[[], Awaitable[str]]) -> None:
        """Begins to record from the microphone. Raises MediaError.

        A recording that gets too long is ended by `finish`, which returns what to tell the person.
        """
        from hermes.app.speech import speech_deps
        from hermes.surfaces.tui.voice import Dictation

        name = f"dictation-{int(self.app.clock.now() * 1000)}.wav"
        file = self.app.home.media / self.session / name
        dictation = Dictation(
            speech_deps(self.app),
            file,
            when_full=lambda: self._holding.start(self._end_long_dictation(finish)),
        )
        await dictation.start()
        self.dictation = dictation

    async def _end_long_dictation(self, finish: Callable[[], Awaitable[str]]) -> None:
        if told := await finish():
            self.view.say(told, alarming=True)

    async def end_voice(self) -> None:
        """Ends what speaks and what records, when the chat ends."""
        await self._stop_dictation()
        await self.stop_reading_aloud()

    async def _stop_dictation(self) -> None:
        if self.dictation is not None:
            dictation, self.dictation = self.dictation, None
            await dictation.stop()

    def _note_background(self, event: Mapping[str, Any]) -> None:
        """Follows a turn that began by itself, and says when one in the background asks something."""
        kind, session = event["type"], event.get("session_id")
        if kind == "agent.turn.started" and session == self.session:
            if self.agent.service.works_on(self.session):
                self.follow()
        elif session in self._detached and kind in _ASKS:
            short = str(session)[-6:]
            told = t(
                "Background task {short} asks you something: /agents open {short}",
                short=short,
            )
            self.view.say(told, alarming=True)

    async def offer_sessions(self) -> None:
        """Lists the sessions, as `/resume` does, and continues the one that the person chooses."""
        await self._router.take(TypedInput("/resume", by_key=True))

    async def run(self) -> None:
        """Reads input until the person leaves. If the terminal goes away during a turn, finishes
        the turn first.
        """
        with OtherProcessEvents(self.app, self._seen) as news:
            await self._take_input(news)
        await self._leave()

    async def _take_input(self, news: OtherProcessEvents) -> None:
        reading: asyncio.Task[TypedInput | None] | None = None
        while True:
            reading = reading or asyncio.ensure_future(self.screen.read())
            following = {self._following} if self._following is not None else set()
            await asyncio.wait(
                {reading, news.coming(), *following},
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self._following is not None and self._following.done():
                self._reset_turn()
            if news.coming().done():
                news.take()
                self.follow(news=True)
            if reading.done():
                typed, reading = reading.result(), None
                if typed is None or self._left:
                    if self._must_warn():
                        continue
                    break
                self.touched()
                await self._router.take(typed)

    def _seen(self) -> tuple[str, int] | None:
        """The session and its last row that was shown; None while a turn is followed anyway."""
        if self._following is not None:
            return None
        return self.session, self._cursor.seq

    async def _leave(self) -> None:
        """Ends what belongs to this terminal."""
        await self._stop_dictation()  # also if a turn goes on without a person
        if not self._left and (self._hung_up or not os.isatty(0)):
            await self._finish_alone()
        if not self._elsewhere:
            await self.left_work.close(self.session, self.approvals, self.model)
        if not self._elsewhere and not self._hung_up:
            await self._end_permissions()
        self._interrupts.close()
        self._attachments.close()

    def touched(self) -> None:
        """Takes note that the person typed something."""
        self.ctrl_c.forget()
        if self.notifier is not None:
            self.notifier.focus.touch()

    async def _end_permissions(self) -> None:
        """Takes back what was allowed until the person quits."""
        service = self.agent.service
        try:
            if allowed := await service.permissions(self.session):
                await service.revoke(self.session, allowed, by="cli")
        except StoreError as error:
            self._not_saved(error)

    async def submit(
        self, text: str, *, images: tuple[Image, ...] = (), delivery: Delivery = "queue"
    ) -> None:
        """Submits a message. It is on disk when this returns."""
        elsewhere = is_elsewhere(self.app, self.session)
        try:
            await self.agent.service.submit(
                self.session, text, images=images, delivery=delivery
            )
        except StoreError as error:
            self._not_saved(error)
            return
        if elsewhere:
            self.view.say(t.marked(ELSEWHERE))
        self.follow()

    def detach(self) -> None:
        """Lets the turn continue in the background; its end is reported in the next session."""
        if self._following is not None:
            self._detached[self.session] = self._following
            self._following = None
        self._interrupts.forget()

    def follow(self, *, resumes: bool = False, news: bool = False) -> None:
        """Shows what the session does until it is idle. With `news`, first what another process wrote to it."""
        if self._following is None:
            following = self._follow(resumes=resumes, news=news)
            self._following = asyncio.ensure_future(following)

    async def resume(self, past: ShownPast | None = None) -> None:
        """Shows where the session stopped, unless `past` was shown already. Closes an unfinished turn, or follows one
        that runs in another process.
        """
        past = past or show_past(
            self.app, self.session, self.screen, quiet=self.view.quiet
        )
        self._cursor = SessionCursor(self.app, self.session, seq=past.head)
        self.own_commands.restore(self.app, self.session)
        self.view.take_over(past.view)
        show_unfinished(self.app, self.view, past.open_rows)
        await self.agent.service.tell_ends(self.session)
        if (
            past.open_rows
            or await self.agent.service.pending(self.session)
            or await asyncio.to_thread(self._open_goal)
        ):
            self.follow(resumes=True)

    def _open_goal(self) -> str:
        """The state of a goal that the session works towards: active or waiting; empty if there is none."""
        if self.app.store.log.latest(self.session, GoalSet.topic) is None:
            return ""
        goal = read_history(self.app.store, self.session).goal
        return goal.status if goal.is_open else ""

    def interrupt(self) -> None:
        """Handles Ctrl-C: stops the turn. A second press during the turn, or two in a row when
        idle, quits.
        """
        self._hush()
        if self.own_commands.is_running:
            self.own_commands.stop()
            return
        elsewhere = self._following is not None and is_elsewhere(self.app, self.session)
        if self._following is not None and not elsewhere and not self.view.is_idle:
            if not self.halt():
                self.quit()
        elif not self.ctrl_c.again():
            self.view.say(t.marked(_LEAVE_ELSEWHERE if elsewhere else _LEAVE))
        elif not elsewhere:
            self.quit()
        else:
            self.view.say(message_saved())
            self.code = EXIT_INTERRUPTED
            self._leave_at_once(elsewhere=True)

    def _hush(self) -> None:
        if self.reader is not None:
            self.reader.hush()

    def halt(self) -> bool:
        """Stops the turn and holds queued messages until the person sends them.

        Returns False if a stop was already requested.
        """
        if self.view.queued:
            self.view.hold()
            self._holding.start(self.agent.service.hold(self.session))
        return self._interrupts.press() == 1

    def stop(self) -> bool:
        """Handles Esc: stops the turn if this process runs one. Returns whether a turn runs."""
        self._hush()
        if self.own_commands.is_running:
            self.own_commands.stop()
        elif self._following is not None and is_elsewhere(self.app, self.session):
            self.view.say(t.marked(_LEAVE_ELSEWHERE))
        elif self._following is not None and not self.view.is_idle:
            self.halt()
        else:
            return False
        return True

    def end(self, code: int) -> None:
        """Handles SIGTERM and SIGHUP.

        SIGTERM interrupts the turn, saves it and leaves. After SIGHUP (the terminal is gone) the
        turn runs to its end.
        """
        self.code = code
        if code == EXIT_HUNG_UP:
            self._hung_up = True
            self.screen.leave()
        else:
            self._leave_at_once(
                elsewhere=self._following is not None
                and is_elsewhere(self.app, self.session)
            )

    def skills(self) -> list[SkillCommand]:
        """Lists the skills and the commands from files that can be called. Reads files."""
        skills = self.agent.learner.learning.commands(reserved())
        names = {*reserved(), *(one.name for one in skills)}
        prompts = self.agent.prompt_files.all(self.folder, "command")
        found = (
            SkillCommand(one.name, one.description or one.hint)
            for one in prompts
            if one.name not in names
        )
        servers = self.agent.toolbox.servers
        offered = servers.prompts() if servers is not None else {}
        asked = (
            SkillCommand(name, one.description or one.usage)
            for name, one in offered.items()
        )
        return [*skills, *found, *asked]

    def completed_names(self) -> list[SkillCommand]:
        """Lists what completes after a slash beside the commands: the person's aliases, and what `skills` lists."""
        aliases = self.app.settings.aliases.items()
        return [*(SkillCommand(name, line) for name, line in aliases), *self.skills()]

    def called(self, line: str) -> str | None:
        """Returns the message for `/name text` if it calls a skill or a command from a file. Reads files."""
        text = self.agent.learner.learning.called(line, reserved())
        return text or called_prompt(
            self.agent.prompt_files, self.folder, line, self.agent.check_command
        )

    def decide(self, proposals: Sequence[Proposal]) -> None:
        """Reviews proposals with the person, one at a time."""
        self._router.decide(proposals)

    def _must_warn(self) -> bool:
        """Says once what runs in the background before the person leaves. Returns whether it did."""
        if self._left or self._hung_up or not self.screen.animates:
            return False
        warning = self.left_work.warning(self.session)
        if warning:
            self.view.say(warning)
            self.screen.show_prompt()
        return bool(warning)

    def quit(self) -> None:
        """Leaves the chat. A running turn is interrupted and saved. The person is warned first if work runs in the
        background.
        """
        if warning := self.left_work.warning(self.session):
            self.view.say(warning)
            return
        if self._following is not None:
            self.view.say("Stopping ...")
        self.screen.leave()

    def switch_to(self, session: str) -> None:
        """Switches to another session. What is shown of a reply stays as it is."""
        self.screen.end_reply()
        self.view = ChatView(
            self.screen,
            session,
            status=StatusLine(sandbox=self.view.status.sandbox),
            quiet=self._is_quiet,
        )
        self._interrupts = Interrupts(self.agent.service, session)
        self._relay = TuiEventRelay(self.app.bus.publish, session)
        self._cursor = cursor_at_end(self.app, session)
        self.own_commands.restore(self.app, session)
        self.refresh()

    async def reconfigure(
        self, *, model: str = "", approvals: Approvals | None = None
    ) -> None:
        """Switches the model or the approval mode, effective at once."""
        self._modes.forget()
        self.agent.use(approvals=approvals, model=model or None)
        if model:
            await asyncio.to_thread(self.agent.keep_model, self.session, model)
        if approvals:
            await self.agent.set_mode(self.session, approvals)
        self.refresh()

    def cycle_mode(self) -> None:
        """Handles Shift-Tab: goes to the next mode, which takes effect after a moment without another press."""
        menu = self.view.questions.menu
        self._modes.cycle(has_question=menu is not None and menu.is_approval)

    def drop_mode(self) -> None:
        """Drops a mode that was chosen but is not in effect yet."""
        self._modes.forget()
        self.refresh()

    async def settle_mode(self) -> None:
        """Makes a mode that was just chosen take effect now, because the person continues."""
        await self._modes.settle()

    async def _use_mode(self, mode: Approvals) -> None:
        try:
            await self.reconfigure(approvals=mode)
        except SessionBusy:
            self.view.say(t.marked(_OTHER_MODE))
            self.refresh()

    def _show_mode(self, mode: Approvals, remark: str) -> None:
        self.view.status.mode = mode
        if remark:
            self.view.say(remark)
        self.view.tick()

    async def view_question(self) -> None:
        """Shows the whole request that waits, in a pager where there is one."""
        request = self.view.questions.as_edited
        if request is None:
            return
        from hermes.surfaces.tui.live_screen import LiveScreen
        from hermes.surfaces.tui.overlays.pager import Pager

        screen = self.screen
        if not isinstance(screen, LiveScreen):
            self.view.show_all()
            return

        def lay_out(columns: int) -> list[Row]:
            return whole_question(request, columns)

        await screen.show(Pager(t("The whole request"), lay_out, screen.marks))

    async def edit_plan(self) -> None:
        """Opens the plan that waits in the person's editor."""
        menu = self.view.questions.menu
        if menu is None:
            return
        before = menu.plan or str(menu.request.get("plan") or "")
        try:
            after = await self.screen.edit(before, ".md")
        except HermesError as error:
            self.view.say(for_reader(error), alarming=True)
            return
        if after.strip() and after != before:
            menu.plan = after
            self.view.show_edited()
            self.view.say(t("Plan changed. Accept it, or edit it again."))

    @property
    def model(self) -> str:
        """The model that was chosen for this chat; empty for that of the settings."""
        return self.agent.chosen_model(self.session)

    async def use_saved_model(self) -> None:
        """Uses the model that the settings name now, from the next turn on."""
        self.app.settings = load(home=self.app.home)
        await self.agent.renew(load_secrets(home=self.app.home))
        self.agent.use(model="")
        await asyncio.to_thread(self.agent.keep_model, self.session, "")
        self.agent.learner.start()
        self.refresh()

    def refresh(self) -> None:
        """Updates the parts of the status line that no event reports."""
        self.view.status = current_status(self, self.view.status)
        self.view.tick()
        self._start_script()

    def _start_script(self) -> None:
        if self.app.settings.display.status_script and self.screen.animates:
            self._holding.start(self._update_script())

    async def _update_script(self) -> None:
        """Asks the person's own program for its part of the status line."""
        from hermes.surfaces.tui.status_script import script_line

        view = self.view
        line = await script_line(
            self.app.settings.display.status_script,
            status_facts(view.status, self.session, self.folder),
            Path.home(),
        )
        view.status.script = line
        view.tick()

    async def is_busy(self) -> bool:
        """Returns whether a turn must be stopped first. Waits for a turn that has just ended."""
        if self._following is not None and not self.view.busy and not self.view.queued:
            await asyncio.wait({self._following}, timeout=_TURN_END_TIMEOUT_S)
            if self._following.done():
                self._reset_turn()
        return self._following is not None

    def delete_if_empty(self) -> bool:
        """Deletes the session if it has no messages, and the person ran nothing in it. Returns whether it did."""
        sessions = self.app.store.sessions
        is_used = sessions.find(self.session).messages or sessions.children(
            self.session
        )
        if is_used or self.own_commands.has_unsent:
            return False
        self.app.delete(self.session)
        return True

    def print_goodbye(self) -> None:
        """Prints the command that resumes the session, and what else was left behind."""
        goal, folder = self._open_goal(), self.folder
        if not self.delete_if_empty():
            print(t("Resume with: hermes --resume {session}", session=self.session))
        if goal == "waiting":
            if not self.left_work.goes_on:
                print(f"{t('The goal waits.')} {who_wakes(self.app, self.session)}")
        elif goal:
            print(t("The goal is not reached yet. Resume the session to continue."))
        for line in self.left_work.lines(self.session):
            print(line)
        if kept := changed_worktrees(folder):
            print(kept)

    async def _follow(self, *, resumes: bool, news: bool) -> None:
        ticking = (
            asyncio.ensure_future(self.animate()) if self.screen.animates else None
        )
        try:
            if resumes or news:
                await follow_other_process(self.app, self.session, self._cursor.seq)
            if news:  # its process may have died
                await self.agent.service.end_dead_turn(self.session)
            if resumes:
                await self.agent.service.resume(self.session)
            await self.agent.service.idle(self.session)
            while is_elsewhere(
                self.app, self.session
            ):  # another process is working on our message
                await follow_other_process(self.app, self.session, self._cursor.seq)
                await self.agent.service.end_dead_turn(self.session)
                await self.agent.service.idle(self.session)
        except StoreError as error:
            if not news:  # only what was written elsewhere could not be read
                self._not_saved(error)
        except HermesError as error:  # the session could not be settled
            self.code = 1
            self.view.say(for_reader(error), alarming=True)
            self.screen.show_prompt()
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            self.view.show_forced_end()  # the service ended a turn that did not stop in time
        finally:
            if ticking is not None:
                ticking.cancel()

    def _reset_turn(self) -> None:
        """Resets the state of the turn that has ended, so that a late stop request does not hit the
        next one.
        """
        if self._following is not None:
            self._following.result()
        self._following = None
        self._interrupts.forget()
        self.view.status.branch = branch_of(self.folder)
        self._start_script()

    async def animate(self) -> None:
        """Redraws spinners and elapsed times, until it is cancelled."""
        while True:
            await asyncio.sleep(_REDRAW_INTERVAL_S)
            self.view.tick()

    async def _finish_alone(self) -> None:
        """Finishes the turn without a terminal, or exits when it needs a person's answer."""
        following = self._following
        if following is None or is_elsewhere(self.app, self.session):
            await self._finish_background()
            return
        while not following.done() and not self._left:
            await asyncio.wait({following}, timeout=_QUESTION_POLL_INTERVAL_S)
            if not following.done() and self.view.is_stuck:
                # The question is in the log and is asked again when the session is resumed. Ending the turn
                # normally would answer it.
                os._exit(self.code or EXIT_HUNG_UP)
        await following
        self._following = None
        await self._finish_background()

    async def _finish_background(self) -> None:
        """Finishes what runs in the background, and what a goal waits for, without a terminal."""
        service = self.agent.service
        await service.at_rest(self.session)
        while service.turns and not self._left and not self.agent.questions.sessions():
            working = asyncio.ensure_future(service.all_idle())
            await asyncio.wait({working}, timeout=_QUESTION_POLL_INTERVAL_S)
            working.cancel()

    def _not_saved(self, error: StoreError) -> None:
        self.code = 1
        self.view.say(for_reader(error, not_saved(error)), alarming=True)
        self.screen.show_prompt()

    def _leave_at_once(self, *, elsewhere: bool) -> None:
        """Leaves without reading pending input. A turn of another process keeps running."""
        if self.own_commands.is_running:
            self.own_commands.stop()
        self._left, self._elsewhere = True, elsewhere
        if self._following is not None and not elsewhere:
            self._interrupts.press()
        self.screen.leave()

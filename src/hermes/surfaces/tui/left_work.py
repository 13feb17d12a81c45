"""Background work when a person leaves the chat: it is stopped, or continued by a process without a terminal."""

import asyncio
import os
import subprocess

from hermes.app import App
from hermes.app.agent import Agent
from hermes.errors import HermesError
from hermes.primitives.files import make_private_folder, open_private
from hermes.settings.load import environment
from hermes.surfaces.terminal.text import one_line
from hermes.text.translation import translator

t = translator(__name__)


_MAX_TITLE_CHARS = 40
_MAX_NAMED = 3


class LeftWork:
    """The work of one chat that would end with it."""

    def __init__(self, app: App, agent: Agent) -> None:
        self._app = app
        self._agent = agent
        self._warned: set[str] = set()
        self._goes_on = False
        self._left: list[str] = []
        self._problem = ""

    def running(self, session: str) -> list[str]:
        """What runs beside the turn of a session, and the session itself if its goal waits and nobody else would wake it."""
        from hermes.app.child_sessions import BACKGROUND, REVIEW
        from hermes.app.goals.waking import living_wakers

        service, origin = self._agent.service, self._app.store.sessions.origin
        found = [
            one
            for one in service.working
            if one != session
            and (origin(one).kind != "child" or origin(one).surface in (BACKGROUND, REVIEW))
        ]  # fmt: skip
        waits = service.goal_waits(session) and not living_wakers(self._app)
        return [*found, *([session] if waits else [])]

    def warning(self, session: str) -> str:
        """What to say before the person leaves; empty if nothing runs, or it was said already."""
        running = set(self.running(session))
        if running <= self._warned:
            return ""
        self._warned = running
        waits = session in running
        tasks = sorted(running - {session})
        parts = (
            [
                t(
                    "{count:,} background task ({names})",
                    "{count:,} background tasks ({names})",
                    count=len(tasks),
                    names=self._names(tasks),
                )
            ]
            if tasks
            else []
        )
        parts += [t("a goal that waits")] if waits else []
        return t(
            "Still at work: {parts}. /quit leave lets it go on without this terminal; "
            "/quit again stops it, and it can be resumed.",
            parts=t(" and ").join(parts),
        )

    def _names(self, sessions: list[str]) -> str:
        names = [self._name(one) for one in sessions[:_MAX_NAMED]]
        return ", ".join([*names, *(["..."] if len(sessions) > _MAX_NAMED else [])])

    def _name(self, session: str) -> str:
        from hermes.app.child_sessions import child_status

        title = child_status(self._app, session, parent="").title
        return one_line(title)[:_MAX_TITLE_CHARS] or session[-6:]

    @property
    def goes_on(self) -> bool:
        """Whether another process continues the work."""
        return self._goes_on and not self._problem

    def leave_running(self) -> None:
        """Lets another process continue the work when the chat ends."""
        self._goes_on = True

    async def close(self, session: str, approvals: str, model: str) -> None:
        """Ends the turns of this chat. Work that should continue is started again without a terminal."""
        self._left = self.running(session)
        if self._goes_on:
            self._agent.service.hand_over(self._left)
        await self._agent.service.close()
        if self._goes_on and self._left:
            try:
                await asyncio.to_thread(self._start, approvals, model)
            except (OSError, HermesError) as error:
                self._problem = str(error)

    def _start(self, approvals: str, model: str) -> None:
        """Starts a process of its own, which ends when the work is done."""
        from hermes.children.own_python import hermes_command

        home = self._app.home
        options = [f"--approvals={approvals}", *([f"--model={model}"] if model else [])]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        log = make_private_folder(home.logs) / "background.log"
        output = open_private(log, flags)
        try:
            subprocess.Popen(
                [*hermes_command("agents", "resume", *self._left, *options)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
                env={**environment(), "HERMES_HOME": str(home.root)},
            )
        finally:
            os.close(output)

    def accept(self, session: str) -> None:
        """Notes that the person knows what runs and leaves anyway."""
        self._warned = set(self.running(session))

    def lines(self, session: str) -> list[str]:
        """What to say at the end."""
        tasks = [one for one in self._left if one != session]
        if self.goes_on:
            named = [f"  {self._name(one)} ({one})" for one in tasks]
            hints = [t("See: hermes agents list. Stop one: hermes agents stop ID")] if tasks else []  # fmt: skip
            if session in self._left:
                named.append(t("  the goal of this session"))
                hints.append(
                    t("Pause the goal: hermes goal pause {session}", session=session)
                )
            return (
                [t("Goes on without this terminal:"), *named, *hints] if named else []
            )
        head = (
            [
                t(
                    "The background work could not be left running: {problem}",
                    problem=self._problem,
                )
            ]
            if self._problem
            else []
        )
        stopped = [
            t(
                "Stopped in the background: {name}. Continue: hermes agents resume {one}",
                name=self._name(one),
                one=one,
            )
            for one in tasks
        ]
        return [*head, *stopped]

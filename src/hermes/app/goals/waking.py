"""Waiting goals: which process restarts their session.

The process that has a session waits for its goal, and holds a role named after the session meanwhile. When the
process ends, nobody holds the role, and a `GoalWaker` in a gateway, dashboard or worker takes the session over. The
role is taken before the verdict is written, so that a process that is killed in between loses nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from hermes.app.app import App
from hermes.errors import HermesError, SessionNotFound, StoreError, in_sentences
from hermes.primitives.tasks import cancel_and_wait
from hermes.store.leases import LEASE_TTL_S
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.app.session_service import SessionService
    from hermes.store.role_leases import HeldRole

log = logging.getLogger("hermes.goals")

WAITING_ROLE = "goal/"
"""The prefix of the roles of processes that wait for a goal."""
_WAKER_ROLE = "goal-waker/"
_SCAN_INTERVAL_S = 3.0
_RENEW_INTERVAL_S = LEASE_TTL_S / 3
_LOOKING = "looking for goals that wait"  # not translated


def waiting_role(session: str) -> str:
    """Returns the role of the process that waits for a session's goal."""
    return f"{WAITING_ROLE}{session}"


def living_wakers(app: App) -> list[str]:
    """Returns the kinds of processes that would wake a goal, such as `gateway`."""
    held = app.store.roles.held(_WAKER_ROLE)
    return sorted({str(role.facts.get("surface", "")) for role in held})


def who_wakes(app: App, session: str) -> str:
    """Says which process restarts a session whose goal waits, or that none does."""
    if app.store.roles.held(waiting_role(session)):
        return t.logged("It goes on by itself.")
    if wakers := living_wakers(app):
        return t.logged(
            "The goal continues by itself, in the {process}.", process=wakers[0]
        )
    return t.logged(
        "Nothing is running that would wake it. Continue: {command}, or keep `hermes gateway run` or `hermes dashboard`"
        " running.",
        command=f"hermes --resume {session}",
    )


class WaitingGoals:
    """The sessions of one process whose goal waits. `start` is called when one should continue."""

    def __init__(self, app: App, start: Callable[[str], None]) -> None:
        self._app = app
        self._start = start
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._held: set[str] = set()

    def find(self, session: str) -> "asyncio.Task[None] | None":
        """Returns the task that waits here for a session's goal."""
        return self._tasks.get(session)

    def adopt(self, session: str) -> None:
        """Takes over a goal whose process is gone: it keeps waiting, continues or is forgotten."""
        self._held.add(session)

    def begin(self, session: str, waiting: Coroutine[Any, Any, None]) -> None:
        """Starts waiting for a goal; `waiting` ends when the awaited event has happened."""
        if (before := self._tasks.pop(session, None)) is not None:
            before.cancel()
        self._held.add(session)
        future = asyncio.ensure_future(waiting)
        task = asyncio.ensure_future(self._wait(session, future))
        task.add_done_callback(lambda _: future.cancel())  # even if it never began
        self._tasks[session] = task

    async def end(self, session: str) -> None:
        """Forgets a goal that no longer waits, if it waited here or nowhere."""
        if session not in self._tasks and session in self._held:
            self._held.discard(session)
            with contextlib.suppress(StoreError):  # whoever looks next forgets it
                roles = self._app.store.roles
                await asyncio.to_thread(roles.forget, waiting_role(session))

    async def close(self) -> None:
        """Stops waiting. Other processes take over the goals."""
        sessions = list(self._tasks)
        await cancel_and_wait(*self._tasks.values())
        with contextlib.suppress(StoreError):  # others notice that this process is gone
            await asyncio.to_thread(self._release, sessions)

    def _release(self, sessions: list[str]) -> None:
        roles = self._app.store.roles
        for session in sessions:
            if (role := roles.own(waiting_role(session))) is not None:
                roles.release(role)

    async def _wait(self, session: str, waiting: "asyncio.Future[None]") -> None:
        name = waiting_role(session)
        role: HeldRole | None = None
        try:
            while not waiting.done():
                with contextlib.suppress(StoreError):
                    role = await asyncio.to_thread(_take, self._app, name, role)
                await asyncio.wait({waiting}, timeout=_RENEW_INTERVAL_S)
        finally:
            waiting.cancel()
            if self._tasks.get(session) is asyncio.current_task():
                del self._tasks[session]
        self._start(session)


def _take(app: App, name: str, role: "HeldRole | None") -> "HeldRole | None":
    """Takes or renews a role. Returns None while another process has it."""
    roles = app.store.roles
    if role is not None and roles.renew(role):
        return role
    return roles.take(name) or roles.own(name)


class GoalWaker:
    """Runs as a task of a long-lived process. Takes over goals whose process is gone."""

    def __init__(
        self, app: App, service: "Callable[[], SessionService]", surface: str
    ) -> None:
        self._app = app
        self._service = service
        self._surface = surface

    async def run(self) -> None:
        """Checks until it is cancelled."""
        role: HeldRole | None = None
        errors, renewed = self._app.errors, 0.0
        clock = asyncio.get_running_loop().time
        try:
            while True:
                pause_s = _SCAN_INTERVAL_S
                try:
                    if not self._app.has_log:
                        await asyncio.sleep(pause_s)
                        continue
                    if role is None or clock() - renewed > _RENEW_INTERVAL_S:
                        role = await asyncio.to_thread(self._register, role)
                        renewed = clock()
                    await self._take_over()
                except StoreError as error:
                    pause_s = max(pause_s, errors.note(_LOOKING, error))
                else:
                    errors.succeeded(_LOOKING)
                await asyncio.sleep(pause_s)
        finally:
            if role is not None:
                with contextlib.suppress(StoreError):
                    self._app.store.roles.release(role, forget=True)

    def _register(self, role: "HeldRole | None") -> "HeldRole | None":
        roles = self._app.store.roles
        if role is not None and roles.renew(role):
            return role
        name = f"{_WAKER_ROLE}{self._surface}/{roles.owner}"
        return roles.take(name, {"surface": self._surface})

    async def _take_over(self) -> None:
        roles = self._app.store.roles
        for one in await asyncio.to_thread(roles.abandoned, WAITING_ROLE):
            session = one.name.removeprefix(WAITING_ROLE)
            try:
                await self._wake(session)
            except SessionNotFound:
                await asyncio.to_thread(roles.forget, one.name)
            except StoreError:
                raise
            except HermesError as error:
                log.warning("the goal of session %s was not taken over: %s", session, in_sentences(error))  # fmt: skip

    async def _wake(self, session: str) -> None:
        store = self._app.store
        origin = await asyncio.to_thread(store.sessions.origin, session)
        from hermes.app.turn_placement import this_place

        if origin.place and origin.place != this_place(self._app):
            return  # its folder is on another machine
        if await asyncio.to_thread(store.leases.holder, session) is not None:
            return  # another process works on it
        log.info("goes on with the goal of session %s", session)
        await self._service().take_over_goal(session)

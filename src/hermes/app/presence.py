"""Records in the store that this process is running: `hermes hosts list` shows it, and other processes can tell
which machine their work waits for."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from hermes import __version__
from hermes.app.app import App
from hermes.app.machines import JOB_SURFACES, machine_role
from hermes.app.turn_placement import this_place
from hermes.errors import StoreError
from hermes.store.hosts import HEARTBEAT_INTERVAL_S

if TYPE_CHECKING:
    from hermes.store.role_leases import HeldRole

_SAYING = "saying that this process lives"  # not translated


class Presence:
    """Runs as a task of a process with a role, such as `gateway`."""

    def __init__(self, app: App, role: str) -> None:
        self._app = app
        self._role = role
        self._is_draining = False
        self._has_ended = False
        self._machine: HeldRole | None = None

    async def run(self) -> None:
        """Writes heartbeats until it is cancelled, then says that the process ends."""
        if not self._app.settings.store.url:
            return  # a file is used by one machine, where leases tell everything
        store, errors = self._app.store, self._app.errors
        try:
            while True:
                pause_s = HEARTBEAT_INTERVAL_S
                try:
                    await asyncio.to_thread(self._beat)
                except StoreError as error:
                    pause_s = max(pause_s, errors.note(_SAYING, error))
                else:
                    errors.succeeded(_SAYING)
                await asyncio.sleep(pause_s)
        finally:
            self._is_draining = self._has_ended = True
            with contextlib.suppress(StoreError):  # closed already
                store.hosts.leave(store.leases.owner)
                self._leave_machine()

    def _beat(self) -> None:
        """Runs in a thread: draining and the end may come at any moment, so each is looked for again after the write
        that it would undo.
        """
        store = self._app.store
        store.hosts.beat(store.leases.owner, self._role, __version__)
        if not self._is_draining:
            self._hold_machine()
        if self._is_draining:
            self._leave_machine()
        if self._has_ended:
            store.hosts.leave(store.leases.owner)

    def _hold_machine(self) -> None:
        roles = self._app.store.roles
        held = self._machine
        if held is None or not roles.renew(held, self._facts()):
            name = machine_role(self._role, this_place(self._app))
            self._machine = roles.take(name, self._facts())

    def drain(self) -> None:
        """The process begins nothing new from now on."""
        self._is_draining = True
        self._leave_machine()

    def _leave_machine(self) -> None:
        """Leaves the role of this machine to another process there, if there is one."""
        role, self._machine = self._machine, None
        if role is not None:
            self._app.store.roles.hand_back(role, self._facts())

    def _facts(self) -> dict[str, Any]:
        app = self._app
        runs_jobs = self._role in JOB_SURFACES and app.settings.schedules.enabled
        return {"seen": app.clock.now(), "jobs": runs_jobs}

"""Says in the store that this process lives, as long as it does: `hermes hosts list` shows it."""

import asyncio
import contextlib

from hermes import __version__
from hermes.app.app import App
from hermes.errors import StoreError
from hermes.store.hosts import HEARTBEAT_INTERVAL_S

_SAYING = "saying that this process lives"


class Presence:
    """Runs as a task of a process with a role, such as `gateway`."""

    def __init__(self, app: App, role: str) -> None:
        self._app = app
        self._role = role

    async def run(self) -> None:
        """Writes heartbeats until it is cancelled, then says that the process ends."""
        if not self._app.settings.store.url:
            return  # a file is used by one machine, where leases tell everything
        store, errors = self._app.store, self._app.errors
        process = store.leases.owner
        try:
            while True:
                pause_s = HEARTBEAT_INTERVAL_S
                try:
                    await asyncio.to_thread(
                        store.hosts.beat, process, self._role, __version__
                    )
                except StoreError as error:
                    pause_s = max(pause_s, errors.note(_SAYING, error))
                else:
                    errors.succeeded(_SAYING)
                await asyncio.sleep(pause_s)
        finally:
            with contextlib.suppress(StoreError):  # closed already
                store.hosts.leave(process)

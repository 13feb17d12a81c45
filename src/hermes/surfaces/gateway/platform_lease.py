"""Of all gateways that share a store, one at a time holds the connection to a chat platform.

The others wait and take over when its lease has ended. A gateway that could not renew its lease in time disconnects by
its own clock, so that it sends nothing that its successor also sends.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from hermes.app import App
from hermes.errors import StoreError
from hermes.primitives.tasks import cancel_until_ended
from hermes.store.leases import LEASE_TTL_S, shown
from hermes.store.role_leases import HeldRole
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

PLATFORM_ROLE = "gateway:"
"""The prefix of the names of the roles of platform connections."""
_RETRY_S = 1.0
_RENEW_INTERVAL_S = LEASE_TTL_S / 6
_SAFETY_S = 5.0  # before the end of the lease, when nothing more is begun


class PlatformLease:
    """The lease on one platform. `waits` is called with the name of the gateway that holds it, while another one does."""

    def __init__(self, app: App, platform: str, waits: Callable[[str], None]) -> None:
        self._app = app
        self._platform = platform
        self._waits = waits
        self._held_until = 0.0  # by the monotonic clock
        self._what = t.logged("holding the connection to {platform}", platform=platform)

    @property
    def is_held(self) -> bool:
        """Whether no other gateway can have the connection now."""
        return time.monotonic() < self._held_until - _SAFETY_S

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Does the work whenever this process holds the lease, until it is cancelled."""
        while True:
            role = await self._take()
            try:
                await self._work(role, work)
            finally:
                self._held_until = 0.0
                await self._release(role)

    async def _take(self) -> HeldRole:
        roles, errors = self._app.store.roles, self._app.errors
        name = f"{PLATFORM_ROLE}{self._platform}"
        while True:
            begun = time.monotonic()
            try:
                role = await asyncio.to_thread(roles.take, name)
                holders = [] if role else await asyncio.to_thread(roles.held, name)
            except StoreError as error:
                await asyncio.sleep(errors.note(self._what, error))
                continue
            errors.succeeded(self._what)
            if role is not None:
                self._held_until = begun + LEASE_TTL_S
                return role
            for holder in holders:
                self._waits(shown(holder.owner))
            await asyncio.sleep(_RETRY_S)

    async def _work(self, role: HeldRole, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(work())
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_RENEW_INTERVAL_S)
                if not task.done() and not await self._renew(role):
                    log.warning(
                        "another gateway may have the connection to %s now; this one lets go of it",
                        self._platform,
                    )
                    return
            task.result()
        finally:
            await cancel_until_ended(task)

    async def _renew(self, role: HeldRole) -> bool:
        """Returns False once the lease may have ended."""
        begun = time.monotonic()
        left_s = self._held_until - _SAFETY_S - begun
        if left_s <= 0:
            return False
        try:
            async with asyncio.timeout(left_s):
                if not await asyncio.to_thread(self._app.store.roles.renew, role):
                    return False
        except TimeoutError:
            return False
        except StoreError as error:
            self._app.errors.note(self._what, error)
            return self.is_held
        self._held_until = begun + LEASE_TTL_S
        return True

    async def _release(self, role: HeldRole) -> None:
        try:
            await asyncio.shield(asyncio.to_thread(self._app.store.roles.release, role))
        except StoreError as error:  # then it ends by itself
            log.debug("the lease on %s was not given back: %s", self._platform, error)

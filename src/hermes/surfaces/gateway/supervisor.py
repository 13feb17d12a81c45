"""Keeps one part of the gateway running: ends a connection attempt that hangs, tries again, reports the part's
state."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hermes.core.ports import Clock
from hermes.errors import HermesError, in_sentences
from hermes.primitives.backoff import Backoff
from hermes.primitives.tasks import cancel_until_ended, running
from hermes.settings.redaction import mask
from hermes.surfaces.gateway.adapter import (
    GatewayPart,
    Inbound,
    Receipt,
    TooFast,
    Unauthorized,
)
from hermes.surfaces.gateway.status import PartState, PartStatus
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

_FIRST_RETRY_S, _MAX_RETRY_S = 1.0, 60.0
_UNAUTHORIZED_RETRY_S = 300.0
_STABLE_AFTER_S = 60.0
"""After so long a connection, the next failure counts as the first."""


class Supervisor:
    """Runs a part again and again; it is the inlet of its part."""

    def __init__(
        self,
        part: GatewayPart,
        *,
        clock: Clock,
        connect_timeout_s: float,
        receive: Callable[[Inbound], Awaitable[Receipt]],
        deliver_backlog: Callable[[str], Awaitable[None]],
    ) -> None:
        self.part = part
        self.status = PartStatus(name=part.name)
        self._clock = clock
        self._connect_timeout_s = connect_timeout_s
        self._receive = receive
        self._deliver_backlog = deliver_backlog
        self._connected = asyncio.Event()
        self._connected_at = 0.0

    async def connected(self, identity: str) -> None:
        """Notes that the part is connected; returns once older replies are delivered."""
        self._connected.set()
        self._connected_at = self._clock.now()
        self.status.identity = identity
        self._set_state("connected")
        log.info("%s is connected as %s", self.part.name, identity)
        await self._deliver_backlog(self.part.name)

    async def receive(self, inbound: Inbound) -> Receipt:
        """Accepts a message."""
        return await self._receive(inbound)

    def disturbed(self, why: str) -> None:
        """Shows a problem that the part itself solves; empty when it is solved."""
        if why:
            self._note_error(why)
            self._set_state("retrying")
        elif self.status.state == "retrying":
            self._set_state("connected")

    def wait_for_other(self, who: str) -> None:
        """Notes that another gateway has the connection, and that this one waits for it."""
        self.status.error = t.logged(
            "{process} has this connection; waiting to take over", process=who
        )
        self._set_state("waiting")

    async def run(self) -> None:
        """Runs the part until this is cancelled."""
        backoff, logged = Backoff(_FIRST_RETRY_S, _MAX_RETRY_S, jitter=0.25), ""
        while True:
            self._connected.clear()
            self._set_state("connecting")
            self.status.attempts += 1
            wait = await self._attempt()
            if self._was_stable():
                backoff.reset()
                logged, self.status.attempts = "", 0
            self._connected_at = 0.0
            wait = wait or backoff.next_s()
            # The status counts the attempts, so the log needs each error only once.
            level = logging.DEBUG if self.status.error == logged else logging.WARNING
            log.log(
                level,
                "%s: %s; retrying in %.0f s",
                self.part.name,
                self.status.error,
                wait,
            )
            logged = self.status.error
            await asyncio.sleep(wait)

    def _was_stable(self) -> bool:
        connected_at = self._connected_at
        return bool(connected_at) and (
            self._clock.now() - connected_at > _STABLE_AFTER_S
        )

    async def _attempt(self) -> float:
        """Runs the part once; returns how long to wait before the next attempt, 0 for the usual time."""
        work = asyncio.get_running_loop().create_task(self.part.run(self))
        try:
            await self._until_connected(work)
            await work
            self._note_error(t.logged("it stopped by itself"))
        except TimeoutError:
            self._note_error(
                t.logged(
                    "it did not connect within {seconds} s",
                    seconds=f"{self._connect_timeout_s:g}",
                )
            )
        except Unauthorized as error:
            self._note_error(in_sentences(error))
            self._set_state("failed")
            return _UNAUTHORIZED_RETRY_S
        except TooFast as error:
            self._note_error(error.message)
            self._set_state("retrying")
            return error.seconds
        except HermesError as error:
            self._note_error(in_sentences(error))
        except Exception as error:  # the boundary of a part: the others go on
            log.exception("%s failed", self.part.name)
            self._note_error(f"{type(error).__name__}: {error}")
        finally:
            await cancel_until_ended(work)
        self._set_state("retrying")
        return 0.0

    async def _until_connected(self, work: "asyncio.Task[None]") -> None:
        async with running(self._connected.wait()) as waiting:
            done, _ = await asyncio.wait(
                {work, waiting},
                timeout=self._connect_timeout_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        if not done:
            raise TimeoutError

    def _set_state(self, state: PartState) -> None:
        if self.status.state != state:
            self.status.state = state
            self.status.since = self._clock.now()

    def _note_error(self, why: str) -> None:
        self.status.error = mask(why)
        self.status.error_at = self._clock.now()

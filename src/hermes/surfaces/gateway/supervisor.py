"""Keeps one part running: cuts a connect that hangs, tries again, and says how it is."""

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

log = logging.getLogger("hermes.gateway")

_FIRST, _LONGEST = 1.0, 60.0  # seconds between attempts
_HOPELESS = 300.0  # seconds between attempts with a token that was refused
_CALM = (
    60.0  # seconds of being connected, after which the next failure counts as the first
)


class Supervisor:
    """Is the inlet of its part."""

    def __init__(
        self,
        part: GatewayPart,
        *,
        clock: Clock,
        patience: float,
        receive: Callable[[Inbound], Awaitable[Receipt]],
        settle: Callable[[str], Awaitable[None]],
    ) -> None:
        self.part = part
        self.status = PartStatus(name=part.name)
        self._clock = clock
        self._patience = patience
        self._receive = receive
        self._settle = settle
        self._connected = asyncio.Event()
        self._calm_since = 0.0

    async def connected(self, identity: str) -> None:
        """The part is connected; returns when what was left from before is delivered."""
        self._connected.set()
        self._calm_since = self._clock.now()
        self.status.identity = identity
        self._set("connected")
        log.info("%s is connected as %s", self.part.name, identity)
        await self._settle(self.part.name)

    async def receive(self, inbound: Inbound) -> Receipt:
        """Takes a message in."""
        return await self._receive(inbound)

    def disturbed(self, why: str) -> None:
        """The part sees to it itself; here it is shown."""
        if why:
            self._fail(why)
            self._set("retrying")
        elif self.status.state == "retrying":
            self._set("connected")

    async def run(self) -> None:
        """Until it is cancelled."""
        backoff, said = Backoff(_FIRST, _LONGEST, jitter=0.25), ""
        while True:
            self._connected.clear()
            self._set("connecting")
            self.status.attempts += 1
            pause = await self._attempt()
            if self._calm_since and self._clock.now() - self._calm_since > _CALM:
                backoff.reset()
                said, self.status.attempts = "", 0
            self._calm_since = 0.0
            usual = backoff.next_s()
            pause = pause or usual
            level = (
                logging.DEBUG if self.status.error == said else logging.WARNING
            )  # the status counts the attempts
            log.log(
                level,
                "%s: %s; retrying in %.0f s",
                self.part.name,
                self.status.error,
                pause,
            )
            said = self.status.error
            await asyncio.sleep(pause)

    async def _attempt(self) -> float:
        """One run of the part; how long to wait at least before the next, 0 for as long as usual."""
        work = asyncio.get_running_loop().create_task(self.part.run(self))
        try:
            await self._until_connected(work)
            await work
            self._fail("it ended by itself")
        except TimeoutError:
            self._fail(f"it did not connect within {self._patience:g} seconds")
        except Unauthorized as error:
            self._fail(in_sentences(error))
            self._set("failed")
            return _HOPELESS
        except TooFast as error:
            self._fail(error.message)
            self._set("retrying")
            return error.seconds
        except HermesError as error:
            self._fail(in_sentences(error))
        except Exception as error:  # the boundary of a part: the others go on
            log.exception("%s failed", self.part.name)
            self._fail(f"{type(error).__name__}: {error}")
        finally:
            await cancel_until_ended(work)
        self._set("retrying")
        return 0.0

    async def _until_connected(self, work: "asyncio.Task[None]") -> None:
        async with running(self._connected.wait()) as waiting:
            done, _ = await asyncio.wait(
                {work, waiting},
                timeout=self._patience,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                raise TimeoutError

    def _set(self, state: PartState) -> None:
        if self.status.state != state:
            self.status.state = state
            self.status.since = self._clock.now()

    def _fail(self, why: str) -> None:
        self.status.error = mask(why)
        self.status.error_at = self._clock.now()

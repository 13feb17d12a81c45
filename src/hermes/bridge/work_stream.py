"""Sessions that wait for a worker, distributed by a work queue of JetStream: each to one worker.

The table in the store is authoritative. A message here only informs one worker earlier than the table would.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hermes.bridge.nats_link import NatsLink, token

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger("hermes.events")

_ACK_WAIT_S = 30.0  # after which an unprocessed message is delivered again
_MAX_AGE_S = 3_600.0  # after which only the table has it
_FETCH_TIMEOUT_S = 5.0
_RETRY_S = 0.5

Work = Callable[[str], Awaitable[None]]
"""Works on a session. Runs on the worker's event loop, and returns once the end of its turn is in the log."""


def offer(link: NatsLink, session: str, place: str) -> None:
    """Notifies one worker of the place that a session is waiting. The session is already in the table."""
    link.client.publish(f"{link.subject}.work.{token(place)}", session.encode())


class WorkStream:
    """Takes sessions from the queue for one worker: those of its own place, and those without a place."""

    def __init__(self, link: NatsLink, place: str, free: Callable[[], int]) -> None:
        self._link = link
        self._places = dict.fromkeys((token(place), token("")))
        self._free = free
        self._worker_loop = asyncio.get_running_loop()
        self._subscribed: set[str] = set()
        self.redelivered = 0
        """How many messages were delivered again."""

    @property
    def is_live(self) -> bool:
        """Whether new sessions arrive this way now. They don't from a server without JetStream."""
        is_subscribed = len(self._subscribed) == len(self._places)
        return is_subscribed and self._link.client.is_connected

    async def run(self, work: Work) -> None:
        """Processes sessions until it is cancelled. Called on the worker's event loop."""
        client = self._link.client
        futures = [client.start(self._serve(one, work)) for one in self._places]
        try:
            await asyncio.gather(*map(asyncio.wrap_future, futures))
        finally:
            for future in futures:
                future.cancel()

    async def _serve(self, place: str, work: Work) -> None:
        """Fetches messages of one place, on the client's thread, in a loop."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                try:
                    subscription = await self._subscribe(place)
                    self._subscribed.add(place)
                    while True:
                        await self._fetch(subscription, work, tasks)
                except asyncio.CancelledError:
                    raise
                except Exception as error:  # noqa: BLE001 - the library raises many kinds
                    self._subscribed.discard(place)
                    log.debug("the work queue is not available: %s", error)
                    await asyncio.sleep(_RETRY_S)
        finally:
            for task in tasks:
                task.cancel()

    async def _fetch(
        self, subscription: Any, work: Work, tasks: "set[asyncio.Task[None]]"
    ) -> None:
        from nats.errors import TimeoutError as FetchTimeout

        room = self._free()
        if room <= 0:
            await asyncio.sleep(0.02)
            return
        try:
            messages = await subscription.fetch(min(room, 8), timeout=_FETCH_TIMEOUT_S)
        except FetchTimeout:
            self._link.client.client  # noqa: B018 - raises if the connection is gone
            return
        for message in messages:
            task = asyncio.get_running_loop().create_task(self._handle(message, work))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _handle(self, message: "Msg", work: Work) -> None:
        self.redelivered += message.metadata.num_delivered > 1
        session = message.data.decode(errors="replace")
        working = asyncio.run_coroutine_threadsafe(
            _awaited(work, session), self._worker_loop
        )
        ended = asyncio.wrap_future(working)
        try:
            while not ended.done():
                await asyncio.wait({ended}, timeout=_ACK_WAIT_S / 3)
                if not ended.done():
                    with suppress(Exception):  # the connection may be gone
                        await message.in_progress()
        except asyncio.CancelledError:
            working.cancel()
            raise
        if ended.cancelled() or ended.exception() is not None:
            return  # it is delivered again
        with suppress(
            Exception
        ):  # otherwise it is delivered again, and there is nothing to do
            await message.ack()

    async def _subscribe(self, place: str) -> Any:
        from nats.js.api import (
            AckPolicy,
            ConsumerConfig,
            RetentionPolicy,
            StorageType,
            StreamConfig,
        )
        from nats.js.errors import BadRequestError

        stream = self._link.client.client.jetstream()
        subject = self._link.subject
        wanted = StreamConfig(
            name=f"{subject}-work",
            subjects=[f"{subject}.work.>"],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.MEMORY,  # on a disk it would cost twice as much, and the table has it too
            max_age=_MAX_AGE_S,
        )
        with suppress(BadRequestError):  # somebody has set it up in another way
            await stream.add_stream(wanted)
        return await stream.pull_subscribe(
            f"{subject}.work.{place}",
            durable=f"place-{place}",
            stream=f"{subject}-work",
            config=ConsumerConfig(
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=_ACK_WAIT_S,
                max_ack_pending=10_000,
                mem_storage=True,
                filter_subject=f"{subject}.work.{place}",
            ),
        )


async def _awaited(work: Work, session: str) -> None:
    await work(session)

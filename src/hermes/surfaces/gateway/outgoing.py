"""Delivers the messages that wait in the store's table: of `hermes send`, and of the tool `send_message`."""

import asyncio
import logging
from pathlib import Path

from hermes.app import App
from hermes.app.outgoing import KEEP_S, MessageOutbox
from hermes.errors import HermesError, StoreError, reason_of
from hermes.primitives.tasks import BackgroundTasks
from hermes.store.outgoing import OutgoingMessage, OutgoingTable
from hermes.surfaces.gateway.deliveries import Deliveries
from hermes.surfaces.gateway.files import outgoing_file
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

_POLL_INTERVAL_S = 0.5
_LOOKING = "sending messages"
_LATE = t.logged("it could not be delivered in time")
_KEEP_ENDED_S = 14 * KEEP_S
"""Longer than anything waits for its chat, so that whoever queued a message finds its end and doesn't queue it again."""


class OutgoingDeliveries:
    """Runs as a task of the gateway. A platform that does not answer delays no other."""

    def __init__(self, app: App, deliveries: Deliveries) -> None:
        self._app = app
        self._deliveries = deliveries
        self._outbox = MessageOutbox(app)
        self._taken: set[str] = set()
        self._tasks = BackgroundTasks("sending a message")

    async def run(self) -> None:
        """Delivers until it is cancelled. What is left then is delivered after the next start, unless it is too late."""
        try:
            await asyncio.to_thread(
                self._table.forget, self._app.clock.now() - _KEEP_ENDED_S
            )
            while True:
                pause_s = _POLL_INTERVAL_S
                try:
                    await self._take_waiting()
                except StoreError as error:
                    pause_s = max(pause_s, self._app.errors.note(_LOOKING, error))
                else:
                    self._app.errors.succeeded(_LOOKING)
                await asyncio.sleep(pause_s)
        finally:
            await self._tasks.close()

    @property
    def _table(self) -> OutgoingTable:
        return self._app.store.sends

    async def _take_waiting(self) -> None:
        for message in await self._deliveries.call(self._table.open):
            if message.id in self._taken:
                continue
            platform = message.target.partition(":")[0]
            if message.until <= self._app.clock.now():
                await self._end(message, _LATE)
            elif platform in self._deliveries.senders:
                self._taken.add(message.id)
                self._tasks.start(self._deliver(message))
            elif _is_awaited(message) and not self._app.settings.store.url:
                what = t.logged(
                    "{platform} is not running in the gateway", platform=platform
                )
                await self._end(message, what)

    async def _deliver(self, message: OutgoingMessage) -> None:
        """The boundary of one message."""
        try:
            if not await asyncio.to_thread(self._table.begin, message.id):
                return
            async with asyncio.timeout(message.until - self._app.clock.now()):
                await self._send(message)
        except TimeoutError:
            await self._end(message, _LATE)
        except (HermesError, OSError) as error:
            await self._end(message, reason_of(error))
        except Exception:
            log.exception("a message to %s was not sent", message.target)
            what = t.logged("something went wrong; the gateway's log has more")
            await self._end(message, what)
        else:
            await self._end(message, "")
        finally:
            self._taken.discard(message.id)

    async def _send(self, message: OutgoingMessage) -> None:
        files = await asyncio.to_thread(
            lambda: tuple(outgoing_file(Path(one.path), one.name) for one in message.files)
        )  # fmt: skip
        await self._deliveries.deliver_text(
            message.target, message.body, files, key=f"send-{message.id}"
        )

    async def _end(self, message: OutgoingMessage, reason: str) -> None:
        state = "failed" if reason else "sent"
        if await asyncio.to_thread(self._table.end, message.id, state, reason):
            await asyncio.to_thread(self._outbox.clear, message)


def _is_awaited(message: OutgoingMessage) -> bool:
    """Whether somebody waits for the end of a message. Any other one waits until its platform runs."""
    return message.until - message.made < KEEP_S

"""Sends and changes messages until they have arrived: waits as long as a platform asks, tries again, and keeps the
ledger. What has arrived is noted, so that after a crash only what is not known to have arrived is sent again; what was
begun is finished by changing it, which can be done twice."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from hermes.store.chats import Chats, DeliveredMessage
from hermes.surfaces.gateway.adapter import (
    AdapterError,
    Attachment,
    Button,
    Chat,
    ChatAdapter,
    DeliveryRefused,
    Outbound,
    TooFast,
    Unreachable,
)

log = logging.getLogger("hermes.gateway")

_T = TypeVar("_T")
_FIRST, _LONGEST = 1.0, 30.0  # seconds between attempts
_FETCHING = (
    0.5,
    1.0,
    2.0,
    4.0,
    8.0,
)  # seconds between attempts at a file; then its message goes on without
_MOST_WAIT = 3600.0  # seconds that a platform may have us wait at once


class Counters(msgspec.Struct):
    """What happened on a platform since the gateway started."""

    received: int = 0
    repeated: int = 0  # came in again, and were not acted on again
    strangers: int = 0
    sent: int = 0
    edited: int = 0
    retried: int = 0
    slowed: int = 0  # times the platform asked to wait
    refused: int = 0  # could not be delivered, for good


class Sender:
    """The way out to one platform."""

    def __init__(self, adapter: ChatAdapter, ledger: Chats, counters: Counters) -> None:
        self.adapter = adapter
        self.counters = counters
        self._ledger = ledger

    async def deliver(
        self,
        key: str,
        chat: Chat,
        row: tuple[str, int],
        parts: Sequence[Outbound],
        begun: Sequence[DeliveredMessage] = (),
    ) -> list[DeliveredMessage]:
        """Sees to it that the parts of a row are there, each once. `begun` are messages that were made for it while
        its text was still being written: they become its parts. Those that were not needed come back."""
        session, seq = row
        known = {piece.part: piece for piece in self._ledger.pieces(key, session, seq)}
        drafts = [piece for piece in begun if piece.message]
        for number, part in enumerate(parts):
            piece = known.get(number)
            if piece is not None and piece.state != "sending":
                continue
            if piece is None and drafts:
                piece = drafts.pop(0)
            if (
                piece is None and part.buttons
            ):  # their data names the piece; the rest is known by its row
                piece = await asyncio.wrap_future(
                    self._ledger.sending(key, session, seq, number)
                )
            piece = piece or DeliveredMessage(0, session, seq, number)
            arrived = await self._arrive(chat, piece, _named(part, piece))
            piece = msgspec.structs.replace(
                arrived, session=session, seq=seq, part=number
            )
            await asyncio.wrap_future(self._ledger.sent(key, piece))
        return drafts

    async def begin(
        self, key: str, chat: Chat, session: str, part: int, out: Outbound
    ) -> DeliveredMessage | None:
        """Sends the beginning of what is still being written; None when the platform is too busy for that."""
        piece = await asyncio.wrap_future(self._ledger.sending(key, session, 0, part))
        try:
            message = await self.adapter.send(chat, _named(out, piece))
        except AdapterError as error:
            self._count(error)
            piece = msgspec.structs.replace(piece, state="refused")
            await asyncio.wrap_future(self._ledger.sent(key, piece))
            return None
        self.counters.sent += 1
        piece = msgspec.structs.replace(piece, state="sent", message=message)
        await asyncio.wrap_future(self._ledger.sent(key, piece))
        return piece

    async def change(self, chat: Chat, message: str, out: Outbound) -> float:
        """Changes a message once, if the platform lets us; how many seconds to leave it alone."""
        try:
            await self.adapter.edit(chat, message, out)
        except TooFast as error:
            self._count(error)
            return error.seconds
        except AdapterError as error:
            log.debug("a message was not changed: %s", error)
            return 0.0
        self.counters.edited += 1
        return 0.0

    async def tell(self, chat: Chat, out: Outbound) -> str:
        """Sends something that is not part of a session, such as the answer to a command; empty when refused."""
        try:
            message = await self._insist(lambda: self.adapter.send(chat, out))
        except DeliveryRefused as error:
            self._refuse(chat, error)
            return ""
        self.counters.sent += 1
        return message

    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        """A file that came in. Raises when it can't be had, or not for a while."""
        for wait in _FETCHING:
            try:
                return await self.adapter.fetch(attachment, most)
            except (Unreachable, TooFast) as error:
                self._count(error)
                await asyncio.sleep(
                    max(wait, error.seconds if isinstance(error, TooFast) else 0.0)
                )
        return await self.adapter.fetch(attachment, most)

    async def finish(self, chat: Chat, message: str, out: Outbound) -> None:
        """Changes a message for good, however long that takes; one that is gone stays so."""
        try:
            await self._insist(lambda: self.adapter.edit(chat, message, out))
        except DeliveryRefused as error:
            log.info("%s: a message was not changed: %s", self.adapter.name, error)
            return
        self.counters.edited += 1

    async def _arrive(
        self, chat: Chat, piece: DeliveredMessage, part: Outbound
    ) -> DeliveredMessage:
        """By changing what is there, or by sending."""
        if piece.message and not part.files:
            try:
                await self._insist(lambda: self.adapter.edit(chat, piece.message, part))
            except DeliveryRefused as error:
                log.info(
                    "%s: a begun message can't be finished, so it is sent anew: %s",
                    self.adapter.name,
                    error,
                )
            else:
                self.counters.edited += 1
                return msgspec.structs.replace(piece, state="sent")
        try:
            message = await self._insist(lambda: self.adapter.send(chat, part))
        except DeliveryRefused as error:
            self._refuse(chat, error)
            return msgspec.structs.replace(piece, state="refused")
        self.counters.sent += 1
        return msgspec.structs.replace(piece, state="sent", message=message)

    async def _insist(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Until it works or is refused for good."""
        wait = _FIRST
        while True:
            try:
                return await call()
            except DeliveryRefused:
                raise
            except TooFast as error:
                self._count(error)
                await asyncio.sleep(min(error.seconds, _MOST_WAIT))
            except AdapterError as error:
                self._count(error)
                log.warning(
                    "%s: not delivered yet, tried again in %g s: %s",
                    self.adapter.name,
                    wait,
                    error,
                )
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST)

    def _count(self, error: AdapterError) -> None:
        if isinstance(error, TooFast):
            self.counters.slowed += 1
        elif isinstance(error, DeliveryRefused):
            self.counters.refused += 1
        else:
            self.counters.retried += 1

    def _refuse(self, chat: Chat, error: DeliveryRefused) -> None:
        self.counters.refused += 1
        log.error(
            "%s: a message to chat %s can't be delivered: %s",
            self.adapter.name,
            chat.id,
            error,
        )


def _key(piece: DeliveredMessage) -> str:
    return (
        f"hermes-{piece.id}"
        if piece.id
        else f"{piece.session}-{piece.seq}-{piece.part}"
    )


def _named(out: Outbound, piece: DeliveredMessage) -> Outbound:
    """With the number of its piece: for platforms that drop repeats, and in the data of its buttons."""
    rows = tuple(
        tuple(
            Button(button.label, button.data.replace("*", str(piece.id)))
            for button in row
        )
        for row in out.buttons
    )
    return msgspec.structs.replace(out, key=out.key or _key(piece), buttons=rows)

"""Sends and edits messages until they have arrived, and records that in the ledger.

After a crash, it sends again only messages that are not known to have arrived. It finishes a message whose beginning
was sent by editing it, which is safe to do twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from hermes.primitives.backoff import Backoff
from hermes.store import Store
from hermes.store.chats import DeliveredMessage
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
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

_T = TypeVar("_T")
_FIRST_RETRY_S, _MAX_RETRY_S = 1.0, 30.0
_FETCH_RETRIES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""After these, a message goes on without its attachment."""
_MAX_PLATFORM_WAIT_S = 3600.0
"""The longest wait that a platform can ask for."""


class Counters(msgspec.Struct):
    """What has happened on a platform since the gateway started."""

    received: int = 0
    repeated: int = 0
    """Messages that came again and were not handled again."""
    strangers: int = 0
    sent: int = 0
    edited: int = 0
    retried: int = 0
    slowed: int = 0
    """How often the platform asked to wait."""
    refused: int = 0
    """Messages that can never be delivered."""


class Sender:
    """Sends to one platform."""

    def __init__(self, adapter: ChatAdapter, store: Store, counters: Counters) -> None:
        self.adapter = adapter
        self.counters = counters
        self.may_send: Callable[[], bool] = lambda: True
        """Whether this gateway has the connection for sure."""
        self._store = store
        self._ledger = store.chats

    async def deliver(
        self,
        key: str,
        chat: Chat,
        row: tuple[str, int],
        parts: Sequence[Outbound],
        begun: Sequence[DeliveredMessage] = (),
    ) -> list[DeliveredMessage]:
        """Delivers the parts of a row, each once.

        `begun` are messages that were sent while the text was still being written. They
        become its first parts; those that are not needed are returned.
        """
        session, seq = row
        pieces = await self._store.call(self._ledger.pieces, key, session, seq)
        known = {piece.part: piece for piece in pieces}
        drafts = [piece for piece in begun if piece.message]
        for number, part in enumerate(parts):
            piece = known.get(number)
            if piece is not None and piece.state != "sending":
                continue
            if piece is None and drafts:
                piece = drafts.pop(0)
            if piece is None and part.buttons:  # their data contains the piece's id
                piece = await asyncio.wrap_future(
                    self._ledger.sending(key, session, seq, number)
                )
            piece = piece or DeliveredMessage(0, session, seq, number)
            arrived = await self._send_or_edit(chat, piece, _addressed(part, piece))
            piece = msgspec.structs.replace(
                arrived, session=session, seq=seq, part=number
            )
            await asyncio.wrap_future(self._ledger.sent(key, piece))
        return drafts

    async def begin(
        self, key: str, chat: Chat, session: str, part: int, out: Outbound
    ) -> DeliveredMessage | None:
        """Sends the beginning of a text that is still being written; None when the platform is busy."""
        piece = await asyncio.wrap_future(self._ledger.sending(key, session, 0, part))
        try:
            self._require_connection()
            message = await self.adapter.send(chat, _addressed(out, piece))
        except AdapterError as error:
            self._count(error)
            piece = msgspec.structs.replace(piece, state="refused")
            await asyncio.wrap_future(self._ledger.sent(key, piece))
            return None
        self.counters.sent += 1
        piece = msgspec.structs.replace(piece, state="sent", message=message)
        await asyncio.wrap_future(self._ledger.sent(key, piece))
        return piece

    async def try_edit(self, chat: Chat, message: str, out: Outbound) -> float:
        """Edits a message, if the platform allows it now; returns how many seconds to leave it alone."""
        try:
            self._require_connection()
            await self.adapter.edit(chat, message, out)
        except TooFast as error:
            self._count(error)
            return error.seconds
        except AdapterError as error:
            log.debug("a message was not edited: %s", error)
            return 0.0
        self.counters.edited += 1
        return 0.0

    async def send(
        self, chat: Chat, out: Outbound, refused: Callable[[str], object] | None = None
    ) -> str:
        """Sends a message that belongs to no session, such as the answer to a command.

        Returns its id; empty when it can't be delivered, in which case `refused` is called with the reason.
        """
        try:
            message = await self._retry(lambda: self.adapter.send(chat, out))
        except DeliveryRefused as error:
            self._give_up(chat, error)
            if refused is not None:
                refused(error.message)
            return ""
        self.counters.sent += 1
        return message

    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        """Edits a message, however long that takes. One that is gone stays as it was."""
        try:
            await self._retry(lambda: self.adapter.edit(chat, message, out))
        except DeliveryRefused as error:
            log.info("%s: a message was not edited: %s", self.adapter.name, error)
            return
        self.counters.edited += 1

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        """The content of an attachment. Raises AdapterError when it can't be downloaded."""
        if attachment.size > max_bytes:
            raise DeliveryRefused(
                t.logged(
                    "It has {size} bytes; at most {limit} are possible.",
                    size=f"{attachment.size:,}",
                    limit=f"{max_bytes:,}",
                )
            )
        for wait in _FETCH_RETRIES_S:
            try:
                return await self.adapter.fetch(attachment, max_bytes)
            except TooFast as error:
                self._count(error)
                await asyncio.sleep(max(wait, error.seconds))
            except Unreachable as error:
                self._count(error)
                await asyncio.sleep(wait)
        return await self.adapter.fetch(attachment, max_bytes)

    async def _send_or_edit(
        self, chat: Chat, piece: DeliveredMessage, part: Outbound
    ) -> DeliveredMessage:
        """Delivers a part: edits the message that was begun for it, or sends a new one."""
        if piece.message and not part.files:
            try:
                await self._retry(lambda: self.adapter.edit(chat, piece.message, part))
            except DeliveryRefused as error:
                log.info(
                    "%s: a partly sent message can't be completed, so it is sent again: %s",
                    self.adapter.name,
                    error,
                )
            else:
                self.counters.edited += 1
                return msgspec.structs.replace(piece, state="sent")
        try:
            message = await self._retry(lambda: self.adapter.send(chat, part))
        except DeliveryRefused as error:
            self._give_up(chat, error)
            return msgspec.structs.replace(piece, state="refused")
        self.counters.sent += 1
        return msgspec.structs.replace(piece, state="sent", message=message)

    def _require_connection(self) -> None:
        if not self.may_send():
            raise Unreachable(t.logged("another gateway may have this connection now"))

    async def _retry(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Tries until it succeeds or the platform refuses permanently."""
        backoff = Backoff(_FIRST_RETRY_S, _MAX_RETRY_S, jitter=0.0)
        while True:
            try:
                self._require_connection()
                return await call()
            except DeliveryRefused:
                raise
            except TooFast as error:
                self._count(error)
                await asyncio.sleep(min(error.seconds, _MAX_PLATFORM_WAIT_S))
            except AdapterError as error:
                self._count(error)
                wait = backoff.next_s()
                log.warning(
                    "%s: not delivered, next attempt in %g s: %s",
                    self.adapter.name,
                    wait,
                    error,
                )
                await asyncio.sleep(wait)

    def _count(self, error: AdapterError) -> None:
        match error:
            case TooFast():
                self.counters.slowed += 1
            case DeliveryRefused():
                self.counters.refused += 1
            case _:
                self.counters.retried += 1

    def _give_up(self, chat: Chat, error: DeliveryRefused) -> None:
        self.counters.refused += 1
        name = self.adapter.name
        log.error("%s: can't deliver a message to chat %s: %s", name, chat.id, error)


def _addressed(out: Outbound, piece: DeliveredMessage) -> Outbound:
    """The message with the id of its piece, in its key and in the data of its buttons."""
    key = f"{piece.session}-{piece.seq}-{piece.part}"
    if piece.id:
        key = f"hermes-{piece.id}"
    rows = tuple(
        tuple(
            Button(button.label, button.data.replace("*", str(piece.id)))
            for button in row
        )
        for row in out.buttons
    )
    return msgspec.structs.replace(out, key=out.key or key, buttons=rows)

"""Builds requests without encoding their earlier part again: a conversation only grows, so only its end is new.

The bytes are the same as if everything were built anew; a test compares them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from hermes.primitives.recent import RecentDict
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.image_encoding import Pictures
from hermes.schema.messages import AssistantMessage, Message
from hermes.schema.model import ModelRequest

_MAX_CONVERSATIONS = 8
_BEGINNING_BYTES = 100
_encoder = msgspec.json.Encoder()


class Writer(Protocol):
    """The half of a codec that builds requests."""

    @property
    def unsettled(self) -> int:
        """How many of the last replies may still change the form of the messages before them."""
        ...

    def wires(
        self,
        endpoint: ModelEndpoint,
        messages: Sequence[Message],
        pictures: Pictures,
        *,
        end: bool,
    ) -> list[Any]:
        """Converts messages that begin a conversation or follow a reply. With `end`, nothing comes after them."""
        ...

    def body(
        self, endpoint: ModelEndpoint, request: ModelRequest, messages: bytes
    ) -> bytes:
        """Builds the whole request around its encoded messages."""
        ...


class EncodedPrefix(msgspec.Struct, frozen=True):
    """The encoded beginning of a conversation."""

    endpoint: ModelEndpoint | None = None
    messages: tuple[Message, ...] = ()
    encoded: bytes = b""


NOTHING = EncodedPrefix()


class Prefixes:
    """The encoded beginnings of the last few conversations."""

    def __init__(self) -> None:
        self._settled: RecentDict[str, EncodedPrefix] = RecentDict(_MAX_CONVERSATIONS)

    def find(self, endpoint: ModelEndpoint, request: ModelRequest) -> EncodedPrefix:
        """Returns the encoded beginning of `request`; nothing if it begins differently now."""
        found = self._settled.get(request.cache_key, NOTHING)
        same = (
            found.endpoint == endpoint
            and request.messages[: len(found.messages)] == found.messages
        )
        return found if same else NOTHING

    def remember(self, request: ModelRequest, settled: EncodedPrefix) -> None:
        """Remembers it for the next request of this conversation."""
        self._settled[request.cache_key] = settled


def unchanged(data: bytes) -> bytes:
    """For a request that needs no cleaning."""
    return data


def build_body(
    writer: Writer,
    endpoint: ModelEndpoint,
    request: ModelRequest,
    pictures: Pictures,
    settled: EncodedPrefix = NOTHING,
    clean: Callable[[bytes], bytes] = unchanged,
) -> tuple[bytes, EncodedPrefix]:
    """Returns the request's bytes and its encoded beginning. `pictures` are those after the settled part.

    Everything goes through `clean`, the settled part only once. It must not change JSON's own signs.
    """
    messages, done = request.messages, len(settled.messages)
    end = max(done, settled_end(messages, writer.unsettled))
    if end > done:
        wires = writer.wires(endpoint, messages[done:end], pictures, end=False)
        more = clean(_encode(wires))
        settled = EncodedPrefix(
            endpoint, messages[:end], _joined(settled.encoded, more)
        )
    wires = writer.wires(endpoint, messages[end:], pictures, end=True)
    encoded = _joined(settled.encoded, clean(_encode(wires)))
    body = writer.body(endpoint, request, encoded)
    if clean is not unchanged:
        at = _place(encoded, body)
        after = at + len(encoded)
        body = b"".join((clean(body[:at]), encoded, clean(body[after:])))
    return body, settled


def _place(part: bytes, whole: bytes) -> int:
    """Where a long part is. Python's own search prepares for as long as the part is, so its beginning is looked for."""
    at = whole.find(part[:_BEGINNING_BYTES])
    if whole.startswith(part, at):
        return at
    return whole.index(part)


def settled_end(messages: Sequence[Message], unsettled: int) -> int:
    """Returns the index after the last reply up to which messages no longer change their form."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if not isinstance(message, AssistantMessage) or not (
            message.text.strip() or message.tool_calls
        ):
            continue
        unsettled -= 1
        followed = index + 1 < len(messages) and not isinstance(
            messages[index + 1], AssistantMessage
        )
        if unsettled <= 0 and followed:
            return index + 1
    return 0


def _encode(wires: list[Any]) -> bytes:
    return _encoder.encode(wires)[1:-1]


def _joined(first: bytes, second: bytes) -> bytes:
    return first + b"," + second if first and second else first or second

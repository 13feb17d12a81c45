"""The wire format of `codex app-server`: one JSON message per line, in both directions. Uses no process and no clock.

The kind of a message depends on which keys it has, not on their values: the server's first request has the id 0. The two
sides number their requests independently.
"""

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.codex.failures import CodexGone
from hermes.text.translation import translator

t = translator(__name__)

MAX_LINE = 16 * 1024 * 1024
"""Maximum bytes of one message. The longest seen is 1 MiB of command output; images can be longer."""

RequestId: TypeAlias = int | str

UNKNOWN_METHOD = -32601
INTERNAL = -32603


class CodexRequest(msgspec.Struct, frozen=True):
    """A request of codex, which waits for an answer."""

    id: RequestId
    method: str
    params: Raw


class CodexNotification(msgspec.Struct, frozen=True):
    """A notification of codex."""

    method: str
    params: Raw


class CodexErrorResponse(msgspec.Struct, frozen=True):
    """An error answer."""

    code: int = 0
    message: str = ""
    data: Any = None


class CodexResponse(msgspec.Struct, frozen=True):
    """The answer to one of our requests; `error` if it failed."""

    id: RequestId | None
    result: Raw
    error: CodexErrorResponse | None = None


class MalformedLine(msgspec.Struct, frozen=True):
    """A line that is not a message, and the reason. It is counted and ignored."""

    why: str


Incoming: TypeAlias = CodexRequest | CodexNotification | CodexResponse | MalformedLine


class _Envelope(msgspec.Struct, frozen=True):
    id: RequestId | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw = Raw(b"null")
    result: Raw | UnsetType = UNSET
    error: CodexErrorResponse | UnsetType | None = UNSET


_DECODER = msgspec.json.Decoder(_Envelope)


class LineSplitter:
    """Splits a stream of bytes into lines, with a length limit."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._waiting = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Returns the complete lines. Raises CodexGone if one exceeds the limit, because the rest can't be trusted."""
        first, *rest = chunk.split(b"\n")
        self._waiting += first
        found = []
        for piece in rest:
            self._check(len(self._waiting))
            found.append(bytes(self._waiting))
            self._waiting = bytearray(piece)
        self._check(len(self._waiting))
        return [line for line in found if line.strip()]

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise CodexGone(
                t.later(
                    "Codex sent a message of more than {megabytes:.0f} MiB, so its process was ended.",
                    megabytes=self._limit / 2**20,
                ),
                hint=t.later(
                    "Everything up to then was saved. Send your message again to continue."
                ),
            )


def classify(line: bytes) -> Incoming:
    """Classifies a line."""
    try:
        envelope = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return MalformedLine(f"not a message: {error}")
    if not isinstance(envelope.method, UnsetType):
        return _with_method(envelope.method, envelope)
    if isinstance(envelope.id, UnsetType):
        return MalformedLine("neither a method nor an id")  # not translated
    if isinstance(envelope.error, CodexErrorResponse):
        return CodexResponse(envelope.id, Raw(b"null"), envelope.error)
    return CodexResponse(
        envelope.id,
        Raw(b"null") if isinstance(envelope.result, UnsetType) else envelope.result,
    )


def _with_method(method: str, envelope: _Envelope) -> Incoming:
    """Reads a message with a method; with an id it is a request."""
    if isinstance(envelope.id, UnsetType):
        return CodexNotification(method, envelope.params)
    return (
        MalformedLine("a request whose id is null")  # not translated
        if envelope.id is None
        else CodexRequest(envelope.id, method, envelope.params)
    )


def request(number: RequestId, method: str, params: object = None) -> bytes:
    """Encodes a request."""
    body: dict[str, object] = {"id": number, "method": method}
    return _line(body if params is None else {**body, "params": params})


def notification(method: str) -> bytes:
    """Encodes a notification."""
    return _line({"method": method})


def answer(number: RequestId, result: object) -> bytes:
    """Encodes an answer."""
    return _line({"id": number, "result": result})


def refusal(number: RequestId, code: int, message: str) -> bytes:
    """Encodes an error answer, which codex treats as a no."""
    return _line({"id": number, "error": {"code": code, "message": message}})


def _line(message: dict[str, object]) -> bytes:
    return msgspec.json.encode(message) + b"\n"

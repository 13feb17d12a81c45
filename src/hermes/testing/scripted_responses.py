"""Scripted replies of the fake model server, as data for tests and script files."""

from typing import Annotated, Literal

import msgspec


class ServedCall(msgspec.Struct, frozen=True):
    """One tool call of a reply; `arguments` is the raw text that is streamed."""

    name: str
    arguments: str = "{}"
    id: str = ""
    namespace: str = ""  # only in the Responses format


class ServerFault(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How a reply fails. Set only one of these, except for the fields that belong to `status`."""

    status: int = 0
    message: str = "a scripted failure"
    code: str = ""
    retry_after: str = ""
    hang: Literal["", "head", "body", "middle"] = (
        ""  # silence before the head, after it, or after half of the body
    )
    cut_after: int | None = None  # bytes of the body after which the connection breaks
    malformed: bool = False  # half of the events, then one that is not JSON
    error_frame: bool = False  # half of the events, then the format's own error
    html: bool = False  # an HTML page instead of a stream, with status 200
    empty: bool = False  # a stream without a single event
    body: str = ""  # this text instead, with `content_type`
    content_type: str = "text/event-stream"


class ScriptedResponse(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One scripted answer."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ServedCall, ...] = ()
    finish: Literal["stop", "length", "refused"] = "stop"
    input_tokens: int = 20
    output_tokens: int = 8
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    signature: str = "c2lnbmVk"  # of thinking, or its encrypted form
    chunk: Annotated[int, msgspec.Meta(ge=1)] = 8  # characters of a delta
    delay: float = 0.0  # seconds between events
    pauses: bool = False  # after half of the events, until the server's `go_on` is set
    delivery: Literal["stream", "plain", "gzip", "deflate", "json"] = "stream"
    """As a stream, a stream labelled text/plain or compressed, or as one JSON object."""
    fault: ServerFault | None = None


def pieces(text: str, size: int) -> list[str]:
    """Splits a text into deltas."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def parse_script(text: bytes) -> list[ScriptedResponse]:
    """Parses a script file: a JSON list of replies, each an object or just its text."""
    replies = msgspec.json.decode(text, type=list[ScriptedResponse | str])
    return [
        ScriptedResponse(text=reply) if isinstance(reply, str) else reply
        for reply in replies
    ]

"""The request to a model and the events it streams back. Only adapters know the wire formats."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from hermes.schema.messages import AssistantMessage, Message
from hermes.schema.tool_spec import ToolSpec


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model. `system` is in parts, the most stable first.

    Within a session only `messages` grows, and only at its end, so that providers' prompt caches hit. `folder` is where
    the tools work: an adapter for small models looks at its names.
    """

    system: tuple[str, ...]
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    max_output_tokens: int | None = None
    temperature: float | None = None
    cache_key: str = ""
    folder: str = ""


class TextDelta(msgspec.Struct, frozen=True):
    """More of the reply."""

    text: str


class ReasoningPiece(msgspec.Struct, frozen=True):
    """More of the model's reasoning."""

    text: str


class ToolCallStarted(msgspec.Struct, frozen=True):
    """The model started to write a tool call; its arguments are incomplete, and it must not run yet."""

    id: str
    name: str


class ReplyPreparing(msgspec.Struct, frozen=True):
    """The model is being prepared, `done` of `total` steps; the reply has not started."""

    done: int
    total: int


class Retrying(msgspec.Struct, frozen=True):
    """The call failed and is retried, perhaps elsewhere. What was streamed of this reply so far is void."""

    reason: str
    detail: str
    attempt: int
    delay: float
    provider: str
    model: str
    request_id: str = ""
    timing: str = ""


class LoginLost(msgspec.Struct, frozen=True):
    """The login of an account is dead, and nobody was told before. `command` signs in again."""

    provider: str
    account: str
    detail: str
    command: str


class ReplyFinished(msgspec.Struct, frozen=True):
    """The reply ended as the provider's protocol says it must. Always the last event of a stream."""

    message: AssistantMessage


ModelEvent: TypeAlias = (
    ReplyPreparing
    | TextDelta
    | ReasoningPiece
    | ToolCallStarted
    | Retrying
    | LoginLost
    | ReplyFinished
)

FailureReason: TypeAlias = Literal[
    "auth",  # 401: the key is wrong
    "forbidden",  # 403: not entitled
    "billing",  # 402: no credit
    "not_found",  # 404: no such model or address
    "rate_limited",  # 429
    "overloaded",  # 503, 529
    "server",  # other 5xx
    "timeout",
    "connection",
    "malformed",  # not the wire format: HTML, broken SSE, a stream cut short
    "too_long",  # the request does not fit the window
    "refused",  # content policy
    "bad_request",
]

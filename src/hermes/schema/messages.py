"""Messages: the durable events that a model reads and writes. One message is one row of the log."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta

from hermes.schema.event_base import Event, Role

FinishReason: TypeAlias = Literal[
    "stop", "tool_calls", "length", "refused", "interrupted"
]


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call as the model wrote it: `arguments` is the raw JSON text, never repaired."""

    id: str
    name: str
    arguments: str


class Image(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A picture by reference: `source` is a file path or an https address; `description` is for blind models.

    `reduced`: a smaller copy is sent. `withheld`: no provider gets it, only its description.
    """

    source: str
    media_type: str
    description: str = ""
    reduced: bool = False
    withheld: bool = False


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Tokens and money of one model call, as the provider counted them; `cost_usd` is None for an unknown price.

    `input_tokens` is everything that was read, cached or not; `output_tokens` everything written, thinking included.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None


class UserMessage(Event, frozen=True, kw_only=True):
    """A person's words were accepted into the session."""

    topic: ClassVar[str] = "agent.message.user"
    role: ClassVar[Role | None] = "user"
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    text: Annotated[str, Meta(description="What the person wrote.")]
    images: Annotated[
        tuple[Image, ...], Meta(description="Pictures that came with it.")
    ] = ()
    recordings: Annotated[
        tuple[str, ...],
        Meta(
            description="Files of the recordings whose words are in the text. Models don't get them."
        ),
    ] = ()
    delivery: Annotated[
        Literal["queue", "steer"],
        Meta(description="Wait for the running turn to end, or go into it."),
    ] = "queue"
    origin: Annotated[
        Literal["user", "hermes"],
        Meta(
            description="`hermes` for a message that Hermes itself sent to the model."
        ),
    ] = "user"
    via: Annotated[
        str,
        Meta(
            description="Where a message from a chat app came from: platform, chat and message id."
        ),
    ] = ""


class AssistantMessage(Event, frozen=True, kw_only=True):
    """The model finished a reply; its tool calls have not run yet."""

    topic: ClassVar[str] = "agent.message.assistant"
    role: ClassVar[Role | None] = "assistant"
    sensitive: ClassVar[tuple[str, ...]] = ("text", "reasoning", "tool_calls", "opaque")

    text: Annotated[str, Meta(description="The reply.")] = ""
    reasoning: Annotated[str, Meta(description="Reasoning text from the provider.")] = (
        ""
    )
    tool_calls: Annotated[
        tuple[ToolCall, ...],
        Meta(description="Calls in the order the model asked for them."),
    ] = ()
    finish: Annotated[FinishReason, Meta(description="Why the reply ended.")] = "stop"
    provider: Annotated[str, Meta(description="Provider that answered.")] = ""
    model: Annotated[str, Meta(description="Model that answered.")] = ""
    usage: Annotated[
        Usage | None, Meta(description="Tokens and cost of this call.")
    ] = None
    opaque: Annotated[
        str,
        Meta(
            description="JSON that must be sent back to the provider byte for byte: signatures, encrypted thinking."
        ),
    ] = ""


class ToolFinished(Event, frozen=True, kw_only=True):
    """A tool call ended. `text` is what the model reads as its result."""

    topic: ClassVar[str] = "agent.tool.finished"
    role: ClassVar[Role | None] = "tool"
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    call_id: Annotated[str, Meta(description="Id of the tool call this answers.")]
    name: Annotated[str, Meta(description="Name of the tool.")]
    text: Annotated[str, Meta(description="The result.")] = ""
    ok: Annotated[
        bool,
        Meta(
            description="False when the tool failed, was refused or its outcome is unknown."
        ),
    ] = True
    images: Annotated[
        tuple[Image, ...], Meta(description="Pictures in the result.")
    ] = ()


Message: TypeAlias = UserMessage | AssistantMessage | ToolFinished
MESSAGES: tuple[type[Event], ...] = (UserMessage, AssistantMessage, ToolFinished)

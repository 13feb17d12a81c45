"""The `tui.*` events that the chat at a terminal publishes about its session.

All of them are transient, and derived from the `agent.*` events of the session; `session_id` is in
the envelope.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hermes.schema.event_base import Event


class TuiMessageStart(Event, frozen=True, kw_only=True):
    """The terminal started to show a reply."""

    topic: ClassVar[str] = "tui.message.start"
    durable: ClassVar[bool] = False


class TuiMessageDelta(Event, frozen=True, kw_only=True):
    """The terminal shows more of a reply."""

    topic: ClassVar[str] = "tui.message.delta"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    text: Annotated[str, Meta(description="The next piece.")]


class TuiMessageComplete(Event, frozen=True, kw_only=True):
    """The terminal has shown a whole reply."""

    topic: ClassVar[str] = "tui.message.complete"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    text: Annotated[str, Meta(description="The reply.")] = ""


class TuiToolGenerating(Event, frozen=True, kw_only=True):
    """The model is writing a tool call."""

    topic: ClassVar[str] = "tui.tool.generating"
    durable: ClassVar[bool] = False

    name: Annotated[str, Meta(description="Name of the tool.")]
    preview: Annotated[
        str, Meta(description="What the terminal shows of the call.")
    ] = ""


class TuiToolStart(Event, frozen=True, kw_only=True):
    """A tool call started; the terminal shows it as running."""

    topic: ClassVar[str] = "tui.tool.start"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("preview",)

    name: Annotated[str, Meta(description="Name of the tool.")]
    preview: Annotated[
        str, Meta(description="What the terminal shows of the call.")
    ] = ""
    call_id: Annotated[str, Meta(description="Id of the tool call.")] = ""


class TuiToolProgress(Event, frozen=True, kw_only=True):
    """A running tool printed something."""

    topic: ClassVar[str] = "tui.tool.progress"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("preview",)

    name: Annotated[str, Meta(description="Name of the tool.")]
    preview: Annotated[str, Meta(description="Its last line.")] = ""
    call_id: Annotated[str, Meta(description="Id of the tool call.")] = ""


class TuiToolComplete(Event, frozen=True, kw_only=True):
    """A tool call ended; the terminal shows its result."""

    topic: ClassVar[str] = "tui.tool.complete"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("preview",)

    name: Annotated[str, Meta(description="Name of the tool.")]
    preview: Annotated[
        str, Meta(description="What the terminal shows of the call.")
    ] = ""
    call_id: Annotated[str, Meta(description="Id of the tool call.")] = ""
    ok: Annotated[bool, Meta(description="False when it failed or was refused.")] = True
    seconds: Annotated[float, Meta(description="How long it took.")] = 0.0


class TuiReasoningDelta(Event, frozen=True, kw_only=True):
    """More of the model's reasoning."""

    topic: ClassVar[str] = "tui.reasoning.delta"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    text: Annotated[str, Meta(description="The next piece.")]


class TuiReasoningAvailable(Event, frozen=True, kw_only=True):
    """The model's reasoning for a reply is complete."""

    topic: ClassVar[str] = "tui.reasoning.available"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    text: Annotated[str, Meta(description="The thinking.")]


class TuiError(Event, frozen=True, kw_only=True):
    """The terminal shows an error."""

    topic: ClassVar[str] = "tui.error"
    durable: ClassVar[bool] = False

    message: Annotated[str, Meta(description="The same as a sentence.")]


TUI_EVENTS: tuple[type[Event], ...] = (
    TuiMessageStart,
    TuiMessageDelta,
    TuiMessageComplete,
    TuiToolGenerating,
    TuiToolStart,
    TuiToolProgress,
    TuiToolComplete,
    TuiReasoningDelta,
    TuiReasoningAvailable,
    TuiError,
)

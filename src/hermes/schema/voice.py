"""The event of spoken replies."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta

from hermes.schema.event_base import Event

SpokenReplies: TypeAlias = Literal["off", "on", "tts"]
"""Replies are never spoken, only to voice notes, or always."""


class SpokenRepliesSet(Event, frozen=True, kw_only=True):
    """The user said whether the replies of a session are spoken (`/voice`)."""

    topic: ClassVar[str] = "session.spoken_replies_set"

    mode: Annotated[
        SpokenReplies,
        Meta(description="off: never; on: replies to voice notes; tts: all replies."),
    ]

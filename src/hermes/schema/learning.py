"""Events of learning: changes, proposals and reviews."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from hermes.schema.event_base import Event


class LearningChanged(Event, frozen=True, kw_only=True):
    """Memory or a skill was changed; the history has the diff and can revert it."""

    topic: ClassVar[str] = "agent.learning.changed"
    sensitive: ClassVar[tuple[str, ...]] = ("title",)

    kind: Annotated[Literal["memory", "skill"], Meta(description="What was changed.")]
    title: Annotated[str, Meta(description="The change in a few words.")]
    change: Annotated[
        str, Meta(description="Its hash in the history; empty without git.")
    ] = ""
    proposal: Annotated[str, Meta(description="The proposal it came from, if any.")] = (
        ""
    )


class LearningProposed(Event, frozen=True, kw_only=True):
    """A change of memory or a skill waits for the user's approval."""

    topic: ClassVar[str] = "agent.learning.proposed"
    sensitive: ClassVar[tuple[str, ...]] = ("title", "diff")

    proposal: Annotated[str, Meta(description="Its id, for approving or rejecting it.")]
    kind: Annotated[
        Literal["memory", "skill"], Meta(description="What would be changed.")
    ]
    title: Annotated[str, Meta(description="The change in a few words.")]
    why: Annotated[str, Meta(description="Why the user is asked.")] = ""
    diff: Annotated[str, Meta(description="What the change would do.")] = ""


class LearningReviewed(Event, frozen=True, kw_only=True):
    """A review of the conversation ended; this event is its only trace."""

    topic: ClassVar[str] = "agent.learning.reviewed"
    sensitive: ClassVar[tuple[str, ...]] = ("summary",)

    summary: Annotated[
        str, Meta(description="One line for the user; empty when nothing was learned.")
    ] = ""
    proposals: Annotated[
        tuple[str, ...], Meta(description="Proposals waiting for the user.")
    ] = ()
    changes: Annotated[
        tuple[str, ...],
        Meta(description="Changes that were made, by their hashes in the history."),
    ] = ()
    upto: Annotated[int, Meta(description="`seq` of the last row it looked at.")] = 0
    failure: Annotated[
        str,
        Meta(
            description="What went wrong, if anything; in that case nothing was changed."
        ),
    ] = ""


LEARNING_EVENTS: tuple[type[Event], ...] = (
    LearningChanged,
    LearningProposed,
    LearningReviewed,
)

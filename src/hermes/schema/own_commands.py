"""What the user runs in a chat with `!command`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hermes.schema.event_base import Event


class OwnCommandRan(Event, frozen=True, kw_only=True):
    """The user ran a command in the chat. The model reads its output with the user's next message."""

    topic: ClassVar[str] = "agent.command.ran"
    sensitive: ClassVar[tuple[str, ...]] = ("command", "output")

    command: Annotated[str, Meta(description="The command line.")]
    output: Annotated[str, Meta(description="What it printed, or the end of it.")] = ""
    code: Annotated[
        int, Meta(description="Its exit code; negative for the signal that ended it.")
    ] = 0

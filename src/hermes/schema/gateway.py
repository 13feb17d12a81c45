"""The events that hooks receive. Every process that runs sessions publishes them, whether or not it has hooks.

None of them is a row of a log, but a bridge keeps them until the dashboard has them. `session_id` is in the
envelope, `turn_id` where there is a turn.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hermes.schema.event_base import Event


class _GatewayEvent(Event, frozen=True, kw_only=True):
    """Fields that all of them have."""

    durable: ClassVar[bool] = False

    platform: Annotated[
        str,
        Meta(
            description="Where the session runs: cli, dashboard, telegram, cron, delegate..."
        ),
    ] = ""
    user: Annotated[str, Meta(description="Who it is with, where that is known.")] = ""


class GatewayStartup(_GatewayEvent, frozen=True, kw_only=True):
    """The gateway is ready: it has cleaned up after the last run, and accepts messages."""

    topic: ClassVar[str] = "gateway.startup"


class GatewaySessionStart(_GatewayEvent, frozen=True, kw_only=True):
    """A process started to work in a session, new or existing."""

    topic: ClassVar[str] = "gateway.session.start"

    resumed: Annotated[
        bool, Meta(description="Whether the session already existed.")
    ] = False


class GatewaySessionEnd(_GatewayEvent, frozen=True, kw_only=True):
    """A process is done with a session; it can be resumed."""

    topic: ClassVar[str] = "gateway.session.end"


class GatewaySessionReset(_GatewayEvent, frozen=True, kw_only=True):
    """A chat continues in a new session."""

    topic: ClassVar[str] = "gateway.session.reset"

    new_session_id: Annotated[str, Meta(description="The new session.")] = ""


class GatewayAgentStart(_GatewayEvent, frozen=True, kw_only=True):
    """A turn started."""

    topic: ClassVar[str] = "gateway.agent.start"
    sensitive: ClassVar[tuple[str, ...]] = ("message",)

    message: Annotated[str, Meta(description="What the user said.")] = ""


class GatewayAgentStep(_GatewayEvent, frozen=True, kw_only=True):
    """The model replied; its tool calls run next."""

    topic: ClassVar[str] = "gateway.agent.step"

    iteration: Annotated[
        int, Meta(description="How many replies the turn has had, including this one.")
    ] = 0
    tool_names: Annotated[tuple[str, ...], Meta(description="The tools it calls.")] = ()


class GatewayAgentEnd(_GatewayEvent, frozen=True, kw_only=True):
    """A turn ended."""

    topic: ClassVar[str] = "gateway.agent.end"
    sensitive: ClassVar[tuple[str, ...]] = ("message", "response")

    reason: Annotated[
        str, Meta(description="How it ended: done, interrupted, failed...")
    ] = ""
    message: Annotated[str, Meta(description="What the user said.")] = ""
    response: Annotated[str, Meta(description="The last reply.")] = ""


class GatewayCommand(_GatewayEvent, frozen=True, kw_only=True):
    """Somebody used a command in a chat; its name is the last part of the topic."""

    topic: ClassVar[str] = "gateway.command.*"


GATEWAY_EVENTS: tuple[type[Event], ...] = (
    GatewayStartup,
    GatewaySessionStart,
    GatewaySessionEnd,
    GatewaySessionReset,
    GatewayAgentStart,
    GatewayAgentStep,
    GatewayAgentEnd,
    GatewayCommand,
)

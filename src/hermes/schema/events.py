"""Events that are not messages: the life of a session, a turn and a tool call, and what the bus says of itself."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta

from hermes.schema.event import Event
from hermes.schema.messages import Usage

SessionKind: TypeAlias = Literal["root", "branch", "child"]
TurnEnd: TypeAlias = Literal["done", "interrupted", "failed", "crashed", "refused", "budget"]


class SessionCreated(Event, frozen=True, kw_only=True):
    """A session began. Always the first row of its log."""

    topic: ClassVar[str] = "session.created"

    kind: Annotated[
        SessionKind, Meta(description="`branch` copies its parent's rows; `child` works for its parent.")
    ] = "root"
    parent: Annotated[str, Meta(description="Session it was branched from or works for.")] = ""
    parent_seq: Annotated[int, Meta(description="Last row taken from the parent.")] = 0
    root: Annotated[str, Meta(description="First session of the lineage; empty for a root.")] = ""
    surface: Annotated[str, Meta(description="Where it was started (cli, tui, dashboard, telegram...).")] = ""
    cwd: Annotated[str, Meta(description="Working directory it was started in.")] = ""


class SessionTitled(Event, frozen=True, kw_only=True):
    """A session got a title, from its user or by itself."""

    topic: ClassVar[str] = "session.titled"
    sensitive: ClassVar[tuple[str, ...]] = ("title",)

    title: Annotated[str, Meta(description="The new title; empty removes it.")]
    by: Annotated[Literal["user", "model"], Meta(description="Who chose it.")] = "user"


class SessionImported(Event, frozen=True, kw_only=True):
    """A session's rows came from a file; everything before this row happened elsewhere."""

    topic: ClassVar[str] = "session.imported"

    source: Annotated[str, Meta(description="Id the session had in the file.")]
    rows: Annotated[int, Meta(description="How many rows were imported.")]


class SessionRecovered(Event, frozen=True, kw_only=True):
    """A damaged database was rebuilt; this session's readable rows were kept."""

    topic: ClassVar[str] = "session.recovered"

    kept: Annotated[int, Meta(description="Rows that were readable.")]
    lost: Annotated[int, Meta(description="Rows known to be missing before the last readable one.")]
    file: Annotated[str, Meta(description="Where the damaged file was kept.")]


class TurnStarted(Event, frozen=True, kw_only=True):
    """Hermes began to work on what the user said."""

    topic: ClassVar[str] = "agent.turn.started"

    runtime: Annotated[str, Meta(description="Which engine runs the turn.")] = "native"


class TurnEnded(Event, frozen=True, kw_only=True):
    """The turn is over, however it went."""

    topic: ClassVar[str] = "agent.turn.ended"

    reason: Annotated[TurnEnd, Meta(description="How it ended.")]
    detail: Annotated[str, Meta(description="What a person should know about that.")] = ""
    usage: Annotated[Usage | None, Meta(description="Sum over the turn's model calls.")] = None


class ToolStarted(Event, frozen=True, kw_only=True):
    """A tool call is about to run; written before its effect."""

    topic: ClassVar[str] = "agent.tool.started"
    sensitive: ClassVar[tuple[str, ...]] = ("arguments",)

    call_id: Annotated[str, Meta(description="Id of the tool call.")]
    name: Annotated[str, Meta(description="Name of the tool.")]
    arguments: Annotated[str, Meta(description="Arguments as JSON text.")]


class RecursionStopped(Event, frozen=True, kw_only=True):
    """A callback published inside a callback, too deep; that publish was not delivered."""

    topic: ClassVar[str] = "bus.recursion_stopped"
    durable: ClassVar[bool] = False

    stopped: Annotated[str, Meta(description="Topic that was not delivered.")]
    depth: Annotated[int, Meta(description="How deep publishing had nested.")]


class Gap(Event, frozen=True, kw_only=True):
    """A stream's reader was too slow: events are missing at this place."""

    topic: ClassVar[str] = "gap"
    durable: ClassVar[bool] = False

    dropped: Annotated[int, Meta(description="How many are missing.")]
    pattern: Annotated[str, Meta(description="Pattern of the stream.")]
    policy: Annotated[str, Meta(description="`drop_oldest`, `drop_newest` or `close`.")]

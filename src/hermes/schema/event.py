"""What an event is: typed, frozen data with a topic, durable or transient.

A durable event is a row of a session's log and carries the cursor `(epoch, seq)` of that row. A transient event
(a token, progress) is only published. Either way the fields of the class are the payload, and the envelope's own
names (`ENVELOPE_FIELDS`) are never among them.
"""

from typing import ClassVar, Literal, TypeAlias

import msgspec

Role: TypeAlias = Literal["user", "assistant", "tool"]

ENVELOPE_FIELDS = ("type", "ts", "src", "session_id", "root_session_id", "turn_id", "epoch", "seq")


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of every event. `sensitive` names fields that may hold secrets or private text."""

    topic: ClassVar[str] = ""
    durable: ClassVar[bool] = True
    role: ClassVar[Role | None] = None
    sensitive: ClassVar[tuple[str, ...]] = ()

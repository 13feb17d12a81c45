"""Groups the tool calls of one reply into segments. The calls of a segment run together.

Calls that only read run together, and so do calls that only look something up on the network. Calls that change named
files run together unless their files overlap. Anything else runs alone.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal, TypeAlias

import msgspec

Effect: TypeAlias = Literal["read", "network", "files", "other"]


class PlannedCall(msgspec.Struct, frozen=True):
    """What planning needs to know of a call: its position, what it does, and to which absolute paths."""

    index: int
    effect: Effect
    paths: tuple[PurePath, ...] = ()


def segments(calls: Sequence[PlannedCall]) -> list[list[PlannedCall]]:
    """The calls in order, grouped into what may run at the same time."""
    groups: list[list[PlannedCall]] = []
    for call in calls:
        if groups and _fits(call, groups[-1]):
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _fits(call: PlannedCall, group: list[PlannedCall]) -> bool:
    if call.effect == "other" or group[0].effect != call.effect:
        return False
    return call.effect != "files" or not any(_overlap(call, other) for other in group)


def _overlap(one: PlannedCall, two: PlannedCall) -> bool:
    """Whether a path of one equals, contains or lies within a path of the other. A call without paths overlaps everything."""
    if not one.paths or not two.paths:
        return True
    return any(
        a == b or a in b.parents or b in a.parents for a in one.paths for b in two.paths
    )

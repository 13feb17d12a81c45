"""Which tool calls of one reply may run together: in segments, one after the other.

Calls that only read run together, and so do calls that only look something up on the network. Calls that change named
files run together unless their files overlap. Anything else runs alone.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal, TypeAlias

import msgspec

Effect: TypeAlias = Literal["read", "network", "files", "other"]


class Planned(msgspec.Struct, frozen=True):
    """What planning needs to know of a call: its place, what it does, and to which (absolute) paths."""

    index: int
    effect: Effect
    paths: tuple[PurePath, ...] = ()


def segments(calls: Sequence[Planned]) -> list[list[Planned]]:
    """The calls in order, grouped into what may run at the same time."""
    groups: list[list[Planned]] = []
    for call in calls:
        if groups and _fits(call, groups[-1]):
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _fits(call: Planned, group: list[Planned]) -> bool:
    if call.effect == "other" or group[0].effect != call.effect:
        return False
    return call.effect != "files" or not any(_overlap(call, other) for other in group)


def _overlap(one: Planned, two: Planned) -> bool:
    """Whether a path of one is, contains or lies within a path of the other; no known path overlaps everything."""
    if not one.paths or not two.paths:
        return True
    return any(
        a == b or a in b.parents or b in a.parents for a in one.paths for b in two.paths
    )

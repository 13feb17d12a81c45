"""Statistics over trajectories: how they ended, which tools were called and failed, reasoning and cost."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from hermes.trajectories.trajectory import Trajectory


class ToolStatistics(msgspec.Struct, frozen=True):
    """How often a tool was called, and how often it failed."""

    name: str
    calls: int
    failures: int


class TrajectoryStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over trajectories."""

    trajectories: int = 0
    endings: dict[str, int] = {}
    replies: int = 0
    replies_with_reasoning: int = 0
    tool_calls: int = 0
    tools: tuple[ToolStatistics, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Trajectories with a reply whose price is unknown."""
    mean_score: float | None = None


def statistics_of(trajectories: Iterable[Trajectory]) -> TrajectoryStatistics:
    """Returns the sums. Reads each trajectory once, so they may come from a generator."""
    endings, calls, failures = Counter[str](), Counter[str](), Counter[str]()
    number = replies = thoughtful = tokens_in = tokens_out = unpriced = 0
    cost, scores = 0.0, list[float]()
    for one in trajectories:
        number += 1
        endings[one.ending or "unfinished"] += 1
        for reply in one.replies:
            replies += 1
            thoughtful += bool(reply.reasoning.strip())
            calls.update(call.name for call in reply.tool_calls)
        failures.update(result.name for result in one.results if not result.ok)
        usage = one.usage
        tokens_in, tokens_out = tokens_in + usage.input_tokens, tokens_out + usage.output_tokens  # fmt: skip
        cost += usage.cost_usd or 0.0
        unpriced += usage.cost_usd is None
        if one.score is not None:
            scores.append(one.score)
    return TrajectoryStatistics(
        trajectories=number,
        endings=dict(endings.most_common()),
        replies=replies,
        replies_with_reasoning=thoughtful,
        tool_calls=calls.total(),
        tools=tuple(
            ToolStatistics(name, times, failures[name])
            for name, times in calls.most_common()
        ),
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost_usd=cost,
        unpriced=unpriced,
        mean_score=sum(scores) / len(scores) if scores else None,
    )

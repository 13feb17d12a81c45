"""The formats of an export by name, and which trajectories an export includes."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from hermes.text.translation import translator
from hermes.trajectories.compression import compressed
from hermes.trajectories.trajectory import Trajectory

t = translator(__name__)


TrajectoryFormat: TypeAlias = Literal["sharegpt", "openai", "atif"]


class ExportChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which trajectories are exported, and how long they may be."""

    finished: bool = False
    with_reasoning: bool = False
    min_score: float | None = None
    max_tokens: int = 0
    """The maximum length in tokens; 0 for any length."""

    def selected(self, trajectory: Trajectory) -> Trajectory | str:
        """Returns the trajectory in its exported form, or why it is left out."""
        if self.finished and not trajectory.is_finished:
            return "not finished"
        if self.with_reasoning and not trajectory.has_reasoning:
            return "without reasoning"
        if self.min_score is not None:
            if trajectory.score is None:
                return "without a score"
            if trajectory.score < self.min_score:
                return f"with a score below {self.min_score:g}"
        if not self.max_tokens:
            return trajectory
        made = compressed(trajectory, self.max_tokens)
        return made or t.logged(
            "too long for {max_tokens:,} tokens", max_tokens=self.max_tokens
        )


def encoded(trajectory: Trajectory, form: TrajectoryFormat) -> str:
    """Returns the trajectory as one line of JSON."""
    document: dict[str, Any]
    if form == "sharegpt":
        from hermes.trajectories.sharegpt import sharegpt

        document = sharegpt(trajectory)
    elif form == "openai":
        from hermes.trajectories.openai_messages import openai_messages

        document = openai_messages(trajectory)
    else:
        from hermes.trajectories.atif import atif

        document = atif(trajectory)
    return msgspec.json.encode(document).decode()


class BatchExport:
    """Encodes trajectories, and counts those that were left out, by reason."""

    def __init__(self, choice: ExportChoice, form: TrajectoryFormat) -> None:
        self._choice = choice
        self._form: TrajectoryFormat = form
        self.written = 0
        self.left_out: Counter[str] = Counter()

    def lines(self, found: Iterator[Trajectory]) -> Iterator[str]:
        """Yields the lines of the export."""
        for one in found:
            taken = self._choice.selected(one)
            if isinstance(taken, str):
                self.left_out[taken] += 1
            else:
                self.written += 1
                yield encoded(taken, self._form)

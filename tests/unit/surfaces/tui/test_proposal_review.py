"""Deciding on proposals: what is shown, what counts, and that no key decides on what nobody can have read."""

from collections.abc import Sequence
from typing import cast

from tests.unit.surfaces.tui.test_session_view import FakeScreen

from hermes.app.learning.learner import Learner
from hermes.learning.change import LearningError, MemoryChange, MemoryEdit, Provenance
from hermes.learning.proposals import Proposal
from hermes.surfaces.tui.proposal_review import ProposalReview
from hermes.testing.fixtures import FakeClock


class FakeLearner:
    """Decides without a home."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.learning = FakeClock(1_000.0)
        self.words: list[tuple[str, bool]] = []
        self._refuses = refuses

    def decide(self, proposal: str, *, keep: bool) -> Proposal:
        if self._refuses:
            raise LearningError(
                "It does not fit any more.", hint="Nothing was changed."
            )
        self.words.append((proposal, keep))
        return proposals(1)[0]


def proposals(number: int, lines: int = 1) -> Sequence[Proposal]:
    diff = (
        "--- a/memories/USER.md\n+++ b/memories/USER.md\n@@ -0,0 +1 @@\n"
        + "\n".join(["+- likes tea"] * lines)
    )
    change = MemoryChange((MemoryEdit("add", "likes tea", file="user"),))
    return [
        Proposal(
            id=f"p{at}",
            change=change,
            origin=Provenance("review"),
            why="a review suggests it",
            diff=diff,
        )
        for at in range(1, number + 1)
    ]


class Table:
    """A way through some proposals."""

    def __init__(
        self, number: int = 2, *, lines: int = 1, refuses: bool = False
    ) -> None:
        self.clock, self.screen, self.learner = (
            FakeClock(100.0),
            FakeScreen(),
            FakeLearner(refuses=refuses),
        )
        found = proposals(number, lines)
        self.deciding = ProposalReview(
            cast("Learner", self.learner), self.screen, found, clock=self.clock.now
        )
        self.deciding.begin()

    async def press(self, line: str, after: float = 1.0) -> bool:
        self.clock.advance(after)
        return await self.deciding.take(line, self.clock.now())


async def test_one_after_the_other() -> None:
    table = Table(3)
    assert "1/3 memory: add user" in table.screen.text
    assert "  │ memories/USER.md\n  │ +- likes tea\n" in table.screen.text
    for key in ("y", "no", "s"):
        assert await table.press(key)
    assert table.learner.words == [("p1", True), ("p2", False)]
    assert table.deciding.is_over
    assert table.screen.text.endswith("1 kept, 1 rejected, 1 to review: /learn.\n")


async def test_a_key_that_was_meant_for_the_one_before_decides_nothing() -> None:
    table = Table(2)
    assert await table.press("y", after=0.1)
    assert table.learner.words == []
    assert await table.press("y")
    assert await table.press("y", after=0.2)
    assert table.learner.words == [("p1", True)]
    assert await table.press("y", after=0.2)
    assert table.learner.words == [("p1", True), ("p2", True)]


async def test_it_asks_only_when_a_key_can_be_meant_for_it() -> None:
    table = Table(1)
    table.deciding.ask()
    assert table.screen.label == ""
    table.clock.advance(0.4)
    table.deciding.ask()
    assert table.screen.label == "Keep it? y (keep), n (never), s (later), q (stop)"


async def test_anything_else_ends_it_and_is_not_taken() -> None:
    table = Table(2)
    assert not await table.press("hello")
    assert table.deciding.is_over
    assert table.learner.words == []


async def test_stopping_leaves_the_rest_waiting() -> None:
    table = Table(2)
    assert await table.press("q")
    assert table.screen.text.endswith("2 to review: /learn.\n")


async def test_a_change_that_does_not_fit_any_more_is_said_and_waits() -> None:
    table = Table(1, refuses=True)
    assert await table.press("y")
    assert "It does not fit any more." in table.screen.text
    assert "1 to review" in table.screen.text


async def test_a_long_difference_is_cut_and_can_be_seen_whole() -> None:
    table = Table(1, lines=50)
    assert "22 more lines; v shows all" in table.screen.text
    before = table.screen.text.count("likes tea")
    assert await table.press("v")
    assert table.screen.text.count("likes tea") == before + 50
    assert not table.deciding.is_over

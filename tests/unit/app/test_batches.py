"""Batches without a model: names, drawn toolsets, and a budget that rows which run at once can't pass together."""

import random
from pathlib import Path

import msgspec
import pytest

from hermes.app.batches.allowance import Allowance
from hermes.app.batches.batch import (
    Batch,
    BatchOptions,
    check_amount,
    name_of,
    parse_toolsets,
)
from hermes.app.batches.batch_runner import BatchProgress
from hermes.app.batches.dataset import BatchRow
from hermes.app.batches.row_state import RowState, with_own_option
from hermes.errors import UsageError
from hermes.surfaces.cli.batches import progress_text

ROW = BatchRow(prompt="x")


def batch(toolsets: str = "", seed: str = "s") -> Batch:
    options = BatchOptions(toolsets=parse_toolsets(toolsets), seed=seed)
    return Batch(
        name="b",
        id="20261117-070000-abcdef",
        created=0.0,
        dataset="d",
        rows=1000,
        options=options,
    )


def test_a_row_draws_the_same_toolsets_again_and_about_as_often_as_asked() -> None:
    one = batch("terminal:0.8,web:0.25")
    drawn = [one.toolsets_of(number, ROW) for number in range(1, 1001)]
    assert drawn == [one.toolsets_of(number, ROW) for number in range(1, 1001)]
    assert 720 < sum("terminal" in sets for sets in drawn) < 990
    assert 200 < sum("web" in sets for sets in drawn) < 300
    assert all(drawn), "a row without any drawn set gets the likeliest one"
    other = batch("terminal:0.8,web:0.25", seed="t")
    assert drawn != [other.toolsets_of(number, ROW) for number in range(1, 1001)]


def test_a_row_may_name_its_own_toolsets() -> None:
    row = BatchRow(prompt="x", toolsets=("files",))
    assert batch("terminal").toolsets_of(1, row) == ("files",)


def test_sessions_of_a_row_are_known_before_they_exist() -> None:
    assert batch().session(12) == "20261117-070000-abcdef-00012"
    assert batch().session(12, 2) == "20261117-070000-abcdef-00012.2"


def test_a_dataset_gives_its_batch_a_name() -> None:
    assert name_of(Path("/x/My Tasks (v2).jsonl")) == "my-tasks-v2"
    assert name_of(Path("/x/日本.csv")) == "batch"


@pytest.mark.parametrize("text", ["nosuch", "web:2", "web:x", "web:-1"])
def test_toolsets_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_toolsets(text)


def test_an_amount_that_is_none_is_refused() -> None:
    assert check_amount("$2", "--budget") == "$2"
    with pytest.raises(UsageError, match="--budget"):
        check_amount("lots", "--budget")


def ended(number: int, cost: float) -> RowState:
    return RowState(number=number, session="s", status="done", cost_usd=cost)


def end_one(
    allowance: Allowance, running: dict[int, float], chance: random.Random
) -> float:
    """Ends one of the rows; returns what it cost, at most what it was granted."""
    one = chance.choice(list(running))
    cost = running.pop(one) * chance.random()
    allowance.settle(one, 0.0, ended(one, cost))
    return cost


@pytest.mark.parametrize("row_budget", ["", "$0.30"])
def test_rows_that_run_at_once_never_pass_the_budget_together(row_budget: str) -> None:
    chance = random.Random(7)
    allowance = Allowance(BatchOptions(budget="$5", row_budget=row_budget))
    running: dict[int, float] = {}
    spent = 0.0
    for number in range(1, 400):
        while (cap := allowance.grant(number, 0.0, 4 - len(running))) is None:
            if not running:
                break
            spent += end_one(allowance, running, chance)
        if cap is None:
            break
        running[number] = float(cap.removeprefix("$"))
        assert spent + sum(running.values()) <= 5.0001
        if len(running) == 4:
            spent += end_one(allowance, running, chance)
    assert spent > 4


def test_a_budget_counts_what_was_spent_before() -> None:
    allowance = Allowance(BatchOptions(budget="1000 tokens"))
    before = RowState(number=1, session="s", tokens=400, earlier_tokens=500)
    allowance.count(before)
    assert allowance.left == 100
    assert allowance.grant(2, 0.0, 1) == "100 tokens"
    assert allowance.grant(3, 0.0, 1) is None
    assert not allowance.is_spent, "row 2 may give something back"
    allowance.settle(2, 0.0, RowState(number=2, session="s", tokens=100))
    assert allowance.is_spent


def test_budgets_in_different_units_are_refused() -> None:
    with pytest.raises(UsageError, match="both"):
        Allowance(BatchOptions(budget="$5", row_budget="10k tokens"))


def test_progress_has_the_rate_the_cost_and_the_time_left() -> None:
    now = BatchProgress(rows=100, done=38, failed=2, running=4, finished_now=20, cost_usd=1.2, tokens=9)  # fmt: skip
    plain = progress_text(now, 60.0)
    assert plain == "40 of 100 rows, 2 failed, 4 running, 20.0 rows/min, $1.20, 3 min left"  # fmt: skip
    drawn = progress_text(now, 60.0, columns=100)
    assert drawn.startswith("[##########---------------]  40%  40 of 100 rows")
    assert len(progress_text(now, 60.0, columns=40)) <= 40


def test_a_row_over_its_budget_is_told_the_option_of_the_batch() -> None:
    detail = "stopped before exceeding the cap per session. Raise budget.per_session to continue."
    assert with_own_option(detail, batch()) == detail
    own = msgspec.structs.replace(batch(), options=BatchOptions(row_budget="$0.30"))
    assert with_own_option(detail, own).endswith(
        "Give each row more: hermes batch resume b --retry --row-budget AMOUNT"
    )

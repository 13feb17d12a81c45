"""The page of proofs shows the figures that were kept, and every part of the benchmark has its place on it."""

from benchmarks.proofs import RUNS
from benchmarks.proofs.figures import kept_figures
from benchmarks.proofs.page import PAGE, PARTS, render


def test_the_page_is_what_the_benchmark_writes_from_the_kept_figures() -> None:
    assert PAGE.read_text() == render(kept_figures())


def test_every_part_is_described_and_was_measured_with_no_promise_broken() -> None:
    kept = kept_figures()
    assert set(RUNS) == set(PARTS) == set(kept)
    figures = [one for part in kept.values() for one in part.figures]
    assert [one.name for one in figures if one.met is False] == []
    assert all(one.cases > 0 for one in figures)

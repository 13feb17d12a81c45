"""What `hermes usage` prints, and the progress bar of a download."""

from hermes.commands.models import UsageReport
from hermes.providers.embedded import Progress
from hermes.store.sessions import UsageRow
from hermes.surfaces.terminal.render import draw
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import TextScreen
from hermes.surfaces.terminal.weights_download import bar_text
from hermes.text.formats import dollars

PRICED = UsageRow(
    "2026-11-14", "anthropic", "claude-opus-5", 3, 12_000, 800, 9_000, 0, 100, 1.25, 0
)
UNPRICED = UsageRow("2026-11-15", "lab", "mystery-1", 2, 500, 50, 0, 0, 0, 0.0, 2)
WIDE, NARROW = (
    TextScreen(100, Style(enabled=False)),
    TextScreen(40, Style(enabled=False)),
)


def question_lines(rows: list[UsageRow], screen: TextScreen) -> list[str]:
    return list(draw(UsageReport(days=tuple(rows)), screen, 0.0))


def test_the_table_has_a_total() -> None:
    head, first, second, total, *rest = question_lines([PRICED, UNPRICED], WIDE)
    assert head.split()[-1] == "COST"
    assert first.split() == [
        "2026-11-14",
        "anthropic:claude-opus-5",
        "3",
        "12,000",
        "9,000",
        "800",
        "$1.25",
    ]
    assert second.split()[-1] == "?"
    assert total.split() == ["total", "5", "12,500", "850", "$1.25"]
    assert "2 calls is unknown" in rest[0]
    assert "lab:mystery-1" in rest[0]


def test_a_narrow_screen_gets_short_lines() -> None:
    assert max(len(line) for line in question_lines([PRICED], NARROW)) <= 40


def test_the_document_sums_everything() -> None:
    total = UsageReport(days=(PRICED, UNPRICED)).document()["total"]
    assert (total["calls"], total["cost_usd"], total["unpriced_calls"]) == (5, 1.25, 2)


def test_small_amounts_keep_their_digits() -> None:
    assert [dollars(amount) for amount in (0, 0.0042, 12.5)] == [
        "$0.00",
        "$0.0042",
        "$12.50",
    ]


def test_the_bar_fits_the_screen_and_says_how_far_it_is() -> None:
    step = Progress(
        source="the hub",
        done=536_000_000,
        total=1_117_000_000,
        detail="x" * 99,
        bytes_per_second=12e6,
        seconds_left=48.4,
    )
    text = bar_text(step, 79)
    assert (
        text
        == "[#########----------]  48%  536 of 1,117 MB  12.0 MB/s  48 s left  the hub"
    )
    assert bar_text(step, 49) == "[#####-------]  48%  536 of 1,117 MB  48 s left"
    assert bar_text(step, 39) == "[####-----]  48%  48 s left"
    assert bar_text(step, 79, verbose=True).endswith("left  xxxxxxxxxxx…")
    assert (
        bar_text(Progress(source="somebody else fetches it", done=3, total=0), 79)
        == "waiting 3 s: somebody else fetches it"
    )

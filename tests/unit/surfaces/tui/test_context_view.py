"""The picture of the model's window."""

import pytest

from hermes.commands.slash_commands import ContextUse
from hermes.core.context_usage import CompactionPreview, Context, ContextPart
from hermes.surfaces.terminal.styled_text import plain
from hermes.surfaces.terminal.text import width
from hermes.surfaces.tui.context_view import window_rows

PARTS = (
    ContextPart("instructions", 1_000, 2),
    ContextPart("tools", 4_000, 20),
    ContextPart("tool results", 45_000, 12),
)
NOW = Context(PARTS, 50_000, 100_000, 80_000)


def drawn(context: Context, ahead: CompactionPreview, columns: int = 79) -> list[str]:
    use = ContextUse(usage=context, preview=ahead)
    return [plain(row) for row in window_rows(use, columns, ascii_only=True)]


def test_what_fills_it_and_what_is_free() -> None:
    lines = drawn(NOW, CompactionPreview(3, 9_000, 20, 30_000))
    assert lines[0] == "50,000 of 100,000 tokens  50%"
    assert lines[1] == "#" * 30 + "." * 18 + "|" + "." * 11
    assert lines[2:6] == [
        "  # instructions      1,000    1.0%  2",
        "  # tools             4,000    4.0%  20",
        "  # tool results     45,000     45%  12",
        "  . free             50,000     50%",
    ]
    said = " ".join(lines[6:])
    assert (
        "The context is compressed at 80,000 tokens, after 30,000 more. 3 old results (about 9,000 tokens)"
        in said
    )
    assert "A summary would replace 20 messages (about 30,000 tokens)." in said


def test_estimates_follow_what_the_provider_counted() -> None:
    lines = drawn(
        Context(PARTS, 25_000, 100_000, 80_000), CompactionPreview(0, 0, 0, 0)
    )
    assert "  # tool results     22,500     22%  12" in lines
    assert "nothing to remove yet" in " ".join(lines)
    assert (
        "estimated"
        in drawn(Context(PARTS, 0, 100_000), CompactionPreview(0, 0, 0, 0))[0]
    )


@pytest.mark.parametrize("columns", [19, 40, 140])
@pytest.mark.parametrize("used", [0, 79_000, 200_000])
def test_it_fits_any_screen_and_any_filling(columns: int, used: int) -> None:
    lines = drawn(
        Context(PARTS, used, 100_000, 80_000), CompactionPreview(1, 2, 3, 4), columns
    )
    assert width(lines[1]) == min(columns - 2, 60)
    assert "-" not in lines[5]
    assert ("before the next reply" in " ".join(lines)) is (used == 200_000)

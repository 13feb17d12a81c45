"""The list to choose from: moving, searching, choosing, and how it fits a window."""

import pytest

from hermes.surfaces.terminal.styled_text import plain
from hermes.surfaces.terminal.text import width
from hermes.surfaces.terminal.tool_line import Marks
from hermes.surfaces.tui.overlays.pager import Pager
from hermes.surfaces.tui.overlays.picker import Picker, PickerItem, PickerText

ITEMS = [
    PickerItem("a", "Fix the parser", "2 h ago", lambda: "first\nsecond"),
    PickerItem("b", "Write the docs", "yesterday"),
    PickerItem("c", "Fix the docs build", "last week"),
]


def picker() -> Picker:
    return Picker(PickerText(title="Which?"), ITEMS, Marks())


def press(one: Picker | Pager, *keys: str) -> None:
    for key in keys:
        one.press(key)


def shown(one: Picker | Pager, columns: int = 60, height: int = 16) -> list[str]:
    return [plain(row) for row in one.rows(columns, height)]


def test_enter_takes_the_selected_entry() -> None:
    one = picker()
    press(one, "down", "enter")
    assert one.is_closed
    assert one.picked is not None
    assert one.picked.item.key == "b"


def test_typing_narrows_the_list_by_all_words() -> None:
    one = picker()
    press(one, *"docs fix")
    assert "Which?  1 of 3" in shown(one)
    assert one.selected is ITEMS[2]


def test_escape_clears_the_search_and_then_leaves() -> None:
    one = picker()
    press(one, *"zz", "enter")
    assert shown(one)[-1].endswith("Esc clears the search")
    press(one, "escape")
    assert not one.is_closed
    assert shown(one)[-1].endswith("Esc back")
    assert len(shown(one)) == 16
    press(one, "escape")
    assert one.is_closed
    assert one.picked is None


def test_a_long_title_is_wrapped_and_clicks_still_meet_their_entry() -> None:
    title = "A file that comes with the project wants to be used from now on"
    one = Picker(PickerText(title=title), ITEMS, Marks())
    rows = shown(one, 30)
    assert " ".join(rows[:3]) == title
    assert rows[3] == "› type to search"
    one.click(next(at for at, row in enumerate(rows) if "Write the docs" in row))
    assert one.selected is ITEMS[1]


def test_another_key_is_an_action() -> None:
    one = Picker(PickerText(title="Which?", actions={"c-x": "delete"}), ITEMS, Marks())
    press(one, "c-x")
    assert one.picked is not None
    assert one.picked.key == "c-x"
    assert "Ctrl-X delete" in shown(one)[-1]


async def test_the_preview_is_of_the_selected_entry() -> None:
    one = picker()
    assert await one.load()
    assert not await one.load()
    assert any("│ second" in row for row in shown(one))
    press(one, "down")
    assert not any("second" in row for row in shown(one))


@pytest.mark.parametrize(
    ("columns", "height"), [(20, 6), (39, 10), (79, 24), (199, 50)]
)
async def test_it_fits_the_window(columns: int, height: int) -> None:
    one = picker()
    await one.load()
    rows = shown(one, columns, height)
    assert len(rows) == height
    assert all(width(row) <= columns for row in rows)


def test_a_pager_scrolls_searches_and_closes() -> None:
    pager = Pager(
        "Text", lambda _: [((f"line {number}", ""),) for number in range(50)], Marks()
    )
    assert shown(pager, 40, 12)[1] == "line 0"
    press(pager, "pagedown")
    assert shown(pager, 40, 12)[1] == "line 10"
    press(pager, "/", *"line 37", "enter")
    assert shown(pager, 40, 12)[1] == "line 37"
    press(pager, "end")
    *_, last, keys = shown(pager, 40, 12)
    assert last == "line 49"
    assert keys.startswith("Esc back · 41-50 of 50 ·")
    press(pager, "escape")
    assert pager.is_closed


def test_a_preview_that_is_empty_or_not_read_yet_has_no_frame() -> None:
    assert not any("│" in line for line in shown(picker()))

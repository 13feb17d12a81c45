"""Diffs: numbers, files, changed words, and what is hidden."""

import pytest

from hermes.surfaces.terminal.diff_view import (
    diff_rows,
    diffs_in,
    read_rows,
    without_headers,
)
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.styled_text import painted, plain
from hermes.surfaces.terminal.theme import (
    ADDED,
    DARK,
    LIGHT,
    NEUTRAL,
    REMOVED,
    Theme,
    theme_for,
)
from hermes.surfaces.terminal.tool_line import Marks
from hermes.surfaces.tui.toolkit_style import toolkit_style

TEXT = """Edited a.py:
@@ -9,3 +9,3 @@
 def f():
-    return old_value
+    return new_value
@@ -40,1 +40,2 @@
 x = 1
+y = 2
Edited b.txt:
@@ -1 +1 @@
-a
+b
The rest is text.
- not a diff"""


def test_each_file_is_named_once_and_lines_are_numbered() -> None:
    diffs = diffs_in(TEXT)
    assert [(one.name, one.added, one.removed) for one in diffs] == [
        ("a.py", 2, 1),
        ("b.txt", 1, 1),
    ]
    rows = [plain(row) for row in diff_rows(diffs, 60, Marks(), 50)]
    assert rows == [
        "  │ a.py",
        "  │  9   def f():",
        "  │ 10 -     return old_value",
        "  │ 10 +     return new_value",
        "  │ …",
        "  │ 40   x = 1",
        "  │ 41 + y = 2",
        "  │ b.txt",
        "  │ 1 - a",
        "  │ 1 + b",
    ]


def test_only_the_changed_words_are_marked() -> None:
    rows = list(diff_rows(diffs_in(TEXT)[:1], 60, Marks(), 50, name="a.txt"))
    style = Style(enabled=True, theme=DARK)
    assert "\x1b[48;5;88mold_value\x1b[0m" in painted(rows[1], style)
    assert "\x1b[48;5;52m    return \x1b[0m" in painted(rows[1], style)
    assert "\x1b[48;5;28mnew_value\x1b[0m" in painted(rows[2], style)


def test_a_long_diff_says_how_much_is_hidden() -> None:
    text = "@@ -1,0 +1,40 @@\n" + "\n".join(f"+{number}" for number in range(40))
    rows = [plain(row) for row in diff_rows(diffs_in(text), 40, Marks(), 24, hint=" !")]
    assert len(rows) == 25
    assert rows[-1] == "  │ … 16 more lines !"


def test_the_theme_follows_the_terminal() -> None:
    term = {"TERM": "xterm-256color"}
    assert theme_for("auto", term) is NEUTRAL
    assert theme_for("auto", term | {"COLORFGBG": "0;15"}) is LIGHT
    assert theme_for("auto", term | {"COLORFGBG": "15;default;0"}) is DARK
    assert theme_for("light", {}) is LIGHT
    assert LIGHT.sgr("1;32") == "1;38;5;22"
    assert toolkit_style("1;38;5;28;48;5;194") == "bold fg:#008700 bg:#d7ffd7"
    assert toolkit_style("2;91") == "dim ansibrightred"


def _brightness(index: int) -> float:
    """The relative luminance of one of the 216 colours of the cube, as WCAG defines it."""
    steps = (0, 95, 135, 175, 215, 255)
    place = index - 16
    parts = (steps[place // 36], steps[place // 6 % 6], steps[place % 6])
    linear = [
        one / 255 / 12.92 if one <= 10 else ((one / 255 + 0.055) / 1.055) ** 2.4
        for one in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [DARK, LIGHT])
@pytest.mark.parametrize("code", ["32", "35", "36"])
@pytest.mark.parametrize("line", [ADDED, REMOVED])
def test_coloured_code_can_be_read_in_a_changed_line(
    theme: Theme, code: str, line: str
) -> None:
    ink, paper = (_brightness(int(theme.sgr(one)[5:])) for one in (code, line))
    ratio = (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)
    assert ratio >= 4


GIT_DIFF = """\
diff --git a/query.sql b/query.sql
index c0f2e7d..a3fb760 100644
--- a/query.sql
+++ b/query.sql
@@ -1,3 +1,2 @@
 select 1;
--- a comment
-select 2;
+select 3;
diff --git a/old.bin b/old.bin
deleted file mode 100644
index c0f2e7d..0000000
Binary files a/old.bin and /dev/null differ
"""


def test_a_diff_that_is_read_names_each_file_once_and_numbers_its_lines() -> None:
    rows = [plain(row).rstrip() for row in read_rows(GIT_DIFF, 60, Marks())]
    assert rows == [
        "query.sql",
        "  │ 1   select 1;",
        "  │ 2 - -- a comment",
        "  │ 3 - select 2;",
        "  │ 2 + select 3;",
        "old.bin",
        "deleted file mode 100644",
        "Binary files a/old.bin and /dev/null differ",
    ]


def test_headers_are_left_out_but_no_removed_line() -> None:
    assert without_headers(GIT_DIFF).startswith(
        "query.sql\n@@ -1,3 +1,2 @@\n select 1;\n--- a comment\n"
    )

"""Where hunks go: the one place that is meant, or nothing."""

import difflib

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hermes.errors import ToolFailed
from hermes.tools.files.patch_match import apply_hunks
from hermes.tools.files.patch_parse import read_patch


def applied(text: str, *hunks: str) -> str:
    patch = (
        "*** Begin Patch\n*** Update File: f\n" + "\n".join(hunks) + "\n*** End Patch"
    )
    return apply_hunks("f", text, read_patch(patch)[0].hunks).after


def refused(text: str, *hunks: str) -> str:
    with pytest.raises(ToolFailed) as failed:
        applied(text, *hunks)
    assert "Nothing was changed." in failed.value.hint
    return failed.value.message


@pytest.mark.parametrize(
    ("text", "hunk", "after"),
    [
        ("a\nb\nc\n", "@@\n a\n-b\n+x\n c", "a\nx\nc\n"),
        ("a\nb\nc\n", "-b", "a\nc\n"),
        ("a\nb\nc\n", "@@\n b\n+x", "a\nb\nx\nc\n"),
        ("a\nb\nc", "@@\n-c\n+x\n+y", "a\nb\nx\ny"),
        ("a\nb", "@@\n b\n+c", "a\nb\nc"),
        ("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+x\n+y", "a\r\nx\r\ny\r\nc\r\n"),
        ("\ufeffa\nb\n", "@@\n-a\n+x", "\ufeffx\nb\n"),
        ("a  \nb\n", "@@\n a\n-b\n+x", "a  \nx\n"),
        (
            "\tif a:\n\t\tb\n",
            "@@\n if a:\n-    b\n+    c\n+    if d:\n+        e",
            "\tif a:\n\t\tc\n\t\tif d:\n\t\t\te\n",
        ),
        ("    a\n    b\n", "@@\n a\n-b\n+x\n+  y", "    a\n    x\n      y\n"),
        ("say “hi” – now\nb\n", '@@\n say "hi" - now\n-b\n+x', "say “hi” – now\nx\n"),
        ("x\nend\nx\nend\n", "@@\n x\n-end\n+fin\n*** End of File", "x\nend\nx\nfin\n"),
        (
            "class A:\n  x\nclass B:\n  x\n",
            "@@ class B:\n-  x\n+  y",
            "class A:\n  x\nclass B:\n  y\n",
        ),
        ("def f():\n  x\n", "@@ def f():\n+  y", "def f():\n  y\n  x\n"),
        ("a\n\nb\n", "@@\n a\n\n-b\n+c", "a\n\nc\n"),
        ("", "@@\n+a", "a\n"),
    ],
)
def test_a_hunk_finds_its_place(text: str, hunk: str, after: str) -> None:
    assert applied(text, hunk) == after


def test_hunks_come_in_order() -> None:
    text = "x\n1\nx\n2\nx\n3\n"
    assert applied(text, "@@\n-x\n+a\n 1", "@@\n-x\n+b\n 2") == "a\n1\nb\n2\nx\n3\n"
    assert applied("x\nx\n", "@@\n-x\n+a", "@@\n-x\n+b") == "a\nb\n"
    assert applied(text, "@@\n x\n-3\n+c", "@@\n x\n-1\n+a") == "x\na\nx\n2\nx\nc\n"


def test_a_hunk_that_fits_twice_is_refused() -> None:
    assert "Hunk 1 of f matches several places (lines 1, 3)" in refused(
        "x\n1\nx\n2\n", "@@\n-x\n+y"
    )
    assert "Hunk 2 of f matches several places" in refused(
        "x\ny\nx\nx\n", "@@\n x\n-y\n+z", "@@\n-x\n+q"
    )
    assert "several places" in refused(
        "class A:\n x\nclass A:\n x\n", "@@ class A:\n- x\n+ y"
    )
    assert "overlap" in refused("a\nb\nc\n", "@@\n a\n-b\n+x", "@@\n-b\n c\n+y")


def test_a_line_number_decides_between_equal_places() -> None:
    hunks = read_patch("--- a/f\n+++ b/f\n@@ -3 +3 @@\n-x\n+y\n")[0].hunks
    assert apply_hunks("f", "x\n1\nx\n", hunks).after == "x\n1\ny\n"
    with pytest.raises(ToolFailed, match="several places"):
        apply_hunks("f", "x\nx\n1\n2\nx\n"[2:] + "x\n", hunks)


def test_a_hunk_that_does_not_fit_shows_what_is_near() -> None:
    text = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"
    message = refused(
        text,
        "@@\n-def first():\n+def one():",
        "@@\n def second():\n-    return 3\n+    return 4",
    )
    assert "Hunk 2 of 2 of f does not apply" in message
    assert "5: def second():\n6:     return 2" in message
    assert "below 'class X:'" in refused("x\nx\n", "@@ class X:\n-x\n+y")
    assert "does not say where" in refused("a\n", "@@\n+b")


def test_the_end_of_the_file_is_as_the_diff_says() -> None:
    def unified(text: str, lines: str) -> str:
        return apply_hunks(
            "f", text, read_patch(f"--- a/f\n+++ b/f\n@@ -1 +1 @@\n{lines}")[0].hunks
        ).after

    assert unified("a", "-a\n\\ No newline at end of file\n+a\n") == "a\n"
    assert unified("a\n", "-a\n+a\n\\ No newline at end of file\n") == "a"
    assert (
        unified(
            "a", "-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
        )
        == "b"
    )


def test_lines_without_any_around_them_go_where_the_numbers_say() -> None:
    def added(numbers: str) -> str:
        return apply_hunks(
            "f",
            "a\nb\n",
            read_patch(f"--- a/f\n+++ b/f\n@@ {numbers} @@\n+x\n")[0].hunks,
        ).after

    assert [added(f"-{line},0 +1") for line in (0, 1, 2)] == [
        "x\na\nb\n",
        "a\nx\nb\n",
        "a\nb\nx\n",
    ]
    for numbers in (
        "-1,1 +1,2",
        "-1 +1,2",
        "-3,0 +4",
    ):  # lines that should be there are lost; past the end
        with pytest.raises(ToolFailed, match="does not say where"):
            added(numbers)


LINES = st.lists(st.sampled_from(["a", "b", "  a", "\tc", "", "dd", "e "]), max_size=14)


@given(LINES, LINES, st.booleans(), st.integers(0, 3))
@example([""], ["a", ""], False, 3)
def test_a_real_diff_gives_the_real_text(
    old: list[str], new: list[str], crlf: bool, around: int
) -> None:
    assume(old != new and old and new)
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    diff = "\n".join(
        difflib.unified_diff(old, new, "a/f", "b/f", lineterm="", n=around)
    )
    hunks = read_patch(diff)[0].hunks
    end = "\r\n" if crlf else "\n"
    assert apply_hunks("f", before.replace("\n", end), hunks).after == after.replace(
        "\n", end
    )

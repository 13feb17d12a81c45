"""Edits: the one place that is meant, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import ToolFailed
from hermes.tools.files.diff import edit_diff, text_diff
from hermes.tools.files.edit_match import plan_edit

TEXT = st.text(st.sampled_from("ab \t\n{}é"), max_size=60)


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "how"),
    [
        ("a\nb\nc\n", "b", "x", "a\nx\nc\n", ""),
        ("a\nb\nc\n", "b\n", "", "a\nc\n", ""),
        (
            "def f():\n    return 1  \n",
            "def f():\n    return 1\n",
            "g\n",
            "g\n",
            "trailing whitespace differed",
        ),
        ("a  \nb", "a\nb  ", "x", "x", "trailing whitespace differed"),
        (
            "  if a:\n    b\n",
            "if a:\n  b\n",
            "if c:\n  d\n\n  e\n",
            "  if c:\n    d\n\n    e\n",
            "indentation differed",
        ),
        (
            "if a:\n\tb\n",
            "\tif a:\n\t\tb\n",
            "\tif a:\n\t\tc\n",
            "if a:\n\tc\n",
            "indentation differed",
        ),
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n", ""),
        ("a \r\nb\r\nc", "a\nb", "x", "x\r\nc", "trailing whitespace differed"),
        ("a\nb\r\nc\n", "a", "x\ny", "x\ny\nb\r\nc\n", ""),
        ("a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n", ""),
        ("\ufeffa\nb", "a", "c", "\ufeffc\nb", ""),
        ("end", "end", "end\n", "end\n", ""),
        (
            "\tif a:\n\t\tb\n",
            "if a:\n    b\n",
            "if a:\n    if c:\n        b\n",
            "\tif a:\n\t\tif c:\n\t\t\tb\n",
            "indentation differed",
        ),
        (
            "    a\n        b\n",
            "\ta\n\t\tb",
            "\ta\n\t\tb\n\t\t\tc",
            "    a\n        b\n            c\n",
            "indentation differed",
        ),
        (
            "x\n  a \r\n  b\r\n",
            "a\nb\n",
            "c\nd\n",
            "x\n  c\r\n  d\r\n",
            "indentation differed",
        ),
    ],
)
def test_an_edit_finds_its_place(
    text: str, old: str, new: str, after: str, how: str
) -> None:
    edit = plan_edit(text, old, new)
    assert (edit.after, edit.how) == (after, how)


@pytest.mark.parametrize(
    ("text", "old", "message"),
    [
        ("a\nb\na\n", "a", "matches 2 places (lines 1, 3)"),
        ("aaa", "aa", "matches 2 places (lines 1, 1)"),
        ("a \nb\na  \nb\n", "a\nb\n", "matches 2 places (lines 1, 3)"),
        (" a\n  b\n   a\n    b\n", "a\n b\n", "matches 2 places"),
        ("a\n", "c", "not found"),
        ("  a\n b\n", "a\nb\nc", "not found"),
        (
            "some(thing)\n",
            "x\nsome(thing)\ny",
            "nearest text in the file is:\n1: some(thing)\n",
        ),
        ("a", "", "empty"),
    ],
)
def test_an_edit_that_is_not_clear_is_refused(
    text: str, old: str, message: str
) -> None:
    with pytest.raises(ToolFailed) as failed:
        plan_edit(text, old, "new")
    assert message in failed.value.message
    assert "Nothing was changed" in failed.value.hint


def test_replace_all_replaces_every_place() -> None:
    assert plan_edit("a b a\na", "a", "xx", replace_all=True).after == "xx b xx\nxx"
    assert plan_edit("aaa", "aa", "b", replace_all=True).after == "ba"
    assert (
        plan_edit("f( \n f(\t\n", "f(\n", "g(\n", replace_all=True).how
        == "trailing whitespace differed"
    )


def test_indentation_that_is_not_uniform_does_not_fit() -> None:
    with pytest.raises(ToolFailed, match="not found"):
        plan_edit("  a\n   b\n", "a\nb\n", "c\n")


@given(before=TEXT, old=TEXT.filter(bool), after=TEXT, new=TEXT)
def test_an_exact_edit_can_be_undone(
    before: str, old: str, after: str, new: str
) -> None:
    text = before + old + after
    try:
        edited = plan_edit(text, old, new)
        assert edited.how == ""
        undone = plan_edit(edited.after, new, old)
    except ToolFailed:
        return
    if undone.how == "":
        assert edited.after == before + new + after
        assert undone.after == text


@given(text=TEXT, old=TEXT.filter(bool), new=TEXT)
def test_one_edit_changes_one_place(text: str, old: str, new: str) -> None:
    try:
        edit = plan_edit(text, old, new)
    except ToolFailed:
        return
    (place,) = edit.replacements
    assert edit.after == text[: place.start] + place.new + text[place.end :]
    assert text.count(old) <= 1
    assert "".join(text[place.start : place.end].split()) == "".join(old.split())


@given(text=TEXT, old=TEXT.filter(bool), new=TEXT, replace_all=st.booleans())
def test_a_diff_can_always_be_made(
    text: str, old: str, new: str, replace_all: bool
) -> None:
    try:
        edit = plan_edit(text, old, new, replace_all=replace_all)
    except ToolFailed:
        return
    lines = edit_diff(edit).split("\n")
    if edit.after == text:
        assert lines == ["(nothing differs)"]
    elif edit.after.removesuffix("\n") == text.removesuffix("\n"):
        assert lines == ["(only line ends differ)"] or lines[0].startswith("@@ -")
    else:
        assert lines[0].startswith("@@ -")
    if text.count("\n") < 20 and edit.after != text and len(edit.replacements) == 1:
        removed = [line[1:] for line in lines if line.startswith("-")]
        assert all(line.rstrip("\r") in text.split("\n") for line in removed)


def test_a_diff_shows_the_lines_around() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 10))
    assert edit_diff(plan_edit(text, "line 5\n", "five\nfive and a half\n")) == (
        "@@ -2,7 +2,8 @@\n line 2\n line 3\n line 4\n-line 5\n+five\n+five and a half\n line 6\n line 7\n line 8"
    )
    assert (
        edit_diff(plan_edit(text, "line 9\n", ""))
        == "@@ -6,4 +6,3 @@\n line 6\n line 7\n line 8\n-line 9"
    )
    assert (
        edit_diff(plan_edit("one word here", "word", "thing"))
        == "@@ -1,1 +1,1 @@\n-one word here\n+one thing here"
    )


def test_long_texts_are_not_compared() -> None:
    shown = text_diff("a\n" * 3000, "b\n" * 3000)
    assert shown == "(3,000 lines become 3,000)\n@@ -0,0 +1,3000 @@" + "\n+b" * 3000
    assert text_diff("a\nb", "a\nc") == "@@ -1,2 +1,2 @@\n a\n-b\n+c"

"""Reading patches: both formats, forgiving of what models get wrong, strict about what may be missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import ToolFailed
from hermes.tools.files.patch_parse import patch_paths, read_patch

SECTIONS = """\
*** Begin Patch
*** Add File: new.py
+one
+
+three
*** Update File: src/a.py
*** Move to: src/b.py
@@ class A:
@@     def f(self):
 keep
-old
+new
@@
-last
*** End of File
*** Delete File: gone.txt
*** End Patch
"""
UNIFIED = """\
diff --git a/src/a.py b/src/a.py
index 123..456 100644
--- a/src/a.py
+++ b/src/a.py
@@ -3,3 +3,3 @@ def f():
 keep
-old
+new
 keep
--- /dev/null
+++ b/new.py
@@ -0,0 +1,2 @@
+one
+two
\\ No newline at end of file
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/x b/y
similarity index 100%
rename from x
rename to y
"""


def test_sections_are_read() -> None:
    new, update, gone = read_patch(SECTIONS)
    assert (new.kind, new.path, new.content) == ("add", "new.py", "one\n\nthree\n")
    assert (update.kind, update.path, update.new_path) == (
        "update",
        "src/a.py",
        "src/b.py",
    )
    first, second = update.hunks
    assert first.headings == ("class A:", "def f(self):")
    assert first.lines == ((" ", "keep"), ("-", "old"), ("+", "new"))
    assert (second.at_end, first.at_end, second.old) == (True, False, ["last"])
    assert (gone.kind, gone.path) == ("delete", "gone.txt")
    assert patch_paths(SECTIONS) == ["new.py", "src/a.py", "src/b.py", "gone.txt"]


def test_unified_diffs_are_read() -> None:
    update, new, gone, moved = read_patch(UNIFIED)
    assert (update.kind, update.path, update.new_path) == ("update", "src/a.py", "")
    assert (update.hunks[0].line, update.hunks[0].old) == (3, ["keep", "old", "keep"])
    assert (new.kind, new.path, new.content) == ("add", "new.py", "one\ntwo")
    assert (gone.kind, gone.path) == ("delete", "gone.txt")
    assert (moved.kind, moved.path, moved.new_path, moved.hunks) == (
        "update",
        "x",
        "y",
        (),
    )
    assert patch_paths(UNIFIED) == ["src/a.py", "new.py", "gone.txt", "x", "y"]


@pytest.mark.parametrize(
    "text",
    [
        f"```diff\n{UNIFIED}```",
        f"\n\n{UNIFIED}\n\n",
        UNIFIED.replace("\n", "\r\n"),
        UNIFIED.replace("-3,3 +3,3", "-3,9 +3,9"),
        f"{UNIFIED}-- \n2.43.0\n",
    ],
)
def test_what_is_around_a_diff_does_not_matter(text: str) -> None:
    assert [file.path for file in read_patch(text)] == [
        "src/a.py",
        "new.py",
        "gone.txt",
        "x",
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"apply_patch <<'EOF'\n{SECTIONS}EOF\n",
        f"```\n{SECTIONS}```\n",
        f"hi\n{SECTIONS}bye",
    ],
)
def test_what_is_around_sections_does_not_matter(text: str) -> None:
    assert read_patch(text) == read_patch(SECTIONS)


def test_lines_that_look_like_headers_are_told_apart_by_their_counts() -> None:
    text = "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n x\n--- old\n+++ new\n@@ -9 +9 @@\n-y\n+z\n"
    (file,) = read_patch(text)
    assert file.hunks[0].lines == ((" ", "x"), ("-", "-- old"), ("+", "++ new"))
    assert len(file.hunks) == 2
    two = "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-a\n+b\n--- a/two\n+++ b/two\n@@ -1 +1 @@\n-c\n+d\n"
    assert [file.path for file in read_patch(two)] == ["one", "two"]


def test_folders_that_are_called_a_keep_their_name() -> None:
    assert read_patch("--- a/x\n+++ a/x\n@@ -1 +1 @@\n-1\n+2\n")[0].path == "a/x"
    assert read_patch("--- x\n+++ x\n@@ -1 +1 @@\n-1\n+2\n")[0].path == "x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no file in it"),
        ("hello", "there is no file in it"),
        (SECTIONS.replace("*** End Patch\n", ""), "may be cut off"),
        ("*** Begin Patch\nhello\n*** End Patch", "comes before the first file"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "must begin with `+`"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "no changes below it"),
        ("*** Begin Patch\n*** Update File:\n+x\n*** End Patch", "names no file"),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n x\n y\n*** End Patch",
            "changes nothing",
        ),
        (
            "*** Begin Patch\n*** Update File: a\nhello\n*** End Patch",
            "begins with neither",
        ),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", "lines below"),
        ("--- a/x\n+++ b/x\n", "no hunks for x"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary files"),
    ],
)
def test_a_broken_patch_is_refused(text: str, message: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        read_patch(text)
    assert message in failed.value.message
    assert failed.value.hint == "Nothing was changed."


def test_paths_are_known_even_of_a_broken_patch() -> None:
    assert patch_paths(
        "*** Begin Patch\n*** Update File: ../x\n*** Move to: /etc/y\nbroken\n"
    ) == ["../x", "/etc/y"]
    assert patch_paths("--- a/x\n+++ b/y\n") == ["x", "y"]


@given(
    st.lists(
        st.sampled_from(
            [
                "*** Begin Patch",
                "*** End Patch",
                "*** Add File: a",
                "*** Update File: b",
                "@@",
                "@@ -1 +1 @@",
                "+x",
                "-y",
                " z",
                "",
                "--- a/x",
                "+++ b/x",
                "\\ No",
                "*** Move to: c",
                "*** Delete File: d",
                "rename from x",
                "rename to y",
                "diff --git a b",
            ]
        ),
        max_size=12,
    )
)
def test_anything_is_read_or_refused(lines: list[str]) -> None:
    text = "\n".join(lines)
    named = set(patch_paths(text))
    try:
        files = read_patch(text)
    except ToolFailed:
        return
    assert {file.path for file in files} | {
        file.new_path for file in files if file.new_path
    } == named

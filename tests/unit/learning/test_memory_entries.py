"""Memory files in the manner people write them: every byte that is not meant survives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.learning.memory_entries import Notes

BY_HAND = """\
---
kept: yes
---
# About the project

Some words
in two lines.

## List
* one
* two
  with more
1. numbered

```sh
# not a heading

make
```

<!-- a
comment -->
"""


def test_notes_are_items_paragraphs_and_code() -> None:
    texts = [note.text for note in Notes(BY_HAND).notes]
    assert texts == [
        "Some words\nin two lines.", "one", "two\nwith more", "numbered", "```sh\n# not a heading\n\nmake\n```"
    ]  # fmt: skip


def test_reading_and_writing_changes_nothing() -> None:
    assert Notes(BY_HAND).text == BY_HAND


def test_replacing_one_note_leaves_the_rest() -> None:
    notes = Notes(BY_HAND)
    (note,) = notes.find("two with more")
    assert notes.replaced(note, "zwei\nund drei").text == BY_HAND.replace(
        "* two\n  with more", "* zwei\n  und drei"
    )


def test_removing_leaves_no_hole() -> None:
    notes = Notes("a\n\nb\n\nc\n")
    assert notes.removed(notes.find("b")[0]).text == "a\n\nc\n"
    notes = Notes("- a\n- b\n- c\n")
    assert notes.removed(notes.find("b")[0]).text == "- a\n- c\n"


def test_a_new_note_follows_the_manner_of_the_file() -> None:
    assert Notes("").added("x").text == "- x\n"
    assert Notes("- a\n").added("x\ny").text == "- a\n- x\n  y\n"
    assert Notes("words\n\n\n").added("x").text == "words\n\n- x\n"
    assert Notes("# Head\n").added("x").text == "# Head\n\n- x\n"
    assert Notes("a\n§\nb\n").added("x").text == "a\n§\nb\n§\nx\n"


def test_a_file_parted_by_signs_stays_one() -> None:
    notes = Notes("first\nnote\n§\nsecond\n§\nthird")
    assert [note.text for note in notes.notes] == ["first\nnote", "second", "third"]
    assert notes.removed(notes.find("second")[0]).text == "first\nnote\n§\nthird\n"
    assert notes.removed(notes.find("third")[0]).text == "first\nnote\n§\nsecond\n"


def test_one_that_says_exactly_this_comes_alone() -> None:
    assert len(Notes("- tea\n- green tea\n").find("tea")) == 1
    assert len(Notes("- red tea\n- green tea\n").find("tea")) == 2
    assert Notes("- a\n").find("zzz") == []


line = st.text(
    st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12
).filter(str.strip)


@given(st.lists(line, min_size=1, max_size=8))
def test_what_is_added_is_found_and_can_be_removed(lines: list[str]) -> None:
    notes = Notes("")
    for number, text in enumerate(lines):
        notes = notes.added(f"note {number}: {text.strip()}")
    assert len(notes.notes) == len(lines)
    for number in range(len(lines)):
        (found,) = notes.find(f"note {number}: {lines[number].strip()}")
        notes = notes.removed(found)
    assert notes.text == ""


@pytest.mark.parametrize(
    "text", ["\n\n", "---\n", "<!-- open", "```\nopen", "#\n", "§\n§\n", "-\n- \n"]
)
def test_odd_files_are_read(text: str) -> None:
    notes = Notes(text)
    assert notes.added("x").find("x")

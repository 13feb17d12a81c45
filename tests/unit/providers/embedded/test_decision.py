"""Talk or work: what code decides by itself, and what the model is asked."""

import pytest

from hermes.providers.embedded.conversation import RequestExchange
from hermes.providers.embedded.decision import certain, parsed, prompt, typed_part
from hermes.providers.embedded.folder_view import FolderView

DESK = FolderView(root="/nowhere/desk", files=("notes.txt", "src/app.py"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("what does notes.txt say?", "work"),
        ("explain app.py", "work"),
        ("what is node.js?", None),
        ("fix the failing test", None),
        ("hello!", "talk"),
        ("how do I undo the last git commit but keep my changes?", "talk"),
        ("How can I run app.py in the background?", "work"),
        ("what is 23 * 47?", "talk"),
        ("review this\n\n+ open('notes.txt')", "talk"),
        ("save this as new.txt\n\nsome text", "work"),
        ("add this to the file\n\nsome text", "work"),
    ],
)
def test_what_code_decides(text: str, kind: str | None) -> None:
    assert certain([RequestExchange(request=text)], DESK) == kind


def test_the_model_sees_only_what_was_typed_and_what_went_before() -> None:
    before = RequestExchange(request="write a poem", answer="...")
    asked = prompt([before, RequestExchange(request="shorter\n\nlong pasted text")])
    assert asked.turns[-1].content == "before: write a poem (talk)\nshorter"
    assert asked.turns[: len(asked.prefix)] == asked.prefix
    assert asked.slot == "decide"


def test_a_reply_that_is_neither_is_talk() -> None:
    assert [parsed(text) for text in ("work", " w", "talk", "", "maybe")] == [
        "work",
        "work",
        "talk",
        "talk",
        "talk",
    ]


def test_typed_text_ends_at_the_first_empty_line() -> None:
    assert typed_part("ask\n\npiped\n\nmore") == ("ask", "piped\n\nmore")
    assert typed_part("x" * 500 + "\n\ny") == ("x" * 500 + "\n\ny", "")

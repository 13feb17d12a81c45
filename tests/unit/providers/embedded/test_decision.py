"""Talk or work: what code decides by itself, and what the model is asked."""

import pytest

from hermes.providers.embedded.conversation import CallStep, RequestExchange
from hermes.providers.embedded.decision import (
    certain,
    chat_grammar,
    follows_work,
    parsed,
    prompt,
    typed_part,
)
from hermes.providers.embedded.folder_view import FolderView
from hermes.schema.messages import ToolCall

DESK = FolderView(root="/nowhere/desk", files=("notes.txt", "src/app.py"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("what does notes.txt say?", "work"),
        ("explain app.py", "work"),
        ("what is node.js?", None),
        ("fix the failing test", None),
        ("hello!", "talk"),
        ("What can you help me with?", "talk"),
        ("what kind of things can you help me with", "talk"),
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
    exchanges = [before, RequestExchange(request="shorter\n\nlong pasted text")]
    asked = prompt(exchanges)
    assert asked.turns[-1].content == "before: write a poem (talk)\nshorter"
    assert asked.turns[: len(asked.prefix)] == asked.prefix
    assert asked.slot == "decide"


def test_what_follows_work_is_asked_without_what_the_work_showed() -> None:
    call = ToolCall(id="1", name="read_file", arguments="{}")
    step = CallStep(call=call, action=None)
    before = RequestExchange(request="show a.txt", steps=(step,), answer="long " * 99)
    exchanges = [before, RequestExchange(request="add milk")]
    assert follows_work(exchanges)
    assert prompt(exchanges).turns[-1].content == "before: show a.txt (work)\nadd milk"


def test_a_reply_in_the_chat_may_be_work_unless_it_is_certain() -> None:
    assert '"work"' in chat_grammar(None)
    assert '"work"' not in chat_grammar("talk")


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

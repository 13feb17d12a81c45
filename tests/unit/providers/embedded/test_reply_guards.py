"""The guards: what the model may do next."""

import pytest

from hermes.providers.embedded.conversation import (
    LOOK_TAG,
    NAMED_TAG,
    CallStep,
    RequestExchange,
)
from hermes.providers.embedded.folder_view import FolderView
from hermes.providers.embedded.line_protocol import VERBS, Action, Verb
from hermes.providers.embedded.reply_guards import allow, instead_of_write
from hermes.schema.messages import ToolCall

ALL: frozenset[Verb] = frozenset(VERBS)


def step(
    verb: Verb,
    path: str = "",
    text: str = "",
    *,
    result: str = "",
    ok: bool = True,
    call_id: str = "c",
) -> CallStep:
    action = Action(verb=verb, path=path, text=text)
    return CallStep(
        call=ToolCall(id=call_id, name="x", arguments="{}"),
        action=action,
        result=result,
        ok=ok,
    )


@pytest.mark.parametrize(
    "request_text",
    ["what is in a.txt?", "what is node.js?", "how are you?", "fix a.py"],
)
@pytest.mark.parametrize("found", ["", "No matches.", "a.txt\n3: kiwi"])
def test_the_model_may_always_answer(request_text: str, found: str) -> None:
    assert "say" in allow(RequestExchange(request=request_text), ALL).verbs
    searched = RequestExchange(
        request=request_text, steps=(step("find", text="kiwi", result=found),)
    )
    assert "say" in allow(searched, ALL).verbs


def test_only_paths_that_exist_can_be_read() -> None:
    view = FolderView(root="/x", files=("a.txt", "lib/b.py"), folders=("lib",))
    allowed = allow(RequestExchange(request="show it"), ALL, view)
    assert allowed.readable == ("a.txt", "lib/b.py")
    assert allowed.listable == (".", "lib")
    empty = allow(RequestExchange(request="show it"), ALL, FolderView(root="/x"))
    assert "read" not in empty.verbs
    partial = FolderView(root="/x", files=("a.txt",), complete=False)
    assert allow(RequestExchange(request="show it"), ALL, partial).readable == ()


def test_what_code_read_ahead_does_not_count_as_a_call() -> None:
    steps = tuple(step("read", f"{n}.txt", call_id=f"{NAMED_TAG}{n}") for n in range(6))
    assert "read" in allow(RequestExchange(request="q", steps=steps), ALL).verbs


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("which number in n.txt is the largest?", False),
        ("what is in a.txt?", False),
        ("can you add a line to a.txt?", True),
        ("could you fix a.py?", True),
        ("put milk on a.txt", True),
    ],
)
def test_a_mere_question_changes_no_file(text: str, changes: bool) -> None:
    assert (
        bool(
            allow(RequestExchange(request=text), ALL).verbs
            & {"write", "append", "replace"}
        )
        == changes
    )


def test_the_same_call_twice_leaves_only_say() -> None:
    twice = (step("find", text="x"), step("find", text="x"))
    assert allow(RequestExchange(request="q", steps=twice), ALL).verbs == {"say"}
    assert "find" in allow(RequestExchange(request="q", steps=twice[:1]), ALL).verbs


def test_six_calls_leave_only_say() -> None:
    steps = tuple(step("read", f"{n}.txt") for n in range(6))
    assert allow(RequestExchange(request="q", steps=steps), ALL).verbs == {"say"}
    assert "read" in allow(RequestExchange(request="q", steps=steps[:5]), ALL).verbs


def test_a_file_is_written_only_after_we_know_that_it_is_new() -> None:
    assert allow(RequestExchange(request="make n.txt"), ALL).look
    assert not allow(RequestExchange(request="make n.txt"), ALL - {"read"}).look
    absent = step(
        "read",
        "n.txt",
        result="n.txt does not exist.",
        ok=False,
        call_id=LOOK_TAG + "1",
    )
    known = RequestExchange(request="make n.txt", steps=(absent,))
    allowed = allow(known, ALL)
    assert (allowed.verbs, allowed.only_path) == ({"write", "say"}, "n.txt")


def test_a_file_that_the_model_found_absent_is_written_at_once() -> None:
    own = step("read", "n.txt", result="n.txt does not exist.", ok=False)
    assert allow(RequestExchange(request="make n.txt", steps=(own,)), ALL).absent == (
        "n.txt",
    )


def test_a_file_that_exists_can_only_be_changed() -> None:
    there = step("read", "n.txt", result="old", call_id=LOOK_TAG + "1")
    allowed = allow(RequestExchange(request="make n.txt", steps=(there,)), ALL)
    assert allowed.verbs == {"append", "replace", "say"}
    assert list(allowed.files) == ["n.txt"]
    exchange = RequestExchange(
        request="q", steps=(step("read", "n.txt", result="old"),)
    )
    again = instead_of_write("n.txt", exchange, allow(exchange, ALL), ALL)
    assert again is not None
    assert again.verbs == {"append", "replace", "say"}


def test_a_file_that_is_there_but_unreadable_is_never_written_over() -> None:
    binary = step(
        "read",
        "n.bin",
        result="n.bin is a binary file.",
        ok=False,
        call_id=LOOK_TAG + "1",
    )
    assert allow(RequestExchange(request="make n.bin", steps=(binary,)), ALL).verbs == {
        "say"
    }


@pytest.mark.parametrize(
    ("request_text", "path", "is_file"),
    [
        ("write a poem about rain", "rain poem", False),
        ("write a poem to rain.txt", "rain.txt", True),
        ("make a Makefile", "Makefile", True),
        ("put the notes into doc/notes", "doc/notes", True),
    ],
)
def test_what_nobody_called_a_file_is_said_and_not_written(
    request_text: str, path: str, is_file: bool
) -> None:
    exchange = RequestExchange(request=request_text)
    allowed = instead_of_write(path, exchange, allow(exchange, ALL), ALL)
    assert (allowed is None) == is_file
    if allowed is not None:
        assert "write" not in allowed.verbs
        assert "say" in allowed.verbs

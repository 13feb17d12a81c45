"""The menu of a question: keys, steps, and keys that come too early."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.terminal.question_menu import (
    PAUSE_S,
    READABLE_AFTER_S,
    PersonAnswer,
    QuestionMenu,
    Word,
)
from hermes.testing.fixtures import FakeClock

EDITS = "changes to files in /work"
ROUNDING_S = 1e-6
KEYS = ["y", "s", "a", "n", "v", "1", "2", "3", "4", "enter", "up", "down", "escape"]


def request(**fields: Any) -> dict[str, Any]:
    base = {"type": "agent.approval.requested", "call_id": "c", "name": "edit_file"}
    return {**base, "arguments": "{}", "summary": "edit", "scope": EDITS, **fields}


def question(**fields: Any) -> dict[str, Any]:
    base = {"type": "agent.question.asked", "call_id": "q", "text": "Which?"}
    return {**base, "options": ["red", "blue"], **fields}


def readable(asked: dict[str, Any]) -> QuestionMenu:
    clock = FakeClock(0.0)
    menu = QuestionMenu(asked, clock.now)
    clock.advance(60)
    return menu


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        (["y"], "once"),
        (["1"], "once"),
        (["enter"], "once"),
        (["s"], "session"),
        (["2"], "session"),
        (["down", "enter"], "session"),
        (["up", "up", "up", "enter"], "session"),
    ],
)
def test_one_key_answers(keys: list[str], word: Word) -> None:
    menu = readable(request())
    *before, last = keys
    assert [menu.press(key) for key in before] == [None] * len(before)
    assert menu.press(last) == PersonAnswer("c", word)


@pytest.mark.parametrize("key", ["x", "5", "0", "left", " "])
def test_any_other_key_does_nothing(key: str) -> None:
    menu = readable(request())
    assert menu.press(key) is None
    assert (menu.step, menu.at) == ("choose", 0)


def test_a_rule_is_written_out_before_it_is_made() -> None:
    clock = FakeClock(0.0)
    menu = QuestionMenu(request(), clock.now)
    clock.advance(60)
    assert menu.press("a") is None
    assert menu.step == "rule"
    assert any(EDITS in line for line in menu.title)
    assert menu.press("y") is None, "nobody has read the rule yet"
    clock.advance(PAUSE_S)
    assert menu.press("y") == PersonAnswer("c", "always", rule=EDITS)


def test_a_rule_can_be_declined_without_an_answer() -> None:
    for key in ("n", "2", "escape", "c-c"):
        clock = FakeClock(0.0)
        menu = QuestionMenu(request(), clock.now)
        clock.advance(60)
        menu.press("a")
        clock.advance(60)
        assert menu.press(key) is None
        assert menu.step == "choose"


def test_a_no_takes_a_reason_along() -> None:
    menu = readable(request())
    assert menu.press("n") is None
    assert menu.types
    assert menu.say(", use the other file") == PersonAnswer(
        "c", "deny", "use the other file"
    )
    assert menu.say("") == PersonAnswer("c", "deny")
    assert menu.press("escape") is None
    assert menu.step == "choose"
    assert menu.press("escape") == "stop"


def test_what_can_not_be_remembered_has_only_yes_and_no() -> None:
    menu = readable(request(memorable=False, similar=9))
    assert [choice.key for choice in menu.choices] == ["y", "n"]
    assert menu.press("a") is None
    assert menu.press("s") is None
    assert menu.step == "choose"


def test_after_five_similar_approvals_a_rule_is_offered_and_not_made() -> None:
    assert readable(request(similar=4)).at == 0
    menu = readable(request(similar=5))
    assert any("makes it a rule" in line for line in menu.title)
    assert menu.press("enter") == PersonAnswer("c", "once"), "Enter still says yes"
    assert readable(request(similar=5)).press("a") is None


def test_one_exact_command_is_called_so_in_the_choices() -> None:
    scope = "exactly `git push origin main` in /work (with the network)"
    labels = [choice.label for choice in readable(request(scope=scope)).choices]
    assert labels[1] == "Yes, and don't ask again for exactly this until I quit"
    assert labels[2] == "Always allow exactly this ..."


def test_an_option_or_words_answer_a_question() -> None:
    assert readable(question()).press("2") == PersonAnswer("q", None, "blue")
    menu = readable(question())
    assert menu.press("3") is None
    assert menu.say("green") == PersonAnswer("q", None, "green")
    assert menu.say("  ") is None
    menu = readable(question())
    assert menu.typing("g")
    assert menu.types
    assert readable(question(options=[])).types


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("2", PersonAnswer("q", None, "blue")),
        (" green ", PersonAnswer("q", None, "green")),
        ("3 of them", PersonAnswer("q", None, "3 of them")),
        ("  ", None),
    ],
)
def test_a_line_answers_a_question(line: str, answer: PersonAnswer | None) -> None:
    assert readable(question()).line(line) == answer


@pytest.mark.parametrize(
    ("line", "word", "because"),
    [
        ("y", "once", ""),
        (" YES ", "once", ""),
        ("1", "once", ""),
        ("session", "session", ""),
        ("n, use the other file", "deny", "use the other file"),
        ("No: not today", "deny", "not today"),
    ],
)
def test_a_clear_line_answers_an_approval(line: str, word: Word, because: str) -> None:
    assert readable(request()).line(line) == PersonAnswer("c", word, because)


@pytest.mark.parametrize(
    "line", ["", "yes please", "always do it", "nothing", "y y", "0", "9"]
)
def test_any_other_line_is_no_answer(line: str) -> None:
    menu = readable(request())
    assert menu.line(line) is None
    assert menu.step == "choose"


def test_a_plan_is_accepted_with_a_mode_edited_or_sent_back() -> None:
    asked = question(plan="1. Do it", options=["Start, and ask", "Start, and edit"])
    assert readable(asked).press("1") == PersonAnswer("q", None, "Start, and ask")
    menu = readable(asked)
    assert menu.press("e") == "edit"
    menu.plan = "1. Do less"
    assert menu.press("2") == PersonAnswer(
        "q", None, "Start, and edit", plan="1. Do less"
    )
    assert not menu.typing("x"), "a stray letter must not begin a refusal"
    assert menu.press("n") is None
    assert menu.say("smaller steps") == PersonAnswer("q", None, "smaller steps")


@given(
    typed_before=st.floats(0, 3),
    presses=st.lists(st.tuples(st.floats(0, 1.5), st.sampled_from(KEYS)), max_size=30),
    asked=st.sampled_from(
        [request(), request(similar=7), question(), question(plan="p")]
    ),
)
def test_a_key_before_the_question_was_readable_never_answers(
    typed_before: float, presses: list[tuple[float, str]], asked: dict[str, Any]
) -> None:
    clock = FakeClock(100.0)
    menu = QuestionMenu(asked, clock.now, last_key_at=100.0 - typed_before)
    quiet_since, passed = -typed_before, 0.0
    for wait, key in presses:
        clock.advance(wait)
        passed += wait
        before = (menu.step, menu.at)
        found = menu.press(key)
        left = max(READABLE_AFTER_S - passed, PAUSE_S - (passed - quiet_since))
        if left <= ROUNDING_S:
            return
        assert found is None
        assert (menu.step, menu.at) == before
        quiet_since = passed

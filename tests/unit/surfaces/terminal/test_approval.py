"""Questions about tool calls."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from hermes.surfaces.terminal.approval import Questions, Word, lines_of, read_answer
from hermes.surfaces.terminal.style import Style

PLAIN = Style(enabled=False)


def request(call_id: str = "c", **fields: Any) -> dict[str, Any]:
    base = {"type": "agent.approval.requested", "call_id": call_id, "name": "terminal", "arguments": "{}"}
    return {**base, "summary": f"run {call_id}", **fields}


def answered(call_id: str) -> dict[str, Any]:
    return {"type": "agent.approval.answered", "call_id": call_id, "answer": "once"}


class Shown:
    """Collects what is put to the person."""

    def __init__(self) -> None:
        self.put = asyncio.Event()
        self.calls: list[str] = []

    def __call__(self, request: Mapping[str, Any] | None) -> None:
        self.calls.append(request["call_id"] if request else "")
        self.put.set()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("y", "once"),
        (" YES ", "once"),
        ("s", "session"),
        ("n", "deny"),
        ("no", "deny"),
        ("", None),
        ("yes please", None),
    ],
)
def test_only_a_clear_answer_counts(text: str, word: Word | None) -> None:
    assert read_answer(text) == word


def test_everything_that_will_happen_is_shown() -> None:
    lines = lines_of(request(summary="rm -r build\n  in /work", reason="it deletes"), PLAIN, 80)
    assert lines == ["Hermes wants to use terminal:", "  rm -r build", "    in /work", "  (it deletes)"]


def test_a_summary_can_not_drive_the_terminal_and_fits_it() -> None:
    lines = lines_of(request(summary="x\x1b[2J" + "y" * 200), PLAIN, 40)
    assert "\x1b" not in "".join(lines)
    assert max(map(len, lines)) <= 40


def test_a_very_long_summary_says_that_there_is_more() -> None:
    assert "60 more lines" in lines_of(request(summary="\n".join(["line"] * 100)), PLAIN, 80)[-1]


async def test_questions_are_put_one_after_the_other() -> None:
    shown = Shown()
    questions = Questions(shown)
    questions.see(request("a"))
    questions.see(request("b"))
    await asyncio.wait_for(shown.put.wait(), 5)
    given: list[tuple[str, Word]] = []

    async def give(call_id: str, word: Word) -> bool:
        given.append((call_id, word))
        questions.see(answered(call_id))
        return True

    assert not await questions.take("perhaps", give)
    assert await questions.take("y", give)
    assert await questions.take("n", give)
    assert given == [("a", "once"), ("b", "deny")]
    assert shown.calls == ["a", "", "b", ""]
    assert questions.current is None


async def test_a_question_that_is_answered_at_once_is_never_shown() -> None:
    shown = Shown()
    questions = Questions(shown)
    questions.see(request("a"))
    questions.see(answered("a"))
    questions.see(request("b"))
    await asyncio.wait_for(shown.put.wait(), 5)
    assert shown.calls == ["b"]


async def test_the_end_of_the_turn_closes_every_question() -> None:
    shown = Shown()
    questions = Questions(shown)
    questions.see(request("a"))
    await asyncio.wait_for(shown.put.wait(), 5)
    questions.see({"type": "agent.turn.ended", "reason": "interrupted"})
    assert questions.current is None
    assert shown.calls == ["a", ""]

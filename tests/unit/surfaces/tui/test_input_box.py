"""The input: what is sent, what is put aside, and what can't be taken for an answer."""

from pathlib import Path

import pytest

from hermes.settings.home import Home
from hermes.surfaces.tui.input_box import InputBox
from hermes.surfaces.tui.plain_screen import TypedInput
from hermes.testing.fixtures import FakeClock


class Desk:
    """An input, and what came out of it."""

    def __init__(self) -> None:
        self.clock = FakeClock(100.0)
        self.entry = InputBox(
            Home(Path("/dev/null/home")), Path("/dev/null"), clock=self.clock.now
        )
        self.sent: list[TypedInput] = []
        self.said: list[str] = []
        self.entry.send = self.sent.append
        self.entry.say = self.said.append

    def type(self, text: str) -> None:
        self.entry.buffer.insert_text(text)

    def enter(self) -> None:
        self.entry._submit(steers=False)


async def test_what_is_being_typed_comes_back_after_a_question() -> None:
    desk = Desk()
    desk.type("half a thought")
    desk.clock.advance(10)
    desk.entry.set_aside()
    desk.type("y")
    desk.enter()
    desk.entry.restore()
    assert [typed.text for typed in desk.sent] == ["y"]
    assert desk.entry.buffer.text == "half a thought"


async def test_the_end_of_a_sentence_is_no_answer_to_a_question_that_came_meanwhile() -> (
    None
):
    desk = Desk()
    desk.type("give it an ")
    desk.clock.advance(0.2)
    desk.entry.set_aside()
    desk.type("a")
    desk.clock.advance(0.3)
    desk.enter()
    assert desk.sent == []
    assert desk.said
    desk.type("n")
    desk.enter()
    assert [typed.text for typed in desk.sent] == ["n"]


@pytest.mark.parametrize("pause", [0.0, 2.0])
async def test_who_was_not_typing_is_answered_at_once(pause: float) -> None:
    desk = Desk()
    desk.entry.set_aside()
    desk.clock.advance(pause)
    desk.type("y")
    desk.enter()
    assert [typed.text for typed in desk.sent] == ["y"]


async def test_nothing_is_not_sent() -> None:
    desk = Desk()
    desk.type("  \n ")
    desk.enter()
    assert desk.sent == []


async def test_enter_on_an_empty_input_is_told() -> None:
    desk = Desk()
    desk.enter()
    assert [typed.text for typed in desk.sent] == [""]


async def test_a_command_takes_the_place_of_words_that_were_only_offered() -> None:
    desk = Desk()
    desk.entry.suggest("edit it")
    desk.entry._slash()
    assert desk.entry.buffer.text == "/"


async def test_words_that_were_offered_and_changed_stay() -> None:
    desk = Desk()
    desk.entry.suggest("edit it")
    desk.type(" in a")
    desk.entry._slash()
    assert desk.entry.buffer.text == "edit it in a/"


async def test_a_key_that_is_an_answer_by_itself_needs_no_enter() -> None:
    desk = Desk()
    desk.entry.instant_keys = "yn"
    desk.type("y")
    assert desk.sent == []
    desk.entry.buffer.reset()
    desk.entry.set_aside()
    desk.type("x")
    desk.entry.buffer.reset()
    desk.type("y")
    assert [typed.text for typed in desk.sent] == ["y"]
    desk.entry.instant_keys = ""
    desk.type("y")
    assert len(desk.sent) == 1


async def test_no_key_decides_for_who_was_typing() -> None:
    desk = Desk()
    desk.type("any")
    desk.entry.instant_keys = "y"
    desk.entry.set_aside()
    desk.type("y")
    assert desk.sent == []
    assert desk.said

"""Titles: from the first words, or by a model of their own."""

import pytest

from hermes.app.titles import LONGEST, first_words, suggest
from hermes.core.history import History
from hermes.schema.events import TurnStarted
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.testing import ScriptedModel


def conversation(text: str) -> History:
    history = History()
    for seq, event in enumerate((UserMessage(text=text), TurnStarted(inputs=(1,)), AssistantMessage(text="Sure.")), 1):
        history.add(seq, event)
    return history


@pytest.mark.parametrize(
    ("text", "title"),
    [("fix the\n  tests", "fix the tests"), ("", ""), ("word " * 40, "word " * 10 + "word…")],
)
def test_the_first_words_are_a_title_of_one_short_line(text: str, title: str) -> None:
    assert first_words(conversation(text)) == title
    assert len(first_words(conversation(text))) <= LONGEST


async def test_a_model_is_asked_apart_from_the_conversation() -> None:
    model = ScriptedModel('"Fixing the tests."')
    title, usage = await suggest(model, conversation("please fix the tests"))
    assert title == "Fixing the tests"
    assert usage is not None
    assert "please fix the tests" in model.requests[0].messages[0].text
    assert model.requests[0].tools == ()

"""Titles: from the first words, or by a model of their own."""

import pytest

from hermes.app.session_titles import (
    MAX_TITLE_CHARS,
    first_words,
    shortened,
    title_request,
)
from hermes.core.history import ConversationHistory
from hermes.schema.events import TurnStarted
from hermes.schema.messages import AssistantMessage, UserMessage


def conversation(text: str) -> ConversationHistory:
    history = ConversationHistory()
    for seq, event in enumerate(
        (
            UserMessage(text=text),
            TurnStarted(inputs=(1,)),
            AssistantMessage(text="Sure."),
        ),
        1,
    ):
        history.add(seq, event)
    return history


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("fix the\n  tests", "fix the tests"),
        ("", ""),
        ("word " * 40, "word " * 10 + "word…"),
        (
            '/brew-tea for two\n\n<skill name="brew-tea">\nBoil.\n</skill>',
            "/brew-tea for two",
        ),
    ],
)
def test_the_first_words_are_a_title_of_one_short_line(text: str, title: str) -> None:
    assert first_words(conversation(text)) == title
    assert len(first_words(conversation(text))) <= MAX_TITLE_CHARS


def test_a_model_is_asked_apart_from_the_conversation() -> None:
    request = title_request(conversation("please fix the tests"))
    assert "user: please fix the tests\n\nassistant: Sure." in request.messages[0].text
    assert request.tools == ()
    assert request.cache_key == ""


def test_a_long_title_is_cut_between_words() -> None:
    assert (
        shortened("a title\nof " + "many " * 20)
        == "a title of " + "many " * 8 + "many…"
    )

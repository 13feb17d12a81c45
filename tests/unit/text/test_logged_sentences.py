"""Reasons from the log, which are English there and translated where a person reads them."""

from collections.abc import Mapping

import pytest

from hermes.text.logged_sentences import LoggedSentences
from hermes.text.po_file import PoKey

_KEYS = (
    PoKey("app.boards", "waits for {cards}"),
    PoKey("app.goals", "It took {count} turn.", "It took {count} turns."),
    PoKey("core.turn", "the reply was cut off by the output limit"),
    PoKey("core.turn", "{problem}, {number} times in a row"),
    PoKey("providers", "{provider} rejected the API key{said}"),
    PoKey("providers", "Check the key: {command}"),
    PoKey("tools", "{name} is missing"),
    PoKey("page", "the folder is gone"),
)


def _fill(key: PoKey, values: Mapping[str, str], count: int) -> str:
    text = key.plural if key.plural and count != 1 else key.text
    return f"<{text.format_map(values)}>"


@pytest.mark.parametrize(
    ("logged", "shown"),
    [
        ("waits for t_1, t_2", "<waits for t_1, t_2>"),
        ("It took 1 turn.", "<It took 1 turn.>"),
        ("It took 3 turns.", "<It took 3 turns.>"),
        (
            "the reply was cut off by the output limit, 3 times in a row",
            "<<the reply was cut off by the output limit>, 3 times in a row>",
        ),
        (
            "OpenAI rejected the API key (401). Check the key: hermes config set X",
            "<OpenAI rejected the API key (401).> <Check the key: hermes config set X>",
        ),
        ("failed: waits for t_1", "failed: <waits for t_1>"),
        ("waits for t_1\nwaits for t_2", "<waits for t_1>\n<waits for t_2>"),
    ],
    ids=["value", "one", "many", "nested", "with a hint", "after a label", "lines"],
)
def test_a_sentence_of_the_catalogue_is_found_with_its_values(
    logged: str, shown: str
) -> None:
    assert LoggedSentences(_KEYS, _fill).shown(logged) == shown


@pytest.mark.parametrize(
    "text",
    [
        "The header is missing",  # too few words to tell Hermes' from a model's
        "the folder is gone",  # only the page says it
        "Waiting for Bob.",
        "",
        "waits for " + "x" * 5000,
    ],
)
def test_other_words_stay_as_they_are(text: str) -> None:
    assert LoggedSentences(_KEYS, _fill).shown(text) == text


def test_a_text_of_many_sentences_is_read_with_bounded_work() -> None:
    calls = 0

    def count(key: PoKey, values: Mapping[str, str], number: int) -> str:
        nonlocal calls
        calls += 1
        return _fill(key, values, number)

    LoggedSentences(_KEYS, count).shown("waits for a. Check the key: b. " * 60)
    assert calls < 2000

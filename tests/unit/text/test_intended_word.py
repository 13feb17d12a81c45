"""The word that somebody meant."""

import pytest

from hermes.text.intended_word import intended_word


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("shwo", ("show", "list"), "show"),
        ("add", ("create", "list"), "create"),
        ("add", ("create", "add"), "add"),
        ("rm", ("archive", "list"), "archive"),
        ("login", ("sessions", "auth"), "auth"),
        ("zzz", ("show", "list"), ""),
    ],
)
def test_misspelt_words_and_synonyms_are_understood(
    word: str, known: tuple[str, ...], meant: str
) -> None:
    assert intended_word(word, known) == meant

"""Whose key was pasted."""

import pytest

from hermes.providers.key_recognition import RecognisedKey, recognise
from hermes.providers.provider_table import family

_LETTERS = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF"
_HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("key", "providers"),
    [
        (f"sk-proj-{_LETTERS}", ("openai",)),
        (f"sk-svcacct-{_LETTERS}", ("openai",)),
        (f"sk-{_LETTERS[:20]}T3BlbkFJ{_LETTERS[:20]}", ("openai",)),
        (f"sk-ant-api03-{_LETTERS}", ("anthropic",)),
        (f"sk-or-v1-{_HEX}{_HEX}", ("openrouter",)),
        (f"xai-{_LETTERS}", ("xai",)),
        (f"gsk_{_LETTERS}", ("groq",)),
        (f"AIzaSy{_LETTERS}", ("gemini",)),
        (f"nvapi-{_LETTERS}", ("nvidia",)),
        (f"hf_{_LETTERS}", ("huggingface",)),
        (f"fw_{_LETTERS}", ("fireworks",)),
        (f"csk-{_LETTERS}", ("cerebras",)),
        (f"tgp_v1_{_LETTERS}", ("together",)),
        (f"{_HEX}.{_LETTERS[:16]}", ("zai",)),
    ],
)
def test_a_shape_of_its_own_names_the_provider(
    key: str, providers: tuple[str, ...]
) -> None:
    found = recognise(key)
    assert (found.key, found.providers) == (key, providers)
    assert all(family(name) for name in found.providers)


@pytest.mark.parametrize(
    ("key", "likely"),
    [
        (f"sk-{_HEX}", "deepseek"),
        (f"sk-{_LETTERS}{_LETTERS[:16]}", "openai"),
        (_LETTERS, "mistral"),
    ],
)
def test_a_shape_that_several_share_gives_all_of_them(key: str, likely: str) -> None:
    found = recognise(key)
    assert found.providers[0] == likely
    assert len(found.providers) > 1
    assert all(family(name) for name in found.providers)


@pytest.mark.parametrize(
    "line",
    [
        "export DEEPSEEK_API_KEY='{}'",
        "DEEPSEEK_API_KEY={}",
        'DEEPSEEK_API_KEY: "{}"\n',
    ],
)
def test_a_line_of_a_script_names_the_provider_by_its_variable(line: str) -> None:
    key = f"sk-{_LETTERS}"
    assert recognise(line.format(key)) == RecognisedKey(key, ("deepseek",))


def test_what_surrounds_a_key_is_left_out() -> None:
    key = f"gsk_{_LETTERS}"
    assert recognise(f'  "{key}"\n').key == key
    assert recognise(f"Bearer {key}").key == key


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Nothing was pasted"),
        ("sk-ant-123", "too short"),
        ("https://example.org/v1/keys", "an address"),
        ("please use my usual key", "not a key"),
        ("sk-ant-" + "x" * 5000, "too long"),
    ],
)
def test_what_can_not_be_a_key_is_said(text: str, words: str) -> None:
    found = recognise(text)
    assert words in found.problem
    assert not found.key


def test_a_key_of_nobody_known_is_kept_for_the_question_whose_it_is() -> None:
    found = recognise("totally-unknown-shape-1234567890")
    assert found.key
    assert found.providers == ()


def test_a_key_does_not_show_in_its_representation() -> None:
    key = f"sk-ant-{_LETTERS}"
    assert key not in repr(recognise(key))

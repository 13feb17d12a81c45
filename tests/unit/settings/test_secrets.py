"""Secrets: what counts as one, the text of `.env`, and that values are never shown."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import SettingsError
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.secrets import (
    Secrets,
    is_secret_name,
    is_secret_variable,
    parse_env,
    with_secret,
    without_secret,
)


def values(text: str) -> dict[str, str]:
    return {line.name: line.value for line in parse_env(text) if line.name}


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "OPENAI_API_KEY",
        "github-token",
        "password",
        "aws_secret_access_key",
        "apikey",
    ],
)
def test_names_of_secrets_are_recognised(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["max_tokens_per_turn", "color", "keyboard", "token_budget", "tokenizer"]
)
def test_other_names_are_not_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_only_capitals_name_a_secret_variable() -> None:
    assert is_secret_variable("OPENAI_API_KEY")
    assert not is_secret_variable("openai_api_key")
    assert not is_secret_variable("A B_TOKEN")


@pytest.mark.parametrize(
    "value",
    [
        "sk-" + "a1" * 10,
        "ghp_" + "x" * 36,
        "AKIA" + "A" * 16,
        "Bearer sk-ant-" + "a" * 20,
    ],
)
def test_provider_keys_are_recognised_by_shape(value: str) -> None:
    assert is_secret_value(value)


@pytest.mark.parametrize(
    "value",
    ["task-runner-with-a-long-name", "sk-short", "https://example.org/hf_x", "auto"],
)
def test_ordinary_values_are_not(value: str) -> None:
    assert not is_secret_value(value)


def test_the_usual_forms_of_an_env_file_are_read() -> None:
    text = "\ufeff# comment\nA=1\r\nexport B = two words # note\nC='single # $x'\n"
    text += 'D="a\\nb\\"c" # note\n\nE=\nF=a#b\nG=#c\n'
    assert values(text) == {
        "A": "1",
        "B": "two words",
        "C": "single # $x",
        "D": 'a\nb"c',
        "E": "",
        "F": "a#b",
        "G": "",
    }


@pytest.mark.parametrize(
    "line", ["no assignment", "A='open", 'A="open\\"', "A='x' y", "1A=2", "=x"]
)
def test_a_bad_line_is_a_problem_that_does_not_repeat_it(line: str) -> None:
    (parsed,) = parse_env(line)
    assert parsed.problem
    assert "open" not in str(parsed.problem).replace("not closed", "")


def test_the_environment_wins_over_the_file() -> None:
    secrets = Secrets(
        {"A_TOKEN": "file", "B_TOKEN": "file"},
        {"A_TOKEN": "real", "C_TOKEN": "real", "B_TOKEN": "", "PATH": "x"},
    )
    assert [(name, secrets.get(name), secrets.origin(name)) for name in secrets] == [
        ("A_TOKEN", "real", "environment"),
        ("B_TOKEN", "file", ".env"),
        ("C_TOKEN", "real", "environment"),
    ]


def test_values_are_never_shown() -> None:
    secrets = Secrets({"A_TOKEN": "hunter2"}, {})
    assert "hunter2" not in f"{secrets!r} {secrets} {vars(type(secrets))}"
    with pytest.raises(TypeError):
        pickle.dumps(secrets)


def test_a_missing_secret_says_how_to_set_it() -> None:
    with pytest.raises(SettingsError, match="A_TOKEN is not set") as missing:
        Secrets({}, {}).require("A_TOKEN")
    assert missing.value.hint == "Store it with: hermes config set A_TOKEN"


def test_a_value_with_control_characters_is_refused() -> None:
    with pytest.raises(SettingsError, match="control characters"):
        with_secret("", "A", "x\x1b[31m")


@given(
    st.lists(
        st.sampled_from(
            ["# note\n", "\n", "X=1\n", "export Y='2'  # y\r\n", "A=old\n", "broken\n"]
        ),
        max_size=8,
    ),
    st.text(
        st.characters(
            exclude_categories=["C", "Z"], include_characters=" \n\t\"'\\$#`"
        ),
        min_size=1,
    ),
)
def test_setting_a_secret_reads_back_and_keeps_every_other_line(
    lines: list[str], value: str
) -> None:
    before = "".join(lines)
    after = with_secret(before, "A", value)
    assert values(after)["A"] == value
    assert [
        line for line in after.splitlines(keepends=True) if not line.startswith("A=")
    ] == [line for line in lines if not line.startswith("A=")]
    assert "A" not in values(without_secret(after, "A"))


def test_a_file_without_a_final_line_break_gets_one() -> None:
    assert with_secret("X=1", "A", "2") == "X=1\nA=2\n"

"""Text that was made to do harm: deep nesting, endless blanks, thousands of problems, passwords in addresses."""

import time
from collections.abc import Callable

import pytest

from hermes.errors import SettingsError
from hermes.settings.parse import parse_config
from hermes.settings.redaction import mask
from hermes.settings.secrets import parse_env, with_secret
from hermes.settings.setting_keys import find_key, parse_value
from hermes.settings.yaml_read import YamlTooDeep, parse_yaml, too_deep

LEVELS = "".join(" " * depth + "a:\n" for depth in range(1000))


@pytest.mark.parametrize(
    "text",
    ["- " * 20_000, "? " * 20_000, "-\t" * 20_000, "a:\n  " + "- " * 20_000, LEVELS],
)
def test_deep_blocks_are_refused_before_the_reader_sees_them(text: str) -> None:
    assert "nested too deeply" in str(parse_config(text)[1][0].text)
    with pytest.raises(YamlTooDeep):
        parse_yaml(text)
    with pytest.raises(SettingsError, match="nested too deeply"):
        parse_value(find_key("model.fallback"), text)


def test_what_people_write_is_not_too_deep() -> None:
    rows = "".join(f"- a: {number}\n  b:\n    - - x\n" for number in range(5000))
    assert too_deep(rows) == 0
    assert too_deep("# " + "- " * 500 + "\na: 1\n") == 0


@pytest.mark.parametrize(
    "read",
    [
        lambda: parse_config("x" + " " * 100_000 + "b"),
        lambda: parse_config('"x"' + " " * 100_000 + "b"),
        lambda: parse_env("A=x" + " " * 100_000 + "b"),
        lambda: parse_config(
            "".join(f"unknown_{number}: 1\n" for number in range(2000))
        ),
    ],
)
def test_no_text_takes_long(read: Callable[[], object]) -> None:
    start = time.process_time()
    read()
    assert time.process_time() - start < 4


def test_only_the_first_problems_are_listed() -> None:
    problems = parse_config("".join(f"unknown_{number}: 1\n" for number in range(50)))[
        1
    ]
    assert len(problems) == 21
    assert str(problems[-1].text) == "and 30 more"


def test_a_blank_before_a_hash_starts_a_comment() -> None:
    assert [line.value for line in parse_env("A=x  # c\nB=#\nC=x#y\n")] == [
        "x",
        "",
        "x#y",
    ]


@pytest.mark.parametrize("value", ["a\0b\tc", "a\x1b\n", "\ud800\n", "a\u2028\tb"])
def test_a_secret_holds_no_control_characters(value: str) -> None:
    with pytest.raises(SettingsError, match="control characters"):
        with_secret("", "X_API_KEY", value)


@pytest.mark.parametrize(
    "address",
    ["https://me:pw123@host/v1", "https://pw123@host", "https://host/v1?api_key=pw123"],
)
def test_an_address_holds_no_password(address: str) -> None:
    problem = parse_config(f"model:\n  base_url: {address}\n")[1][0]
    assert "must not hold a password" in str(problem.text)
    assert problem.hint
    with pytest.raises(SettingsError, match="must not hold a password"):
        parse_value(find_key("model.base_url"), address)
    assert "pw123" not in mask(address)


def test_other_addresses_are_accepted() -> None:
    address = "https://host/openai?api-version=2024-06-01"
    assert parse_value(find_key("model.base_url"), address) == address
    assert parse_config(f"model:\n  base_url: {address}\n")[1] == []
    assert mask(address) == address


def test_a_wrong_amount_is_explained() -> None:
    with pytest.raises(
        SettingsError, match=r"an amount of money or tokens.*got 'lots'"
    ) as error:
        parse_value(find_key("budget.per_turn"), "lots")
    assert "$2.50" in error.value.hint


def test_a_secret_is_not_repeated_by_the_explanation() -> None:
    with pytest.raises(SettingsError) as error:
        parse_value(find_key("budget.per_turn"), "sk-" + "abcdefghijklmnop1234")
    assert "abcdefgh" not in error.value.message


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x, x, x]\n"
        + "".join(
            f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 20)
        ),
        "a: &a [x, x]\n" + "a: &a [*a, *a]\n" * 30,
        "a0: &a0 {k: x}\n"
        + "".join(
            f'a{n}: &a{n} {{"*":*a{n - 1},"b":*a{n - 1}}}\n' for n in range(1, 30)
        ),
    ],
    ids=["nested", "same name", "behind a star in quotes"],
)
def test_aliases_can_not_fill_the_memory(text: str) -> None:
    with pytest.raises(ValueError, match="stand for too much text"):
        parse_yaml(text)


def test_ordinary_aliases_are_read() -> None:
    text = 'base: &b {x: 1}\none: *b\ntwo: *b\nprotect: ["*.lock"]'
    assert parse_yaml(text) == {
        "base": {"x": 1},
        "one": {"x": 1},
        "two": {"x": 1},
        "protect": ["*.lock"],
    }

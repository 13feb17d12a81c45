"""The text of config.yaml: what is accepted, and every problem that is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.settings.parse import parse_config

BUSY = "store.busy_timeout: expected a number from 0 to 3600"
STEPS = "budget.max_steps: expected a whole number from 1 to 10000"
SPECIAL = "special characters are not allowed"
SECRET = "sk-" + "abcdefghijklmnop1234"


def problems(text: str) -> list[str]:
    return [problem.render("config.yaml") for problem in parse_config(text)[1]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# only comments\n",
        "---\n",
        "sessions:\n",
        "sessions:\n  # all off\nstore:\n",
    ],
)
def test_an_empty_file_or_section_means_defaults(text: str) -> None:
    assert parse_config(text) == ({}, [])


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffstore:\r\n  busy_timeout: 5\r\n",
        "store: {busy_timeout: 5}",
        "# *emphasis* and !important\nstore:\n  busy_timeout: 5 # *x\n",
        "---\nstore:\n    busy_timeout: 5\n...\n",
        '"store":\n  "busy_timeout": 5\n',
    ],
)
def test_byte_order_marks_line_endings_and_styles_are_fine(text: str) -> None:
    assert parse_config(text) == ({"store": {"busy_timeout": 5}}, [])


def test_every_problem_is_named_with_its_line() -> None:
    text = (
        "sesions:\n  write_json_snapshots: true\n"
        "store:\n  busy_timeout: '30'\n  max_steps: 3\n"
        "display:\n  color: blue\n  color: auto\n"
    )
    assert problems(text) == [
        "config.yaml:1: sesions: unknown key; did you mean sessions?",
        "config.yaml:4: store.busy_timeout: expected a number from 0 to 3600, got text; remove the quotes",
        "config.yaml:5: store.max_steps: unknown key; did you mean budget.max_steps?",
        "config.yaml:7: display.color: expected one of auto, always, never, got text; such as auto",
        "config.yaml:8: display.color: duplicate key, first on line 7; keep one of them",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("store:\n\tbusy_timeout: 1\n", "config.yaml:2: a tab in the indentation; use spaces"),
        ("\tstore:\n", "config.yaml:1: a tab in the indentation; use spaces"),
        ("- store\n", "config.yaml:1: expected `section:` lines at the top level, got a list"),
        ("hello", "config.yaml:1: expected `section:` lines at the top level, got text"),
        ("store: 3", "config.yaml:1: store: expected keys below it, got 3"),
        ("store: !x 3", "config.yaml:1: store: the tag !x is not supported; remove it"),
        ("store: !!python/object:os 3", "config.yaml:1: store: the tag !!python/object:os is not supported; remove it"),
        ("store:\n---\nbudget:\n", "config.yaml:3: a second document starts here; keep one, without a `---` line"),
        ("store:\n  busy_timeout: 1e9", f"config.yaml:2: {BUSY}, got 1000000000.0; such as 10"),
        ("store:\n  busy_timeout: .nan", f"config.yaml:2: {BUSY}, got nan; such as 10"),
        ("store:\n  busy_timeout: true", f"config.yaml:2: {BUSY}, got true; such as 10"),
        ("budget: {max_steps: 1.5}", f"config.yaml:1: {STEPS}, got 1.5; such as 10"),
        ("<<: {a: 1}", "config.yaml:1: <<: merge keys are not supported; write the values out"),
        ("1: 2", "config.yaml:1: a key must be a word"),
        ("bussy_timeout: 3", "config.yaml:1: bussy_timeout: unknown key; did you mean store.busy_timeout?"),
        ("zzz: 3", "config.yaml:1: zzz: unknown key; see `hermes config show` for all keys"),
        ("budget:\nbudget:", "config.yaml:2: budget: duplicate key, first on line 1; keep one of them"),
        ("store: 'x", "config.yaml:1: not valid YAML: while scanning a quoted scalar, found unexpected end of stream"),
        ("store:\n  busy_timeout:\n", f"config.yaml:2: {BUSY}, got nothing; give it a value or remove the line"),
        ("store:\n\x07", f"config.yaml:2: not valid YAML: unacceptable character #x0007: {SPECIAL}"),
        ("[" * 5000, "config.yaml:1: nested too deeply"),
    ],
)  # fmt: skip
def test_each_kind_of_problem_says_what_to_do(text: str, expected: str) -> None:
    assert problems(text) == [expected]


def test_a_repeated_key_is_found_in_a_flow_mapping_too() -> None:
    (problem,) = problems("store: {busy_timeout: 5, busy_timeout: 6}")
    assert "store.busy_timeout: duplicate key" in problem


def test_an_alias_is_refused_before_it_can_multiply() -> None:
    text = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        text += f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    assert problems(text)  # would need gigabytes if it were multiplied out
    assert problems("store: &s {busy_timeout: 5}\nbudget: *s") == [
        "config.yaml:2: budget: anchors and aliases (& and *) are not supported; write the value out"
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"openai_api_key: {SECRET}", "OPENAI_API_KEY"),
        ("api_key: hunter2", "NAME_API_KEY"),
        ("store:\n  github_token: hunter2", "GITHUB_TOKEN"),
        ("store:\n  password: hunter2", "NAME_API_KEY"),
        (f"display:\n  color: {SECRET}", "OPENAI_API_KEY"),
    ],
)
def test_a_secret_is_sent_to_the_env_file_and_never_repeated(
    text: str, name: str
) -> None:
    (problem,) = problems(text)
    assert "a secret does not belong in config.yaml" in problem
    assert f"`hermes config set {name}`" in problem
    assert SECRET not in problem
    assert "hunter2" not in problem


def test_control_characters_in_a_key_are_shown_not_sent_to_the_terminal() -> None:
    (problem,) = problems('"\\e[31mred": 1\n')
    assert "\x1b" not in problem


@given(
    st.text(
        alphabet=st.sampled_from("ab:{}[]-#&*!|>'\"%@`?, \n\tstore\r\u2028é"),
        max_size=60,
    )
)
def test_any_text_is_either_accepted_or_explained(text: str) -> None:
    data, found = parse_config(text)
    assert not (data and found)


@given(st.text(max_size=40))
def test_any_scalar_is_either_accepted_or_explained(text: str) -> None:
    parse_config(f"display:\n  color: {text}\n")


def test_where_a_secret_is_kept_is_no_secret_also_when_something_else_is_wrong() -> (
    None
):
    webhooks = "webhooks:\n  mine: {url: 'https://example.org', secret: MINE_SECRET}\n"
    (problem,) = problems(f"{webhooks}stor: 1\n")
    assert "stor" in problem
    assert any(
        "a secret does not belong" in one
        for one in problems(webhooks.replace("MINE_SECRET", "hunter2") + "stor: 1")
    )

"""What a command line without a command means."""

import pytest

from hermes.errors import UsageError
from hermes.surfaces.cli.question import is_question, parse
from hermes.surfaces.terminal.run_options import RunOptions

COMMANDS = ["config", "doctor", "model", "sessions"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["what is it?"],
        ["what", "is", "it?"],
        ["why?"],
        ["hi"],
        ["hello"],
        ["hi", "--json"],
        ["今天天气怎么样"],
        ["-z", "doctor"],
        ["-zdoctor"],
        ["--prompt=doctor"],
        ["--", "doctor"],
        ["--json", "hi"],
        ["--continue"],
        ["-c"],
        ["-r", "my talk"],
        ["-m", "gpt-5", "hi"],
        ["explain", "--json", "this"],
    ],
)
def test_these_are_questions(arguments: list[str]) -> None:
    assert is_question(arguments, COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["modle"],
        ["modle", "list"],
        ["confg", "set", "x"],
        ["--unknown"],
        ["-continue"],
        ["-resume"],
        ["-model", "m"],
        ["hi", "--help"],
    ],
)
def test_these_are_taken_for_mistakes(arguments: list[str]) -> None:
    assert not is_question(arguments, COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["what", "is it?"], RunOptions(text="what is it?")),
        (["-z", "hi", "--json"], RunOptions(text="hi", json=True)),
        (["--json", "hi there"], RunOptions(text="hi there", json=True)),
        (["a b", "--model", "m"], RunOptions(text="a b", model="m")),
        (["--", "--json", "is", "what?"], RunOptions(text="--json is what?")),
        (["--continue"], RunOptions(resume="last")),
        (["-c", "go on"], RunOptions(text="go on", resume="last")),
        (["-r", "my talk"], RunOptions(resume="my talk")),
        (["--resume=my talk"], RunOptions(resume="my talk")),
        (["-r"], RunOptions(picks_session=True)),
        (["--resume", "--model", "m"], RunOptions(picks_session=True, model="m")),
        (["-m", "m", "hi"], RunOptions(text="hi", model="m")),
        (["--resume", "my talk", "go on"], RunOptions(text="go on", resume="my talk")),
        (["--approvals", "full", "-z", "x"], RunOptions(text="x", approvals="full")),
        (
            ["--provider", "p", "--cwd", "/work", "--fetch"],
            RunOptions(provider="p", cwd="/work", fetch=True),
        ),
    ],
)
def test_options_and_question_come_in_any_order(
    arguments: list[str], expected: RunOptions
) -> None:
    assert parse(arguments) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["-z", ""],
        ["-z"],
        ["-z", "a", "b"],
        ["--approvals", "some"],
        ["--resume", "a", "--continue"],
        ["-c", "-r"],
        ["a b", "--nope"],
    ],
)
def test_what_makes_no_sense_is_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        parse(arguments)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["--json", "doctor"], "hermes doctor --json?"),
        (["--cwd", "/x", "doctor"], "hermes doctor?"),
        (["--model", "x", "doctro"], "hermes doctor?"),
        (["--json", "sessions", "list"], "hermes sessions list --json?"),
    ],
)
def test_a_command_behind_an_option_is_no_question(
    arguments: list[str], meant: str
) -> None:
    with pytest.raises(UsageError) as raised:
        parse(arguments, COMMANDS)
    assert meant in raised.value.hint


@pytest.mark.parametrize(
    "arguments",
    [
        ["--json", "--", "doctor"],
        ["--json", "-z", "doctor"],
        ["--json", "call the doctor"],
    ],
)
def test_a_question_behind_an_option_is_asked(arguments: list[str]) -> None:
    assert "doctor" in (parse(arguments, COMMANDS).text or "")

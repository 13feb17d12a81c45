"""A function becomes a command: its parameters in the shell, in chats and over HTTP."""

from typing import Annotated, Any, Literal

import msgspec
import pytest

from hermes.commands.command import Arg, Command, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.views import TextResult, message
from hermes.errors import UsageError
from hermes.surfaces.cli.parser import Parser
from hermes.surfaces.cli.shell import configure, read_arguments


@command("test run", slash="run count name", scope="chat", group="Chat")
def run(
    _context: CommandContext,
    session: SessionId,
    name: Annotated[str, "what it is called"] = "",
    *,
    count: Annotated[int, Arg("how many", metavar="N", at_least=1)] = 1,
    mode: Literal["slow", "fast"] = "slow",
    tag: Annotated[tuple[str, ...], "a word; may be given again"] = (),
    force: Annotated[bool, "also what was changed"] = False,
) -> TextResult:
    """Run something a few times.

    More about it.
    """
    return message(f"{session} {name} {count} {mode} {tag} {force}")


def shell(*words: str, of: Command = run) -> dict[str, Any]:
    parser = Parser("hermes test run")
    configure(parser, of)
    return read_arguments(of, parser, list(words))


def test_the_docstring_is_the_help() -> None:
    assert run.summary == "run something a few times"
    assert run.description == "More about it."
    assert run.key == "test.run"


def test_words_of_the_shell_become_arguments_and_the_rest_is_left_out() -> None:
    assert shell("last") == {"session": "last"}
    given = shell(
        "x", "y", "--count", "3", "--mode", "fast", "--tag", "a", "--tag", "b"
    )
    assert given == {
        "session": "x",
        "name": "y",
        "count": 3,
        "mode": "fast",
        "tag": ("a", "b"),
    }


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "required: ID"),
        (("x", "--count", "0"), "at least 1"),
        (("x", "--count", "many"), "at least 1"),
        (("x", "--mode", "quick"), "expected one of slow, fast"),
        (("\udcff",), "not UTF-8"),
        (("x", "--nothing"), "unrecognized"),
    ],
)
def test_wrong_words_of_the_shell_are_wrong_usage(
    words: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        shell(*words)


def test_what_follows_two_dashes_is_taken_as_it_is() -> None:
    @command("test start")
    def start(
        _context: CommandContext,
        name: str,
        program: Annotated[tuple[str, ...], Arg(after_dashes=True)] = (),
        *,
        url: str = "",
    ) -> TextResult:
        """Start a program."""
        return message(name, *program, url)

    assert shell("a", "--", "ls", "--url", "-l", of=start) == {
        "name": "a",
        "program": ("ls", "--url", "-l"),
    }


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("", {}),
        ("2", {"count": 2}),
        ("2 force", {"count": 2, "force": True}),
        ("force", {"force": True}),
        ("force 2 all of this", {"count": 2, "name": "all of this", "force": True}),
    ],
)
def test_words_of_a_chat_go_to_the_parameters_that_the_command_names(
    text: str, given: dict[str, Any]
) -> None:
    assert run.words(text, {"session": "now"}) == {"session": "now"} | given


@pytest.mark.parametrize("text", ["many", "0", "-1"])
def test_wrong_words_of_a_chat_say_how_it_is_used(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        run.words(text, {"session": "now"})
    assert caught.value.hint == "Usage: /run N NAME"


def test_a_request_has_the_same_parameters() -> None:
    body = msgspec.json.decode(b'{"session": "x", "tag": ["a"]}', type=run.form)
    assert run.arguments(body)["tag"] == ("a",)
    query = msgspec.convert({"session": "x", "tag": "a b", "count": "2"}, run.query, strict=False)  # fmt: skip
    assert (run.arguments(query)["tag"], run.arguments(query)["count"]) == (("a", "b"), 2)  # fmt: skip
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"session": "x", "count": 0}', type=run.form)

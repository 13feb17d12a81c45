"""Arguments of `hermes sessions` and the marking of found words."""

import argparse

import pytest

from hermes.commands.sessions import age
from hermes.commands.table import TOPICS
from hermes.errors import UsageError
from hermes.surfaces.cli.shell import topic_parser
from hermes.surfaces.terminal.render import highlight
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import TextScreen


def parse(*arguments: str) -> argparse.Namespace:
    topic = next(topic for topic in TOPICS if topic.name == "sessions")
    return topic_parser(topic).parse_args(list(arguments))


@pytest.mark.parametrize(
    ("text", "hours"),
    [("36h", 36), ("90d", 2160), ("2w", 336), ("1m", 720), ("1Y", 8760)],
)
def test_an_age_is_a_number_and_a_unit(text: str, hours: int) -> None:
    assert age(text) == hours * 3600


@pytest.mark.parametrize(
    "text", ["", "90", "d", "0d", "-1d", "1.5d", "٣d", "99999999999999d"]
)
def test_anything_else_is_not_an_age(text: str) -> None:
    with pytest.raises(UsageError, match="90d"):
        age(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--limit", "0"),
        ("list", "--limit", "3", "--all"),
        ("show", "x", "--after", "-1"),
        ("search",),
    ],
)
def test_wrong_usage_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parse(*arguments)


def test_found_words_are_marked_whatever_their_case_and_the_longest_first() -> None:
    screen = TextScreen(80, Style(enabled=True))
    assert (
        highlight("The Parser.", "parse parser", screen) == "The \x1b[33mParser\x1b[0m."
    )
    assert highlight("a.b", ".*", screen) == "a.b"


def test_words_that_must_not_occur_are_not_marked() -> None:
    screen = TextScreen(80, Style(enabled=True))
    assert highlight("a b c", 'a -b -"c d"', screen) == "\x1b[33ma\x1b[0m b c"

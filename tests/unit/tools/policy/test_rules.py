"""The user's rules: what a file may say, what is wrong with one, and how it is changed without losing a comment."""

import pytest

from hermes.tools.policy.rule_file import _with_item, _without_items, parse_rules
from hermes.tools.policy.rules import PolicyRule
from hermes.tools.policy.shell_words import Word

GOOD = """\
# my rules
forbid:
  - {program: docker, arguments: [push]}  # never
allow:
  - program: npm
    arguments: [ci]
    reach: network
  - tool: mcp.tracker.list
remembered:
  - "terminal in /a (workspace): make x"
"""


def words(text: str) -> tuple[Word, ...]:
    return tuple(Word(part) for part in text.split())


def test_a_rule_is_about_whole_words_from_the_first_on() -> None:
    book, problem = parse_rules(GOOD)
    assert problem is None
    found = [
        book.for_program(text.split()[0], words(text))
        for text in ("docker push x", "docker pull", "npm ci", "npm")
    ]
    assert [one and one[0] for one in found] == ["forbid", None, "allow", None]
    assert book.for_program("npm", (Word("npm"), Word("ci", known=False))) is None
    assert book.for_tool("mcp.tracker.list") == (
        "allow",
        PolicyRule(tool="mcp.tracker.list"),
    )
    assert book.for_tool("mcp.tracker.list_all") is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("allow: [", 1),
        ("forbid:\n  - {program: x}\nallowed:\n  - {program: y}\n", 3),
        ("forbid:\n  - {program: x}\n  - {programm: y}\n", 3),
        ("allow:\n  - rm\n", 2),
        ("allow: yes\n", 1),
        ("version: 99\nallow:\n  - {program: x}\n", 1),
        ("allow:\n  - {program: x, tool: y}\n", 2),
        ("allow:\n  - {arguments: [x]}\n", 2),
        ("allow:\n  - {program: x, reach: everywhere}\n", 2),
        (
            "allow:\n  - {program: x}\nforbid:\n  - {program: y}\nallow:\n  - {program: z}\n",
            5,
        ),
        ("- a\n- b\n", 1),
        ("remembered:\n  - 3\n", 2),
    ],
)
def test_what_is_wrong_is_found_with_its_line(text: str, line: int) -> None:
    book, problem = parse_rules(text)
    assert problem is not None
    assert (problem.line, book.allow, book.remembered) == (line, (), ())


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "allow:\n", "remembered: []\n", GOOD, GOOD.rstrip("\n")]
)
def test_an_answer_is_added_and_taken_away_with_everything_else_kept(text: str) -> None:
    shape = 'terminal in /b (network): git fetch "x: y" # z'
    longer = _with_item(text, "remembered", shape)
    book, problem = parse_rules(longer)
    assert problem is None
    assert book.remembered[-1] == shape
    assert all(line.split(" []")[0] in longer for line in text.splitlines())
    assert (
        parse_rules(_without_items(longer, (shape,)))[0].remembered
        == parse_rules(text)[0].remembered
    )

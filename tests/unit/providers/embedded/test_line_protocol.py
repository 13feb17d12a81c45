"""The line protocol."""

import pytest

from hermes.providers.embedded.line_protocol import (
    Action,
    NotALine,
    parse_line,
    runs_away,
    write_line,
)


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("read a b.txt", Action(verb="read", path="a b.txt")),
        ("list .", Action(verb="list", path=".")),
        ("find def main(", Action(verb="find", text="def main(")),
        ("run ls -l", Action(verb="run", text="ls -l")),
        ("todo buy milk", Action(verb="todo", text="buy milk")),
        ("say one\ntwo", Action(verb="say", text="one\ntwo")),
        (
            "write x.py:\nprint('a\\n')\n",
            Action(verb="write", path="x.py", text="print('a\\n')\n"),
        ),
        ("append x.txt:\na: b\nc", Action(verb="append", path="x.txt", text="a: b\nc")),
    ],
)
def test_a_line_is_an_action(line: str, action: Action) -> None:
    assert parse_line(line, {}) == action
    assert write_line(action) == line


def test_replace_splits_where_the_old_text_ends() -> None:
    seen = {"f.js": "xs.map(x => x + 1)"}
    action = parse_line("replace f.js: x => x + 1 => x => x + 2", seen)
    assert (action.old, action.text) == ("x", "x + 1 => x => x + 2")
    seen = {"f.js": "(x) => 1"}
    action = parse_line("replace f.js: (x) => 1 => (x) => 2", seen)
    assert action.path == "f.js"


def test_replace_of_a_text_that_was_not_shown_is_not_a_line() -> None:
    with pytest.raises(NotALine):
        parse_line("replace f.txt: b => c", {"f.txt": "a"})


@pytest.mark.parametrize(
    "line", ["", "read", "read ", "delete x", "write x.txt", "replace x: a", "sayhello"]
)
def test_anything_else_is_not_a_line(line: str) -> None:
    with pytest.raises(NotALine):
        parse_line(line, {})


def test_fences_around_a_file_are_taken_off_except_in_markdown() -> None:
    assert parse_line("write a.py:\n```python\nx = 1\n```", {}).text == "x = 1\n"
    assert (
        parse_line("write a.md:\n```python\nx = 1\n```", {}).text
        == "```python\nx = 1\n```"
    )


def test_a_reply_that_only_repeats_itself_or_is_too_long_runs_away() -> None:
    assert runs_away("append n.txt:\n" + "12\n97\n" * 60, 200)
    assert runs_away("say " + "and so on, " * 40, 120)
    assert runs_away("replace n.txt: a => " + "".join(map(str, range(80))), 201)
    code = "".join(f"def f{n}(x):\n    return x + {n}\n\n" for n in range(90))
    assert not runs_away("write n.py:\n" + code, 800)
    assert not runs_away("say Short.", 3)

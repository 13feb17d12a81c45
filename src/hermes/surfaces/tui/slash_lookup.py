"""The slash commands of the chat in the terminal: finding one, help, and the page of the docs.

They are those of the command table and those that only a terminal has. None is loaded before the first `/`.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence

from hermes.commands.command import Command
from hermes.commands.table import (
    chat_commands,
    commands_in,
    find_command,
    find_topic,
    group_title,
)
from hermes.learning.learning_service import PREFIX
from hermes.surfaces.terminal.styled_text import BOLD, DIM, Row
from hermes.surfaces.terminal.text import one_line, wrap
from hermes.text.translation import to_translate, translator

t = translator(__name__)

_GROUPS = (
    "Chat",
    "Sessions",
    "Changes",
    "Model",
    "Learning",
    "Permissions",
    "Settings",
)
_WIDE_HELP_COLUMNS = 64  # from here on, what a command does is beside it
_ALIASES = {
    "exit": "quit",
    "q": "quit",
    "?": "help",
    "clear": "new",
    "compact": "compress",
    "cost": "usage",
}


_TOPIC_COMMANDS = frozenset({"config", "project"})
"""Commands that take the actions of a shell command: `/config WORDS` is `hermes config WORDS`."""
_FORMER_NAMES = frozenset({"cost"})
"""Aliases that were commands of their own: hooks still get them by these names."""


def hook_name(typed: str, command: Command) -> str:
    """Returns the name of a command in the events for hooks."""
    return typed if typed in _FORMER_NAMES else command.slash


@functools.cache
def slashes() -> tuple[Command, ...]:
    """Every slash command, by group."""
    from hermes.surfaces.tui import terminal_only_commands

    found = [*commands_in(terminal_only_commands), *chat_commands()]
    return tuple(sorted(found, key=lambda one: _GROUPS.index(one.group)))


@functools.cache
def reserved() -> frozenset[str]:
    """Names that no skill can take."""
    return frozenset((*(one.slash for one in slashes()), *_ALIASES))


KEYS = (
    ("Enter", to_translate("send; while Hermes is working, the message is queued")),
    ("Alt-Enter, Ctrl-J", to_translate("a new line; \\ before Enter does the same")),
    ("Ctrl-S", to_translate("send into the running turn, as /steer does")),
    ("Ctrl-C", to_translate("clear the input or stop the turn; press again to quit")),
    ("Ctrl-D", to_translate("quit")),
    ("Esc", to_translate("stop the turn")),
    ("Esc Esc", to_translate("go back to an earlier message, as /rewind does")),
    (
        "Ctrl-O",
        to_translate("show whole outputs, diffs and thoughts, as /details does"),
    ),
    ("?", to_translate("this list, in an empty input")),
    ("Up, Down", to_translate("earlier messages")),
    ("Ctrl-R", to_translate("search earlier messages")),
    ("Ctrl-G", to_translate("write the message in your editor ($VISUAL or $EDITOR)")),
    ("Ctrl-Z", to_translate("suspend Hermes; fg in the shell brings it back")),
    (
        "!command",
        to_translate(
            "run a command yourself; the model sees its output with your next message"
        ),
    ),
    ("#note", to_translate("keep a note in the memory")),
    ("@file", to_translate("attach a file")),
    ("Tab", to_translate("complete a command, or a file after @")),
    ("Shift-Tab", to_translate("the next mode: ask, auto-edit, plan, full")),
    ("Alt-L", to_translate("review what Hermes wants to remember, as /learn does")),
    ("Alt-V", to_translate("dictate: begin, then end the recording")),
    ("Ctrl-V", to_translate("paste a picture; you can also paste or drop its path")),
)


def find_slash(name: str) -> Command | None:
    """The command of that name, or the only one that begins with it."""
    name = _ALIASES.get(name, name)
    exact = [one for one in slashes() if one.slash == name]
    begun = [one for one in slashes() if name and one.slash.startswith(name)]
    return next(iter(exact), begun[0] if len(begun) == 1 else None)


def narrowed(command: Command, words: str) -> tuple[Command, str]:
    """`/config WORDS` is `hermes config WORDS`: returns the command that the words name, and what follows them."""
    topic, action = find_topic(command.slash), words.split(None, 1)
    if command.slash not in _TOPIC_COMMANDS or topic is None or not action:
        return command, words
    found = find_command(topic, action)
    if found is not None:
        return (found, "".join(action[1:]))
    return (command, words)


def find_skill(name: str, skills: Sequence[str]) -> str:
    """The skill that a name calls: by its own name, or by the beginning of it if no command begins with that. Empty if
    none.
    """
    if name in reserved():
        return ""
    if name in skills or name.removeprefix(PREFIX) in {
        skill.removeprefix(PREFIX) for skill in skills
    }:
        return name
    begun = [skill for skill in skills if name and skill.startswith(name)]
    if len(begun) == 1 and find_slash(name) is None:
        return begun[0]
    return ""


def help_rows(
    columns: int, skills: Sequence[str] = (), aliases: Mapping[str, str] | None = None
) -> Iterator[Row]:
    """The commands, the keys, the person's aliases and the skills; on a narrow screen what they do is below them."""
    parts: dict[str, list[tuple[str, str]]] = {}
    for one in slashes():
        name = f"/{one.slash} {one.slash_value}".rstrip()
        parts.setdefault(group_title(one.group), []).append((name, one.summary))
    keys = [(key, t.marked(what)) for key, what in KEYS]
    named = [(f"/{name}", one_line(line)) for name, line in (aliases or {}).items()]
    last = [(t("Your aliases"), named)] if named else []
    for title, rows in [*parts.items(), (t("Keys"), keys), *last]:
        yield ((title, BOLD),)
        for name, summary in rows:
            yield from _help_entry(name, summary, columns)
    if skills:
        yield (("Skills", BOLD),)
        names = "  ".join(f"/{one}" for one in skills)
        yield from (((f"  {line}", DIM),) for line in wrap(names, columns - 2))


def _help_entry(name: str, summary: str, columns: int) -> Iterator[Row]:
    if columns < _WIDE_HELP_COLUMNS:
        yield ((f"  {name}", ""),)
        yield from (((f"    {line}", DIM),) for line in wrap(summary, columns - 4))
        return
    first, *more = wrap(summary, columns - 22)
    if len(name) >= 20:
        yield ((f"  {name}", ""),)
        yield ((f"{'':<22}{first}", DIM),)
    else:
        yield ((f"  {name:<20}", ""), (first, DIM))
    yield from (((f"{'':<22}{line}", DIM),) for line in more)


def key_lines(columns: int) -> Iterator[tuple[str, str]]:
    """Each key and what it does, in rows of at most `columns` cells."""
    longest = max(len(key) for key, _ in KEYS) + 2
    is_wide = columns >= 56
    for key, what in ((key, t.marked(what)) for key, what in KEYS):
        if is_wide:
            first, *more = wrap(what, columns - longest)
            yield f"{key:<{longest}}", first
            yield from ((" " * longest, line) for line in more)
        else:
            yield key, ""
            yield from (("  ", line) for line in wrap(what, columns - 2))


def page() -> str:  # not translated: for the docs
    """The text of docs/reference/slash-commands.md, without its note."""
    lines = [
        "In the chat, a line that begins with `/` is a command. A name may be shortened as long as it is unambiguous."
    ]
    for group in _GROUPS:
        lines += ["", f"## {group}", "", "| command | |", "|---|---|"]
        lines += [
            f"| `{f'/{one.slash} {one.slash_value}'.rstrip()}` | {one.summary} |"
            for one in slashes()
            if one.group == group
        ]
    lines += [
        "",
        "## Keys",
        "",
        "| key | |",
        "|---|---|",
        *(f"| {key} | {what} |" for key, what in KEYS),
    ]
    lines += [
        "",
        "## Files and pictures",
        "",
        "`@path` in a message attaches the file: its text, or the picture itself. For a long file, or one that may hold",
        "secrets, only the path is sent; the model then reads the file with its tools, which ask for approval if needed.",
        "Long pasted text is shown as `[pasted 120 lines]` in the input and sent in full.",
    ]
    lines += [
        "",
        "## Skills",
        "",
        "Every skill is also a command: `/brew-tea for two` sends your line together with the skill's text. If a skill",
        "has the name of a command above, use `/skill:NAME`, which works for every skill.",
    ]
    return "\n".join(lines) + "\n"

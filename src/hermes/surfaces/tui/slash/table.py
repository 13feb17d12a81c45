"""The table of slash commands. A command is an async function of the chat and of what follows its name."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hermes.learning.learning_service import PREFIX
from hermes.surfaces.terminal.text import wrap
from hermes.surfaces.tui.slash import (
    answering,
    asking,
    going,
    learning,
    rewinding,
    sessions,
)

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation


class Slash(NamedTuple):
    """One line of the table."""

    name: str
    value: str
    summary: str
    run: "Callable[[ChatConversation, str], Awaitable[None]]"
    group: str
    choices: tuple[str, ...] = ()


async def _help(chat: "ChatConversation", _: str) -> None:
    bold, dim = chat.screen.style.bold, chat.screen.style.dim
    for line in help_lines(chat.screen.columns - 1, bold=bold, dim=dim):
        chat.screen.line(line)
    skills = [f"/{skill.name}" for skill in await asyncio.to_thread(chat.skills)]
    if skills:
        chat.screen.line(bold("Skills"))
        for line in wrap("  ".join(skills), chat.screen.columns - 3):
            chat.screen.line(dim(f"  {line}"))


_MODES = ("ask", "auto-edit", "full")

SLASHES = (
    Slash("help", "", "this list", _help, "Here"),
    Slash(
        "status",
        "",
        "session, model, folder, what is allowed",
        answering.status,
        "Here",
    ),
    Slash(
        "steer", "TEXT", "tell the model something while it works", going.steer, "Here"
    ),
    Slash(
        "queue",
        "TEXT",
        "let a message wait for its turn; alone: what waits",
        going.queue,
        "Here",
    ),
    Slash("stop", "", "stop the running turn", going.stop, "Here"),
    Slash("quit", "", "leave; the session stays", going.leave, "Here"),
    Slash("new", "", "begin a new session", sessions.new, "Sessions"),
    Slash("resume", "ID", "go on with another session", sessions.resume, "Sessions"),
    Slash("sessions", "", "the sessions used last", sessions.recent, "Sessions"),
    Slash("title", "TEXT", "name this session", sessions.title, "Sessions"),
    Slash(
        "history", "N", "read the last N messages again", sessions.history, "Sessions"
    ),
    Slash(
        "search", "WORDS", "find messages in all sessions", sessions.search, "Sessions"
    ),
    Slash(
        "export",
        "FILE",
        "write this session to a file: .md to read, else JSON lines",
        sessions.export,
        "Sessions",
    ),
    Slash(
        "undo",
        "N",
        "take back the last turn, or N of them: files and conversation",
        rewinding.undo,
        "Changes",
    ),
    Slash("redo", "", "bring back what the last undo took", rewinding.redo, "Changes"),
    Slash(
        "retry",
        "",
        "take back the last turn and ask the same again",
        rewinding.retry,
        "Changes",
    ),
    Slash("diff", "", "what the last turn changed in files", rewinding.diff, "Changes"),
    Slash(
        "branch",
        "N",
        "go on in a copy of this session, without its last N turns",
        rewinding.branch,
        "Changes",
    ),
    Slash("model", "NAME", "which model answers; change it", answering.model, "Model"),
    Slash("cost", "", "what this session took", answering.cost, "Model"),
    Slash("context", "", "how full the model's window is", answering.context, "Model"),
    Slash(
        "compress",
        "",
        "make room: sum up the older part of the conversation",
        answering.compress,
        "Model",
    ),
    Slash(
        "learn",
        "",
        "decide on what Hermes wants to keep, a key each",
        learning.learn,
        "Learning",
    ),
    Slash(
        "skills",
        "",
        "what Hermes can do well; each skill is a command",
        learning.skills,
        "Learning",
    ),
    Slash("memory", "", "what Hermes remembers", learning.memory, "Learning"),
    Slash("tools", "", "what the model can do", asking.tools, "Rights"),
    Slash("mcp", "", "the MCP servers and how they are", asking.mcp, "Rights"),
    Slash(
        "approvals",
        "MODE",
        "what is not asked: ask, auto-edit or full",
        asking.approvals,
        "Rights",
        _MODES,
    ),
    Slash(
        "codex-runtime",
        "WORD",
        "let codex run your turns: on, off or status",
        asking.codex_runtime,
        "Set-up",
        ("on", "off", "status"),
    ),
    Slash("config", "", "the settings in force", asking.config, "Set-up"),
    Slash("doctor", "", "check this installation", asking.doctor, "Set-up"),
)

_ALIASES = {
    "exit": "quit",
    "q": "quit",
    "?": "help",
    "clear": "new",
    "compact": "compress",
}

RESERVED = frozenset((*(slash.name for slash in SLASHES), *_ALIASES))
"""Names that no skill can take."""

KEYS = (
    ("Enter", "send; while Hermes works the message waits for its turn"),
    ("Alt-Enter, Ctrl-J", "a new line; so does \\ before Enter"),
    ("Ctrl-S", "send into the running turn, as /steer does"),
    ("Ctrl-C", "clear the input, stop the turn, and again: quit"),
    ("Ctrl-D", "quit"),
    ("Up, Down", "what you typed before"),
    ("Tab", "complete a command, or a file after @"),
    ("Alt-L", "decide on what Hermes wants to keep, as /learn does"),
    ("Ctrl-V", "paste a picture; its path pasted or dropped works too"),
)


def find_slash(name: str) -> Slash | None:
    """The command of that name, or the only one that begins so."""
    name = _ALIASES.get(name, name)
    exact = [slash for slash in SLASHES if slash.name == name]
    begun = [slash for slash in SLASHES if name and slash.name.startswith(name)]
    return next(iter(exact), begun[0] if len(begun) == 1 else None)


def find_skill(name: str, skills: Sequence[str]) -> str:
    """The skill that a name calls: by its own, or by the beginning of one when no command begins so. Empty if none."""
    if name in RESERVED:
        return ""
    if name in skills or name.removeprefix(PREFIX) in {
        skill.removeprefix(PREFIX) for skill in skills
    }:
        return name
    begun = [skill for skill in skills if name and skill.startswith(name)]
    return begun[0] if len(begun) == 1 and find_slash(name) is None else ""


def help_lines(
    columns: int, *, bold: Callable[[str], str] = str, dim: Callable[[str], str] = str
) -> Iterator[str]:
    """The commands and keys; on a narrow screen what they do is below them."""
    wide = columns >= 64
    parts: dict[str, list[tuple[str, str]]] = {}
    for slash in SLASHES:
        parts.setdefault(slash.group, []).append(
            (f"/{slash.name} {slash.value}".rstrip(), slash.summary)
        )
    for title, rows in [*parts.items(), ("Keys", list(KEYS))]:
        yield bold(title)
        for name, summary in rows:
            if wide:
                first, *more = wrap(summary, columns - 22)
                yield f"  {name:<20}{dim(first)}"
                yield from (dim(f"{'':<22}{line}") for line in more)
            else:
                yield f"  {name}"
                yield from (dim(f"    {line}") for line in wrap(summary, columns - 4))


def page() -> str:
    """The text of docs/reference/slash-commands.md, without its note."""
    lines = [
        "In the chat, a line that begins with `/` is a command. The beginning of a name is enough when it is clear."
    ]
    for group in dict.fromkeys(slash.group for slash in SLASHES):
        lines += ["", f"## {group}", "", "| command | |", "|---|---|"]
        lines += [
            f"| `{f'/{s.name} {s.value}'.rstrip()}` | {s.summary} |"
            for s in SLASHES
            if s.group == group
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
        "`@path` in a message sends the file's text along with it; a picture is sent as a picture. A long file, or one",
        "that may hold secrets, is only named: the model reads it with its tools, which ask where they must. What you",
        "paste stays whole: many lines are folded to `[pasted 120 lines]` in the input and sent as they are.",
    ]
    lines += [
        "",
        "## Skills",
        "",
        "Every skill is a command of its own: `/brew-tea for two` sends your line with the skill's text. One that is",
        "called like a command above is at `/skill:NAME`, where every skill can be found.",
    ]
    return "\n".join(lines) + "\n"

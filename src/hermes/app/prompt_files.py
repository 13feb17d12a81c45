"""Commands and agents as Markdown files with front matter, in the project and in the home.

    ---
    description: look for mistakes in the working copy
    argument-hint: BRANCH
    model: openai:gpt-5-mini
    tools: [read_file, search_files]
    mode: plan
    ---
    Review $ARGUMENTS.

The folders of Claude Code and opencode are read too. A file of the project is used only after the user has agreed to its
content. Nothing in a file is run: `$ARGUMENTS` and `$1` are replaced, the rest is text.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec

from hermes.app.prompt_fields import (
    KNOWN_MODES,
    AgentBudget,
    FieldError,
    FrontMatter,
    names_tool,
)
from hermes.errors import NotFound, Refused, SettingsError, UsageError
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.text.hidden_text import without_hidden
from hermes.text.translation import to_translate, translator
from hermes.tools.project_rules import read_small_file
from hermes.tools.project_trust import is_trusted, trust

t = translator(__name__)


PromptKind: TypeAlias = Literal["command", "agent"]
_Value = TypeVar("_Value")

_FOLDERS: Mapping[PromptKind, tuple[str, ...]] = {
    "command": (
        ".hermes/commands",
        ".hermes/prompts",
        ".claude/commands",
        ".opencode/command",
        ".opencode/commands",
    ),
    "agent": (
        ".hermes/agents",
        ".claude/agents",
        ".opencode/agent",
        ".opencode/agents",
    ),
}
_MAX_FILES = 200
_MAX_LOOKED_AT = 5_000
"""Names below a folder of commands: a link may lead to the whole project."""
_MAX_PROMPT_FILE_BYTES = 64 * 1024
_NAME = lazy_pattern(r"[a-z0-9][a-z0-9_-]{0,63}")
_LOCATED = ("model", "tools", "skills", "mode", "budget")


class PromptFile(msgspec.Struct, frozen=True, kw_only=True):
    """A command or an agent from a file."""

    kind: PromptKind
    name: str
    path: str
    digest: str
    in_project: bool
    is_trusted: bool = True
    description: str = ""
    hint: str = ""
    """What its arguments are."""
    model: str = ""
    tools: tuple[str, ...] | None = None
    """The tools that it may use; None for all of the session's."""
    without: tuple[str, ...] = ()
    """Tools that it may not use."""
    mode: str = ""
    """The approval mode, if it allows less than that of the session."""
    budget: AgentBudget = AgentBudget()
    skills: tuple[str, ...] = ()
    """Skills whose text is in the prompt from the start."""
    lines: Mapping[str, int] = {}
    """The line of the file for each of its keys."""
    problem: str = ""
    """Why the file can't be used, with its path and line; empty if it can."""
    body: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether a session can use it: it can be read, and the user has agreed to it."""
        return self.is_trusted and not self.problem

    def place(self, key: str) -> str:
        """Where the file says something: its path and line."""
        return f"{self.path}:{self.lines[key]}" if key in self.lines else self.path

    def unknown_tools(self, names: Iterable[str]) -> tuple[str, ...]:
        """The tools that the file names but that are not among these."""
        known = tuple(names)
        return tuple(
            entry
            for entry in (*(self.tools or ()), *self.without)
            if not any(names_tool(entry, name) for name in known)
        )

    def offered(self, tools: Mapping[str, _Value]) -> dict[str, _Value]:
        """Those of a session's tools that the agent may use; never more."""
        return {
            name: tool
            for name, tool in tools.items()
            if (self.tools is None or _is_named(self.tools, name))
            and not _is_named(self.without, name)
        }

    def expanded(self, arguments: str) -> str:
        """The text of a command with what was typed after it."""
        words = arguments.split()
        text = re.sub(
            r"\$(ARGUMENTS|[1-9])",
            lambda found: (
                arguments
                if found[1] == "ARGUMENTS"
                else "".join(words[int(found[1]) - 1 : int(found[1])])
            ),
            self.body,
        )
        if arguments and text == self.body:
            text = f"{text}\n\n{arguments}"
        return text


def _is_named(entries: tuple[str, ...], name: str) -> bool:
    return any(names_tool(entry, name) for entry in entries)


REVIEWER = PromptFile(
    kind="agent",
    name="reviewer",
    path="",
    digest="",
    in_project=False,
    description=to_translate("looks for mistakes in changes, and changes nothing"),
    tools=("read_file", "list_files", "search_files", "terminal", "vision_analyze"),
    body=(  # not translated
        "You review changes that somebody else made. You have not seen how they came about, and you trust no claim about "
        "them: read the code. You change nothing. Commands are for looking (git diff, git log, running tests)."
    ),
)
"""The reviewer of `/review`, unless a file of that name says otherwise."""


class PromptFiles:
    """The commands and agents that a session in a folder can use."""

    def __init__(self, hermes_home: Path, user_home: Path) -> None:
        self._hermes_home = hermes_home
        self._user_home = user_home

    def all(self, cwd: Path, kind: PromptKind) -> list[PromptFile]:
        """Every file of a kind, the project's first; a name counts once. Files the user has not agreed to come last."""
        project = [
            *(one for part in _FOLDERS[kind] for one in self._in(cwd / part, kind, cwd))
        ]
        own = [
            one
            for folder in self._home_folders(kind)
            for one in self._in(folder, kind, None)
        ]
        agreed = [one for one in project if one.is_trusted]
        asked = [one for one in project if not one.is_trusted]
        found: dict[str, PromptFile] = {}
        built_in = [REVIEWER] if kind == "agent" else []
        for one in (*agreed, *own, *built_in, *asked):
            found.setdefault(one.name, one)
        return list(found.values())

    def untrusted(self, cwd: Path) -> list[PromptFile]:
        """The project's files that the user has not agreed to."""
        return [
            one
            for kind in _FOLDERS
            for one in self.all(cwd, kind)
            if not one.is_trusted
        ]

    def find(self, cwd: Path, kind: PromptKind, name: str) -> PromptFile:
        """The file of that name. Raises NotFound, or Refused if the user has not agreed to it."""
        wanted = name.strip().lower()
        known = self.all(cwd, kind)
        found = next((one for one in known if one.name == wanted), None)
        if found is None:
            names = ", ".join(one.name for one in known) or "none"
            raise NotFound(
                t.later("There is no {kind} {name!r}.", kind=kind, name=name),
                hint=t.later("There are: {names}.", names=names),
            )
        if found.problem:
            raise SettingsError(
                t.later(
                    "The {kind} {name} can't be used. {problem}.",
                    kind=kind,
                    name=found.name,
                    problem=found.problem,
                ),
                hint=t.later(
                    "Correct the file. To see all: hermes {kind} list", kind=kind
                )
                if kind == "agent"
                else t.later("Correct the file."),
            )
        if not found.is_trusted:
            raise Refused(
                t.later(
                    "{path} comes with the project, and you have not agreed to it yet.",
                    path=found.path,
                ),
                hint=t.later(
                    "Read it, then: /project trust {name} (in a shell: hermes project trust {name})",
                    name=found.name,
                ),
            )
        return found

    def content(self, file: PromptFile) -> str:
        """The whole text of a file, for a person who is asked to agree to it; empty if it has changed meanwhile."""
        try:
            text = read_small_file(Path(file.path), _MAX_PROMPT_FILE_BYTES)
        except (OSError, ValueError):
            return ""
        return text if _digest(text) == file.digest else ""

    def agree(self, files: list[PromptFile]) -> None:
        """Remembers that the user agrees to these files as they are."""
        trust(self._hermes_home, {one.path: one.digest for one in files})

    def _home_folders(self, kind: PromptKind) -> Iterator[Path]:
        names = ("commands", "prompts") if kind == "command" else ("agents",)
        yield from (self._hermes_home / name for name in names)
        yield self._user_home / ".claude" / f"{kind}s"
        for name in (kind, f"{kind}s"):
            yield self._user_home / ".config" / "opencode" / name

    def _in(
        self, folder: Path, kind: PromptKind, project: Path | None
    ) -> Iterator[PromptFile]:
        if not folder.is_dir() or (project and not _is_inside(folder, project)):
            return
        for path in _markdown_files(folder):
            try:
                file = _parsed(
                    kind,
                    path,
                    in_project=project is not None,
                    is_ours=_is_ours(folder, self._hermes_home),
                )
            except (OSError, ValueError):
                continue  # no text, or a name that nobody can type
            if project is not None:
                agreed = is_trusted(self._hermes_home, file.path, file.digest)
                file = msgspec.structs.replace(file, is_trusted=agreed)
            yield file


def _is_ours(folder: Path, hermes_home: Path) -> bool:
    """Whether a folder belongs to Hermes, and not to another program whose files are read too."""
    return folder.parent == hermes_home or folder.parent.name == ".hermes"


def _markdown_files(folder: Path) -> list[Path]:
    """The Markdown files below a folder, as far as it is looked at. Links are not followed."""
    found: list[Path] = []
    looked_at = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        looked_at += len(folders) + len(names)
        found += [Path(place, name) for name in names if name.endswith(".md")]
        if looked_at > _MAX_LOOKED_AT:
            break
    return sorted(found)[:_MAX_FILES]


def _is_inside(folder: Path, project: Path) -> bool:
    """Whether a folder is really in the project: a link must not lead to other files."""
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(project))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _parsed(
    kind: PromptKind, path: Path, *, in_project: bool, is_ours: bool
) -> PromptFile:
    """Raises OSError or ValueError for what is no such file. What is wrong with one is its `problem`."""
    text = read_small_file(path, _MAX_PROMPT_FILE_BYTES)
    name = path.stem.lower().replace(" ", "-")
    file = PromptFile(
        kind=kind,
        name=name,
        path=os.path.realpath(path),
        digest=_digest(text),
        in_project=in_project,
    )
    try:
        return _filled(file, FrontMatter(text, strict=kind == "agent" and is_ours))
    except FieldError as error:
        if not _NAME.fullmatch(name):
            raise
        place = f"{file.path}:{error.line}" if error.line else file.path
        return msgspec.structs.replace(file, problem=f"{place}: {error}")


def _filled(file: PromptFile, facts: FrontMatter) -> PromptFile:
    """The file with what its front matter and its text say."""
    name = file.name
    if file.kind == "agent" and isinstance(facts.get("name"), str):
        name = facts.words("name").lower()
    if not _NAME.fullmatch(name):
        why = t.logged(
            "{name} is not a valid name: use letters, digits, - and _", name=repr(name)
        )
        raise FieldError(why, facts.line("name"))
    tools, without = facts.tools()
    return msgspec.structs.replace(
        file,
        name=name,
        description=facts.words("description"),
        hint=facts.words("argument-hint", "arguments"),
        model=facts.model(),
        tools=tools,
        without=without,
        mode=facts.mode(),
        budget=facts.budget(),
        skills=facts.skills() if file.kind == "agent" else (),
        lines={key: facts.line(key) for key in _LOCATED if facts.line(key)},
        body=without_hidden(facts.body).strip(),
    )


def stricter(mode: str, than: str) -> bool:
    """Whether a mode allows less than another."""
    if mode not in KNOWN_MODES or than not in KNOWN_MODES:
        return False
    return KNOWN_MODES.index(mode) < KNOWN_MODES.index(than)


def called_prompt(
    files: PromptFiles,
    cwd: Path,
    line: str,
    check: Callable[[PromptFile], None] = lambda _: None,
) -> str | None:
    """The message for `/name arguments`: the line and the command's text. None if it names no command from a file.

    Raises Refused if the user has not agreed to the file, and what `check` raises if it can't be used.
    """
    first, _, arguments = line.partition(" ")
    name = first.removeprefix("/").lower()
    if not line.startswith("/") or not any(
        one.name == name for one in files.all(cwd, "command")
    ):
        return None
    file = files.find(cwd, "command", name)
    check(file)
    text = file.expanded(arguments.strip())
    if not text.strip():
        raise UsageError(t.later("{path} has no text.", path=file.path))
    if file.tools is not None:
        text += f"\n\n(Only these tools can be used now: {', '.join(file.tools) or 'none'}.)"  # not translated
    body = text.replace("</command", "<\\/command")
    return f'{line.rstrip()}\n\n<command name="{file.name}">\n{body}\n</command>'


def aliased(line: str, aliases: Mapping[str, str]) -> str:
    """The line that an alias of the settings stands for, with what was typed after it; the line itself if it is no
    alias.
    """
    name, _, rest = line.removeprefix("/").partition(" ")
    if not line.startswith("/") or name not in aliases:
        return line
    return f"{aliases[name]} {rest}".rstrip()

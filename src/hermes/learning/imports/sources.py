"""Detects what is at a path: the home of an agent, or a folder or file with its conversations."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from hermes.learning.change import LearningError
from hermes.learning.imports import (
    claude_code,
    codex,
    gemini,
    hermes_agent_db,
    openclaw,
    opencode,
    pi,
)
from hermes.learning.imports.conversation import ImportedConversation
from hermes.text.formats import count
from hermes.text.translation import translator

t = translator(__name__)

Kind: TypeAlias = Literal[
    "hermes", "openclaw", "claude-code", "codex", "opencode", "pi", "gemini"
]


_MAX_TEXT_BYTES = 1_000_000_000


class SkippedItem(msgspec.Struct, frozen=True):
    """Something that is not imported, and why."""

    what: str
    why: str


class _Reader(NamedTuple):
    """Reads files that hold one conversation each."""

    kind: Kind
    is_one: Callable[[Path], bool]
    read: Callable[[Path], ImportedConversation | None]


_READERS = (
    _Reader("codex", codex.is_codex_file, codex.read),
    _Reader("claude-code", claude_code.is_claude_code_file, claude_code.read),
    _Reader("pi", pi.is_pi_file, pi.read),
    _Reader("gemini", gemini.is_gemini_file, gemini.read),
)


def find(source: Path) -> tuple[Kind, tuple[Path, ...]]:
    """Returns the kind of a source, and the files with its conversations."""
    if not source.exists():
        raise LearningError(
            t.later("There is nothing at {source}.", source=source),
            hint=t.later("Nothing was imported."),
        )
    if openclaw.is_openclaw_home(source):
        return "openclaw", openclaw.session_files(source)
    if opencode.is_opencode_home(source):
        return "opencode", (source,)
    if _is_hermes_home(source):
        database = source / "state.db"
        return "hermes", (database,) if database.is_file() else ()
    files = _conversation_files(source) if source.is_dir() else [source]
    found = [
        (reader.kind, tuple(path for path in files if reader.is_one(path)))
        for reader in _READERS
    ]
    kind, paths = max(found, key=lambda entry: len(entry[1]))
    if paths:
        return kind, paths
    if (source / "config.toml").is_file():
        return "codex", ()
    if any((source / name).is_file() for name in claude_code.SETTINGS_NAMES):
        return "claude-code", ()
    raise LearningError(
        t.later("Found nothing to import in {source}.", source=source),
        hint=t.later(
            "Name the home of another agent, such as {homes} or ~/.local/share/opencode.",
            homes="~/.hermes, ~/.openclaw, ~/.claude, ~/.codex, ~/.gemini, ~/.pi/agent",
        ),
    )


def read(
    kind: Kind,
    files: tuple[Path, ...],
    left: list[SkippedItem],
) -> Iterator[ImportedConversation]:
    """Reads the conversations. Reports a file that cannot be read and continues with the others."""
    for path in files:
        is_text = path.suffix in (".jsonl", ".json")  # a database has its own limit
        if is_text and path.stat().st_size > _MAX_TEXT_BYTES:
            left.append(
                SkippedItem(str(path), t.logged("the file is larger than 1 GB"))
            )
            continue
        try:
            for conversation in _read_one(kind, path):
                if conversation.unread:
                    where = path if path.is_file() else f"session {conversation.id}"
                    left.append(
                        SkippedItem(
                            f"{count(conversation.unread, 'line')} of {where}",
                            t.logged("not JSON, or truncated"),
                        )
                    )
                yield conversation
        except (OSError, LearningError) as error:
            left.append(SkippedItem(str(path), str(error)))


def _read_one(kind: Kind, path: Path) -> Iterator[ImportedConversation]:
    match kind:
        case "hermes":
            yield from hermes_agent_db.conversations(path)
        case "openclaw":
            yield from openclaw.read(path)
        case "opencode":
            yield from opencode.conversations(path)
        case _:
            readers = {reader.kind: reader.read for reader in _READERS}
            if (found := readers[kind](path)) is not None:
                yield found


def _conversation_files(source: Path) -> list[Path]:
    lines = source.rglob("*.jsonl")
    chats = (path for path in source.rglob("*.json") if path.parent.name == "chats")
    return sorted(path for path in (*lines, *chats) if path.is_file())


def _is_hermes_home(source: Path) -> bool:
    if (source / "config.toml").exists():  # codex has memories too
        return False
    return any(
        (source / name).exists() for name in ("state.db", "config.yaml", "memories")
    )

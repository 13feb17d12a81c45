"""Finds out what is at a path: a home of Hermes Agent, or conversations of Claude Code or codex."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from hermes.learning.change import LearningError
from hermes.learning.imports import claude_code, codex, hermes_agent_db
from hermes.learning.imports.conversation import ImportedConversation
from hermes.text.plurals import count

Kind: TypeAlias = Literal["hermes", "claude-code", "codex"]


class SkippedItem(msgspec.Struct, frozen=True):
    """Something that is not imported, and why."""

    what: str
    why: str


class _Reader(NamedTuple):
    kind: Kind
    is_one: Callable[[Path], bool]
    read: Callable[[Path], ImportedConversation | None]


_READERS = (
    _Reader("codex", codex.is_codex_file, codex.read),
    _Reader("claude-code", claude_code.is_claude_code_file, claude_code.read),
)


def find(source: Path) -> tuple[Kind, tuple[Path, ...]]:
    """Returns the kind of a source, and the files with its conversations."""
    if not source.exists():
        raise LearningError(
            f"There is nothing at {source}.", hint="Nothing was imported."
        )
    if _is_home(source):
        database = source / "state.db"
        return "hermes", (database,) if database.is_file() else ()
    files = sorted(source.rglob("*.jsonl")) if source.is_dir() else [source]
    found = [
        (reader.kind, tuple(path for path in files if reader.is_one(path)))
        for reader in _READERS
    ]
    kind, paths = max(found, key=lambda entry: len(entry[1]))
    if not paths:
        hint = "Name a home of Hermes Agent (~/.hermes), or a folder of Claude Code or codex."
        raise LearningError(f"Found nothing to import in {source}.", hint=hint)
    return kind, paths


def read(
    kind: Kind, files: tuple[Path, ...], left: list[SkippedItem]
) -> Iterator[ImportedConversation]:
    """Reads the conversations. Reports a file that cannot be read and continues with the others."""
    readers = {reader.kind: reader.read for reader in _READERS}
    for path in files:
        try:
            if kind == "hermes":
                yield from hermes_agent_db.conversations(path)
            elif (conversation := readers[kind](path)) is not None:
                if conversation.unread:
                    left.append(
                        SkippedItem(
                            f"{count(conversation.unread, 'line')} of {path}",
                            "not JSON, or truncated",
                        )
                    )
                yield conversation
        except (OSError, LearningError) as error:
            left.append(SkippedItem(str(path), str(error)))


def _is_home(source: Path) -> bool:
    if (source / "config.toml").exists():  # codex has memories too
        return False
    return any(
        (source / name).exists() for name in ("state.db", "config.yaml", "memories")
    )

"""Reads conversations from the `state.db` of Hermes Agent (Nous Research), using a copy of the file."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hermes.learning.change import LearningError
from hermes.learning.imports.conversation import ImportedConversation, ImportedMessage
from hermes.learning.imports.json_fields import CallIds, moment, text
from hermes.learning.imports.sqlite_copy import copied_database
from hermes.primitives.untyped import object_in, objects_of
from hermes.schema.messages import ToolCall
from hermes.text.translation import translator

t = translator(__name__)

AGENT = "hermes"
_ENCODED = "\0json:"  # prefix of a list of blocks in a text column
_SESSION = ("id", "title", "cwd", "source", "model", "started_at")
_MESSAGE = (
    "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "reasoning", "reasoning_content",
    "active", "compacted", "_compressed_summary",
)  # fmt: skip


def conversations(database: Path) -> Iterator[ImportedConversation]:
    """Yields all conversations, oldest first."""
    with copied_database(database) as connection:
        for row in connection.execute(
            _select(connection, "sessions", _SESSION, "started_at, id")
        ):
            if (found := _conversation(connection, row)) is not None:
                yield found


def _select(
    connection: Any, table: str, wanted: Sequence[str], order: str, where: str = ""
) -> str:
    """Selects the columns that this version of the file has; others are NULL."""
    known = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    if "id" not in known:
        raise LearningError(
            t.later("There is no table `{table}` in it.", table=table),
            hint=t.later("This state.db cannot be imported."),
        )
    if table == "sessions" and "started_at" not in known:
        hint = t.later(
            "Move sessions with: hermes sessions export, then hermes sessions import."
        )
        raise LearningError(
            t.later("It is the session log of another Hermes home."), hint=hint
        )
    columns = ", ".join(
        f'"{name}"' if name in known else f'NULL AS "{name}"' for name in wanted
    )
    return f"SELECT {columns} FROM {table} {where} ORDER BY {order}"  # noqa: S608 - our own names


def _conversation(connection: Any, row: Any) -> ImportedConversation | None:
    ids = CallIds()
    query = _select(connection, "messages", _MESSAGE, "id", "WHERE session_id = ?")
    found = [
        said
        for one in connection.execute(query, (row["id"],))
        if (said := _message_of(one, ids)) is not None
    ]
    if not any(said.role == "user" for said in found):
        return None
    return ImportedConversation(
        id=str(row["id"]),
        agent=AGENT,
        messages=tuple(found),
        title=text(row["title"]),
        cwd=text(row["cwd"]),
    )


def _message_of(row: Any, ids: CallIds) -> ImportedMessage | None:
    taken_back = row["active"] == 0 and not row["compacted"]
    if taken_back or row["_compressed_summary"]:
        return None
    when, words = moment(row["timestamp"]), _text_of(row["content"])
    match row["role"]:
        case "user":
            return (
                ImportedMessage(role="user", text=words, when=when)
                if words.strip()
                else None
            )
        case "assistant":
            thought = text(row["reasoning"]) or text(row["reasoning_content"])
            return ImportedMessage(
                role="assistant",
                text=words,
                reasoning=thought,
                calls=_calls(row["tool_calls"], ids),
                when=when,
            )
        case "tool":
            return ImportedMessage(
                role="tool", call_id=text(row["tool_call_id"]), text=words, when=when
            )
        case _:
            return None


def _text_of(content: object) -> str:
    if isinstance(content, str) and content.startswith(_ENCODED):
        with contextlib.suppress(msgspec.DecodeError):
            return text(msgspec.json.decode(content[len(_ENCODED) :]))
    return text(content)


def _calls(column: object, ids: CallIds) -> tuple[ToolCall, ...]:
    if not isinstance(column, str) or not column:
        return ()
    try:
        entries = msgspec.json.decode(column)
    except msgspec.DecodeError:
        return ()
    calls: list[ToolCall] = []
    for entry in objects_of(entries):
        function = object_in(entry, "function") or entry
        calls.append(
            ids.call(function.get("name"), function.get("arguments"), entry.get("id"))
        )
    return tuple(calls)

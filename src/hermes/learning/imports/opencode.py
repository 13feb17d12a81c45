"""Reads conversations of opencode: from `~/.local/share/opencode/opencode.db`, or the older files in `storage/`."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from hermes.learning.imports.conversation import ImportedConversation, ImportedMessage
from hermes.learning.imports.json_fields import CallIds, Object, moment, text
from hermes.learning.imports.sqlite_copy import columns, copied_database
from hermes.primitives.untyped import object_in
from hermes.schema.messages import Usage

AGENT = "opencode"
_DATABASE = "opencode.db"
_MAX_RECORD_BYTES = 32_000_000


def is_opencode_home(source: Path) -> bool:
    """Returns whether a folder holds the data of opencode."""
    return (source / _DATABASE).is_file() or (source / "storage" / "session").is_dir()


def conversations(home: Path) -> Iterator[ImportedConversation]:
    """Yields the conversations. Those in the database are not read from the older files again."""
    seen: set[str] = set()
    if (home / _DATABASE).is_file():
        for found in _stored(home / _DATABASE):
            seen.add(found.id)
            yield found
    for found in _files(home / "storage"):
        if found.id not in seen:
            yield found


def _stored(database: Path) -> Iterator[ImportedConversation]:
    with copied_database(database) as connection:
        wanted = ("id", "parent_id", "directory", "title")
        for session in columns(connection, "session", wanted):
            messages = [
                (_decoded(row["data"]), _parts(connection, row["id"]))
                for row in connection.execute(
                    "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
                    (session["id"],),
                )
            ]
            if found := _conversation(session, messages):
                yield found


def _parts(connection: Any, message: str) -> list[Object]:
    rows = connection.execute(
        "SELECT data FROM part WHERE message_id = ? ORDER BY id", (message,)
    )
    return [_decoded(row["data"]) for row in rows]


def _files(storage: Path) -> Iterator[ImportedConversation]:
    for path in sorted(storage.glob("session/*/*.json")):
        session = _record(path)
        name = text(session.get("id")) or path.stem
        about = {
            "id": name,
            "parent_id": session.get("parentID"),
            "directory": session.get("directory"),
            "title": session.get("title"),
        }
        found = sorted(
            (_record(file) for file in storage.glob(f"message/{path.stem}/*.json")),
            key=lambda one: (
                moment(object_in(one, "time").get("created")),
                text(one.get("id")),
            ),
        )
        messages = [
            (one, [_record(file) for file in _part_files(storage, one)])
            for one in found
        ]
        if conversation := _conversation(about, messages):
            yield conversation


def _part_files(storage: Path, message: Object) -> list[Path]:
    name = text(message.get("id"))
    if not name.replace("_", "").isalnum():
        return []
    return sorted(storage.glob(f"part/{name}/*.json"))


def _record(path: Path) -> Object:
    with contextlib.suppress(OSError):
        if path.is_file() and path.stat().st_size <= _MAX_RECORD_BYTES:
            return _decoded(path.read_bytes())
    return {}


def _decoded(raw: str | bytes) -> Object:
    try:
        return msgspec.json.decode(raw, type=Object)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return {}


def _conversation(
    session: Object, messages: Iterable[tuple[Object, list[Object]]]
) -> ImportedConversation | None:
    """Returns a conversation; None for a subagent's, or without a message of a person."""
    if session.get("parent_id"):
        return None
    ids = CallIds()
    found = [said for one, parts in messages for said in _messages_of(one, parts, ids)]
    if not any(said.role == "user" for said in found):
        return None
    return ImportedConversation(
        id=text(session.get("id")),
        agent=AGENT,
        messages=tuple(found),
        title=text(session.get("title")),
        cwd=text(session.get("directory")),
    )


def _messages_of(
    message: Object, parts: list[Object], ids: CallIds
) -> Iterator[ImportedMessage]:
    when = moment(object_in(message, "time").get("created"))
    words = "\n".join(
        text(one.get("text"))
        for one in parts
        if one.get("type") == "text" and not one.get("synthetic")
    )
    if message.get("role") == "user":
        if words.strip():
            yield ImportedMessage(role="user", text=words, when=when)
        return
    if message.get("role") != "assistant":
        return
    tools = [one for one in parts if one.get("type") == "tool"]
    calls = [
        ids.call(
            one.get("tool"), object_in(one, "state").get("input"), one.get("callID")
        )
        for one in tools
    ]
    yield ImportedMessage(
        role="assistant",
        text=words,
        reasoning="\n".join(
            text(one.get("text")) for one in parts if one.get("type") == "reasoning"
        ),
        calls=tuple(calls),
        model=text(message.get("modelID")),
        usage=_usage(object_in(message, "tokens")),
        when=when,
    )
    for call, one in zip(calls, tools, strict=True):
        state = object_in(one, "state")
        if state.get("status") in ("completed", "error"):
            yield ImportedMessage(
                role="tool",
                call_id=call.id,
                name=call.name,
                text=text(state.get("output")) or text(state.get("error")),
                ok=state.get("status") == "completed",
                when=when,
            )


def _usage(counted: Object) -> Usage | None:
    cache = object_in(counted, "cache")

    def number(values: Object, name: str) -> int:
        value = values.get(name)
        return value if isinstance(value, int) and value >= 0 else 0

    if not counted:
        return None
    read_, written = number(cache, "read"), number(cache, "write")
    return Usage(
        input_tokens=number(counted, "input") + read_ + written,
        output_tokens=number(counted, "output") + number(counted, "reasoning"),
        cache_read_tokens=read_,
        cache_write_tokens=written,
    )

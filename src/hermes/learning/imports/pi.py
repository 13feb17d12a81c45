"""Reads conversations of pi (`~/.pi/agent/sessions/<folder>/*.jsonl`). OpenClaw uses the same format."""

from collections.abc import Iterable
from pathlib import Path

from hermes.learning.imports.conversation import ImportedConversation, ImportedMessage
from hermes.learning.imports.json_fields import (
    CallIds,
    Object,
    Objects,
    moment,
    text,
)
from hermes.primitives.untyped import object_in, objects_of
from hermes.schema.messages import Usage

AGENT = "pi"
_MAX_TITLE_CHARS = 60


def is_pi_file(path: Path) -> bool:
    """Returns whether a file looks like a conversation of pi."""
    first = next(iter(Objects(path)), None) or {"type": ""}
    return first.get("type") == "session" and "id" in first


def read(path: Path) -> ImportedConversation | None:
    """Reads the conversation in a file. Returns None if it holds no message of a person."""
    lines = Objects(path)
    return conversation_of(list(lines), AGENT, path.stem, unread=lines.passed)


def conversation_of(
    entries: Iterable[Object], agent: str, fallback_id: str, *, unread: int = 0
) -> ImportedConversation | None:
    """Returns the conversation that the entries form; None without a message of a person."""
    listed = list(entries)
    head = next((entry for entry in listed if entry.get("type") == "session"), Object())
    names = [
        text(entry.get("name"))
        for entry in listed
        if entry.get("type") == "session_info"
    ]
    ids = CallIds()
    messages = [
        said
        for entry in _current_branch(listed)
        if entry.get("type") == "message" and (said := _message_of(entry, ids))
    ]
    first = next((said.text for said in messages if said.role == "user"), None)
    if first is None:
        return None
    title = " ".join(first.split())[:_MAX_TITLE_CHARS]
    return ImportedConversation(
        id=text(head.get("id")) or fallback_id,
        agent=agent,
        messages=tuple(messages),
        title=next((name for name in reversed(names) if name), title),
        cwd=text(head.get("cwd")),
        unread=unread,
    )


def _current_branch(entries: list[Object]) -> list[Object]:
    """Returns the entries from the root to the last one. Older files are a plain list, which is returned whole."""
    by_id = {text(entry.get("id")): entry for entry in entries if "parentId" in entry}
    last = next((entry for entry in reversed(entries) if "parentId" in entry), None)
    branch: list[Object] = []
    seen: set[str] = set()
    while last is not None:
        name, parent = text(last.get("id")), text(last.get("parentId"))
        if name in seen:
            return entries
        seen.add(name)
        branch.append(last)
        if parent and parent not in by_id:
            return entries
        last = by_id.get(parent) if parent else None
    return branch[::-1] or entries


def _message_of(entry: Object, ids: CallIds) -> ImportedMessage | None:
    message = object_in(entry, "message")
    content = message.get("content")
    when = moment(message.get("timestamp") or entry.get("timestamp"))
    match message.get("role"):
        case "user":
            written = _words(content)
            if not written.strip():
                return None
            return ImportedMessage(role="user", text=written, when=when)
        case "assistant":
            return _reply(message, when, ids)
        case "toolResult":
            return ImportedMessage(
                role="tool",
                call_id=text(message.get("toolCallId")),
                name=text(message.get("toolName")),
                text=_words(content),
                ok=not message.get("isError"),
                when=when,
            )
        case _:
            return None


def _reply(message: Object, when: float, ids: CallIds) -> ImportedMessage:
    blocks = objects_of(message.get("content"))
    calls = [block for block in blocks if block.get("type") in ("toolCall", "toolUse")]
    thoughts = [text(block.get("thinking")) for block in blocks]
    return ImportedMessage(
        role="assistant",
        text=_words(message.get("content")),
        reasoning="\n".join(filter(None, thoughts)),
        calls=tuple(
            ids.call(block.get("name"), block.get("arguments"), block.get("id"))
            for block in calls
        ),
        model=text(message.get("model")),
        usage=_usage(object_in(message, "usage")),
        when=when,
    )


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return text([block for block in objects_of(content) if block.get("type") == "text"])


def _usage(counted: Object) -> Usage | None:
    def number(name: str) -> int:
        value = counted.get(name)
        return value if isinstance(value, int) and value >= 0 else 0

    if not counted:
        return None
    read_, written = number("cacheRead"), number("cacheWrite")
    return Usage(
        input_tokens=number("input") + read_ + written,
        output_tokens=number("output"),
        cache_read_tokens=read_,
        cache_write_tokens=written,
    )

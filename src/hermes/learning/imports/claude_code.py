"""Reads conversations of Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.learning.imports.conversation import ImportedConversation, ImportedMessage
from hermes.learning.imports.json_fields import (
    CallIds,
    Object,
    Objects,
    moment,
    text,
)
from hermes.primitives.untyped import list_of, object_in, objects_of
from hermes.schema.messages import Usage

AGENT = "claude-code"
SETTINGS_NAMES = ("settings.json", "settings.local.json")
_NOT_TYPED = (
    "<local-command-",
    "<command-name>",
    "Caveat: The messages below",
)  # not translated


def is_claude_code_file(path: Path) -> bool:
    """Returns whether a file looks like a conversation of Claude Code."""
    for number, entry in enumerate(Objects(path)):
        if "sessionId" in entry and entry.get("type") in ("user", "assistant"):
            return True
        if number > 30:
            break
    return False


def read(path: Path) -> ImportedConversation | None:
    """Reads the conversation in a file. Returns None if it holds no message of a person."""
    reader = _Reader()
    lines = Objects(path)
    for entry in lines:
        reader.add(entry)
    messages = reader.messages
    if not any(message.role == "user" for message in messages):
        return None
    return ImportedConversation(
        id=reader.session or path.stem,
        agent=AGENT,
        messages=tuple(messages),
        title=reader.title or _first(messages),
        cwd=reader.cwd,
        unread=lines.passed,
    )


class _Reader:
    """Collects the messages of one file."""

    def __init__(self) -> None:
        self.messages: list[ImportedMessage] = []
        self.title = self.cwd = self.session = ""
        self._ids = CallIds()
        self._last_reply = ""

    def add(self, entry: Object) -> None:
        """Adds an entry, unless it belongs to a subagent or was not part of the conversation."""
        title = entry.get("summary") or entry.get("customTitle") or entry.get("aiTitle")
        self.title = text(title) or self.title
        if entry.get("isSidechain") or entry.get("isMeta"):
            return
        message, when = object_in(entry, "message"), moment(entry.get("timestamp"))
        match entry.get("type"):
            case "user":
                self.messages += _user(message, when)
                self._last_reply = ""
            case "assistant":
                self._add_reply(message, when)
            case _:
                return
        self.session = self.session or text(entry.get("sessionId"))
        self.cwd = self.cwd or text(entry.get("cwd"))

    def _add_reply(self, message: Object, when: float) -> None:
        reply = _assistant(message, when, self._ids)
        reply_id = text(message.get("id"))
        last = self.messages[-1] if self.messages else None
        is_same_reply = bool(self._last_reply) and reply_id == self._last_reply
        if is_same_reply and last is not None and last.role == "assistant":
            self.messages[-1] = _joined(last, reply)
        else:
            self.messages.append(reply)
        self._last_reply = reply_id


def _user(message: Object, when: float) -> Iterator[ImportedMessage]:
    content = message.get("content")
    for block in objects_of(content):
        if block.get("type") == "tool_result":
            yield ImportedMessage(
                role="tool",
                call_id=text(block.get("tool_use_id")),
                text=text(block.get("content")),
                ok=not block.get("is_error"),
                when=when,
            )
    written = _text_of(content)
    if written.strip() and not written.startswith(_NOT_TYPED):
        yield ImportedMessage(role="user", text=written, when=when)


def _assistant(message: Object, when: float, ids: CallIds) -> ImportedMessage:
    content = message.get("content")
    blocks = objects_of(content)
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    thoughts = [
        text(block.get("thinking"))
        for block in blocks
        if block.get("type") == "thinking"
    ]
    return ImportedMessage(
        role="assistant",
        text=_text_of(content),
        reasoning="\n".join(filter(None, thoughts)),
        calls=tuple(
            ids.call(block.get("name"), block.get("input"), block.get("id"))
            for block in calls
        ),
        model=text(message.get("model")),
        usage=_usage(object_in(message, "usage")),
        when=when,
    )


def _usage(counted: Object) -> Usage | None:
    numbers = {
        name: value
        for name, value in counted.items()
        if isinstance(value, int) and value >= 0
    }
    if not numbers:
        return None
    read, written = (
        numbers.get("cache_read_input_tokens", 0),
        numbers.get("cache_creation_input_tokens", 0),
    )
    return Usage(
        input_tokens=numbers.get("input_tokens", 0) + read + written,
        output_tokens=numbers.get("output_tokens", 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _joined(first: ImportedMessage, second: ImportedMessage) -> ImportedMessage:
    """Joins two parts of one reply, which the file stores on separate lines."""
    return msgspec.structs.replace(
        first,
        text="\n".join(filter(None, (first.text, second.text))),
        reasoning="\n".join(filter(None, (first.reasoning, second.reasoning))),
        calls=(*first.calls, *second.calls),
        usage=second.usage or first.usage,
    )


def _text_of(content: object) -> str:
    """Returns a message's text: the content itself, or its blocks of text."""
    if isinstance(content, str):
        return content
    return text([block for block in list_of(content) if _is_text(block)])


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text"


def _first(messages: list[ImportedMessage]) -> str:
    said = next((message.text for message in messages if message.role == "user"), "")
    return " ".join(said.split())[:60]

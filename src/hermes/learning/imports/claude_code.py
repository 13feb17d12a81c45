"""Conversations of Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.learning.imports.conversation import ImportedConversation, ImportedMessage
from hermes.learning.imports.json_fields import (
    CallIds,
    Object,
    Objects,
    moment,
    part,
    text,
)
from hermes.schema.messages import Usage

AGENT = "claude-code"
_ASIDE = ("<local-command-", "<command-name>", "Caveat: The messages below")


def is_one(path: Path) -> bool:
    """Whether a file looks like such a conversation."""
    for number, entry in enumerate(Objects(path)):
        if "sessionId" in entry and entry.get("type") in ("user", "assistant"):
            return True
        if number > 30:
            break
    return False


def read(path: Path) -> ImportedConversation | None:
    """The conversation in a file; None when nothing was said in it."""
    ids = CallIds()
    messages: list[ImportedMessage] = []
    title = cwd = session = ""
    last_reply = ""
    lines = Objects(path)
    for entry in lines:
        kind = entry.get("type")
        title = (
            text(
                entry.get("summary") or entry.get("customTitle") or entry.get("aiTitle")
            )
            or title
        )
        if (
            kind not in ("user", "assistant")
            or entry.get("isSidechain")
            or entry.get("isMeta")
        ):
            continue
        session = session or text(entry.get("sessionId"))
        cwd = cwd or text(entry.get("cwd"))
        message = part(entry, "message")
        when = moment(entry.get("timestamp"))
        if kind == "user":
            messages += _user(message, when)
            last_reply = ""
        else:
            reply = _assistant(message, when, ids)
            again = (
                message.get("id") == last_reply
                and bool(messages)
                and messages[-1].role == "assistant"
            )
            if last_reply and again:
                messages[-1] = _joined(messages[-1], reply)
            else:
                messages.append(reply)
            last_reply = text(message.get("id"))
    if not any(message.role == "user" for message in messages):
        return None
    return ImportedConversation(
        id=session or path.stem,
        agent=AGENT,
        messages=tuple(messages),
        title=title or _first(messages),
        cwd=cwd,
        unread=lines.passed,
    )


def _user(message: Object, when: float) -> Iterator[ImportedMessage]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield ImportedMessage(
                role="tool",
                call_id=text(block.get("tool_use_id")),
                text=text(block.get("content")),
                ok=not block.get("is_error"),
                when=when,
            )
    said = (
        content
        if isinstance(content, str)
        else text([block for block in blocks if _is_text(block)])
    )
    if said.strip() and not said.startswith(_ASIDE):
        yield ImportedMessage(role="user", text=said, when=when)


def _assistant(message: Object, when: float, ids: CallIds) -> ImportedMessage:
    content = message.get("content")
    blocks = (
        [block for block in content if isinstance(block, dict)]
        if isinstance(content, list)
        else []
    )
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    thoughts = [
        text(block.get("thinking"))
        for block in blocks
        if block.get("type") == "thinking"
    ]
    return ImportedMessage(
        role="assistant",
        text=content
        if isinstance(content, str)
        else text([block for block in blocks if _is_text(block)]),
        reasoning="\n".join(filter(None, thoughts)),
        calls=tuple(
            ids.call(block.get("name"), block.get("input"), block.get("id"))
            for block in calls
        ),
        model=text(message.get("model")),
        usage=_usage(part(message, "usage")),
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


def _joined(one: ImportedMessage, two: ImportedMessage) -> ImportedMessage:
    """The pieces of one reply, which stand in lines of their own."""
    return msgspec.structs.replace(
        one,
        text="\n".join(filter(None, (one.text, two.text))),
        reasoning="\n".join(filter(None, (one.reasoning, two.reasoning))),
        calls=(*one.calls, *two.calls),
        usage=two.usage or one.usage,
    )


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text"


def _first(messages: list[ImportedMessage]) -> str:
    said = next((message.text for message in messages if message.role == "user"), "")
    return " ".join(said.split())[:60]

"""Reads conversations of codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`."""

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
from hermes.primitives.untyped import object_in

AGENT = "codex"
_ASIDE = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>", "<permissions",
    "<recommended_plugins>", "<skills_instructions>",
)  # fmt: skip
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")


def is_codex_file(path: Path) -> bool:
    """Returns whether a file looks like a conversation of codex."""
    first = next(iter(Objects(path)), None) or {"type": ""}
    return first.get("type") == "session_meta" or (
        "id" in first and "instructions" in first
    )


def read(path: Path) -> ImportedConversation | None:
    """Reads the conversation in a file. Returns None if it holds no message of a person."""
    ids = CallIds()
    messages: list[ImportedMessage] = []
    session = cwd = model = ""
    thought: list[str] = []
    lines = Objects(path)
    for entry in lines:
        kind, payload = entry.get("type"), object_in(entry, "payload")
        when = moment(entry.get("timestamp"))
        if kind == "session_meta":
            session, cwd = (
                session or text(payload.get("id")),
                cwd or text(payload.get("cwd")),
            )
        elif kind == "turn_context":
            model = text(payload.get("model")) or model
        item = payload if kind == "response_item" else entry
        if item.get("type") == "reasoning":
            thought += [text(item.get("summary"))]
            continue
        for said in _messages_of(item, when, ids):
            _add(messages, said, model, thought)
    if not any(message.role == "user" for message in messages):
        return None
    title = " ".join(
        next(message.text for message in messages if message.role == "user").split()
    )[:60]
    return ImportedConversation(
        id=session or path.stem,
        agent=AGENT,
        messages=tuple(messages),
        title=title,
        cwd=cwd,
        unread=lines.passed,
    )


def _messages_of(item: Object, when: float, ids: CallIds) -> Iterator[ImportedMessage]:
    kind = item.get("type")
    if kind == "message":
        words = text(item.get("content"))
        role = item.get("role")
        if role == "user" and words.strip() and not words.lstrip().startswith(_ASIDE):
            yield ImportedMessage(role="user", text=words, when=when)
        elif role == "assistant" and words.strip():
            yield ImportedMessage(role="assistant", text=words, when=when)
    elif kind in _CALLS:
        arguments = item.get("arguments") or item.get("input") or item.get("action")
        if kind == "custom_tool_call":
            arguments = {"input": arguments}
        call = ids.call(
            item.get("name") or "shell",
            arguments,
            item.get("call_id") or item.get("id"),
        )
        yield ImportedMessage(role="assistant", calls=(call,), when=when)
    elif kind in _RESULTS:
        output = item.get("output")
        words = text(output) or text(object_in(item, "output").get("content"))
        failed = object_in(item, "output").get("success") is False
        yield ImportedMessage(
            role="tool",
            call_id=text(item.get("call_id")),
            text=words,
            ok=not failed,
            when=when,
        )


def _add(
    messages: list[ImportedMessage],
    said: ImportedMessage,
    model: str,
    thought: list[str],
) -> None:
    """Adds a message. Successive calls join one reply; reasoning precedes what it led to."""
    if said.role != "assistant":
        messages.append(said)
        return
    said = msgspec.structs.replace(
        said, model=model, reasoning="\n".join(filter(None, thought))
    )
    thought.clear()
    last = messages[-1] if messages else None
    if last is not None and last.role == "assistant" and said.calls:
        messages[-1] = msgspec.structs.replace(last, calls=(*last.calls, *said.calls))
    else:
        messages.append(said)

"""Reads conversations of gemini-cli: `~/.gemini/tmp/<project>/chats/session-*.json`, in newer versions `.jsonl`.

The older files are one object with all messages. The newer ones are a log: a first line about the session, messages,
`$set` with changed fields, and `$rewindTo`, which takes back a message and everything after it.
"""

import re
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

AGENT = "gemini"
_MAX_CHAT_BYTES = 64_000_000
_MAX_TITLE_CHARS = 60
_CONTEXT = re.compile(r"\A\s*<session_context>.*?</session_context>\s*", re.DOTALL)
"""What the program itself says before a person's first message."""


def is_gemini_file(path: Path) -> bool:
    """Returns whether a file looks like a conversation of gemini-cli."""
    first = next(_lines(path), Object())
    return "sessionId" in first and "projectHash" in first


def read(path: Path) -> ImportedConversation | None:
    """Reads the conversation in a file. Returns None if it holds no message of a person, or is of a subagent."""
    about, records = _replayed(path)
    ids = CallIds()
    messages = [said for one in records.values() for said in _messages_of(one, ids)]
    first = next((said.text for said in messages if said.role == "user"), None)
    if first is None or about.get("kind") == "subagent":
        return None
    folders = about.get("directories")
    return ImportedConversation(
        id=text(about.get("sessionId")) or path.stem,
        agent=AGENT,
        messages=tuple(messages),
        title=text(about.get("summary")) or " ".join(first.split())[:_MAX_TITLE_CHARS],
        cwd=text(folders[0])
        if isinstance(folders, list) and folders
        else _project_folder(path),
    )


def _project_folder(path: Path) -> str:
    """Returns the folder that newer versions write down beside the chats of a project."""
    try:
        return (path.parent.parent / ".project_root").read_text("utf-8").strip()[:4096]
    except (OSError, ValueError):
        return ""


def _replayed(path: Path) -> tuple[Object, dict[str, Object]]:
    """Returns the file's facts about the session, and the messages that were not rewound, by id."""
    about: Object = {}
    records: dict[str, Object] = {}
    for line in _lines(path):
        if "$rewindTo" in line:
            _rewind(records, text(line["$rewindTo"]))
            continue
        if "id" in line:
            records[text(line["id"])] = line
            continue
        fields = part(line, "$set") or line
        if isinstance(fields.get("messages"), list):
            listed = _listed(fields, "messages")
            records = {text(one.get("id")): one for one in listed}
        about |= {name: value for name, value in fields.items() if name != "messages"}
    return about, records


def _lines(path: Path) -> Iterator[Object]:
    if path.suffix == ".jsonl":
        yield from Objects(path)
        return
    try:
        if path.stat().st_size <= _MAX_CHAT_BYTES:
            yield msgspec.json.decode(path.read_bytes(), type=Object)
    except (msgspec.MsgspecError, RecursionError):
        return


def _rewind(records: dict[str, Object], name: str) -> None:
    names = list(records)
    start = names.index(name) if name in records else 0
    for gone in names[start:]:
        del records[gone]


def _messages_of(record: Object, ids: CallIds) -> Iterator[ImportedMessage]:
    words, when = text(record.get("content")), moment(record.get("timestamp"))
    if record.get("type") == "user":
        words = _CONTEXT.sub("", words)
        if words.strip():
            yield ImportedMessage(role="user", text=words, when=when)
    if record.get("type") != "gemini":
        return
    calls = _listed(record, "toolCalls")
    made = [ids.call(one.get("name"), one.get("args"), one.get("id")) for one in calls]
    thoughts = [
        f"{text(one.get('subject'))}: {text(one.get('description'))}"
        for one in _listed(record, "thoughts")
    ]
    yield ImportedMessage(
        role="assistant",
        text=words,
        reasoning="\n".join(thoughts),
        calls=tuple(made),
        model=text(record.get("model")),
        usage=_usage(part(record, "tokens")),
        when=when,
    )
    for call, one in zip(made, calls, strict=True):
        yield ImportedMessage(
            role="tool",
            call_id=call.id,
            name=call.name,
            text=_result(one),
            ok=one.get("status") == "success",
            when=moment(one.get("timestamp")) or when,
        )


def _listed(record: Object, name: str) -> list[Object]:
    value = record.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []  # fmt: skip


def _result(call: Object) -> str:
    """Returns a call's result: the text of its function responses, or else the displayed result."""
    found = call.get("result")
    parts = found if isinstance(found, list) else [found]
    outputs = [
        part(part(one, "functionResponse"), "response").get("output") for one in parts
    ]
    words = "\n".join(text(one) for one in outputs if one)
    return words or text(found) or text(call.get("resultDisplay"))


def _usage(counted: Object) -> Usage | None:
    numbers = {k: v for k, v in counted.items() if isinstance(v, int) and v >= 0}
    if not numbers:
        return None
    return Usage(
        input_tokens=numbers.get("input", 0),
        output_tokens=numbers.get("output", 0) + numbers.get("thoughts", 0),
        cache_read_tokens=numbers.get("cached", 0),
    )

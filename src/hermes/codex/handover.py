"""Continues a conversation in codex: the instructions, the messages that codex lacks, and whether its thread still
matches the conversation.

A thread is continued only while it holds the beginning of the conversation. After an undo or a compression, and in a
branch, it does not; then a new thread gets the current conversation. A new thread is also used when plan mode begins or
ends.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from hermes.core.history import Beginning
from hermes.schema.events import CodexThread, SessionPrompted
from hermes.schema.messages import AssistantMessage, Message, ToolFinished, UserMessage

_MAX_EARLIER_RESULT_CHARACTERS = 8_000  # characters of one earlier result


class Handover(msgspec.Struct, frozen=True):
    """Where codex continues: in its thread or a new one, and what it must be told first."""

    thread: str
    missing: tuple[Message, ...]


def handover(
    thread: CodexThread | None,
    session: str,
    before: Sequence[Message],
    turns: Sequence[Beginning] = (),
    *,
    permissions: str = "",
) -> Handover:
    """Decides where codex continues. `before` is everything before the current message.

    The thread has what codex did in a turn, even if Hermes ended in the middle of it. Codex continues a thread with the
    permissions that it was opened with, so a thread with other permissions is not continued.
    """
    if thread is None or thread.owner != session or not thread.thread:
        return Handover("", tuple(before))
    if thread.permissions != permissions:
        return Handover("", tuple(before))
    number = _known(thread, before)
    if number is None:
        return Handover("", tuple(before))
    starts = [turn.turn for turn in turns]
    if thread.turn in starts[:-1]:
        number = turns[starts.index(thread.turn) + 1].messages
    return Handover(thread.thread, tuple(before[number:]))


def _known(thread: CodexThread, before: Sequence[Message]) -> int | None:
    """Returns how many of the messages the thread has; None if it has a different conversation."""
    chain = hashlib.blake2b(digest_size=16)
    if thread.known == chain.hexdigest():
        return 0
    for number, message in enumerate(before, 1):
        _extend(chain, message)
        if chain.hexdigest() == thread.known:
            return number
    return None


def knowledge(messages: Sequence[Message]) -> str:
    """Returns a hash of a conversation, from its beginning."""
    chain = hashlib.blake2b(digest_size=16)
    for message in messages:
        _extend(chain, message)
    return chain.hexdigest()


def _extend(chain: "hashlib.blake2b", message: Message) -> None:
    chain.update(
        type(message).topic.encode() + b" " + msgspec.json.encode(message) + b"\n"
    )


def instructions(prompt: SessionPrompted | None) -> str:
    """Hermes' system prompt, with memory and skills as the session has them, for codex's model."""
    parts = [part.strip() for part in (prompt.system if prompt else ()) if part.strip()]
    return "\n\n".join(parts)


def as_items(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Converts earlier messages to codex's form. A call that ran elsewhere is described as text."""
    items: list[dict[str, Any]] = []
    for message in messages:
        match message:
            case UserMessage(text=text) if text:
                items.append(_message_item("user", text))
            case AssistantMessage():
                items += [_message_item("assistant", part) for part in _spoken(message)]
            case ToolFinished(text=text):
                items.append(
                    _message_item(
                        "user", f"[result of {message.name}]\n{_shortened(text)}"
                    )
                )
            case _:
                pass
    return items


def _spoken(message: AssistantMessage) -> list[str]:
    calls = [
        f"[called {call.name} with {_shortened(call.arguments)}]"
        for call in message.tool_calls
    ]
    text = "\n\n".join(part for part in (message.text, *calls) if part)
    return [text] if text else []


def _message_item(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _shortened(text: str) -> str:
    half = _MAX_EARLIER_RESULT_CHARACTERS // 2
    return (
        text
        if len(text) <= _MAX_EARLIER_RESULT_CHARACTERS
        else f"{text[:half]}\n[... shortened ...]\n{text[-half:]}"
    )

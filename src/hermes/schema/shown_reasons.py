"""Events and documents for a person: the reasons in them are in the reader's language.

The log has them in English (`hermes.text.logged_sentences`), and programs get them unchanged.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.schema.catalogue import CATALOGUE
from hermes.schema.event_base import Event
from hermes.schema.events import ApprovalRequested, QuestionAsked
from hermes.text.translation import (
    current_sentences,
    shown_question,
    shown_reason,
    to_translate,
    translator,
)

t = translator(__name__)

_STATES = {
    "working": to_translate("working"),
    "asks you": to_translate("asks you"),
    "not begun": to_translate("not begun"),
    "cut off": to_translate("cut off"),
    "done": to_translate("done"),
    "interrupted": to_translate("interrupted"),
    "failed": to_translate("failed"),
    "crashed": to_translate("crashed"),
    "refused": to_translate("refused"),
    "budget": to_translate("stopped by its budget"),
    "ended": to_translate("ended"),
}
"""What a session is doing, or how its last turn ended."""

_DOCUMENT_FIELDS = frozenset(
    ("block_reason", "detail", "last_error", "paused", "reason", "why")
)
"""Fields of documents that hold a reason."""


def shown_event(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the payload of an event for a person."""
    if current_sentences() is None:
        return event
    if event["type"] == QuestionAsked.topic:
        return shown_asked(event)
    kind = CATALOGUE.get(event["type"])
    names = kind.reasons if kind is not None else ()
    changed = {name: shown_reason(event[name]) for name in names if event.get(name)}
    return {**event, **changed} if changed else event


def shown_asked(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a question for a person. `labels` are its options in their language; the answer is an option itself."""
    labels = [shown_question(one) for one in event.get("options") or ()]
    return {**event, "text": shown_question(event["text"]), "labels": labels}


def shown_row(event: Event) -> Event:
    """Returns an event for a person."""
    if current_sentences() is None or not event.reasons:
        return event
    changed = {name: shown_reason(getattr(event, name)) for name in event.reasons}
    return msgspec.structs.replace(event, **changed)


def state_in_words(state: str) -> str:
    """Returns what a session is doing, or how its last turn ended, for a person."""
    return t.marked(_STATES[state]) if state in _STATES else state


def shown_document(value: Any) -> Any:
    """Returns a document of JSON values for a person."""
    match value:
        case {"type": ApprovalRequested.topic}:
            return value  # its hash covers the reason as the log has it
        case {"type": QuestionAsked.topic}:
            return shown_asked(value)
        case dict():
            return {
                key: shown_reason(part)
                if key in _DOCUMENT_FIELDS and isinstance(part, str)
                else shown_document(part)
                for key, part in value.items()
            }
        case list():
            return [shown_document(part) for part in value]
        case _:
            return value

"""Checks that an answer fits its question: the kinds must match, and a person can only allow a call that they saw."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
)
from hermes.text.translation import Later, translator

t = translator(__name__)


Request: TypeAlias = ApprovalRequested | QuestionAsked
Answer: TypeAlias = ApprovalAnswered | QuestionAnswered

HASHED_FIELDS = (
    "call_id",
    "name",
    "arguments",
    "summary",
    "reason",
    "reach",
    "shape",
    "scope",
    "binding",
    "memorable",
)
"""The fields that the hash of a request covers, in this order. The page computes it too (`static/app/approval_hash.js`)."""

WRONG_KIND = t.later("Approval requests and questions take different kinds of answers.")
NOT_SHOWN = t.later("The request that is waiting is not the one that was shown.")


def approval_hash(request: ApprovalRequested | Mapping[str, Any]) -> str:
    """The SHA-256 of a request for approval as it was shown. `request` is the event or its envelope."""
    if not isinstance(request, ApprovalRequested):
        named = {name: request[name] for name in HASHED_FIELDS if name in request}
        request = msgspec.convert(named, ApprovalRequested)
    values = [getattr(request, name) for name in HASHED_FIELDS]
    from hashlib import sha256  # here, because it loads OpenSSL

    return sha256(msgspec.json.encode(values)).hexdigest()


def is_same_kind(request: Request, answer: Answer) -> bool:
    """Whether the answer has the kind that the question needs."""
    return isinstance(request, ApprovalRequested) == isinstance(
        answer, ApprovalAnswered
    )


def misfit(request: Request, answer: Answer) -> str | Later:
    """Why the answer does not fit the question; empty if it does. A denial needs no hash."""
    if not is_same_kind(request, answer):
        return WRONG_KIND
    if (
        isinstance(request, ApprovalRequested)
        and isinstance(answer, ApprovalAnswered)
        and answer.answer != "deny"
    ):
        return "" if answer.shown == approval_hash(request) else NOT_SHOWN
    return ""

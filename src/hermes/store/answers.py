"""Validates an answer in the transaction that writes it: its question must be open, and the answer
must fit.
"""

import msgspec

from hermes.core.answers import Answer, misfit
from hermes.errors import AnsweredAlready, AnswerRefused
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
    TurnStarted,
)
from hermes.schema.messages import ToolFinished
from hermes.store.log_row import COLUMNS, Row
from hermes.store.sql import SqlConnection

_KINDS = (
    ApprovalRequested,
    ApprovalAnswered,
    QuestionAsked,
    QuestionAnswered,
    ToolFinished,
    TurnStarted,
)
_TOPICS = ", ".join(f"'{kind.topic}'" for kind in _KINDS)
# SQL searches for the call's id, so that only the few rows that name it are decoded.
_BACKWARDS = f"""
SELECT {COLUMNS} FROM events WHERE session = ? AND type IN ({_TOPICS})
  AND (type = '{TurnStarted.topic}' OR instr(data, ?) > 0)
ORDER BY seq DESC
"""  # noqa: S608 - our own names


def require_open(connection: SqlConnection, session: str, answer: Answer) -> None:
    """Raises unless the newest row of the call is a question that this answer fits, so only the
    first answer counts.

    Searches back to the newest turn that answers somebody: before a turn starts, each call has its
    result.
    """
    written = f'"call_id":{msgspec.json.encode(answer.call_id).decode()}'
    for columns in connection.execute(_BACKWARDS, (session, written)):
        match Row(*columns).event:
            case (
                ApprovalRequested(call_id=call_id) | QuestionAsked(call_id=call_id)
            ) as request:
                if call_id == answer.call_id:
                    if why := misfit(request, answer):
                        raise AnswerRefused(
                            why,
                            hint="Nothing was recorded. Read the request again, then answer.",
                        )
                    return
            case (
                ApprovalAnswered(call_id=call_id)
                | QuestionAnswered(call_id=call_id)
                | ToolFinished(call_id=call_id)
            ):
                if call_id == answer.call_id:
                    break
            case TurnStarted(inputs=inputs) if inputs:
                break
            case _:
                pass
    raise AnsweredAlready(
        "Nobody is waiting for this answer any more.",
        hint="It was already answered, or it expired.",
    )

"""Validates an answer in the transaction that writes it: its question must be open, and the answer must fit.

A message can be withdrawn only while no turn has read it, and an automatic title never replaces the user's own.
"""

import msgspec

from hermes.core.answers import Answer, misfit
from hermes.errors import AnsweredAlready, AnswerRefused, TitledAlready
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    MessageWithdrawn,
    QuestionAnswered,
    QuestionAsked,
    SessionTitled,
    Steered,
    TurnStarted,
)
from hermes.schema.messages import ToolFinished
from hermes.store.log_row import STORED, checked_lazily
from hermes.store.sql import SqlConnection
from hermes.text.translation import translator

t = translator(__name__)


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
SELECT {STORED} FROM events WHERE session = ? AND type IN ({_TOPICS})
  AND (type = '{TurnStarted.topic}' OR instr(data, ?) > 0)
ORDER BY seq DESC
"""  # noqa: S608 - our own names


_READ = f"""
SELECT {STORED} FROM events WHERE session = ? AND seq > ?
  AND type IN ('{TurnStarted.topic}', '{Steered.topic}', '{MessageWithdrawn.topic}')
"""  # noqa: S608 - our own names
_MESSAGE = "SELECT 1 FROM events WHERE session = ? AND seq = ? AND role = 'user'"


NEWEST_TITLE = f"""
SELECT {STORED} FROM events WHERE session = ? AND type = '{SessionTitled.topic}'
ORDER BY seq DESC LIMIT 1
"""  # noqa: S608 - our own names


CHECKED = (ApprovalAnswered, QuestionAnswered, MessageWithdrawn, SessionTitled)
"""Events whose validity depends on the log at the time they are written."""


def require_allowed(connection: SqlConnection, session: str, event: Event) -> None:
    """Raises unless the event, one of `CHECKED`, may be written now."""
    match event:
        case ApprovalAnswered() | QuestionAnswered():
            require_open(connection, session, event)
        case MessageWithdrawn():
            require_waiting(connection, session, event)
        case SessionTitled(by="hermes" | "model"):
            require_not_named(connection, session)
        case _:
            pass


def require_not_named(connection: SqlConnection, session: str) -> None:
    """Raises if the newest title is the user's own."""
    for row in checked_lazily(connection.execute(NEWEST_TITLE, (session,))):
        match row.event:
            case SessionTitled(by="user", title=title) if title:
                raise TitledAlready(
                    t.later("the user has named session {session}", session=session)
                )
            case _:
                pass


def require_waiting(
    connection: SqlConnection, session: str, withdrawn: MessageWithdrawn
) -> None:
    """Raises unless the message exists and no turn has read it yet."""
    number = withdrawn.message
    is_waiting = connection.execute(_MESSAGE, (session, number)).get is not None
    for row in checked_lazily(connection.execute(_READ, (session, number))):
        match row.event:
            case TurnStarted(inputs=inputs) | Steered(inputs=inputs):
                is_waiting = is_waiting and number not in inputs
            case MessageWithdrawn(message=other):
                is_waiting = is_waiting and other != number
            case _:
                pass
    if not is_waiting:
        raise AnsweredAlready(
            t.later("Hermes has read this message already."),
            hint=t.later("Nothing was taken back."),
        )


def require_open(connection: SqlConnection, session: str, answer: Answer) -> None:
    """Raises unless the newest row of the call is a question that this answer fits. Only the first answer counts.

    Searches back to the newest turn that answers somebody: before a turn starts, each call has its result.
    """
    written = f'"call_id":{msgspec.json.encode(answer.call_id).decode()}'
    for row in checked_lazily(connection.execute(_BACKWARDS, (session, written))):
        match row.event:
            case (
                ApprovalRequested(call_id=call_id) | QuestionAsked(call_id=call_id)
            ) as request:
                if call_id == answer.call_id:
                    if why := misfit(request, answer):
                        raise AnswerRefused(
                            why,
                            hint=t.later(
                                "Nothing was recorded. Read the request again, then answer."
                            ),
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
        t.later("Nobody is waiting for this answer any more."),
        hint=t.later("It was already answered, or it expired."),
    )

"""Checks an answer in the transaction that writes it: its question is open, and the answer fits."""

import apsw
import msgspec

from hermes.core.answers import Answer, misfit
from hermes.errors import AnsweredAlready, AnswerRefused
from hermes.schema.events import ApprovalAnswered, ApprovalRequested, QuestionAnswered, QuestionAsked
from hermes.schema.messages import ToolFinished
from hermes.store.row import COLUMNS, Row

_KINDS = (ApprovalRequested, ApprovalAnswered, QuestionAsked, QuestionAnswered, ToolFinished)
_TOPICS = ", ".join(f"'{kind.topic}'" for kind in _KINDS)
# The call's id is looked for in SQL, so that only the few rows that name it are decoded.
_BACKWARDS = f"""
SELECT {COLUMNS} FROM events WHERE session = ? AND type IN ({_TOPICS}) AND instr(data, ?) ORDER BY seq DESC
"""  # noqa: S608 - our own names


def require_open(connection: apsw.Connection, session: str, answer: Answer) -> None:
    """Raises unless the newest row about the call is a question that this answers. So only the first answer counts."""
    written = f'"call_id":{msgspec.json.encode(answer.call_id).decode()}'
    for columns in connection.execute(_BACKWARDS, (session, written)):
        match Row(*columns).event:
            case (ApprovalRequested(call_id=call_id) | QuestionAsked(call_id=call_id)) as request:
                if call_id == answer.call_id:
                    if why := misfit(request, answer):
                        raise AnswerRefused(why, hint="The answer does not count. Look at what is asked, then answer.")
                    return
            case ApprovalAnswered(call_id=call_id) | QuestionAnswered(call_id=call_id) | ToolFinished(call_id=call_id):
                if call_id == answer.call_id:
                    break
            case _:
                pass
    raise AnsweredAlready("Nobody waits for this answer any more.", hint="It was answered already, or has expired.")

"""Checks a model's reply: it is an answer, calls to run, a fault to ask again for, or the end.

Each kind of retry is counted and limited within a turn. A reply is never repaired.
"""

from typing import Literal, TypeAlias

import msgspec

from hermes.schema.events import TurnEnd
from hermes.schema.messages import AssistantMessage
from hermes.text.translation import translator

t = translator(__name__)

Fault: TypeAlias = Literal[
    "empty", "truncated", "truncated_call", "bad_arguments", "unknown_tool", "looping"
]

MOST = {
    "empty": 2,
    "truncated": 3,
    "truncated_call": 2,
    "bad_arguments": 3,
    "unknown_tool": 3,
}
"""How often in a row the model is asked again for each fault."""

SAME_CALL_LIMIT = 8
"""How often in a row the model may make the same calls."""

_ENDINGS = frozenset(".!?:;)]}\"'`*_~^…。！？；：）】」』”’》〉♪")

_GO_ON = "Your reply was cut off by the output limit. Go on exactly where it stopped."
_SHORTER = "Not run: your reply was cut off by the output limit in the middle of this call. Ask for less at once."


class ReplyVerdict(msgspec.Struct, frozen=True):
    """What to do with a reply."""

    kind: Literal["answer", "calls", "again", "end"]
    fault: Fault | None = None
    detail: str = ""
    nudge: str = ""
    refuse_calls: str = ""
    end: TurnEnd = "failed"


class ReplyJudge:
    """Checks the replies of one turn, and counts how often the model was asked again."""

    def __init__(self) -> None:
        self._faults: dict[str, int] = {}
        self._last_calls: tuple[tuple[str, str], ...] = ()
        self._same = 0

    def judge(self, message: AssistantMessage) -> ReplyVerdict:
        """The verdict on a complete reply."""
        if message.finish == "refused":
            return ReplyVerdict(
                "end",
                end="refused",
                detail=message.text or t.logged("the provider refused to answer"),
            )
        if message.tool_calls:
            return self._judge_calls(message)
        if message.finish == "length" and not ends_naturally(message.text):
            return self.fault(
                "truncated",
                t.logged("the reply was cut off by the output limit"),
                nudge=_GO_ON,
            )
        if not message.text.strip():
            what = (
                t.logged("the model answered with only thinking")
                if message.reasoning
                else t.logged("the model answered with nothing")
            )
            return self.fault("empty", what)
        return ReplyVerdict("answer")

    def fault(
        self, fault: Fault, detail: str, *, nudge: str = "", refuse_calls: str = ""
    ) -> ReplyVerdict:
        """Asks again, or ends the turn if the model was asked too often in a row."""
        count = self._faults[fault] = self._faults.get(fault, 0) + 1
        if count > MOST[fault]:
            return ReplyVerdict(
                "end",
                fault,
                t.logged(
                    "{problem}, {number} times in a row", problem=detail, number=count
                ),
                refuse_calls=refuse_calls,
            )
        return ReplyVerdict("again", fault, detail, nudge, refuse_calls)

    def worked(self, fault: Fault) -> None:
        """Resets the count of a fault."""
        self._faults.pop(fault, None)

    def _judge_calls(self, message: AssistantMessage) -> ReplyVerdict:
        if message.finish == "length":
            return self.fault(
                "truncated_call",
                t.logged("a tool call was cut off by the output limit"),
                refuse_calls=_SHORTER,
            )
        for fault in ("empty", "truncated", "truncated_call"):
            self._faults.pop(fault, None)
        calls = tuple((call.name, call.arguments) for call in message.tool_calls)
        self._same = self._same + 1 if calls == self._last_calls else 1
        self._last_calls = calls
        if self._same > SAME_CALL_LIMIT:
            detail = t.logged(
                "the model asked for the same call {number} times in a row ({call})",
                number=self._same,
                call=calls[0][0],
            )
            return ReplyVerdict(
                "end",
                "looping",
                detail,
                refuse_calls="Not run: the same call was made again and again.",
            )
        return ReplyVerdict("calls")


_EMOJI_PARTS = "\ufe0f\ufe0e\u200d\u20e3"  # what may follow the sign itself
_EMOJI_AMONG_OTHERS = frozenset("‼⁉ℹ↔◻◼◽◾⤴⤵〰〽")
"""Emoji that Unicode counts among letters, punctuation and mathematical signs."""


def ends_naturally(text: str) -> bool:
    """Whether a reply that hit the output limit may be complete all the same."""
    written = text.rstrip()
    last = written.rstrip(_EMOJI_PARTS)[-1:]
    if not last:
        return False
    is_keycap = written.endswith("\u20e3")  # as in 1️⃣
    return last in _ENDINGS or is_keycap or _is_emoji(last)


def _is_emoji(sign: str) -> bool:
    """Whether a character is an emoji or another symbol, also one below U+1F300, such as ✅ and ☺."""
    if sign.isascii():
        return False
    from unicodedata import category

    is_tag = "\U000e0020" <= sign <= "\U000e007f"  # the end of a flag
    is_in_blocks = "\U0001f300" <= sign <= "\U0001faff"  # also those newer than Python
    if is_tag or is_in_blocks or sign in _EMOJI_AMONG_OTHERS:
        return True
    return category(sign) == "So"

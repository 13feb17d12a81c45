"""A reply of the plain chat: text, streamed as it arrives."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes.core.think_tags import ReplyWords
from hermes.providers.embedded import claims
from hermes.providers.embedded.completion import (
    Completion,
    CompletionEngine,
    CompletionText,
)
from hermes.providers.embedded.decision import chat_grammar
from hermes.providers.embedded.line_protocol import runs_away
from hermes.providers.embedded.reply_parts import ReplyParts, usage_of
from hermes.providers.embedded.small_prompt import TALK_MARK, WORK
from hermes.schema.messages import FinishReason, Usage
from hermes.schema.model import ModelEvent, TextDelta

MAX_TALK_TOKENS = 700
MAX_REVIEW_TOKENS = 160
_UNDONE = "\n\n(Correction: no file was changed.)"
_STOPPED = " [stopped here: the reply did not end by itself]"


class RequestIsWork(Exception):
    """Raised before any text of the reply, if the model says that the request is work."""


class _KindMark:
    """Takes the mark of the kind, and the space after it, from the beginning of a reply."""

    def __init__(self, grammar: str) -> None:
        self._expected = bool(grammar)
        self._marks = (TALK_MARK,)
        if grammar == chat_grammar(None):  # otherwise it is talk, whatever it says
            self._marks = (WORK, TALK_MARK)
        self._begun = ""

    def without(self, text: str) -> str:
        """Returns the text without the mark; empty while the mark is incomplete. Raises RequestIsWork."""
        if not self._expected:
            return text
        self._begun += text
        if WORK in self._marks and self._begun.startswith(WORK):
            raise RequestIsWork
        rest = self._begun.removeprefix(TALK_MARK).lstrip()
        if not rest or any(m.startswith(self._begun) for m in self._marks):
            return ""
        self._expected = False
        return rest


class TalkReply:
    """One answer. With `checked`, an answer that claims to have changed a file gets a correction at its end.

    Code adds `opening` before and `closing` after the model's text. `resumed` means that the opening was already sent.
    """

    def __init__(
        self,
        engine: CompletionEngine,
        parts: ReplyParts,
        *,
        checked: bool = True,
        opening: str = "",
        closing: str = "",
        resumed: bool = False,
    ) -> None:
        self._engine = engine
        self._parts = parts
        self._checked = checked
        self._opening = opening
        self._closing = closing
        self._resumed = resumed

    async def events(self, prompt: Completion) -> AsyncGenerator[ModelEvent, None]:
        """Streams the answer."""
        words, tokens = ReplyWords(), 0
        kind = _KindMark(prompt.grammar)
        usage, ending = Usage(cost_usd=0.0), ""
        finish: FinishReason = "stop"
        if self._opening and not self._resumed:
            yield TextDelta(self._opening)
        async with aclosing(self._engine.complete(prompt)) as reports:
            async for report in reports:
                if not isinstance(report, CompletionText):
                    usage = usage_of(report, tokens)
                    finish = "length" if report.finish == "length" else "stop"
                    break
                tokens += 1
                for event in words.add_text(kind.without(report.text)):
                    yield event
                if runs_away(f"say {''.join(words.text)}", tokens):
                    usage, ending = Usage(output_tokens=tokens, cost_usd=0.0), _STOPPED
                    break
        for event in words.end_part():
            yield event
        thought, text = words.both()
        if self._checked and claims.talk_claims_a_change(text):
            ending += _UNDONE
        ending += self._closing
        if ending:
            yield TextDelta(ending)
        whole = self._opening + text + ending
        yield self._parts.finished(usage, text=whole, reasoning=thought, finish=finish)

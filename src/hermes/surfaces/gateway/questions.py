"""Approvals and questions as chat messages: their text, their buttons, and what a press means."""

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from hermes.core.answers import approval_hash
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
)
from hermes.settings.redaction import mask
from hermes.surfaces.gateway.adapter import Button, Outbound
from hermes.surfaces.terminal.text import cut, one_line

Verdict: TypeAlias = Literal["once", "session", "always", "deny"]
Asked: TypeAlias = ApprovalRequested | QuestionAsked
Answered: TypeAlias = ApprovalAnswered | QuestionAnswered

_LABELS: dict[Verdict, str] = {
    "once": "Allow",
    "session": "This session",
    "always": "Always",
    "deny": "Deny",
}
_REACH_NOTES = {
    "network": "It may use the network.",
    "machine": "It runs outside the sandbox.",
}
_ANSWERS: dict[Verdict, str] = {
    "once": "✅ Allowed",
    "session": "✅ Allowed for this session",
    "always": "✅ Always allowed",
    "deny": "⛔ Denied",
}
_MAX_REQUEST_SUMMARY_CHARACTERS = 2500
_SUMMARY_END_CHARACTERS = 200
_MAX_OPTIONS = 10
_MAX_OPTION_CHARACTERS = 60
_MAX_LINE_COLUMNS = 100


class Press(NamedTuple):
    """The data of a button: the message of the ledger that it belongs to, and the answer."""

    piece: int
    word: str


def read_press(data: str) -> Press | None:
    """Reads the data of a button; None if it is not one of ours."""
    mark, _, rest = data.partition(":")
    number, _, word = rest.partition(":")
    return (
        Press(int(number), word)
        if mark == "ask" and number.isdigit() and word
        else None
    )


def verdict_of(word: str) -> Verdict | None:
    """The verdict that a word stands for; None for none."""
    return word if word in _LABELS else None


def number_of(session: str, asked: ApprovalRequested) -> str:
    """The number of a request, the same in every chat for as long as the request waits.

    It is made from the request itself, so that a number never answers another request.
    """
    digest = hashlib.sha256(f"{session} {approval_hash(asked)}".encode()).digest()
    return str(1000 + int.from_bytes(digest[:8], "big") % 9000)


def choice(waiting: Sequence[tuple[str, ApprovalRequested]]) -> str:
    """Lists requests that wait, and how to name one."""
    rows = [
        f"/approve {number_of(session, asked)} — `{asked.name}`: {cut(one_line(mask(asked.summary)), _MAX_LINE_COLUMNS)}"
        for session, asked in waiting
    ]
    return "\n".join(
        [
            f"{len(rows)} requests are waiting. Which one? /deny accepts a number too.",
            "",
            *rows,
        ]
    )


def question_text(
    session: str, asked: Asked, *, buttons: bool, elsewhere: str = ""
) -> Outbound:
    """A question as a message. `elsewhere` says who answers it, if nobody in the chat can.

    The sender replaces `*` in the buttons' data with the number of the message.
    """
    if isinstance(asked, QuestionAsked):
        return _question(asked, buttons=buttons)
    text = _described(session, asked)
    if elsewhere:
        return Outbound(text=f"{text}\n\n{elsewhere}")
    if not buttons:
        number = number_of(session, asked)
        lasting = f", /approve {number} session" if asked.memorable else ""
        return Outbound(
            text=f"{text}\n\nAnswer with /approve {number}{lasting} or /deny {number}, with a reason if you like."
        )
    words: tuple[Verdict, ...] = (
        ("once", "session", "always") if asked.memorable else ("once",)
    )
    row = tuple(Button(_LABELS[word], f"ask:*:{word}") for word in words)
    return Outbound(text=text, buttons=(row, (Button(_LABELS["deny"], "ask:*:deny"),)))


def _described(session: str, asked: ApprovalRequested) -> str:
    """What would happen, and why Hermes asks."""
    what = mask(asked.summary)
    if (left := len(what) - _MAX_REQUEST_SUMMARY_CHARACTERS) > 0:
        note = (
            f"… {left:,} characters omitted; a terminal or the dashboard shows them …"
        )
        what = f"{what[: _MAX_REQUEST_SUMMARY_CHARACTERS - _SUMMARY_END_CHARACTERS]}\n{note}\n{what[-_SUMMARY_END_CHARACTERS:]}"
    head = f"**Approval needed** #{number_of(session, asked)} · `{asked.name}`"
    covers = (
        f"“This session” covers: {asked.scope or 'only this exact call'}"
        if asked.memorable
        else ""
    )
    lines = [
        head,
        _block(what),
        mask(asked.reason),
        _REACH_NOTES.get(asked.reach, ""),
        mask(covers),
    ]
    return "\n".join(line for line in lines if line)


def _question(asked: QuestionAsked, *, buttons: bool) -> Outbound:
    text = f"❓ {asked.text}"
    options = asked.options[:_MAX_OPTIONS]
    if asked.plan:
        text += "\n\nChoose how to start, or write what should be different."
    if not options:
        return Outbound(text=f"{text}\n\nYour next message is the answer.")
    if not buttons:
        return Outbound(
            text="\n".join(
                [text, *(f"{number}. {one}" for number, one in enumerate(options, 1))]
            )
        )
    rows = tuple(
        (Button(option[:_MAX_OPTION_CHARACTERS], f"ask:*:{number}"),)
        for number, option in enumerate(options)
    )
    return Outbound(text=text, buttons=rows)


def answered_text(session: str, asked: Asked, answered: Answered) -> str:
    """The message of a question once it is answered: with the answer and who gave it."""
    by = {"nobody": "nobody could be asked", "expired": "nobody answered in time"}.get(
        answered.by, answered.by
    )
    if isinstance(answered, QuestionAnswered):
        text = asked.text if isinstance(asked, QuestionAsked) else ""
        answer = f"➡️ {answered.text}" if answered.text is not None else "⌛ No answer"
        return f"❓ {text}\n{answer}{f' ({by})' if by else ''}"
    head = _described(session, asked) if isinstance(asked, ApprovalRequested) else ""
    mark = (
        "⌛ Expired: denied" if answered.by == "expired" else _ANSWERS[answered.answer]
    )
    why = f"\n> {mask(one_line(answered.reason))}" if answered.reason else ""
    return f"{head}\n{mark}{f' · {by}' if by else ''}{why}".strip()


def _block(text: str) -> str:
    """A code block that can contain any backticks."""
    longest = max(
        (len(run) for run in text.replace("\n", " ").split(" ") if set(run) == {"`"}),
        default=0,
    )
    fence = "`" * max(3, longest + 1)
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"

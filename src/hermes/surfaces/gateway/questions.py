"""Requests for approval and questions of tools as chat messages: how they read, their buttons, what a press means."""

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
_REACHES = {
    "network": "It may use the network.",
    "machine": "It runs outside the sandbox.",
}
_SAID: dict[Verdict, str] = {
    "once": "✅ Allowed",
    "session": "✅ Allowed for this session",
    "always": "✅ Always allowed",
    "deny": "⛔ Denied",
}
_MOST = 2500  # characters of what is to happen
_MOST_OPTIONS = 10
_LINE = 100  # columns of a request in a list


class Press(NamedTuple):
    """What a button says: which message of the ledger it belongs to, and which answer."""

    piece: int
    word: str


def read_press(data: str) -> Press | None:
    """The press of one of our buttons; None for another's."""
    mark, _, rest = data.partition(":")
    number, _, word = rest.partition(":")
    return (
        Press(int(number), word)
        if mark == "ask" and number.isdigit() and word
        else None
    )


def verdict_of(word: str) -> Verdict | None:
    """A word as a verdict."""
    return word if word in _LABELS else None


def number_of(session: str, asked: ApprovalRequested) -> str:
    """The number of a request in chats. It is the same in every chat and never changes while the request waits.

    Made from what it asks for: a person who types the number of one request never answers another.
    """
    digest = hashlib.sha256(f"{session} {approval_hash(asked)}".encode()).digest()
    return str(1000 + int.from_bytes(digest[:8], "big") % 9000)


def choice(waiting: Sequence[tuple[str, ApprovalRequested]]) -> str:
    """Says that several requests wait, each with its session, and how to name one."""
    rows = [
        f"/approve {number_of(session, asked)} — `{asked.name}`: {cut(one_line(mask(asked.summary)), _LINE)}"
        for session, asked in waiting
    ]
    return "\n".join(
        [
            f"{len(rows)} requests wait here. Which one? /deny takes a number too.",
            "",
            *rows,
        ]
    )


def asking(
    session: str, asked: Asked, *, buttons: bool, elsewhere: str = ""
) -> Outbound:
    """The question of a session as a message; `elsewhere` says who answers it, if nobody here can.

    The number of the message takes the place of `*` in the buttons' data.
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
    """What is to happen, and why it is asked."""
    what = mask(asked.summary)
    if (left := len(what) - _MOST) > 0:
        note = (
            f"… {left:,} characters left out; a terminal or the dashboard shows them …"
        )
        what = f"{what[: _MOST - 200]}\n{note}\n{what[-200:]}"
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
        _REACHES.get(asked.reach, ""),
        mask(covers),
    ]
    return "\n".join(line for line in lines if line)


def _question(asked: QuestionAsked, *, buttons: bool) -> Outbound:
    text = f"❓ {asked.text}"
    options = asked.options[:_MOST_OPTIONS]
    if not options:
        return Outbound(text=f"{text}\n\nYour next message is the answer.")
    if not buttons:
        return Outbound(
            text="\n".join(
                [text, *(f"{number}. {one}" for number, one in enumerate(options, 1))]
            )
        )
    rows = tuple(
        (Button(option[:60], f"ask:*:{number}"),)
        for number, option in enumerate(options)
    )
    return Outbound(text=text, buttons=rows)


def settled(session: str, asked: Asked, answered: Answered) -> str:
    """The question's message once it is answered: everybody sees what was said, and by whom."""
    by = {"nobody": "nobody could be asked", "expired": "nobody answered in time"}.get(
        answered.by, answered.by
    )
    if isinstance(answered, QuestionAnswered):
        text = asked.text if isinstance(asked, QuestionAsked) else ""
        answer = f"➡️ {answered.text}" if answered.text is not None else "⌛ No answer"
        return f"❓ {text}\n{answer}{f' ({by})' if by else ''}"
    head = _described(session, asked) if isinstance(asked, ApprovalRequested) else ""
    mark = "⌛ Expired: denied" if answered.by == "expired" else _SAID[answered.answer]
    why = f"\n> {mask(one_line(answered.reason))}" if answered.reason else ""
    return f"{head}\n{mark}{f' · {by}' if by else ''}{why}".strip()


def _block(text: str) -> str:
    """As code, whatever backticks are in it."""
    longest = max(
        (len(run) for run in text.replace("\n", " ").split(" ") if set(run) == {"`"}),
        default=0,
    )
    fence = "`" * max(3, longest + 1)
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"

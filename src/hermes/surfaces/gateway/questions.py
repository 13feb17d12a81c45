"""Approvals and questions as chat messages: their text, their buttons, and what a press means."""

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from hermes.commands.markdown import code_block
from hermes.core.answers import approval_hash
from hermes.primitives.recent import RecentDict
from hermes.primitives.untyped import number_in_text
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
)
from hermes.settings.redaction import mask
from hermes.surfaces.gateway.adapter import Button, Chat, Outbound
from hermes.surfaces.terminal.question_menu import OFFER_RULE_AFTER, is_rules_check
from hermes.surfaces.terminal.summary_words import shown_summary
from hermes.surfaces.terminal.text import cut, one_line
from hermes.text.translation import (
    shown_approval_reason,
    shown_approval_scope,
    shown_question,
    to_translate,
    translator,
)

t = translator(__name__)

Verdict: TypeAlias = Literal["once", "session", "always", "deny"]
Asked: TypeAlias = ApprovalRequested | QuestionAsked
Answered: TypeAlias = ApprovalAnswered | QuestionAnswered

_VERDICTS: tuple[Verdict, ...] = ("once", "session", "always", "deny")
_REACH_NOTES = {
    "network": to_translate("It may use the network."),
    "machine": to_translate("It runs outside the sandbox."),
}
_ANSWERS: dict[Verdict, str] = {
    "once": to_translate("✅ Allowed"),
    "session": to_translate("✅ Allowed for this session"),
    "always": to_translate("✅ Allowed by a rule from now on"),
    "deny": to_translate("⛔ Denied"),
}
_MAX_REQUEST_SUMMARY_CHARACTERS = 2500
_SUMMARY_END_CHARACTERS = 200
_MAX_OPTIONS = 10
_MAX_OPTION_CHARACTERS = 60
_MAX_LINE_COLUMNS = 100
_MAX_REQUESTS = 500
_SKIN_TONES = str.maketrans(dict.fromkeys(("🏻", "🏼", "🏽", "🏾", "🏿", "\ufe0f"), ""))
_COMMANDS = {
    **dict.fromkeys(("👍", "✅", "+1", "thumbsup", "white_check_mark"), "approve"),
    **dict.fromkeys(("👎", "❌", "⛔", "-1", "thumbsdown", "x", "no_entry"), "deny"),
}


def only_owners_make_rules() -> str:
    """Returns the sentence for somebody who is not an owner."""
    return t(
        "Only an owner can make a rule for every session. You can allow it for this one."
    )


class Press(NamedTuple):
    """The data of a button: the message of the ledger that it belongs to, and the answer."""

    piece: int
    word: str


def read_press(data: str) -> Press | None:
    """Reads the data of a button; None if it is not one of ours."""
    mark, _, rest = data.partition(":")
    number, _, word = rest.partition(":")
    piece = number_in_text(number)
    if mark != "ask" or piece is None or not word:
        return None
    return Press(piece, word)


def verdict_of(word: str) -> Verdict | None:
    """The verdict that a word stands for; None for none."""
    return word if word in _VERDICTS else None


def number_of(session: str, asked: ApprovalRequested) -> str:
    """The number of a request, the same in every chat for as long as the request waits.

    It is made from the request itself, so that a number never answers another request.
    """
    digest = hashlib.sha256(f"{session} {approval_hash(asked)}".encode()).digest()
    return str(1000 + int.from_bytes(digest[:8], "big") % 9000)


def choice(waiting: Sequence[tuple[str, ApprovalRequested]], *, mark: str = "/") -> str:
    """Lists requests that wait, and how to name one. Commands begin with `mark`."""
    rows = [
        f"{mark}approve {number_of(session, asked)} — `{asked.name}`: {_in_short(asked)}"
        for session, asked in waiting
    ]
    return "\n".join(
        [
            t(
                "{count} request is waiting. Which one? {mark}deny accepts a number too.",
                "{count} requests are waiting. Which one? {mark}deny accepts a number too.",
                count=len(rows),
                mark=mark,
            ),
            "",
            *rows,
        ]
    )


def _in_short(asked: ApprovalRequested) -> str:
    """What a request is about, on one line."""
    summary = mask(shown_summary(asked.name, asked.summary))
    return cut(one_line(summary), _MAX_LINE_COLUMNS)


def question_text(
    session: str,
    asked: Asked,
    *,
    buttons: bool,
    elsewhere: str = "",
    mark: str = "/",
) -> Outbound:
    """A question as a message. `elsewhere` says who answers it, if nobody in the chat can.
    Commands begin with `mark`.

    The sender replaces `*` in the buttons' data with the number of the message.
    """
    if isinstance(asked, QuestionAsked):
        return _question(asked, buttons=buttons)
    text = "\n".join((_described(session, asked), *map(mask, _lasting(asked))))
    if elsewhere:
        return Outbound(text=f"{text}\n\n{elsewhere}")
    if not buttons:
        number = number_of(session, asked)
        lasting = (
            f", {mark}approve {number} session, {mark}approve {number} always"
            if asked.memorable
            else ""
        )
        answer = t(
            "Answer with {allow} or {deny}, with a reason if you like.",
            allow=f"{mark}approve {number}{lasting}",
            deny=f"{mark}deny {number}",
        )
        return Outbound(
            text=f"{text}\n\n{answer}",
            request=number,
            is_question=True,
        )
    first = tuple(_button(asked, word) for word in ("once", "deny"))
    more = ("session", "always") if asked.memorable else ()
    rows = (first, *((_button(asked, word),) for word in more))
    return Outbound(text=text, buttons=rows, is_question=True)


def _button(asked: ApprovalRequested, word: Verdict) -> Button:
    return Button(_label(asked, word), f"ask:*:{word}")


def _label(asked: ApprovalRequested, word: Verdict) -> str:
    """The label of a button. The text above says what it covers."""
    match word:
        case "once":
            is_check = is_rules_check(msgspec.structs.asdict(asked))
            return t("Allow until the rules change") if is_check else t("Allow")
        case "session":
            return t("Allow, and don't ask again this session")
        case "always":
            return (
                t("Always allow this kind")
                if asked.scope
                else t("Always allow exactly this")
            )
        case "deny":
            return t("Deny")


def rule_of(asked: ApprovalRequested, verdict: Verdict) -> str:
    """What an answer makes a rule for: what the message said that it covers."""
    return asked.scope if verdict == "always" else ""


def _described(session: str, asked: ApprovalRequested) -> str:
    """What would happen, and why Hermes asks."""
    what = mask(shown_summary(asked.name, asked.summary))
    if (left := len(what) - _MAX_REQUEST_SUMMARY_CHARACTERS) > 0:
        note = t(
            "… {left:,} characters omitted; a terminal or the dashboard shows them …",
            left=left,
        )
        what = f"{what[: _MAX_REQUEST_SUMMARY_CHARACTERS - _SUMMARY_END_CHARACTERS]}\n{note}\n{what[-_SUMMARY_END_CHARACTERS:]}"
    needed = t("Approval needed")
    head = f"**{needed}** #{number_of(session, asked)} · `{asked.name}`"
    lines = [
        head,
        code_block(what),
        shown_approval_reason(mask(asked.reason)),
        t.marked(note) if (note := _REACH_NOTES.get(asked.reach)) else "",
    ]
    return "\n".join(line for line in lines if line)


def _lasting(asked: ApprovalRequested) -> Sequence[str]:
    """What a lasting answer would cover, in words."""
    if not asked.memorable:
        return ()
    often = (
        " "
        + t(
            "You have allowed this kind {count} time.",
            "You have allowed this kind {count} times.",
            count=asked.similar,
        )
        if asked.similar >= OFFER_RULE_AFTER
        else ""
    )
    if not asked.scope:
        return (
            t(
                "A lasting answer covers exactly this call, and no other; /permissions takes it back."
            )
            + often,
        )
    scope = shown_approval_scope(asked.scope)
    rule = t("Hermes does this without asking: {scope}", scope=scope)
    return (
        t(
            "For this session, Hermes would no longer ask about {scope}.",
            scope=scope,
        ),
        t(
            "“Always” makes a rule for every session: {rule}. /permissions takes it back.",
            rule=rule,
        )
        + often,
    )


def _question(asked: QuestionAsked, *, buttons: bool) -> Outbound:
    text = f"❓ {shown_question(asked.text)}"
    options = [shown_question(one) for one in asked.options[:_MAX_OPTIONS]]
    if asked.plan:
        start = t("Choose how to start, or write what should be different.")
        text += f"\n\n{start}"
    if not options:
        return Outbound(
            text=f"{text}\n\n{t('Your next message is the answer.')}",
            is_question=True,
        )
    if not buttons:
        return Outbound(
            text="\n".join(
                [text, *(f"{number}. {one}" for number, one in enumerate(options, 1))]
            ),
            is_question=True,
        )
    rows = tuple(
        (Button(option[:_MAX_OPTION_CHARACTERS], f"ask:*:{number}"),)
        for number, option in enumerate(options)
    )
    return Outbound(text=text, buttons=rows, is_question=True)


def answered_text(session: str, asked: Asked, answered: Answered) -> str:
    """The message of a question once it is answered: with the answer and who gave it."""
    by = {
        "nobody": t("nobody could be asked"),
        "expired": t("nobody answered in time"),
    }.get(answered.by, answered.by)
    if isinstance(answered, QuestionAnswered):
        text = shown_question(asked.text) if isinstance(asked, QuestionAsked) else ""
        answer = (
            f"➡️ {shown_question(answered.text)}"
            if answered.text is not None
            else f"⌛ {t('No answer')}"
        )
        return f"❓ {text}\n{answer}{f' ({by})' if by else ''}"
    head = _described(session, asked) if isinstance(asked, ApprovalRequested) else ""
    mark = (
        f"⌛ {t('Expired: denied')}"
        if answered.by == "expired"
        else t.marked(_ANSWERS[answered.answer])
    )
    why = f"\n> {mask(one_line(answered.reason))}" if answered.reason else ""
    return f"{head}\n{mark}{f' · {by}' if by else ''}{why}".strip()


class QuestionReactions:
    """The requests for approval that one platform has sent, so that a thumb on one allows or denies it.

    For platforms without buttons. An older request, from before the start, is answered by its number. Whether the
    person may answer is decided in the same place as for `/approve`.
    """

    def __init__(self) -> None:
        self._requests: RecentDict[str, tuple[Chat, str]] = RecentDict(_MAX_REQUESTS)

    def sent(self, message: str, chat: Chat, out: Outbound) -> None:
        """Notes a message, if it asks for approval."""
        if out.request:
            self._requests[message] = (chat, out.request)

    def answer(self, message: str, emoji: str) -> tuple[Chat, str] | None:
        """The chat and the command that a reaction to a message stands for; None for none."""
        command = _COMMANDS.get(emoji.translate(_SKIN_TONES))
        if command is None or message not in self._requests:
            return None
        chat, number = self._requests[message]
        return chat, f"/{command} {number}"

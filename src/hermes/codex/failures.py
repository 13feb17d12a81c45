"""Errors of codex, with messages for a person.

CodexFailed            the engine could not do what was asked
├── CodexGone          the process ended, or can't be started
├── CodexSilent        it did not answer in time
├── CodexRefused       it answered a request with an error
└── SignedOut          it has no login, or the login is no longer accepted
"""

import re
from collections.abc import Mapping

from hermes.errors import HermesError, Words
from hermes.text.translation import JoinedWords, translator

t = translator(__name__)

_NO_LOGIN = t.later("Codex is not signed in, or its sign-in has expired.")
LOGIN = t.later("Run `codex login`, then send your message again.")
INSTALL = t.later(
    "Install it with: npm install -g @openai/codex (or: brew install codex), then run `codex login`."
)
BACK = t.later("To switch back to Hermes: /codex-runtime off, or `hermes codex off`.")
_LOGIN_LOST = (
    r"not (?:logged|signed) in|(?:log|sign) ?in again|invalid_grant|refresh[_ ]token|token[_ ]refresh"
    r"|token (?:has |was |is )?(?:expired|revoked)|refresh(?:ing)? (?:the )?token"
    r"|re-?authenticat|authentication required"
)  # not translated
_LOST = re.compile(_LOGIN_LOST, re.IGNORECASE)
_SIGNED_OUT = re.compile(rf"\b401\b|unauthori[sz]ed|{_LOGIN_LOST}", re.IGNORECASE)


class CodexFailed(HermesError):
    """The engine could not do what was asked."""


class CodexGone(CodexFailed):
    """The process ended, or can't be started."""


class CodexSilent(CodexFailed):
    """Codex did not answer in time."""


class CodexRefused(CodexFailed):
    """Codex answered a request with an error. The process is fine."""

    def __init__(
        self, message: str | Words, *, code: int = 0, hint: str | Words = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class SignedOut(CodexFailed):
    """Codex has no login, or the login is no longer accepted."""

    def __init__(self) -> None:
        super().__init__(_NO_LOGIN, hint=JoinedWords(LOGIN, BACK))


def ended_error(how: str, complaints: str, last: str) -> CodexGone:
    """Returns the error for a process that ended: `how`, its error output, and its last line."""
    if _LOST.search(complaints):
        return CodexGone(_NO_LOGIN, hint=JoinedWords(LOGIN, BACK))
    hint = JoinedWords(
        t.later(
            "Everything up to then was saved. Send your message again to continue."
        ),
        BACK,
    )
    if not last:
        return CodexGone(t.later("The codex process ended{how}.", how=how), hint=hint)
    return CodexGone(
        t.later("The codex process ended{how}. It said: {last}", how=how, last=last),
        hint=hint,
    )


def is_signed_out(message: str, info: object = None) -> bool:
    """Returns whether an error of codex means that the user has to sign in."""
    if info == "unauthorized":
        return True
    if isinstance(info, Mapping):
        inner = [
            value.get("httpStatusCode")
            for value in info.values()
            if isinstance(value, Mapping)
        ]
        if 401 in inner:
            return True
    return bool(_SIGNED_OUT.search(message))


def explain(message: str, info: object = None) -> str:
    """Returns the error that ended a turn, with a hint if there is one."""
    if is_signed_out(message, info):
        return f"{_NO_LOGIN} {LOGIN} {BACK}"
    wait = t.logged("Wait a moment, then send your message again.")
    hints = {
        "usageLimitExceeded": f"{t.logged('Wait until the limit is reset.')} {BACK}",
        "rateLimitExceeded": wait,
        "contextWindowExceeded": t.logged(
            "Shorten the conversation with /compress, or start a new session."
        ),
        "modelNotFound": t.logged(
            "Choose another model: hermes config set model.default NAME"
        ),
        "serverOverloaded": wait,
        "internalServerError": wait,
    }
    hint = hints.get(info) if isinstance(info, str) else None
    said = message.strip() or t.logged("it did not say why")
    text = t.logged("Codex could not finish: {said}", said=said)
    return f"{text} {hint or BACK}"

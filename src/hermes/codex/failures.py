"""What goes wrong with codex, in words for a person.

CodexFailed            the engine could not do what was asked
├── CodexGone          the process ended, or can't be started
├── CodexSilent        it did not answer in time
├── CodexRefused       it answered a request with an error
└── SignedOut          it has no login, or the login is no longer accepted
"""

import re
from collections.abc import Mapping

from hermes.errors import HermesError

LOGIN = "Run `codex login`, then say it again."
INSTALL = "Install it with: npm install -g @openai/codex (or: brew install codex), then run `codex login`."
_SIGNED_OUT = re.compile(
    r"\b401\b|unauthori[sz]ed|not logged in|log ?in again|refresh token|token (?:has )?expired|invalid_grant"
    r"|authentication required|sign in again",
    re.IGNORECASE,
)


class CodexFailed(HermesError):
    """The engine could not do what was asked."""


class CodexGone(CodexFailed):
    """The process ended, or can't be started."""


class CodexSilent(CodexFailed):
    """It did not answer in time."""


class CodexRefused(CodexFailed):
    """It answered a request with an error. The process is fine."""

    def __init__(self, message: str, *, code: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class SignedOut(CodexFailed):
    """It has no login, or the login is no longer accepted."""

    def __init__(self) -> None:
        super().__init__("Codex is not signed in, or its sign-in has expired.", hint=LOGIN)


def is_signed_out(message: str, info: object = None) -> bool:
    """Whether an error of codex means that the user has to sign in."""
    if info == "unauthorized":
        return True
    if isinstance(info, Mapping):
        inner = [value.get("httpStatusCode") for value in info.values() if isinstance(value, Mapping)]
        if 401 in inner:
            return True
    return bool(_SIGNED_OUT.search(message))


def explain(message: str, info: object = None) -> str:
    """An error that ended a turn, with what to do about it where that is known."""
    if is_signed_out(message, info):
        return str(SignedOut().message + " " + LOGIN)
    hints = {
        "usageLimitExceeded": "Wait until the limit is reset, or go on without codex: /codex-runtime off.",
        "rateLimitExceeded": "Wait a moment and say it again.",
        "contextWindowExceeded": "Make room with /compress, or start a new session.",
        "modelNotFound": "Choose another model: hermes config set model.default NAME",
        "serverOverloaded": "Wait a moment and say it again.",
        "internalServerError": "Wait a moment and say it again.",
    }
    hint = hints.get(info) if isinstance(info, str) else None
    said = message.strip() or "it did not say why"
    return f"Codex could not finish: {said}" + (f" {hint}" if hint else "")

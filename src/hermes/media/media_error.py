"""Errors with pictures or sound: one class for every capability and backend.

The person and the model read the same sentence and the same hint. `kind` is for code that decides what to try next.
"""

from enum import Enum

from hermes.errors import ToolFailed, Words


class MediaErrorKind(Enum):
    """The kind of problem."""

    NOT_CONFIGURED = "not configured"
    """No backend is set up: a key, a program or an extra is missing, or the setting is `off`."""
    NOT_SUPPORTED = "not supported"
    """The backend can't do this: another format, another language, editing."""
    REFUSED = "refused"
    """The service or the person refused: a rejected key, a content filter, no credit."""
    TOO_LARGE = "too large"
    """The file, the text or the answer exceeds a limit."""
    NETWORK = "network"
    """The service can't be reached, or failed. Trying again may help."""


class MediaError(ToolFailed):
    """A picture or a sound could not be read, recognized or made. `sense` names what failed: "image generation"."""

    def __init__(
        self,
        kind: MediaErrorKind,
        message: str | Words,
        *,
        sense: str,
        hint: str | Words = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.sense = sense

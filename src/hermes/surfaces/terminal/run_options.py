"""One run of Hermes at a terminal: what is asked, if anything is, and with which choices."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

Approvals: TypeAlias = Literal["ask", "auto-edit", "full"]


class RunOptions(Struct, frozen=True, kw_only=True):
    """A question to answer; a chat when there is no text."""

    text: str | None = None
    images: tuple[str, ...] = ()
    json: bool = False
    resume: str = ""
    model: str = ""
    provider: str = ""
    cwd: str = ""
    approvals: Approvals = "ask"
    fetch: bool = False


def nearest(word: str, known: Sequence[str]) -> str:
    """The known word that `word` was probably meant to be; empty if there is none."""
    import difflib

    return next(iter(difflib.get_close_matches(word, known, 1, 0.7)), "")

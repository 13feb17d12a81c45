"""The options of one run at a terminal."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from hermes.text.intended_word import intended_word

Approvals: TypeAlias = Literal["ask", "auto-edit", "plan", "full"]


class RunOptions(Struct, frozen=True, kw_only=True):
    """A question to answer, or a chat if there is no text."""

    text: str | None = None
    images: tuple[str, ...] = ()
    json: bool = False
    resume: str = ""
    picks_session: bool = False
    """Whether the chat begins with the list of sessions to resume."""
    model: str = ""
    provider: str = ""
    cwd: str = ""
    approvals: Approvals = "ask"
    agent: str = ""
    goal: str = ""
    worktree: str | None = None
    """A worktree to work in; empty for a new one, None for none."""
    fetch: bool = False
    verbose: bool = False


def nearest(word: str, known: Sequence[str]) -> str:
    """Returns the known word closest to `word`; empty if none is close."""
    return intended_word(word, known, 0.7)

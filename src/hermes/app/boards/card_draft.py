"""A card to create, and the checks that it must pass."""

import re

import msgspec

from hermes.core.budget import parse_amount
from hermes.errors import UsageError
from hermes.text.translation import translator

t = translator(__name__)
_NOTHING = t.later("Nothing was changed.")
_WORKSPACES = ("scratch", "dir:", "worktree:")
_MAX_TITLE_CHARS = 300
MAX_BODY_CHARS = 200_000


class CardDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A card to create."""

    title: str
    body: str = ""
    priority: int = 0
    labels: tuple[str, ...] = ()
    tenant: str = ""
    assignee: str = ""
    reviewer: str = ""
    workspace: str = ""
    place: str | None = None
    """The machine that has the folder; None for this one, unless every machine has it."""
    model: str = ""
    skills: tuple[str, ...] = ()
    budget: str = ""
    time_limit: float = 0.0
    retries: int = 0
    due: float = 0.0
    schedule: str = ""
    parents: tuple[str, ...] = ()
    triage: bool = False
    held: bool = False
    """Whether it stays in `todo` until a person promotes it."""
    blocked: str = ""
    """Why it is blocked from the start, if it is; this does not count as a block by its workers."""
    key: str = ""
    depth: int = 0
    family: str = ""
    """The card whose budget it shares."""
    goal_mode: bool = False
    goal_max_turns: int = 0
    by: str = "user"
    origin: str = ""
    notify: tuple[str, ...] = ()


def safe_file_name(name: str) -> str:
    """Returns the last part of a path, without characters that a file name can't have."""
    last = re.split(r"[/\\]", name.strip())[-1]
    clean = re.sub(r"[\x00-\x1f\x7f]", "", last).strip(". ")
    if not clean:
        raise UsageError(
            t.later("{name!r} is not a valid file name.", name=name), hint=_NOTHING
        )
    return clean[:200]


def check_workspace(workspace: str) -> None:
    """Raises UsageError for an invalid workspace."""
    kind, colon, path = workspace.partition(":")
    fine = workspace in ("", "scratch") or (
        bool(colon) and f"{kind}:" in _WORKSPACES and path.startswith("/")
    )
    if not fine:
        raise UsageError(
            t.later("{workspace!r} is not a workspace.", workspace=workspace),
            hint=t.later(
                "Use scratch, dir:/absolute/path or worktree:/path/of/a/repository."
            ),
        )


def check_amount(budget: str) -> None:
    """Raises UsageError for a budget that can't be read."""
    if budget:
        try:
            parse_amount(budget)
        except ValueError as error:
            raise UsageError(
                f"{error}.", hint=t.later("Such as: '$0.50', or '200k tokens'.")
            ) from error


def check_draft(draft: CardDraft) -> None:
    """Raises UsageError for a card that can't be stored or run."""
    if not draft.title.strip():
        raise UsageError(
            t.later("The title is empty."),
            hint=t.later("Say in a few words what to do."),
        )
    if len(draft.title) > _MAX_TITLE_CHARS or len(draft.body) > MAX_BODY_CHARS:
        raise UsageError(
            t.later(
                "A title may have {max_title_chars} characters, a body {max_body_chars:,}.",
                max_title_chars=_MAX_TITLE_CHARS,
                max_body_chars=MAX_BODY_CHARS,
            ),
            hint=t.later("Attach a longer text as a file."),
        )
    if not 0 <= draft.time_limit <= 604_800:
        raise UsageError(
            t.later("A time limit can be up to a week."),
            hint=t.later("Such as: 2h, 90m"),
        )
    if draft.retries < 0:
        raise UsageError(
            t.later("The number of tries can't be negative."), hint=_NOTHING
        )
    check_workspace(draft.workspace)
    check_amount(draft.budget)

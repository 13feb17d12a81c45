"""The rules of boards: allowed moves of a card, their consequences, and how the end of a run changes its card.

Each function works inside one transaction, and records what it did in the history.
"""

import secrets
from typing import Any, get_args

import msgspec

from hermes.errors import Refused, UsageError
from hermes.primitives.backoff import delay_s
from hermes.schema.boards import (
    BlockKind,
    Card,
    CardEdited,
    CardMoved,
    CardNotice,
    CardRun,
    CardRunEnded,
    CardsLinked,
    CardStatus,
    RunOutcome,
)
from hermes.store.boards import LEFT_WORKSPACE, UNDELIVERED, BoardTransaction
from hermes.text.translation import translator

t = translator(__name__)


BAD_ENDINGS: frozenset[RunOutcome] = frozenset(
    ("unclosed", "quota", "crashed", "timed_out", "budget", "failed")
)
"""Endings that count towards the limit, all together."""
OVER: tuple[CardStatus, ...] = ("done", "archived")
OPEN: tuple[CardStatus, ...] = tuple(
    one for one in get_args(CardStatus) if one not in OVER
)
_NEWS: dict[CardStatus, str] = {
    "done": t.logged("is done"),
    "blocked": t.logged("is blocked"),
    "review": t.logged("waits for review"),
    "triage": t.logged("needs a decision (triage)"),
    "archived": t.logged("was archived before it was done"),
}
_MAX_REVIEW_ROUNDS = 3
_FAILED_PAUSE_S = 30.0  # before a failed run is repeated; longer each time
_MAX_PAUSE_S = 86_400.0
_MAX_SAME_BLOCKS = 2  # in a row, until a person must look at the card
_MAX_BLOCKS = 4  # in a row by workers, for any reasons


class RunLimits(msgspec.Struct, frozen=True):
    """The limits that decide about a card after a failed run."""

    retries: int = 3
    cooldown_s: float = 300.0


class RunEnding(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, according to its worker or its process."""

    outcome: RunOutcome
    reason: str = ""
    summary: str = ""
    kind: BlockKind = "needs_input"
    """The kind of block, if it is blocked."""
    reviewer: str = ""
    metadata: dict[str, Any] = {}
    keeps: bool = False
    """With `stopped`: the card returns to its previous place, because only its process was stopped."""


def new_id(kind: str) -> str:
    """Returns a new id for a card (`t`), run (`r`), attachment (`a`) or notice (`n`)."""
    return f"{kind}_{secrets.token_hex(5)}"


def move(  # noqa: PLR0913 - what is known of a move
    tx: BoardTransaction,
    card: Card,
    after: CardStatus,
    *,
    by: str,
    reason: str = "",
    kind: str = "",
    tells: bool = True,
    **fields: Any,
) -> Card:
    """Changes the status of a card and updates its dependents. Returns the card."""
    before = card.status
    if after in OVER and before not in OVER:
        fields.setdefault("ended", tx.now)
    changed = tx.put(msgspec.structs.replace(card, status=after, **fields))
    if before == after:
        return changed
    tx.note(
        CardMoved(
            board=card.board,
            card=card.id,
            before=before,
            after=after,
            reason=reason,
            kind=kind,
            by=by,
        )
    )
    if tells and after in _NEWS and not (after == "archived" and before in OVER):
        tell(tx, changed, _NEWS[after], reason)
    if after in OVER and before not in OVER:
        _note_workspace(tx, changed)
        for child in tx.children(card.id):
            promote(tx, tx.card(child))
    if before in OVER and after not in OVER:
        for child in tx.children(card.id):
            _demote(tx, tx.card(child), card)
    return changed


def _waiting_status(card: Card) -> CardStatus:
    """The column in which a card waits for a worker."""
    return "review" if card.phase == "review" else "ready"


def _note_workspace(tx: BoardTransaction, card: Card) -> None:
    """Writes down that the workspace of a card that is over must be cleared, on the machine that has it."""
    board = tx.board(card.board)
    workspace, place = card.workspace, card.place
    if not workspace and board is not None:
        workspace, place = board.workspace, board.place
    if card.started and not workspace.startswith("dir:"):
        notice = CardNotice(new_id("n"), card.id, LEFT_WORKSPACE, place, tx.now, UNDELIVERED)  # fmt: skip
        tx.notify(notice)


def promote(tx: BoardTransaction, card: Card | None) -> Card | None:
    """Makes a card ready if all its parents are done."""
    if card is None or tx.open_parents(card.id):
        return card
    waits = card.status == "blocked" and card.block_kind == "dependency"
    if card.status != "todo" and not waits:
        return card
    parents = tx.parents(card.id)
    why = t.logged("all its parents are done") if parents else ""
    if any(_is_archived(tx, parent) for parent in parents):
        why = t.logged("all its parents are done or archived")
    status = _waiting_status(card)
    return move(tx, card, status, by="hermes", reason=why, block_reason="")


def _is_archived(tx: BoardTransaction, name: str) -> bool:
    found = tx.card(name)
    return found is not None and found.status == "archived"


def _demote(tx: BoardTransaction, child: Card | None, parent: Card) -> None:
    if child is not None and child.status == "ready":
        why = t.logged("its parent {card} is open again", card=parent.id)
        move(tx, child, "todo", by="hermes", reason=why)


def link(tx: BoardTransaction, parent: Card, child: Card, *, by: str) -> None:
    """Makes a card wait for another one. Refuses a cycle, and cards of different boards."""
    if parent.board != child.board:
        raise UsageError(
            t.later(
                "{id} is on the board {board}, {child_id} on {child_board}.",
                id=parent.id,
                board=parent.board,
                child_id=child.id,
                child_board=child.board,
            ),
            hint=t.later(
                "Only cards of one board can depend on each other. Nothing was changed."
            ),
        )
    if parent.id == child.id or _depends(tx, parent.id, child.id):
        raise UsageError(
            t.later(
                "{id} already waits for {child_id}, so {child_id} can't wait for it.",
                id=parent.id,
                child_id=child.id,
            ),
            hint=t.later(
                "Cards can't wait for each other in a circle. Nothing was changed."
            ),
        )
    if parent.id in tx.parents(child.id):
        return
    tx.link(parent.id, child.id)
    tx.note(CardsLinked(board=child.board, card=child.id, parent=parent.id, by=by))
    if parent.status not in OVER:
        _demote_waiting(tx, child, parent)


def _demote_waiting(tx: BoardTransaction, child: Card, parent: Card) -> None:
    if child.status == "ready":
        why = t.logged("it waits for {card}", card=parent.id)
        move(tx, child, "todo", by="hermes", reason=why)


def _depends(tx: BoardTransaction, card: str, on: str) -> bool:
    """Returns whether a card waits for another one, directly or indirectly."""
    waiting, seen = [card], {card}
    while waiting:
        for parent in tx.parents(waiting.pop()):
            if parent == on:
                return True
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return False


def unlink(tx: BoardTransaction, parent: str, child: Card, *, by: str) -> bool:
    """Removes a link, which may make the card ready. Returns whether there was one."""
    if not tx.unlink(parent, child.id):
        return False
    tx.note(
        CardsLinked(
            board=child.board, card=child.id, parent=parent, by=by, linked=False
        )
    )
    promote(tx, tx.card(child.id))
    return True


def block(
    tx: BoardTransaction,
    card: Card,
    kind: BlockKind,
    reason: str,
    *,
    by: str,
    cooldown_s: float = 300.0,
    **fields: Any,
) -> Card:
    """Blocks a card.

    The second block in a row for the same kind of reason sends it to triage, and so does the fourth in a row by its
    workers for any reason. This prevents loops.
    """
    count = card.block_count + 1 if card.block_kind == kind else 1
    by_workers = card.worker_blocks + 1 if by.startswith("worker") else 0
    known: dict[str, Any] = {
        "block_kind": kind,
        "block_reason": reason,
        "block_count": count,
        "worker_blocks": by_workers,
        "run": "",
        **fields,
    }
    if count >= _MAX_SAME_BLOCKS:
        why = t.logged(
            "blocked {number} times for the same kind of reason ({kind}): {reason}",
            number=count,
            kind=kind,
            reason=reason,
        )
        return move(tx, card, "triage", by=by, reason=why, kind=kind, **known)
    if by_workers >= _MAX_BLOCKS:
        why = t.logged(
            "blocked by its workers {number} times in a row, last ({kind}): {reason}",
            number=by_workers,
            kind=kind,
            reason=reason,
        )
        known["worker_blocks"] = 0
        return move(tx, card, "triage", by=by, reason=why, kind=kind, **known)
    if kind == "dependency" and tx.open_parents(card.id):
        return move(tx, card, "todo", by=by, reason=reason, kind=kind, **known)
    if kind == "transient":
        waits = {"due": tx.now + cooldown_s, "schedule": f"after: {reason}"}
        status = _waiting_status(card)
        return move(
            tx, card, status, by=by, reason=reason, kind=kind, tells=False, **known | waits
        )  # fmt: skip
    return move(tx, card, "blocked", by=by, reason=reason, kind=kind, **known)


def block_from_start(tx: BoardTransaction, card: Card, reason: str) -> Card:
    """Blocks a newly created card until a person acts. No worker had a problem, so it is not counted."""
    kind: BlockKind = "needs_input"
    return move(
        tx, card, "blocked", by=card.by, reason=reason, kind=kind,
        block_kind=kind, block_reason=reason,
    )  # fmt: skip


def unblock(tx: BoardTransaction, card: Card, *, by: str) -> Card:
    """Lets a blocked card continue where it was: in review, ready, or waiting for its parents."""
    if card.status not in ("blocked", "triage"):
        raise Refused(
            t.later(
                "{id} is not blocked; it is {status}.", id=card.id, status=card.status
            ),
            hint=t.later("Nothing was changed."),
        )
    status: CardStatus = "ready"
    if tx.open_parents(card.id):
        status = "todo"
    elif card.phase == "review":
        status = "review"
    return move(
        tx, card, status, by=by, reason="unblocked", failures=0, due=0.0,
        schedule="", block_reason="", worker_blocks=0, tells=False,
    )  # fmt: skip


def finish_run(
    tx: BoardTransaction, run: CardRun, ending: RunEnding, limits: RunLimits
) -> Card | None:
    """Ends a run and moves its card accordingly. Returns the card; None if the run had already ended."""
    current = tx.run(run.id)
    card = tx.card(run.card)
    if current is None or current.outcome != "running" or card is None:
        return None
    is_bad = ending.outcome in BAD_ENDINGS
    failures = card.failures + 1 if is_bad else 0
    if ending.outcome == "stopped" and ending.keeps:
        failures = card.failures
    ended = msgspec.structs.replace(
        current,
        outcome=ending.outcome,
        reason=ending.reason,
        summary=ending.summary,
        ended=tx.now,
        expires=0.0,
    )
    tx.put_run(ended)
    tx.note(
        CardRunEnded(
            board=card.board,
            card=card.id,
            run=run.id,
            outcome=ending.outcome,
            reason=ending.reason,
            summary=ending.summary,
            session=current.session,
            failures=failures,
            by=f"worker of {card.id}",
        )
    )
    card = msgspec.structs.replace(
        card,
        run="",
        failures=failures,
        phase="review" if current.phase == "review" else "",
        last_error=ending.reason if is_bad else card.last_error,
    )
    return _move_after(tx, card, ending, limits, failures)


def _move_after(
    tx: BoardTransaction,
    card: Card,
    ending: RunEnding,
    limits: RunLimits,
    failures: int,
) -> Card:
    by = f"worker of {card.id}"
    match ending.outcome:
        case "completed":
            return complete(
                tx, card, ending.summary, by=by, metadata=dict(ending.metadata)
            )
        case "blocked":
            return block(
                tx, card, ending.kind, ending.reason, by=by, cooldown_s=limits.cooldown_s
            )  # fmt: skip
        case "review":
            return request_review(tx, card, ending.summary, ending.reviewer, by=by)
        case "changes":
            return request_changes(tx, card, ending.reason, by=by)
        case "stopped":
            return _after_stop(tx, card, ending)
        case _:
            return _after_bad_ending(tx, card, ending, limits, failures)


def complete(
    tx: BoardTransaction,
    card: Card,
    summary: str,
    *,
    by: str,
    metadata: dict[str, Any] | None = None,
) -> Card:
    """Marks a card as done."""
    return move(
        tx, card, "done", by=by, reason=summary, result=summary or card.result,
        failures=0, block_kind="", block_reason="", block_count=0, worker_blocks=0, review_rounds=0,
        phase="", last_error="", metadata={**card.metadata, **(metadata or {})}, run="", after_stop="",
    )  # fmt: skip


def request_review(
    tx: BoardTransaction, card: Card, summary: str, reviewer: str, *, by: str
) -> Card:
    """Hands a card to a reviewer: an agent, or a person."""
    return move(
        tx, card, "review", by=by, reason=summary, result=summary, phase="",
        reviewer=reviewer or card.reviewer, due=0.0, schedule="", run="", failures=0,
    )  # fmt: skip


def request_changes(tx: BoardTransaction, card: Card, reason: str, *, by: str) -> Card:
    """Sends a card back to work. After several rounds between agents, a person must look."""
    rounds = card.review_rounds + 1
    if rounds > _MAX_REVIEW_ROUNDS and by.startswith("worker"):
        why = t.logged(
            "changes were requested {number} times, last: {reason}",
            number=rounds,
            reason=reason,
        )
        return block(tx, card, "needs_input", why, by=by, review_rounds=0)
    status: CardStatus = "todo" if tx.open_parents(card.id) else "ready"
    return move(
        tx, card, status, by=by, reason=t.logged("changes requested: {reason}", reason=reason), run="",
        phase="", review_rounds=rounds, failures=0,
    )  # fmt: skip


def _after_stop(tx: BoardTransaction, card: Card, ending: RunEnding) -> Card:
    if ending.keeps:
        return _requeue(tx, card, ending.reason, 0.0)
    target = card.after_stop
    if target == "done":
        return complete(tx, card, card.result, by="user")
    if target and target != "blocked":
        return move(
            tx, card, target, by="user", reason=ending.reason, tells=target == "archived", after_stop=""
        )  # fmt: skip
    return block(
        tx, card, "needs_input", ending.reason or "stopped", by="user", after_stop=""
    )


def _after_bad_ending(
    tx: BoardTransaction,
    card: Card,
    ending: RunEnding,
    limits: RunLimits,
    failures: int,
) -> Card:
    limit = card.retries or limits.retries
    if failures >= limit:
        reason = t.logged(
            "its run ended badly; the last one: {ending}",
            "{count} runs in a row ended badly; the last one: {ending}",
            count=failures,
            ending=f"{ending.outcome}: {ending.reason}",
        )
        kind: BlockKind = "needs_input" if ending.outcome == "budget" else "capability"
        return block(tx, card, kind, reason, by="hermes")
    pause_s = 0.0
    if ending.outcome in ("quota", "budget"):
        pause_s = limits.cooldown_s * 3.0 ** (failures - 1)
    elif ending.outcome == "failed":
        pause_s = delay_s(failures, first_s=_FAILED_PAUSE_S, max_s=_MAX_PAUSE_S)
    return _requeue(
        tx, card, f"{ending.outcome}: {ending.reason}", min(pause_s, _MAX_PAUSE_S)
    )


def _requeue(tx: BoardTransaction, card: Card, reason: str, pause_s: float) -> Card:
    """Returns a card to the status from which its run took it."""
    status = _waiting_status(card)
    if tx.open_parents(card.id):
        status = "todo"
    waits: dict[str, Any] = {"due": 0.0, "schedule": ""}
    if pause_s:
        waits = {"due": tx.now + pause_s, "schedule": f"after: {reason}"}
    return move(tx, card, status, by="hermes", reason=reason, **waits)


def edit(tx: BoardTransaction, card: Card, fields: dict[str, Any], *, by: str) -> Card:  # fmt: skip
    """Changes fields of a card."""
    changed = {
        name: value for name, value in fields.items() if getattr(card, name) != value
    }
    if not changed:
        return card
    tx.note(CardEdited(board=card.board, card=card.id, fields=changed, by=by))
    return tx.put(msgspec.structs.replace(card, **changed))


def tell(tx: BoardTransaction, card: Card, what: str, reason: str = "") -> None:
    """Adds a notice for the chats that follow a card.

    Whoever follows the card that it was made for hears of it too if it does not go on: that card waits for it.
    """
    text = t.logged(
        "Card {card} “{title}” {what}.", card=card.id, title=card.title, what=what
    )
    if reason:
        text += f"\n\n{reason}"
    targets = card.notify
    if card.family and card.status not in ("done", "review"):
        first = tx.card(card.family)
        targets += first.notify if first is not None else ()
    for target in dict.fromkeys(targets):
        notice = CardNotice(new_id("n"), card.id, target, text, tx.now, UNDELIVERED)
        tx.notify(notice)

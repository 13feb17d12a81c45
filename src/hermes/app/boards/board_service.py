"""`Boards`: the operations of people and workers on boards and cards. Every change is written first, then published."""

import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hermes.app.app import App
from hermes.app.boards import card_rules as rules
from hermes.app.boards.card_draft import (
    MAX_BODY_CHARS,
    CardDraft,
    check_amount,
    check_draft,
    check_workspace,
    safe_file_name,
)
from hermes.app.boards.card_rules import RunEnding, RunLimits, new_id
from hermes.app.boards.queue_state import (
    DISPATCHER_ROLE,
    QueueState,
    current_settings,
    dispatcher_place,
    read_state,
)
from hermes.app.turn_placement import place_of
from hermes.errors import NotFound, Refused, UsageError
from hermes.schema.boards import (
    DEFAULT_BOARD,
    MAX_ATTACHMENT_BYTES,
    BlockKind,
    Board,
    BoardChanged,
    BoardHistoryEntry,
    Card,
    CardAttached,
    CardAttachment,
    CardCommented,
    CardCreated,
    CardRun,
    CardStatus,
)
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.event_base import complete as complete_payload
from hermes.settings import atomic
from hermes.store.boards import BoardReader, BoardStore, BoardTransaction
from hermes.store.leases import shown
from hermes.store.role_leases import HeldRole
from hermes.text.translation import translator

t = translator(__name__)


T = TypeVar("T")
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_NOTHING = t.later("Nothing was changed.")


class Boards:
    """The boards of one home."""

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def store(self) -> BoardStore:
        return self._app.store.boards

    @property
    def limits(self) -> RunLimits:
        """The settings for failed runs."""
        settings = self._app.settings.boards
        return RunLimits(settings.retries, settings.cooldown)

    def change(self, job: Callable[[BoardTransaction], T]) -> T:
        """Runs a change and publishes the rows that it wrote to the history."""
        result, entries = self.store.change(job)
        self.publish(entries)
        return result

    def read(self, job: Callable[[BoardReader], T]) -> T:
        """Reads from one consistent state of the boards."""
        return self.store.read(job)

    def publish(self, entries: Sequence[BoardHistoryEntry]) -> None:
        """Publishes rows of the history."""
        for entry in entries:
            kind = CATALOGUE.get(entry.topic)
            payload = complete_payload(kind, entry.data) if kind else dict(entry.data)
            self._app.bus.publish(entry.topic, payload | {"id": entry.id})

    def state(self) -> QueueState:
        """Returns the state that decides which cards may start now."""
        held = self._app.store.roles.held(DISPATCHER_ROLE)
        owner = shown(held[0].owner) if held else ""
        places = None
        if self._app.settings.store.url:
            places = {dispatcher_place(one.name): _lacking(one) for one in held}
        settings, now = current_settings(self._app).read(), self._app.clock.now()
        return self.read(
            lambda reader: read_state(reader, settings, now, owner, places)
        )

    def place_of(self, workspace: str) -> str:
        """Returns the machine that has the folder of a workspace named in this process."""
        return place_of(self._app, workspace.partition(":")[2])

    # Boards

    @property
    def _current_file(self) -> Path:
        return self._app.home.root / "boards" / "current"

    def current(self) -> str:
        """Returns the board for commands that name none."""
        try:
            return self._current_file.read_text().strip() or DEFAULT_BOARD
        except OSError:
            return DEFAULT_BOARD

    def switch(self, slug: str) -> Board:
        """Makes a board the current one."""
        board = self.board(slug)
        self._app.home.ensure(self._current_file.parent)
        atomic.replace(self._current_file, f"{board.slug}\n")
        return board

    def board(self, slug: str = "") -> Board:
        """Returns the board of that name, or the current one. The default board is saved with its first card."""
        wanted = slug or self.current()
        found = self.read(lambda reader: reader.board(wanted))
        if found is not None and not found.removed:
            return found
        if wanted == DEFAULT_BOARD:
            return Board(slug=DEFAULT_BOARD, name="Default", created=0.0)
        names = ", ".join(board.slug for board in self.read(lambda r: r.boards()))
        make_one = t.later(
            "There are no boards yet. Make one: hermes kanban boards create NAME"
        )
        raise NotFound(
            t.later("There is no board {wanted!r}.", wanted=wanted),
            hint=t.later("There are: {names}.", names=names) if names else make_one,
        )

    def ensure_default(self) -> Board:
        """Saves the default board if it does not exist."""
        return self.change(lambda tx: _saved(tx, DEFAULT_BOARD))

    def create_board(  # noqa: PLR0913 - the fields of a board
        self,
        name: str,
        *,
        slug: str = "",
        description: str = "",
        workspace: str = "",
        budget: str = "",
        max_running: int = 0,
        by: str = "user",
    ) -> Board:
        """Creates a board. Its short name is derived from its name."""
        slug = slug or re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64]
        if not _SLUG.fullmatch(slug):
            raise UsageError(
                t.later(
                    "{slug!r} can't be the short name of a board.", slug=slug or name
                ),
                hint=t.later(
                    "Use lower-case letters, digits and -, such as: --slug my-project"
                ),
            )
        check_workspace(workspace)
        check_amount(budget)

        def make(tx: BoardTransaction) -> Board:
            found = tx.board(slug)
            if found is not None and not found.removed:
                raise UsageError(
                    t.later("There is already a board {slug!r}.", slug=slug),
                    hint=_NOTHING,
                )
            board = Board(
                slug=slug,
                name=name.strip(),
                created=tx.now,
                description=description,
                workspace=workspace,
                place=self.place_of(workspace),
                budget=budget,
                max_running=max_running,
            )
            tx.put_board(board)
            tx.note(BoardChanged(board=slug, change="created", name=board.name, by=by))
            return board

        return self.change(make)

    def edit_board(self, slug: str, *, by: str = "user", **fields: Any) -> Board:
        """Changes the name, description, workspace, budget or limit of a board."""
        board = self.board(slug)
        check_workspace(str(fields.get("workspace") or ""))
        check_amount(str(fields.get("budget") or ""))
        if "workspace" in fields:
            fields["place"] = self.place_of(str(fields["workspace"] or ""))

        def write(tx: BoardTransaction) -> Board:
            found = tx.board(board.slug) or board
            changed = msgspec.structs.replace(found, **fields)
            tx.put_board(changed)
            tx.note(
                BoardChanged(
                    board=board.slug, change="edited", name=changed.name, by=by
                )
            )
            return changed

        return self.change(write)

    def remove_board(self, slug: str, *, by: str = "user") -> tuple[Board, int]:
        """Hides a board. Stops its running cards and keeps its history. Returns how many cards were stopped."""
        board = self.board(slug)

        def write(tx: BoardTransaction) -> tuple[Board, int]:
            running = tx.open_runs(board.slug)
            for run in running:
                tx.put_run(
                    msgspec.structs.replace(
                        run, stop=t.logged("the board was removed by {by}", by=by)
                    )
                )
            for card in tx.cards(board=board.slug, statuses=rules.OPEN):
                if card.status != "running":  # a stopped one is told as such
                    rules.tell(tx, card, t.logged("will not go on: its board was removed"))  # fmt: skip
            changed = msgspec.structs.replace(board, removed=True)
            tx.put_board(changed)
            tx.note(
                BoardChanged(board=board.slug, change="removed", name=board.name, by=by)
            )
            return changed, len(running)

        removed = self.change(write)
        if self.current() == board.slug:
            self._current_file.unlink(missing_ok=True)
        return removed

    # Cards

    def find(self, name: str) -> Card:
        """Returns the card with that id or start of an id."""
        wanted = name.strip().removeprefix("#")
        found = self.read(lambda reader: reader.card(wanted))
        if found is not None:
            return found
        near = self.read(
            lambda reader: (
                (reader.cards_like(wanted) or reader.cards_like(f"t_{wanted}"))
                if wanted
                else []
            )
        )
        if len(near) == 1:
            return near[0]
        if near:
            ids = ", ".join(card.id for card in near)
            raise UsageError(
                t.later("{name!r} may be any of: {ids}.", name=name, ids=ids),
                hint=t.later("Give the id."),
            )
        raise NotFound(
            t.later("There is no card {name!r}.", name=name),
            hint=t.later("`hermes kanban list` lists them."),
        )

    def create(self, board: str, draft: CardDraft) -> Card:
        """Creates a card. If an earlier card has the same key, returns that one."""
        check_draft(draft)
        found = self.board(board)
        return self.change(lambda tx: self.create_in(tx, found.slug, draft))

    def create_in(self, tx: BoardTransaction, board: str, draft: CardDraft) -> Card:
        """Does the same as `create`, inside a transaction."""
        if board == DEFAULT_BOARD:
            _saved(tx, board)
        if draft.key and (known := tx.card_by_key(board, draft.key)) is not None:
            return known
        parents = [_card(tx, name) for name in draft.parents]
        card = Card(
            id=_free_id(tx),
            board=board,
            title=" ".join(draft.title.split()),
            created=tx.now,
            updated=tx.now,
            status="triage" if draft.triage else "todo",
            body=draft.body.strip(),
            assignee=draft.assignee or self._app.settings.boards.assignee,
            place=self.place_of(draft.workspace)
            if draft.place is None
            else draft.place,
            **{name: getattr(draft, name) for name in _SAME_FIELDS},
        )
        tx.insert(card)
        if card.family:
            first = _card(tx, card.family)
            tx.put(msgspec.structs.replace(first, made=(*first.made, card.id)))
        tx.note(
            CardCreated(
                board=board,
                card=card.id,
                title=card.title,
                status=card.status,
                assignee=card.assignee,
                parents=tuple(one.id for one in parents),
                by=card.by,
            )
        )
        for parent in parents:
            rules.link(tx, parent, card, by=card.by)
        if draft.blocked and not draft.triage:
            return rules.block_from_start(tx, card, draft.blocked)
        if draft.triage or draft.held:
            return card
        return rules.promote(tx, card) or card

    def edit(self, name: str, *, by: str = "user", **fields: Any) -> Card:
        """Changes fields of a card."""
        found = self.find(name)
        check_draft(_draft_of(found, fields))
        if found.status == "running" and {"workspace", "assignee", "model"} & set(fields):  # fmt: skip
            raise Refused(
                t.later("{id} is running.", id=found.id),
                hint=t.later(
                    "Stop it first (hermes kanban stop), or wait until its run ends."
                ),
            )
        if fields.get("budget"):
            fields["family"] = ""  # its usage so far still counts for its family
        if "workspace" in fields:
            fields |= {"place": self.place_of(fields["workspace"]), "awaited": ""}
        return self._on(found, lambda tx, card: rules.edit(tx, card, fields, by=by))

    def move(self, name: str, status: CardStatus, *, by: str = "user", reason: str = "") -> Card:  # fmt: skip
        """Changes the status of a card, for a person. A running card is stopped first."""
        found = self.find(name)
        if status == "running":
            raise Refused(
                t.later("Cards are started by the dispatcher."),
                hint=t.later(
                    "Move {id} to ready, and it starts as soon as it can.", id=found.id
                ),
            )
        return self._on(found, lambda tx, card: self._move(tx, card, status, by, reason))  # fmt: skip

    def _move(
        self, tx: BoardTransaction, card: Card, status: CardStatus, by: str, reason: str
    ) -> Card:
        if card.status == status:
            return card
        if card.status == "running":
            return self._stop(
                tx,
                card,
                reason or t.logged("moved to {status} by {by}", status=status, by=by),
                status,
            )
        if status == "ready" and (waits := tx.open_parents(card.id)):
            names = ", ".join(one.id for one in waits)
            raise Refused(
                t.later("{id} waits for {names}.", id=card.id, names=names),
                hint=t.later("Complete or unlink them first. Nothing was changed."),
            )
        if status == "done":
            return self._complete(tx, card, card.result or reason, by)
        if status == "blocked":
            return rules.block(tx, card, "needs_input", reason or f"by {by}", by=by)
        fields: dict[str, Any] = {"failures": 0} if status == "ready" else {}
        if status == "ready" and card.status in ("blocked", "triage"):
            fields |= {"block_reason": "", "due": 0.0, "schedule": ""}
        tells = status == "archived"
        return rules.move(tx, card, status, by=by, reason=reason, tells=tells, **fields)

    def promote(self, name: str, *, by: str = "user") -> Card:
        """Moves a card towards running: from triage or todo to ready, or to todo while its parents are open."""
        found = self.find(name)

        def write(tx: BoardTransaction, card: Card) -> Card:
            if card.status not in ("triage", "todo", "blocked"):
                raise Refused(
                    t.later("{id} is {status}.", id=card.id, status=card.status),
                    hint=_NOTHING,
                )
            if card.status == "blocked":
                return rules.unblock(tx, card, by=by)
            after: CardStatus = "todo" if tx.open_parents(card.id) else "ready"
            return rules.move(tx, card, after, by=by, failures=0, block_reason="", tells=False)  # fmt: skip

        return self._on(found, write)

    def link(self, parent: str, child: str, *, by: str = "user") -> tuple[Card, Card]:
        """Makes a card wait for another one."""
        first, second = self.find(parent), self.find(child)

        def write(tx: BoardTransaction) -> tuple[Card, Card]:
            above, below = _card(tx, first.id), _card(tx, second.id)
            rules.link(tx, above, below, by=by)
            return above, _card(tx, second.id)

        return self.change(write)

    def unlink(self, parent: str, child: str, *, by: str = "user") -> Card:
        """Removes a link."""
        first, second = self.find(parent), self.find(child)

        def write(tx: BoardTransaction, card: Card) -> Card:
            if not rules.unlink(tx, first.id, card, by=by):
                raise NotFound(
                    t.later(
                        "{id} does not wait for {first_id}.",
                        id=second.id,
                        first_id=first.id,
                    ),
                    hint=_NOTHING,
                )
            return _card(tx, card.id)

        return self._on(second, write)

    def comment(self, name: str, text: str, *, by: str = "user") -> Card:
        """Adds a comment to a card."""
        if not text.strip():
            raise UsageError(t.later("The comment is empty."), hint=_NOTHING)
        found = self.find(name)

        def write(tx: BoardTransaction, card: Card) -> Card:
            tx.note(
                CardCommented(
                    board=card.board,
                    card=card.id,
                    text=text.strip()[:MAX_BODY_CHARS],
                    by=by,
                )
            )
            return tx.put(card)

        return self._on(found, write)

    def attach(
        self, name: str, filename: str, data: bytes, *, by: str = "user"
    ) -> CardAttachment:
        """Attaches a file to a card."""
        found = self.find(name)
        safe = safe_file_name(filename)
        if len(data) > MAX_ATTACHMENT_BYTES:
            raise UsageError(
                t.later(
                    "{safe} has {count:,} bytes; an attachment can have at most 25 MB.",
                    safe=safe,
                    count=len(data),
                ),
                hint=_NOTHING,
            )

        def write(tx: BoardTransaction) -> CardAttachment:
            made = CardAttachment(new_id("a"), found.id, safe, len(data), by, tx.now)
            tx.attach(made, data)
            tx.note(
                CardAttached(
                    board=found.board,
                    card=found.id,
                    attachment=made.id,
                    name=safe,
                    size=len(data),
                    by=by,
                )
            )
            return made

        return self.change(write)

    def complete(self, name: str, summary: str = "", *, by: str = "user") -> Card:
        """Marks a card as done, for a person. A running card is stopped first."""
        found = self.find(name)

        def write(tx: BoardTransaction, card: Card) -> Card:
            if card.status == "running":
                card = tx.put(msgspec.structs.replace(card, result=summary))
                return self._stop(
                    tx, card, t.logged("completed by {by}", by=by), "done"
                )
            return self._complete(tx, card, summary, by)

        return self._on(found, write)

    def _complete(
        self, tx: BoardTransaction, card: Card, summary: str, by: str
    ) -> Card:
        """Completes a card. If nobody claimed it, adds a run of zero length that holds the result, as other runs do."""
        if card.status == "done":
            return card
        number = next((run.number for run in tx.runs(card.id, 1)), 0) + 1
        run = CardRun(
            new_id("r"), card.id, card.board, number, by, "work", "completed",
            summary=summary, started=tx.now, ended=tx.now,
        )  # fmt: skip
        tx.insert_run(run)
        return rules.complete(tx, card, summary, by=by)

    def block(
        self, name: str, reason: str, kind: BlockKind = "needs_input", *, by: str = "user"
    ) -> Card:  # fmt: skip
        """Blocks a card. A running card is stopped first."""

        def write(tx: BoardTransaction, card: Card) -> Card:
            if card.status == "running":
                return self._stop(tx, card, reason, "blocked")
            if card.status in rules.OVER:
                raise Refused(
                    t.later("{id} is {status}.", id=card.id, status=card.status),
                    hint=_NOTHING,
                )
            return rules.block(
                tx, card, kind, reason, by=by, cooldown_s=self.limits.cooldown_s
            )

        return self._on(self.find(name), write)

    def unblock(self, name: str, *, by: str = "user") -> Card:
        """Lets a blocked card continue."""
        return self._on(
            self.find(name), lambda tx, card: rules.unblock(tx, card, by=by)
        )

    def request_review(
        self, name: str, summary: str, reviewer: str = "", *, by: str = "user"
    ) -> Card:
        """Moves a card to review."""

        def write(tx: BoardTransaction, card: Card) -> Card:
            _require_idle(card)
            return rules.request_review(tx, card, summary, reviewer, by=by)

        return self._on(self.find(name), write)

    def request_changes(self, name: str, reason: str, *, by: str = "user") -> Card:
        """Sends a card in review back to work; the worker reads the reason."""

        def write(tx: BoardTransaction, card: Card) -> Card:
            if card.status not in ("review", "done"):
                raise Refused(
                    t.later(
                        "{id} is not in review; it is {status}.",
                        id=card.id,
                        status=card.status,
                    ),
                    hint=_NOTHING,
                )
            return rules.request_changes(tx, card, reason, by=by)

        return self._on(self.find(name), write)

    def archive(self, name: str, *, by: str = "user") -> Card:
        """Archives a card. Cards that wait for it no longer do."""
        return self.move(name, "archived", by=by, reason=t.logged("archived"))

    def stop(self, name: str, reason: str = "", *, by: str = "user") -> Card:
        """Stops the run of a card, which is then blocked until somebody unblocks it."""

        def write(tx: BoardTransaction, card: Card) -> Card:
            if card.status != "running":
                raise Refused(
                    t.later("{id} is not running.", id=card.id), hint=_NOTHING
                )
            return self._stop(
                tx, card, reason or t.logged("stopped by {by}", by=by), "blocked"
            )

        return self._on(self.find(name), write)

    def _stop(
        self, tx: BoardTransaction, card: Card, reason: str, after: CardStatus
    ) -> Card:
        """Asks the process that runs a card to stop. If that process is gone, the run ends here."""
        run = tx.run(card.run)
        card = tx.put(msgspec.structs.replace(card, after_stop=after))
        if run is None:
            return rules.move(tx, card, after, by="user", reason=reason)
        stopped = msgspec.structs.replace(run, stop=reason)
        tx.put_run(stopped)
        if self.store.is_gone([run], tx.lease_time):
            ending = RunEnding(outcome="stopped", reason=reason)
            return rules.finish_run(tx, stopped, ending, self.limits) or card
        return card

    def _on(self, found: Card, write: Callable[[BoardTransaction, Card], Card]) -> Card:
        """Changes the current state of a card."""
        return self.change(lambda tx: write(tx, _card(tx, found.id)))


_SAME_FIELDS = (
    "priority", "labels", "tenant", "reviewer", "workspace", "model", "skills", "budget", "time_limit",
    "retries", "due", "schedule", "key", "goal_mode", "goal_max_turns", "depth", "family", "by", "origin", "notify",
)  # fmt: skip


def _lacking(role: HeldRole) -> frozenset[str]:
    """Returns the folders of ready cards that the machine of a dispatcher lacks."""
    found = role.facts.get("lacking", ())
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


def _draft_of(card: Card, fields: dict[str, Any]) -> CardDraft:
    """Returns a card with changes as a draft, to be checked."""
    names = ("title", "body", "assignee", *_SAME_FIELDS)
    known = {name: getattr(card, name) for name in names} | fields
    return CardDraft(**{name: known[name] for name in names})


def _saved(tx: BoardTransaction, slug: str) -> Board:
    """Returns the default board, which is saved when it is first needed."""
    found = tx.board(slug)
    if found is not None and not found.removed:
        return found
    board = Board(slug=slug, name="Default", created=tx.now)
    tx.put_board(board)
    return board


def _card(tx: BoardReader, name: str) -> Card:
    found = tx.card(name)
    if found is None:
        raise NotFound(t.later("There is no card {name!r}.", name=name), hint=_NOTHING)
    return found


def _free_id(tx: BoardReader) -> str:
    made = new_id("t")
    while tx.card(made) is not None:
        made = f"t_{secrets.token_hex(8)}"
    return made


def _require_idle(card: Card) -> None:
    if card.status == "running":
        raise Refused(
            t.later("{id} is running.", id=card.id),
            hint=t.later("Its worker hands it over; or stop it: hermes kanban stop"),
        )

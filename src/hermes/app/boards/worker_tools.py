"""A worker's tools: what a session that works on a card can do with it and with its board.

A closing tool (complete, block, request_review, request_changes) is recorded at once and takes effect when the worker
has ended, so that two workers never run the same card.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hermes.app.app import App
from hermes.app.boards.attachment_tools import AttachmentTools
from hermes.app.boards.card_context import card_context
from hermes.app.boards.card_draft import CardDraft
from hermes.app.boards.card_rules import RunEnding
from hermes.app.boards.card_toolset import AnyBoard, CardToolset, OwnBoard, TaskId
from hermes.app.boards.listing import OPEN_STATUSES, STATUSES, list_board
from hermes.core.ports import Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.primitives.untyped import texts_of
from hermes.schema.boards import (
    MAX_ATTACHMENT_BYTES,
    PLAIN_AGENT,
    BlockKind,
    Card,
    CardRun,
    CardRunNoted,
    CardStatus,
)
from hermes.schema.tool_spec import ToolResult
from hermes.settings import Secrets
from hermes.store.boards import BoardTransaction
from hermes.text.translation import translator
from hermes.tools.tool import spellings, tool

t = translator(__name__)

MAX_CARD_DEPTH = 5
"""The maximum depth of cards created by workers of cards that workers created, and so on."""
_MAX_MADE_CARDS = 50  # by one run
_MAX_ARTIFACTS = 20
_WORKERS_UNBLOCK = ("dependency", "transient")
"""The kinds of block that workers may lift. A card blocked for another reason waits for a person."""
_FROM_THE_START = "made for a person: see the card's text"
_CLOSED = "The card is closed as {what}. Finish with a short final message, and start no other work."

OwnTaskId = Annotated[str, Meta(description="Your card's id; may be left out.")]


def card_tools(app: App, session: str, secrets: Secrets) -> tuple[Tool, ...]:
    """Returns the tools of a session that works on a card; empty for any other."""
    if not app.store.has_cards:
        return ()
    run = app.store.boards.read(lambda reader: reader.run_of_session(session))
    if run is None:
        return ()
    return (*CardTools(app, run).tools, *AttachmentTools(app, run, secrets).tools)


def _artifact_paths(arguments: Mapping[str, Any]) -> Iterable[str]:
    return texts_of(arguments.get("artifacts"))


class CardTools(CardToolset):
    """A worker's operations on its card and on others of its board."""

    def __init__(self, app: App, run: CardRun) -> None:
        super().__init__(app, run)
        self._made = 0

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools of this set. A reviewer requests changes, and no further review: that would have no end."""
        is_review = self._run.phase == "review"
        return (
            self.kanban_show,
            self.kanban_list,
            self.kanban_complete,
            self.kanban_block,
            self.kanban_request_changes if is_review else self.kanban_request_review,
            self.kanban_comment,
            self.kanban_heartbeat,
            self.kanban_create,
            self.kanban_link,
            self.kanban_unblock,
        )

    @tool("kanban_show", effect="read")
    async def kanban_show(
        self, task_id: TaskId = "", board: AnyBoard = ""
    ) -> ToolResult:
        """Shows a card: its text, earlier attempts, results of its parents, comments and files."""

        def shown() -> str:
            card = self._card_to_read(task_id, board)
            return card_context(self._app, self._boards, card.id)

        return await self._done(shown)

    @tool("kanban_list", effect="read")
    async def kanban_list(
        self,
        assignee: str = "",
        status: Annotated[str, Meta(description="One status; empty: open cards.")] = "",
        tenant: str = "",
        include_archived: bool = False,
        limit: Annotated[int, Meta(ge=1, le=200)] = 50,
        board: AnyBoard = "",
    ) -> ToolResult:
        """Lists the cards of your board, and why they wait."""

        def listed() -> str:
            wanted: tuple[CardStatus, ...] = tuple(one for one in STATUSES if one == status)  # fmt: skip
            if status and not wanted:
                raise ToolFailed(f"There is no status {status!r}.", hint=", ".join(STATUSES))  # fmt: skip
            usual = STATUSES if include_archived else OPEN_STATUSES
            listing = list_board(
                self._boards, board or self._run.board, wanted or usual
            )
            lines = [
                f"{card.id} [{card.status}] {card.title} ({card.assignee}, priority {card.priority}): {card.why}"
                for card in listing.cards
                if (not assignee or card.assignee == assignee)
                and (not tenant or card.tenant == tenant)
            ]
            more = f"\n... and {len(lines) - limit} more" if len(lines) > limit else ""
            return ("\n".join(lines[:limit]) or "No such cards.") + more

        return await self._done(listed)

    @tool("kanban_complete", effect="read", paths=_artifact_paths)
    async def kanban_complete(  # noqa: PLR0913, PLR0917 - the arguments that workers know
        self,
        context: ToolContext,
        summary: Annotated[
            str, Meta(description="What you did, for whoever goes on from here.")
        ] = "",
        result: Annotated[str, Meta(description="The same as summary.")] = "",
        metadata: Annotated[
            dict[str, Any], Meta(description="Facts for programs.")
        ] = {},  # noqa: B006 - never changed
        created_cards: Annotated[
            list[str], Meta(description="Ids of cards that you made.")
        ] = [],  # noqa: B006
        artifacts: Annotated[
            list[str], Meta(description="Files to keep with the card.")
        ] = [],  # noqa: B006
        task_id: OwnTaskId = "",
        board: OwnBoard = "",
    ) -> ToolResult:
        """Closes your card as done. Call it once everything is finished, and only then."""
        self._require_own(task_id, board)
        text = (summary or result).strip()
        if not text:
            raise ToolFailed("A summary is missing.", hint="Say what you did and where the results are.")  # fmt: skip

        def close() -> str:
            for name in created_cards:
                self._boards.find(name)
            kept = self._keep(artifacts, context.cwd)
            more = {**metadata, "created_cards": created_cards} if created_cards else metadata  # fmt: skip
            told = self._close(
                RunEnding(outcome="completed", summary=text, metadata=dict(more))
            )
            return f"{told} Kept: {', '.join(kept)}." if kept else told

        return await self._done(close)

    @tool("kanban_block", effect="read")
    async def kanban_block(
        self,
        reason: Annotated[str, Meta(min_length=1, description="What is missing.")],
        kind: Annotated[
            BlockKind,
            Meta(
                description="dependency: other cards first (link them); needs_input: a person must decide; capability: "
                "you lack a tool or right; transient: it may work later."
            ),
        ] = "needs_input",
        task_id: OwnTaskId = "",
        board: OwnBoard = "",
    ) -> ToolResult:
        """Closes your card as blocked, if you can't go on without somebody or something else."""
        self._require_own(task_id, board)
        ending = RunEnding(outcome="blocked", reason=reason, kind=kind)
        return await self._done(lambda: self._close(ending))

    @tool("kanban_request_review", effect="read")
    async def kanban_request_review(
        self,
        summary: Annotated[str, Meta(min_length=1, description="What to look at.")],
        reviewer: Annotated[
            str, Meta(description="An agent; empty for the card's, or a person.")
        ] = "",
        task_id: OwnTaskId = "",
        board: OwnBoard = "",
    ) -> ToolResult:
        """Hands your card over to be reviewed. It comes back if changes are needed."""
        self._require_own(task_id, board)
        ending = RunEnding(outcome="review", summary=summary, reviewer=reviewer)
        return await self._done(lambda: self._close(ending))

    @tool("kanban_request_changes", effect="read")
    async def kanban_request_changes(
        self,
        reason: Annotated[str, Meta(min_length=1, description="What to change.")],
        task_id: OwnTaskId = "",
        board: OwnBoard = "",
    ) -> ToolResult:
        """Sends the card that you review back to work. If it is good, call kanban_complete instead."""
        self._require_own(task_id, board)
        ending = RunEnding(outcome="changes", reason=reason)
        return await self._done(lambda: self._close(ending))

    @tool("kanban_comment", effect="read")
    async def kanban_comment(
        self,
        task_id: TaskId,
        body: Annotated[str, Meta(min_length=1)],
        board: OwnBoard = "",
    ) -> ToolResult:
        """Comments on a card. Whoever works on it next reads the comment."""

        def comment() -> str:
            card = self._own_board(task_id, board)
            return f"Commented on {self._boards.comment(card.id, body, by=self._by).id}."  # fmt: skip

        return await self._done(comment)

    @tool("kanban_heartbeat", effect="read")
    async def kanban_heartbeat(
        self,
        note: Annotated[str, Meta(description="What you are doing now.")] = "",
        task_id: OwnTaskId = "",
        board: OwnBoard = "",
    ) -> ToolResult:
        """Tells people what you are doing, in long work."""
        self._require_own(task_id, board)

        def beat() -> str:
            self._boards.change(self._note(note))
            return "Noted."

        return await self._done(beat)

    @tool("kanban_create", effect="read")
    async def kanban_create(  # noqa: PLR0913, PLR0917 - the arguments that workers know
        self,
        title: Annotated[str, Meta(min_length=1)],
        assignee: Annotated[
            str, Meta(description="An agent, or `hermes`.")
        ] = PLAIN_AGENT,
        body: Annotated[
            str, Meta(description="All that its worker needs to know.")
        ] = "",
        parents: Annotated[
            list[str], Meta(description="Cards that must be done before.")
        ] = [],  # noqa: B006
        tenant: str = "",
        priority: int = 0,
        workspace_kind: Literal["", "scratch", "dir", "worktree"] = "",
        workspace_path: str = "",
        project: Annotated[
            str, Meta(description="A folder; as workspace_path of kind dir.")
        ] = "",
        triage: Annotated[
            bool, Meta(description="A rough idea: a person decides.")
        ] = False,
        idempotency_key: str = "",
        max_runtime_seconds: Annotated[int, Meta(ge=0, le=604_800)] = 0,
        initial_status: Annotated[
            Literal["", "running", "blocked", "triage", "todo", "ready"],
            Meta(description="blocked: a person must act first; todo: held."),
        ] = "",
        skills: list[str] = [],  # noqa: B006
        goal_mode: bool = False,
        goal_max_turns: Annotated[int, Meta(ge=0, le=200)] = 0,
        model: str = "",
        board: OwnBoard = "",
    ) -> ToolResult:
        """Makes a card on your board, which another worker does."""
        path = workspace_path or project
        kind = workspace_kind or ("dir" if path else "")
        draft = CardDraft(
            title=title,
            assignee=assignee,
            body=body,
            parents=tuple(parents),
            tenant=tenant,
            priority=priority,
            workspace=f"{kind}:{path}" if path and kind != "scratch" else kind,
            triage=triage or initial_status == "triage",
            held=initial_status == "todo",
            blocked=_FROM_THE_START if initial_status == "blocked" else "",
            key=idempotency_key,
            time_limit=float(max_runtime_seconds),
            skills=tuple(skills),
            goal_mode=goal_mode,
            goal_max_turns=goal_max_turns,
            model=model,
            by=self._by,
        )

        def create() -> str:
            self._require_own_board(board)
            card = self._create(draft)
            return f"Made card {card.id}; it is {card.status}."

        return await self._done(create)

    @tool("kanban_link", effect="read")
    async def kanban_link(
        self, parent_id: str, child_id: str, board: OwnBoard = ""
    ) -> ToolResult:
        """Lets the card child_id wait until parent_id is done."""

        def link() -> str:
            parent, child = (
                self._own_board(one, board) for one in (parent_id, child_id)
            )
            self._boards.link(parent.id, child.id, by=self._by)
            return f"{child.id} waits for {parent.id}."

        return await self._done(link)

    @tool("kanban_unblock", effect="read")
    async def kanban_unblock(self, task_id: str, board: OwnBoard = "") -> ToolResult:
        """Lets another card go on that is blocked by a dependency, or for a time."""

        def unblock() -> str:
            card = self._own_board(task_id, board)
            if card.id == self._run.card:
                raise ToolFailed("This is your own card.", hint="Work on it.")
            if card.status == "triage" or card.block_kind not in _WORKERS_UNBLOCK:
                raise ToolFailed(
                    f"{card.id} waits for a person.",
                    hint="Comment on it, and say what you know.",
                )
            return f"{card.id} is {self._boards.unblock(card.id, by=self._by).status}."

        return await self._done(unblock)

    def _require_own(self, task_id: str, board: str) -> None:
        """Raises ToolFailed if a tool for the worker's own card names another card."""
        self._require_own_board(board)
        if task_id not in ("", self._run.card):
            raise ToolFailed(
                f"{task_id} is not your card.", hint=f"Your card is {self._run.card}."
            )

    def _create(self, draft: CardDraft) -> Card:
        if self._made >= _MAX_MADE_CARDS:
            raise ToolFailed(
                f"This run has made {_MAX_MADE_CARDS} cards already.",
                hint="Complete your card, and say what is left.",
            )
        mine = self._boards.find(self._run.card)
        if mine.depth >= MAX_CARD_DEPTH:
            raise ToolFailed(
                f"Cards made by cards go {MAX_CARD_DEPTH} levels deep at most.",
                hint="Do the work yourself, or block your card.",
            )
        self._require_own_place(mine, draft.workspace)
        draft = msgspec.structs.replace(
            draft, origin=mine.origin, depth=mine.depth + 1, tenant=draft.tenant or mine.tenant,
            family=mine.family or mine.id,
        )  # fmt: skip
        for parent in draft.parents:
            self._own_board(parent)
        card = self._boards.create(self._run.board, draft)
        self._made += 1
        return card

    def _require_own_place(self, mine: Card, workspace: str) -> None:
        """Raises ToolFailed for a workspace other than the worker's own: injected text may have asked for it.

        Only these exact folders count, not folders inside them, which a worker could replace with a link to elsewhere.
        """
        board = self._boards.board(mine.board).workspace
        own = {"", "scratch", board, mine.workspace or board}
        own |= {workspace.replace("dir:", "worktree:", 1) for workspace in own}
        if self._run.workspace:
            own.add(f"dir:{self._run.workspace}")
        if workspace not in own:
            raise ToolFailed(
                f"{workspace} is not where you work.",
                hint="Leave it out, or block your card and say which folder is needed: a person decides.",
            )

    def _note(self, note: str) -> Callable[[BoardTransaction], None]:
        def write(tx: BoardTransaction) -> None:
            run = tx.run(self._run.id)
            if run is None or run.outcome != "running":
                raise ToolFailed("This run has ended.", hint="Stop working on the card.")  # fmt: skip
            text = note.strip()[:500]
            tx.put_run(msgspec.structs.replace(run, beat=tx.now, note=text or run.note))
            if text:
                tx.note(
                    CardRunNoted(
                        board=run.board, card=run.card, run=run.id, note=text, by=self._by
                    )
                )  # fmt: skip

        return write

    def _close(self, ending: RunEnding) -> str:
        """Records how the worker closes its card. Only the first time counts."""

        def write(tx: BoardTransaction) -> None:
            run = tx.run(self._run.id)
            if run is None or run.outcome != "running":
                raise ToolFailed("This run has ended.", hint="Stop working on the card.")  # fmt: skip
            if run.closing:
                raise ToolFailed("The card is closed already.", hint="Finish with a short message.")  # fmt: skip
            closing = msgspec.json.encode(ending).decode()
            tx.put_run(msgspec.structs.replace(run, closing=closing, beat=tx.now))
            tx.note(
                CardRunNoted(
                    board=run.board, card=run.card, run=run.id, by=self._by,
                    note=t.logged("closes the card: {outcome}", outcome=ending.outcome),
                )
            )  # fmt: skip

        self._boards.change(write)
        return _CLOSED.format(what=ending.outcome)

    def _keep(self, artifacts: list[str], cwd: Path) -> list[str]:
        """Attaches files of the workspace to the card. Returns their names."""
        kept: list[str] = []
        for name in artifacts[:_MAX_ARTIFACTS]:
            path = next(iter(spellings(name, cwd)))
            try:
                real = path.resolve(strict=True)
                if not real.is_relative_to(cwd.resolve()):
                    raise ToolFailed(
                        f"{name} is outside your workspace.", hint="Copy it there first. The card is still open."
                    )  # fmt: skip
                if real.stat().st_size > MAX_ATTACHMENT_BYTES:
                    raise ToolFailed(
                        f"{name} is larger than 25 MB.", hint="The card is still open."
                    )
                data = real.read_bytes()
            except OSError as error:
                raise ToolFailed(
                    f"{name} can't be read: {error}.", hint="The card is still open."
                ) from error
            kept.append(
                self._boards.attach(self._run.card, path.name, data, by=self._by).name
            )
        return kept

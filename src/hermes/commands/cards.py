"""Cards of boards: making, listing and changing them, and how their runs went. `hermes kanban`, and `/kanban` in chats."""

from pathlib import Path
from typing import Annotated, TypedDict, Unpack, get_args

from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.app.boards.card_rules import OVER
from hermes.app.boards.form import parsed_card_fields, start_time, words
from hermes.app.boards.listing import (
    OPEN_STATUSES,
    STATUSES,
    BoardListing,
    card_details,
    list_board,
    run_report,
)
from hermes.app.boards.workspaces import clear_workspaces
from hermes.app.prompt_files import PromptFiles
from hermes.app.schedules.delivery import delivery_target
from hermes.commands.boards import actor, boards_of
from hermes.commands.card_views import (
    BoardStats,
    CardChange,
    CardHistory,
    CardListing,
    CardReport,
    CardRuns,
)
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import TextResult, message
from hermes.errors import NotFound, UsageError, os_reason
from hermes.schema.boards import (
    MAX_ATTACHMENT_BYTES,
    PLAIN_AGENT,
    BlockKind,
    Card,
    CardStatus,
)
from hermes.store.boards import BoardReader
from hermes.text.formats import DAY_S
from hermes.text.translation import to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes kanban create "fix the login test" --workspace worktree:~/code/app --priority 5
  hermes kanban create "write the release notes" --parents t_1a2b3c4d5e --budget '$2'
  hermes kanban list                    every open card, and why it waits
  hermes kanban show t_1a2b3c4d5e       a card with its runs, comments and files
  hermes kanban decompose t_1a2b3c4d5e  let a model turn a rough card into smaller ones
  hermes kanban run                     run ready cards; the gateway and the dashboard do it too
""")
CardName = Annotated[str, Arg("its id, or the beginning of it", metavar="CARD")]
OnBoard = Annotated[str, Arg("the board (default: the current one)", metavar="BOARD")]
_FIRST_CARD = to_translate(
    "The first card makes one: hermes kanban create 'what to do'"
)
_MAX_LISTED = 200
_MAX_WAITING = 20


class CardOptions(TypedDict, total=False):
    """What a card can have besides its title."""

    body: Annotated[str | None, "what to do, in detail"]
    priority: Annotated[int | None, Arg("the highest runs first", metavar="NUMBER")]
    labels: Annotated[str | None, Arg("words, separated by commas", metavar="WORDS")]
    assignee: Annotated[
        str | None,
        Arg("an agent, or hermes; see `hermes kanban assignees`", metavar="AGENT"),
    ]
    reviewer: Annotated[
        str | None, Arg("an agent that reviews the result", metavar="AGENT")
    ]
    workspace: Annotated[
        str | None, Arg("scratch, dir:PATH or worktree:PATH", metavar="WHERE")
    ]
    model: Annotated[str | None, "another model, such as openai:gpt-5-mini"]
    skills: Annotated[str | None, Arg("skills to use", metavar="NAMES")]
    budget: Annotated[
        str | None,
        Arg("the most its runs may use: '$2' or '500k tokens'", metavar="AMOUNT"),
    ]
    time_limit: Annotated[
        str | None, Arg("stop a run after this time, such as 2h", metavar="TIME")
    ]
    retries: Annotated[
        int | None,
        Arg(
            "block it after this many failed runs in a row",
            metavar="NUMBER",
            at_least=0,
        ),
    ]
    at: Annotated[
        str | None,
        Arg("don't start it before this time: 'tomorrow at 9'", metavar="WHEN"),
    ]
    tenant: Annotated[str | None, "who it is for, as a filter"]


def _change(boards: Boards, card: Card, what: str) -> CardChange:
    """The result that a person sees after a change."""
    why = card_details(boards, card.id, history=1).why
    return CardChange(card=card, what=what, why=why)


def _ended(context: CommandContext, card: Card, what: str) -> CardChange:
    """The result that a person sees after a card has ended: also where its work is, if anything is left."""
    boards = boards_of(context)
    if card.status in OVER:
        told = clear_workspaces(context.app, boards, card.id)
        return CardChange(card=card, what=what, why=told)
    return _change(boards, card, what)


def _check_agents(context: CommandContext, *names: str | None, workspace: str) -> None:
    """Raises NotFound for an agent that has no file."""
    wanted = [name for name in names if name and name != PLAIN_AGENT]
    if not wanted:
        return
    folder = Path(workspace.partition(":")[2] or ".")
    files = PromptFiles(context.home.root, Path.home())
    known = [one.name for one in files.all(folder, "agent")]
    for name in wanted:
        if name not in known:
            raise NotFound(
                t("There is no agent {name!r}. Nothing was changed.", name=name),
                hint=t("There are: {known}.", known=", ".join((PLAIN_AGENT, *known))),
            )


@command("kanban create", scope="approve")
def create_card(  # noqa: PLR0913 - the options of a command
    context: CommandContext,
    title: Annotated[str, "what to do, in a few words"],
    *,
    board: OnBoard = "",
    parents: Annotated[
        str, Arg("cards that must be done first, separated by commas", metavar="CARDS")
    ] = "",
    triage: Annotated[bool, "only a rough idea: put it in triage"] = False,
    hold: Annotated[bool, "leave it in todo until you promote it"] = False,
    key: Annotated[
        str,
        Arg("create it only once: the same key returns the same card", metavar="TEXT"),
    ] = "",
    **options: Unpack[CardOptions],
) -> CardChange:
    """Make a card; it runs as soon as it can."""
    boards = boards_of(context)
    fields = parsed_card_fields(context.app, dict(options))
    found = boards.board(board)
    workspace = str(fields.get("workspace") or found.workspace)
    _check_agents(
        context, fields.get("assignee"), fields.get("reviewer"), workspace=workspace
    )
    session = context.session
    draft = CardDraft(
        title=title,
        parents=tuple(boards.find(name).id for name in words(parents)),
        triage=triage,
        held=hold,
        key=key,
        by=actor(context),
        origin=session,
        notify=(delivery_target(context.app, session),) if session else (),
        **fields,
    )
    card = boards.create(found.slug, draft)
    return _change(boards, card, t("was created"))


@command("kanban list", scope="observe")
def list_cards(  # noqa: PLR0913 - the options of a command
    context: CommandContext,
    *,
    board: OnBoard = "",
    status: Annotated[
        str, Arg("only these: ready,running (default: all that are open)", metavar="STATUS")
    ] = "",
    assignee: Annotated[str, Arg("only cards of this agent", metavar="AGENT")] = "",
    label: Annotated[str, Arg("only cards with this label", metavar="LABEL")] = "",
    tenant: Annotated[str, "only cards of this tenant"] = "",
    query: Annotated[str, Arg("only cards with these words", metavar="WORDS")] = "",
    all_: Annotated[bool, "also those that are done or archived"] = False,
    limit: Annotated[
        int, Arg(f"how many (default: {_MAX_LISTED}; 0 for all)", metavar="NUMBER", at_least=0)
    ] = _MAX_LISTED,
) -> CardListing:  # fmt: skip
    """List the cards of a board, and why each of them waits."""
    statuses = _statuses(status) or (STATUSES if all_ else OPEN_STATUSES)
    if not context.app.has_log:  # looking creates nothing
        raise NotFound(t("There are no boards yet."), hint=t.marked(_FIRST_CARD))
    listing = list_board(boards_of(context), board, statuses)
    needle = query.casefold().split()
    cards = [
        card
        for card in listing.cards
        if (not assignee or card.assignee == assignee)
        and (not label or label in card.labels)
        and (not tenant or card.tenant == tenant)
        and all(word in card.title.casefold() for word in needle)
    ]
    shown = cards[:limit] if limit else cards
    return CardListing(
        listing=BoardListing(
            board=listing.board,
            cards=shown,
            counts=listing.counts,
            dispatcher=listing.dispatcher,
            last=listing.last,
        ),
        left_out=len(cards) - len(shown),
    )


def _statuses(text: str) -> tuple[CardStatus, ...]:
    """Raises UsageError for a status that does not exist."""
    wanted = words(text)
    if unknown := set(wanted) - set(STATUSES):
        raise UsageError(
            t("There is no status {unknown!r}.", unknown=min(unknown)),
            hint=t("There are: {statuses}.", statuses=", ".join(STATUSES)),
        )
    return tuple(one for one in STATUSES if one in wanted)


@command("kanban show", scope="observe")
def show_card(context: CommandContext, card: CardName) -> CardReport:
    """Show a card with its runs, comments and files."""
    return CardReport(details=card_details(boards_of(context), card))


@command("kanban edit", scope="approve")
def edit_card(
    context: CommandContext,
    card: CardName,
    *,
    title: Annotated[str | None, "another title"] = None,
    **options: Unpack[CardOptions],
) -> CardChange:
    """Change a card."""
    boards = boards_of(context)
    found = boards.find(card)
    fields = parsed_card_fields(context.app, {"title": title, **options})
    if not fields:
        raise UsageError(
            t("What should be changed?"),
            hint=t("Such as: hermes kanban edit CARD --priority 5"),
        )
    workspace = str(fields.get("workspace") or found.workspace)
    _check_agents(
        context, fields.get("assignee"), fields.get("reviewer"), workspace=workspace
    )
    changed = boards.edit(found.id, by=actor(context), **fields)
    return _change(boards, changed, t("was changed"))


@command("kanban assign", scope="approve")
def assign_card(
    context: CommandContext,
    card: CardName,
    agent: Annotated[str, Arg("an agent, or hermes", metavar="AGENT")],
) -> CardChange:
    """Choose the agent that works on a card."""
    boards = boards_of(context)
    found, name = boards.find(card), agent.strip().lower().removeprefix("@")
    workspace = found.workspace or boards.board(found.board).workspace
    _check_agents(context, name, workspace=workspace)
    changed = boards.edit(found.id, by=actor(context), assignee=name)
    return _change(boards, changed, t("is assigned to {name}", name=name))


@command("kanban move", scope="approve")
def move_card(
    context: CommandContext,
    card: CardName,
    status: Annotated[
        CardStatus,
        Arg("triage, todo, ready, blocked, review, done or archived", metavar="STATUS"),
    ],
    *,
    reason: Annotated[str, "why"] = "",
) -> CardChange:
    """Move a card to another status; a running card is stopped first."""
    boards = boards_of(context)
    moved = boards.move(card, status, by=actor(context), reason=reason)
    return _ended(context, moved, t("was moved to {status}", status=status))


@command("kanban promote", scope="approve")
def promote_card(context: CommandContext, card: CardName) -> CardChange:
    """Move a card from triage or todo to the next status."""
    boards = boards_of(context)
    return _change(boards, boards.promote(card, by=actor(context)), t("was promoted"))


@command("kanban schedule", scope="approve")
def schedule_card(
    context: CommandContext,
    card: CardName,
    when: Annotated[str, Arg("'tomorrow at 9', 'in 2 hours'; off: as soon as possible", metavar="WHEN")],
) -> CardChange:  # fmt: skip
    """Don't start a card before a time."""
    boards = boards_of(context)
    fields = start_time(context.app, when)
    return _change(boards, boards.edit(card, by=actor(context), **fields), t("was scheduled"))  # fmt: skip


@command("kanban link", scope="chat")
def link_cards(
    context: CommandContext,
    parent: Annotated[str, Arg("the card that must be done first", metavar="PARENT")],
    child: Annotated[str, Arg("the card that waits", metavar="CHILD")],
) -> CardChange:
    """Make a card wait for another one."""
    boards = boards_of(context)
    above, below = boards.link(parent, child, by=actor(context))
    return _change(boards, below, t("waits for {id}", id=above.id))


@command("kanban unlink", scope="approve")
def unlink_cards(
    context: CommandContext,
    parent: Annotated[str, Arg("the card that it waits for", metavar="PARENT")],
    child: Annotated[str, Arg("the card that waits", metavar="CHILD")],
) -> CardChange:
    """Stop a card from waiting for another one."""
    boards = boards_of(context)
    below = boards.unlink(parent, child, by=actor(context))
    return _change(boards, below, t("no longer waits for it"))


@command("kanban comment", scope="chat")
def comment_on_card(
    context: CommandContext, card: CardName, text: Annotated[str, "the comment"]
) -> CardChange:
    """Comment on a card; its next run reads it."""
    boards = boards_of(context)
    return _change(boards, boards.comment(card, text, by=actor(context)), t("has a new comment"))  # fmt: skip


@command("kanban attach")
def attach_file(
    context: CommandContext, card: CardName, file: Annotated[str, Arg(metavar="FILE")]
) -> TextResult:
    """Attach a file of up to 25 MB to a card."""
    path = context.path(file)
    try:
        if path.stat().st_size > MAX_ATTACHMENT_BYTES:
            raise UsageError(t("{path} is larger than 25 MB.", path=path))
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            t("{path} can't be read: {error}.", path=path, error=os_reason(error))
        ) from error
    made = boards_of(context).attach(card, path.name, data, by=actor(context))
    return message(
        t(
            "Attached {name} ({size:,} bytes) as {id}.",
            name=made.name,
            size=made.size,
            id=made.id,
        )
    )


@command("kanban download")
def save_attachment(
    context: CommandContext,
    attachment: Annotated[str, Arg("its id, as `show` has it", metavar="ATTACHMENT")],
    file: Annotated[str, Arg("where to write it", metavar="FILE")],
) -> TextResult:
    """Save an attachment of a card to a file."""
    data = boards_of(context).read(lambda reader: reader.attachment_data(attachment))
    if data is None:
        raise NotFound(
            t("There is no attachment {attachment!r}.", attachment=attachment)
        )
    path = context.path(file)
    try:
        with path.open("xb") as target:
            target.write(data)
    except OSError as error:
        raise UsageError(
            t("{path} can't be written: {error}.", path=path, error=os_reason(error))
        ) from error
    return message(t("Wrote {count:,} bytes to {path}.", count=len(data), path=path))


@command("kanban complete", scope="chat")
def complete_card(
    context: CommandContext,
    card: CardName,
    summary: Annotated[str, "what was done"] = "",
) -> CardChange:
    """Mark a card as done; a running card is stopped first."""
    done = boards_of(context).complete(card, summary, by=actor(context))
    return _ended(context, done, t("is completed"))


@command("kanban block", scope="chat")
def block_card(
    context: CommandContext,
    card: CardName,
    reason: Annotated[str, "why"],
    *,
    kind: Annotated[BlockKind, "what it needs"] = "needs_input",
) -> CardChange:
    """Block a card; a running card is stopped first."""
    boards = boards_of(context)
    return _change(boards, boards.block(card, reason, kind, by=actor(context)), t("is blocked"))  # fmt: skip


@command("kanban unblock", scope="approve")
def unblock_card(
    context: CommandContext,
    card: CardName,
    comment: Annotated[str, "what the worker should know"] = "",
) -> CardChange:
    """Unblock a card; its failed runs no longer count."""
    boards = boards_of(context)
    if comment:
        boards.comment(card, comment, by=actor(context))
    return _change(boards, boards.unblock(card, by=actor(context)), t("goes on"))


@command("kanban request-review", scope="chat")
def request_review(
    context: CommandContext,
    card: CardName,
    summary: Annotated[str, "what was done"],
    *,
    reviewer: Annotated[str, Arg("an agent; empty for a person", metavar="AGENT")] = "",
) -> CardChange:
    """Move a card to review."""
    boards = boards_of(context)
    found = boards.find(card)
    _check_agents(context, reviewer, workspace=found.workspace)
    moved = boards.request_review(found.id, summary, reviewer, by=actor(context))
    return _change(boards, moved, t("is in review"))


@command("kanban request-changes", scope="approve")
def request_changes(
    context: CommandContext, card: CardName, reason: Annotated[str, "what to change"]
) -> CardChange:
    """Send a reviewed card back to work."""
    boards = boards_of(context)
    return _change(boards, boards.request_changes(card, reason, by=actor(context)), t("was sent back to work"))  # fmt: skip


@command("kanban archive", scope="chat")
def archive_card(context: CommandContext, card: CardName) -> CardChange:
    """Archive a card; cards that wait for it wait no longer."""
    archived = boards_of(context).archive(card, by=actor(context))
    return _ended(context, archived, t("was archived"))


@command("kanban stop", scope="chat")
def stop_card(
    context: CommandContext,
    card: CardName,
    reason: Annotated[str, "why"] = "",
) -> CardChange:
    """Stop a running card; it is then blocked."""
    boards = boards_of(context)
    return _change(boards, boards.stop(card, reason, by=actor(context)), t("is being stopped"))  # fmt: skip


@command("kanban runs", scope="observe")
def show_card_runs(
    context: CommandContext,
    card: CardName,
    *,
    limit: Annotated[int, Arg("how many (default: 20)", metavar="NUMBER", at_least=1)] = 20,
) -> CardRuns:  # fmt: skip
    """Show how each run of a card ended, with its session and cost."""
    boards = boards_of(context)
    found = boards.find(card)

    def read(reader: BoardReader) -> CardRuns:
        runs = [run_report(reader, run) for run in reader.runs(found.id, limit)]
        return CardRuns(card=found, runs=runs)

    return boards.read(read)


@command("kanban history", scope="observe")
def show_card_history(
    context: CommandContext,
    card: Annotated[str, Arg("one card (default: the whole board)", metavar="CARD")] = "",
    *,
    board: OnBoard = "",
    after: Annotated[int, Arg("only what came after this event", metavar="ID", at_least=0)] = 0,
    limit: Annotated[int, Arg("how many (default: 50)", metavar="NUMBER", at_least=1)] = 50,
) -> CardHistory:  # fmt: skip
    """Show what happened on a card or a board, newest last."""
    boards = boards_of(context)
    if card:
        found = boards.find(card)
        return CardHistory(
            events=boards.read(
                lambda reader: reader.history(found.id, after=after, limit=limit)
            )
        )
    slug = boards.board(board).slug
    return CardHistory(
        events=boards.read(
            lambda reader: reader.history(board=slug, after=after, limit=limit)
        )
    )


@command("kanban stats", scope="observe")
def show_board_stats(context: CommandContext) -> BoardStats:
    """Show how the boards are doing, and why ready cards wait."""
    if not context.app.has_log:
        raise NotFound(t("There are no boards yet."), hint=t.marked(_FIRST_CARD))
    boards = boards_of(context)
    state = boards.state()

    def read(reader: BoardReader) -> BoardStats:
        counts: dict[str, dict[str, int]] = {slug: {} for slug in state.boards}
        for slug, status, _, number in reader.counts():
            if slug in counts:
                known = counts[slug]
                known[status] = known.get(status, 0) + number
        ready: tuple[CardStatus, ...] = ("ready",)
        waiting = [
            (card.id, card.title, state.why(card))
            for card in reader.cards(statuses=ready, limit=_MAX_WAITING)
        ]
        return BoardStats(
            boards=counts,
            running=state.running,
            max_running=state.settings.max_running,
            dispatcher=state.dispatcher,
            outcomes=dict(reader.outcomes(state.now - DAY_S)),
            by_agent=dict(state.by_agent),
            waiting=waiting,
            undelivered=len(reader.notices()),
        )

    return boards.read(read)


BLOCK_KINDS: tuple[str, ...] = get_args(BlockKind)

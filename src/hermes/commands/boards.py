"""Boards: listing, making, changing and choosing them."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from hermes.app.boards.board_service import Boards
from hermes.app.boards.form import typed_workspace
from hermes.app.boards.listing import STATUSES
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import (
    Block,
    Column,
    Record,
    TextResult,
    line,
    message,
    table,
)
from hermes.errors import UsageError
from hermes.schema.boards import Board
from hermes.text.translation import translator

t = translator(__name__)


BoardName = Annotated[str, Arg("the short name of a board", metavar="BOARD")]


class BoardSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A board and how many cards it has."""

    board: Board
    is_current: bool
    counts: dict[str, int]


class BoardList(msgspec.Struct, frozen=True, kw_only=True):
    """The boards."""

    boards: list[BoardSummary]

    def view(self, _now: float) -> Iterable[Block]:
        if not self.boards:
            yield line(
                t(
                    "There are no boards yet. The first card makes one: hermes kanban create 'what to do'"
                )
            )
            return
        rows = [
            (
                "*" if one.is_current else "",
                one.board.slug,
                one.board.name,
                ", ".join(
                    f"{number} {status}"
                    for status, number in one.counts.items()
                    if number
                )
                or "no cards",
            )
            for one in self.boards
        ]
        columns = ("", t("BOARD"), Column(t("NAME"), widest=30), t("CARDS"))
        yield table(columns, rows, narrow=((0, 1, 2), (3,)))


class BoardDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A board with its settings and its cards by status."""

    board: Board
    is_current: bool
    counts: dict[str, int]

    def view(self, _now: float) -> Iterable[Block]:
        board = self.board
        yield line(f"{board.slug}  {board.name}", "bold")
        yield Record(
            (
                (t("about"), board.description),
                (t("workspace"), board.workspace or "scratch"),
                (t("budget per day"), board.budget or t("no limit")),
                (
                    t("cards at once"),
                    str(board.max_running or t("as boards.max_running says")),
                ),
                *(
                    (status, str(number))
                    for status, number in self.counts.items()
                    if number
                ),
            ),
            indent=2,
        )


def boards_of(context: CommandContext) -> Boards:
    """The boards of the app."""
    return Boards(context.app)


def actor(context: CommandContext) -> str:
    """Who gives a command, as the history names them."""
    return context.surface.name or "user"


def _counts(boards: Boards) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    none: dict[str, int] = dict.fromkeys(STATUSES, 0)
    for slug, status, _, number in boards.read(lambda reader: reader.counts()):
        of_board = found.setdefault(slug, dict(none))
        of_board[status] += number
    return found


@command("kanban boards list", scope="observe")
def list_boards(context: CommandContext) -> BoardList:
    """List the boards."""
    if not context.app.has_log:
        return BoardList(boards=[])
    boards = boards_of(context)
    current, counts = boards.current(), _counts(boards)
    found = boards.read(lambda reader: reader.boards())
    return BoardList(
        boards=[
            BoardSummary(
                board=one,
                is_current=one.slug == current,
                counts=counts.get(one.slug, {}),
            )
            for one in found
        ]
    )


@command("kanban boards show", scope="observe")
def show_board(context: CommandContext, board: BoardName = "") -> BoardDetails:
    """Show a board; without a name the current one."""
    boards = boards_of(context)
    found = boards.board(board)
    counts = _counts(boards).get(found.slug, {})
    return BoardDetails(
        board=found, is_current=found.slug == boards.current(), counts=counts
    )


@command("kanban boards create", scope="chat")
def create_board(  # noqa: PLR0913 - the options of a command
    context: CommandContext,
    name: Annotated[str, "its name"],
    *,
    slug: Annotated[
        str, Arg("its short name (default: made of the name)", metavar="SLUG")
    ] = "",
    description: Annotated[str, "what it is for"] = "",
    workspace: Annotated[
        str,
        Arg(
            "where its cards work: scratch, dir:PATH or worktree:PATH", metavar="WHERE"
        ),
    ] = "",
    budget: Annotated[
        str,
        Arg(
            "the most its runs may use in a day: '$5' or '2M tokens'", metavar="AMOUNT"
        ),
    ] = "",
    max_running: Annotated[
        int, Arg("how many of its cards may run at once", metavar="NUMBER", at_least=0)
    ] = 0,
) -> TextResult:
    """Make a board."""
    board = boards_of(context).create_board(
        name,
        slug=slug,
        description=description,
        workspace=typed_workspace(workspace) if workspace else "",
        budget=budget,
        max_running=max_running,
        by=actor(context),
    )
    return message(
        t(
            "Made the board {slug}. Use it: hermes kanban boards switch {slug}",
            slug=board.slug,
        )
    )


@command("kanban boards rename", scope="chat")
def rename_board(
    context: CommandContext, board: BoardName, name: Annotated[str, "its new name"]
) -> TextResult:
    """Give a board another name; its short name stays."""
    found = boards_of(context).edit_board(board, by=actor(context), name=name.strip())
    return message(
        t("The board {slug} is called {name} now.", slug=found.slug, name=found.name)
    )


@command("kanban boards edit", scope="approve")
def edit_board(
    context: CommandContext,
    board: BoardName,
    *,
    description: Annotated[str | None, "what it is for"] = None,
    workspace: Annotated[
        str | None, Arg("scratch, dir:PATH or worktree:PATH", metavar="WHERE")
    ] = None,
    budget: Annotated[
        str | None, Arg("per day; '' for no limit", metavar="AMOUNT")
    ] = None,
    max_running: Annotated[
        int | None,
        Arg("cards at once; 0 for no own limit", metavar="NUMBER", at_least=0),
    ] = None,
) -> TextResult:
    """Change the description, workspace, budget or limit of a board."""
    given = {
        "description": description,
        "workspace": None if workspace is None else typed_workspace(workspace),
        "budget": budget,
        "max_running": max_running,
    }
    fields = {name: value for name, value in given.items() if value is not None}
    if not fields:
        raise UsageError(t("What should be changed?"), hint=t("Such as: --budget '$5'"))
    found = boards_of(context).edit_board(board, by=actor(context), **fields)
    return message(t("Changed the board {slug}.", slug=found.slug))


@command("kanban boards remove", scope="admin")
def remove_board(
    context: CommandContext,
    board: BoardName,
    *,
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:
    """Remove a board. Its running cards are stopped; its history stays in the store."""
    boards = boards_of(context)
    found = boards.board(board)
    number = sum(_counts(boards).get(found.slug, {}).values())
    if number and not yes:
        context.confirm(
            t(
                "Remove the board {slug} with {count:,} card?",
                "Remove the board {slug} with {count:,} cards?",
                count=number,
                slug=found.slug,
            ),
            t("The board was not removed."),
        )
    _, stopped = boards.remove_board(found.slug, by=actor(context))
    also = (
        t(
            " {count:,} running card will stop.",
            " {count:,} running cards will stop.",
            count=stopped,
        )
        if stopped
        else ""
    )
    return message(t("Removed the board {slug}.{also}", slug=found.slug, also=also))


@command("kanban boards switch", scope="chat")
def switch_board(context: CommandContext, board: BoardName) -> TextResult:
    """Choose the board for commands that don't name one."""
    found = boards_of(context).switch(board)
    return message(t("The current board is {slug} now.", slug=found.slug))

"""A board by columns, and who can be given its cards."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from hermes.app.boards.columns import (
    BoardColumns,
    CardFilter,
    ColumnPage,
    board_columns,
)
from hermes.app.boards.form import words
from hermes.app.boards.listing import OPEN_STATUSES, STATUSES
from hermes.app.prompt_files import PromptFiles
from hermes.commands.boards import boards_of
from hermes.commands.cards import OnBoard
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, line, table
from hermes.errors import UsageError
from hermes.schema.boards import PLAIN_AGENT
from hermes.text.formats import first_line
from hermes.text.translation import translator

t = translator(__name__)


_CARDS_PER_COLUMN = 50
_MAX_PAGE = 1_000


class ColumnView(msgspec.Struct, frozen=True, kw_only=True):
    """A board by columns, as text."""

    columns: BoardColumns

    def document(self) -> BoardColumns:
        return self.columns

    def view(self, _now: float) -> Iterable[Block]:
        found = self.columns
        if found.idle:
            yield line(t("Nothing runs: {idle}", idle=found.idle), "warn")
        for column in found.columns:
            yield line(f"{column.status} ({column.total})", "bold")
            for card in column.cards:
                yield line(f"  {card.id}  {first_line(card.title)}")
            if len(column.cards) < column.total:
                yield line("  ...", "dim")


class Assignee(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who can work on cards."""

    name: str
    description: str


class AssigneeList(msgspec.Struct, frozen=True, kw_only=True):
    """Who can work on cards."""

    assignees: list[Assignee]

    def view(self, _now: float) -> Iterable[Block]:
        rows = [(one.name, one.description) for one in self.assignees]
        yield table((t("AGENT"), t("DOES")), rows)


@command("kanban columns", scope="observe")
def show_columns(  # noqa: PLR0913 - the options of a command
    context: CommandContext,
    *,
    board: OnBoard = "",
    status: Annotated[str, Arg("only these columns (default: all but archived)", metavar="STATUS")] = "",
    assignee: Annotated[str, Arg("only cards of this agent", metavar="AGENT")] = "",
    label: Annotated[str, Arg("only cards with this label", metavar="LABEL")] = "",
    tenant: Annotated[str, "only cards of this tenant"] = "",
    query: Annotated[str, Arg("only cards with these words in title or body", metavar="WORDS")] = "",
    limit: Annotated[
        int, Arg(f"how many of each column (default: {_CARDS_PER_COLUMN})", metavar="NUMBER", at_least=1)
    ] = _CARDS_PER_COLUMN,
    offset: Annotated[int, Arg("how many of each column to leave out first", metavar="NUMBER", at_least=0)] = 0,
) -> ColumnView:  # fmt: skip
    """Show a board by columns, a page at a time."""
    wanted = words(status)
    if unknown := set(wanted) - set(STATUSES):
        raise UsageError(
            t("There is no status {unknown!r}.", unknown=min(unknown)),
            hint=t("There are: {statuses}.", statuses=", ".join(STATUSES)),
        )
    page = ColumnPage(
        statuses=tuple(one for one in STATUSES if one in wanted)
        or (*OPEN_STATUSES, "done"),
        limit=min(limit, _MAX_PAGE),
        offset=offset,
    )
    meant = CardFilter(
        words=tuple(query.casefold().split()),
        assignee=assignee,
        label=label,
        tenant=tenant,
    )
    return ColumnView(columns=board_columns(boards_of(context), board, page, meant))


@command("kanban assignees", scope="observe")
def list_assignees(context: CommandContext, *, board: OnBoard = "") -> AssigneeList:
    """List the agents that can work on cards."""
    workspace = boards_of(context).board(board).workspace
    folder = Path(workspace.partition(":")[2] or ".")
    files = PromptFiles(context.home.root, Path.home()).all(folder, "agent")
    plain = Assignee(name=PLAIN_AGENT, description=t("Hermes itself, without an agent"))
    return AssigneeList(
        assignees=[
            plain,
            *(
                Assignee(name=one.name, description=one.description)
                for one in files
                if one.is_trusted
            ),
        ]
    )

"""The common part of a worker's tools: the run they belong to, its board, and how their errors reach the model."""

import asyncio
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from hermes.app.app import App
from hermes.app.boards.board_service import Boards
from hermes.errors import HermesError, ToolFailed
from hermes.schema.boards import Card, CardRun
from hermes.schema.tool_spec import ToolResult

TaskId = Annotated[str, Meta(description="Id of a card; empty for your own.")]
OwnBoard = Annotated[str, Meta(description="Your board; may be left out.")]
AnyBoard = Annotated[str, Meta(description="A board; empty for your own.")]


class CardToolset:
    """Tools of one run."""

    def __init__(self, app: App, run: CardRun) -> None:
        self._app = app
        self._run = run
        self._boards = Boards(app)

    @property
    def _by(self) -> str:
        return f"worker of {self._run.card}"

    async def _done(self, work: Callable[[], str]) -> ToolResult:
        """Runs work that blocks on the disk, and converts its errors for the model."""
        try:
            return ToolResult(text=await asyncio.to_thread(work))
        except ToolFailed:
            raise
        except HermesError as error:
            raise ToolFailed(error.message, hint=error.hint) from error

    def _own_board(self, name: str, board: str = "") -> Card:
        """Returns a card of the run's board, by default its own. Raises ToolFailed for another board."""
        self._require_own_board(board)
        card = self._boards.find(name or self._run.card)
        if card.board != self._run.board:
            raise ToolFailed(
                f"{card.id} is on another board.", hint=_own_board_only(self._run.board)
            )
        return card

    def _require_own_board(self, board: str) -> None:
        """Raises ToolFailed if a tool that makes changes names a board other than the run's."""
        if board not in ("", self._run.board):
            raise ToolFailed(
                f"{board} is not your board.", hint=_own_board_only(self._run.board)
            )

    def _card_to_read(self, name: str, board: str) -> Card:
        """Returns a card of a board, or of any board if none is named; by default the run's own."""
        card = self._boards.find(name or self._run.card)
        if board not in ("", card.board):
            raise ToolFailed(
                f"{card.id} is on the board {card.board}.", hint="Leave board out."
            )
        return card


def _own_board_only(board: str) -> str:
    return f"You can read other boards, but change only your own: {board}."

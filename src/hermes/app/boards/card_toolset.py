"""What all tools of a worker share: the run they belong to, its board, and how their errors reach the model."""

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
        """Runs work that waits for the disk, and turns its errors into the model's."""
        try:
            return ToolResult(text=await asyncio.to_thread(work))
        except ToolFailed:
            raise
        except HermesError as error:
            raise ToolFailed(error.message, hint=error.hint) from error

    def _own_board(self, name: str) -> Card:
        """A card of the run's board; its own if there is no name."""
        card = self._boards.find(name or self._run.card)
        if card.board != self._run.board:
            raise ToolFailed(
                f"{card.id} is on another board.", hint="You work on your board only."
            )
        return card

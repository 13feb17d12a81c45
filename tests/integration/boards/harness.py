"""An app with boards, a clock that the test moves, a scripted model and a dispatcher."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from hermes.app import App, build
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.app.boards.dispatcher import Dispatcher
from hermes.events import Bus
from hermes.schema.boards import Card
from hermes.settings import Home, Secrets, Settings
from hermes.settings.boards import BoardSettings
from hermes.testing import FakeClock
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

NOON = 1_763_380_800.0
Respond = Callable[[Recorded], ScriptedResponse]


def call(name: str, **arguments: Any) -> ScriptedResponse:
    text = msgspec.json.encode(arguments).decode()
    return ScriptedResponse(calls=(ServedCall(name, text),))


COMPLETE = call("kanban_complete", summary="All of it is done.")
BYE = ScriptedResponse(text="Bye.")


class BoardBench:
    """An app with a clock that the test moves, a model that is scripted, and a dispatcher."""

    def __init__(self, app: App, clock: FakeClock, server: ModelServer) -> None:
        self.app = app
        self.clock = clock
        self.server = server
        self.secrets = Secrets(
            {}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        )
        self.boards = Boards(app)
        self.told: list[dict[str, Any]] = []
        app.bus.subscribe("kanban.**", lambda event: self.told.append(dict(event)))
        self.dispatcher = Dispatcher(app, self.secrets)

    @property
    def delivered(self) -> list[tuple[str, str]]:
        """The chats and texts that are left to a gateway."""
        return [(one.target, one.body) for one in self.app.store.sends.open()]

    def card(self, title: str = "do it", **more: Any) -> Card:
        return self.boards.create("", CardDraft(title=title, **more))

    def now(self, card: Card) -> Card:
        return self.boards.find(card.id)

    async def work(self) -> None:
        """Steps until nothing starts and nothing runs."""
        async with asyncio.timeout(60):
            while True:
                await self.dispatcher.step()
                if not self.dispatcher.running:
                    await self.dispatcher.notices.join()
                    return
                await self.dispatcher.finished()

    def outcomes(self, card: Card) -> list[str]:
        """How the runs of a card ended, the oldest first."""
        runs = self.boards.read(lambda reader: reader.runs(card.id))
        return [run.outcome for run in reversed(runs)]


@asynccontextmanager
async def board_bench(
    tmp_path: Path,
    *replies: ScriptedResponse,
    respond: Respond | None = None,
    sections: Mapping[str, Any] | None = None,
    **limits: Any,
) -> AsyncIterator[BoardBench]:
    clock = FakeClock(NOON)
    settings = Settings(boards=BoardSettings(**limits), **(sections or {}))
    async with ModelServer(*replies, repeat=True, respond=respond) as server:
        with build(settings, Home(tmp_path / "home"), bus=Bus(), clock=clock) as app:
            made = BoardBench(app, clock, server)
            try:
                yield made
            finally:
                await made.dispatcher.close()


def close_once(request: Recorded) -> ScriptedResponse:
    """Completes the card in the first request of a session, and says goodbye afterwards."""
    return BYE if b"The card is closed" in request.body else COMPLETE

"""A card that asks for approval in the process that runs it, answered in another process: terminal, page and chat."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from tests.fakes.telegram_server import TelegramServer
from tests.integration.dashboard.harness import opened as dashboard
from tests.integration.gateway.harness import opened as gateway
from tests.integration.gateway.harness import until

from hermes.app import App, build
from hermes.app.agent import Agent
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.app.boards.listing import list_board
from hermes.app.boards.queue_state import DISPATCHER_ROLE
from hermes.children.own_python import hermes_command
from hermes.core.answers import approval_hash
from hermes.errors import SessionNotFound
from hermes.events import Bus
from hermes.schema.boards import Card, CardRun
from hermes.schema.events import ApprovalRequested
from hermes.settings import Home, Secrets, Settings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

TIMEOUT_S = 40.0


def _call(name: str, **arguments: str) -> ScriptedResponse:
    text = msgspec.json.encode(arguments).decode()
    return ScriptedResponse(calls=(ServedCall(name, text),))


class Asking:
    """A model that writes a file outside of its workspace, for which a person is asked, then completes its card."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "elsewhere.txt"

    def __call__(self, request: Recorded) -> ScriptedResponse:
        if b"The card is closed" in request.body:
            return ScriptedResponse(text="Bye.")
        if b'"role":"tool"' in request.body:
            return _call("kanban_complete", summary="asked and done")
        return _call("write_file", path=str(self.file), content="written")


@asynccontextmanager
async def dispatcher_process(
    folder: Path, server: ModelServer
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`hermes kanban run` over the home in `folder`, while inside."""
    (folder / "home").mkdir(mode=0o700, exist_ok=True)
    config = f"boards:\n  folder: {folder / 'scratch'}\n"
    (folder / "home" / "config.yaml").write_text(config)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HERMES_")}  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *hermes_command("kanban", "run"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        env=kept
        | {
            "HERMES_HOME": str(folder / "home"),
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "sk-test",
        },
        cwd="/",
    )
    try:
        with build(Settings(), Home(folder / "home"), bus=Bus()) as app:
            await until(lambda: app.store.roles.held(DISPATCHER_ROLE))
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), TIMEOUT_S)


async def question(app: App, card: Card) -> tuple[str, ApprovalRequested]:
    """The session of a card, and what it asks, once it does."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            for run in _runs(app, card)[:1]:
                with contextlib.suppress(SessionNotFound):  # it is about to begin
                    for row in app.store.log.every_event(run.session):
                        if isinstance(row.event, ApprovalRequested):
                            return run.session, row.event
            await asyncio.sleep(0.02)


def _runs(app: App, card: Card) -> list[CardRun]:
    """The runs of a card that have a session, the newest first."""
    runs = Boards(app).read(lambda reader: reader.runs(card.id))
    return [run for run in runs if run.session]


async def done(app: App, card: Card) -> None:
    boards = Boards(app)
    await until(lambda: boards.find(card.id).status not in ("ready", "running"))
    assert boards.find(card.id).status == "done"


async def test_a_terminal_answers_and_the_board_says_that_the_card_waits(
    tmp_path: Path,
) -> None:
    asking = Asking(tmp_path)
    async with ModelServer(respond=asking) as server:
        with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
            async with dispatcher_process(tmp_path, server):
                draft = CardDraft(title="ask", notify=("telegram:7",))
                card = Boards(app).create("", draft)
                session, asked = await question(app, card)
                told = f"waits for your answer: hermes --resume {session}"
                await until(lambda: list_board(Boards(app)).cards[0].asks)
                (news,) = Boards(app).read(lambda reader: reader.notices())
                assert told in news.text
                assert not asking.file.exists()
                agent = Agent(app, Secrets({}, {}))
                try:
                    assert await agent.service.answer(
                        session, asked.call_id, "once", by="tui",
                        shown=approval_hash(asked),
                    )  # fmt: skip
                finally:
                    await agent.close()
                await done(app, card)
    assert asking.file.read_text() == "written"


async def test_the_page_denies_and_the_reason_reaches_the_worker(
    tmp_path: Path,
) -> None:
    asking = Asking(tmp_path)
    async with (
        ModelServer(respond=asking) as server,
        dispatcher_process(tmp_path, server),
        dashboard(tmp_path) as page,
    ):
        card = Boards(page.app).create("", CardDraft(title="ask"))
        session, asked = await question(page.app, card)
        state = await page.call("GET", f"/api/sessions/{session}")
        await page.call(
            "POST",
            f"/api/sessions/{session}/approvals/{asked.call_id}",
            {"answer": "deny", "reason": "not there", "shown": approval_hash(asked)},
            scope="approve",
        )
        await done(page.app, card)
        assert state
    assert not asking.file.exists()
    assert any(b"not there" in post.body for post in server.posts)


async def test_the_chat_that_made_a_card_is_asked_and_answers(tmp_path: Path) -> None:
    asking = Asking(tmp_path)
    async with (
        TelegramServer() as telegram,
        ModelServer(respond=asking) as server,
        dispatcher_process(tmp_path, server),
        ModelServer("hi") as other,
        gateway(tmp_path, other, telegram) as chat,
    ):
        telegram.say("hello")
        await telegram.sees("hi")
        draft = CardDraft(title="ask", origin=chat.session)
        card = Boards(chat.app).create("", draft)
        asked = await telegram.sees("Approval needed")
        telegram.press(asked, "Allow")
        await done(chat.app, card)
    assert asking.file.read_text() == "written"


async def test_what_a_killed_worker_asked_is_not_asked_any_more(tmp_path: Path) -> None:
    asking = Asking(tmp_path)
    async with ModelServer(respond=asking) as server:
        with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
            async with dispatcher_process(tmp_path, server) as process:
                card = Boards(app).create("", CardDraft(title="ask"))
                session, asked = await question(app, card)
                process.kill()
                await process.wait()
            agent = Agent(app, Secrets({}, {}))
            try:
                async with dispatcher_process(tmp_path, server):
                    await until(lambda: len(_runs(app, card)) == 2)
                    again, _ = await question(app, card)
                    assert again != session
                    shown = approval_hash(asked)
                    assert not await agent.service.answer(
                        session, asked.call_id, "once", by="tui", shown=shown
                    )
            finally:
                await agent.close()
    assert not asking.file.exists()

"""The dashboard and the gateway on PostgreSQL, while the server is away: people are told, no event loop stands still,
and everything goes on by itself."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.postgres_server import LocalPostgres, running_postgres
from tests.fakes.telegram_server import TelegramServer
from tests.integration.dashboard import harness as dashboard
from tests.integration.gateway import harness as gateway

from hermes.app import App
from hermes.schema.messages import UserMessage
from hermes.settings import Secrets, Settings
from hermes.settings.sections import StoreSettings
from hermes.store.postgres.postgres_store import PostgresStore
from hermes.testing.model_server import ModelServer

TIMEOUT_S = 60.0


@pytest.fixture
def server() -> Iterator[LocalPostgres]:
    """A server of its own, which may be stopped."""
    with running_postgres() as one:
        yield one


def loop_waits(app: App) -> int:
    """How often an event loop stood still for the store."""
    assert isinstance(app.store, PostgresStore)
    return app.store._database.loop_waits


async def test_the_dashboard_tells_of_an_outage_and_goes_on(
    tmp_path: Path, server: LocalPostgres
) -> None:
    settings = Settings(store=StoreSettings(url=server.url()))
    async with ModelServer("before", "after") as model:
        keys = {"OPENAI_API_KEY": gateway.KEY, "OPENAI_BASE_URL": model.url}
        async with (
            dashboard.opened(tmp_path, settings, Secrets(keys, {})) as harness,
            harness.socket("/api/feed?pattern=store.*,agent.turn.*") as feed,
        ):
            begun = await harness.call(
                "POST", "/api/sessions", {"cwd": str(tmp_path), "text": "one"}
            )
            session = begun["id"]
            path = f"/api/sessions/{session}/messages"
            await dashboard.frames(feed, lambda one: one["type"] == "agent.turn.ended")
            waits = loop_waits(harness.app)
            await asyncio.to_thread(server.stop)
            sending = asyncio.create_task(
                harness.call("POST", path, {"text": "two"}, scope="chat")
            )
            await dashboard.frames(feed, lambda one: one["type"] == "store.unreachable")
            async with harness.socket("/api/feed?pattern=store.*") as late:
                greeting = await dashboard.frames(
                    late, lambda one: one["type"] == "store.unreachable"
                )
                assert greeting[0]["type"] == "feed.hello"
            page = await harness.client.get("/login")
            assert page.status_code == 200
            assert not sending.done()
            await asyncio.to_thread(server.start)
            await dashboard.frames(feed, lambda one: one["type"] == "store.reachable")
            await asyncio.wait_for(sending, TIMEOUT_S)
            await dashboard.frames(feed, lambda one: one["type"] == "agent.turn.ended")
            said = (await harness.call("GET", path))["messages"]
            assert loop_waits(harness.app) == waits
    assert [one["text"] for one in said] == ["one", "before", "two", "after"]


async def test_a_chat_is_told_of_an_outage_and_answered_afterwards(
    tmp_path: Path, server: LocalPostgres
) -> None:
    store = StoreSettings(url=server.url())
    async with (
        TelegramServer() as telegram,
        ModelServer("before", "after") as model,
        gateway.opened(tmp_path, model, telegram, store=store) as harness,
    ):
        telegram.say("one")
        await telegram.sees("before")
        await gateway.until(lambda: harness.gateway.is_idle)
        waits = loop_waits(harness.app)
        await asyncio.to_thread(server.stop)
        telegram.say("two")
        await telegram.sees("Store unreachable, waiting")
        assert telegram.unacknowledged
        await asyncio.to_thread(server.start)
        await telegram.sees("after")
        await gateway.until(lambda: harness.gateway.is_idle)
        assert loop_waits(harness.app) == waits
        said = await asyncio.to_thread(
            lambda: harness.app.store.log.messages(harness.session)
        )
        assert sum("unreachable" in text for text in telegram.texts()) == 1
    texts = [one.text for one in said if isinstance(one, UserMessage)]
    assert texts == ["one", "two"]

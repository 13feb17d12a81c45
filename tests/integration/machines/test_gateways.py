"""Two gateways over one store: one holds the connection to a platform, the other takes over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.machines import until
from tests.fakes.postgres_server import LocalPostgres
from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import Harness, opened

from hermes.settings.sections import StoreSettings
from hermes.testing.model_server import ModelServer


@asynccontextmanager
async def gateway(
    folder: Path, model: ModelServer, telegram: TelegramServer, url: str
) -> AsyncIterator[Harness]:
    async with opened(folder, model, telegram, store=StoreSettings(url=url)) as one:
        yield one


def state_of(one: Harness) -> str:
    return "".join(part.state for part in one.gateway.status.parts)


async def test_another_gateway_takes_over_and_nothing_is_doubled(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url = postgres.new_url()
    schema = url.rpartition("=")[2]
    async with (
        TelegramServer() as telegram,
        ModelServer("first answer", "second answer", "third answer") as model,
    ):
        async with gateway(tmp_path / "a", model, telegram, url) as a:
            await until(lambda: state_of(a) == "connected")
            async with gateway(tmp_path / "b", model, telegram, url) as b:
                telegram.say("hi")
                await telegram.sees("first answer")
                await until(lambda: state_of(b) == "waiting")
                # As if a had been frozen for longer than its lease, and b had been faster.
                theft = f"UPDATE {schema}.roles SET owner = 'elsewhere:1:x', token = token + 1, expires = 0"  # noqa: S608
                await asyncio.to_thread(postgres.sql, theft)
                await until(lambda: state_of(b) == "connected")
                await until(lambda: "telegram" not in a.gateway.senders)
                telegram.say("again")
                await telegram.sees("second answer")
            await until(lambda: state_of(a) == "connected")
            telegram.say("once more")
            await telegram.sees("third answer")
        assert telegram.texts() == ["first answer", "second answer", "third answer"]
        assert len(model.posts) == 3

"""Other settings while it runs: a platform that is taken away leaves nothing behind, and nothing is lost meanwhile."""

from pathlib import Path

from tests.fakes.telegram_server import TOKEN, TelegramServer
from tests.integration.gateway.harness import KEY, opened, settings_for, until

from hermes.settings import Secrets, Settings
from hermes.testing.model_server import ModelServer


async def test_a_platform_that_is_taken_away_leaves_nothing_and_what_was_said_meanwhile_waits_for_it(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("hello", "said meanwhile") as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        gateway = harness.gateway
        telegram.say("hi")
        await telegram.sees("hello")
        model_only = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url}
        await gateway.reload(Settings(), Secrets(model_only, {}))
        assert gateway.senders == {}
        await until(lambda: gateway.is_idle)
        service = gateway.agent.service
        await service.submit(harness.session, "go on")
        await service.idle(harness.session)
        await until(lambda: gateway.is_idle)
        await gateway.reload(
            settings_for(telegram, tmp_path),
            Secrets({**model_only, "TELEGRAM_BOT_TOKEN": TOKEN}, {}),
        )
        await telegram.sees("said meanwhile")
        await until(lambda: gateway.is_idle)

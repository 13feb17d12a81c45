"""A chat app is answered in the language that it tells about its user."""

from pathlib import Path
from typing import Any

from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import opened

from hermes.testing.model_server import ModelServer


async def test_a_chat_is_answered_in_the_language_of_its_user(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("hi") as model,
        opened(tmp_path, model, telegram),
    ):
        telegram.say("/nothing", **_from("de"))
        await telegram.sees("Es gibt keinen Befehl /nothing. /help listet sie auf.")
        telegram.say("/unknown")  # the app did not say: the language stays
        await telegram.sees("Es gibt keinen Befehl /unknown.")
        telegram.say("/nothing", **_from("pt-br"))
        await telegram.sees("Não existe o comando /nothing.")


def _from(language: str) -> dict[str, Any]:
    person = {"id": 1, "is_bot": False, "first_name": "Ada"}
    return {"from": {**person, "language_code": language}}

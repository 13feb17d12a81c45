"""A gateway on loopback with a home of its own: a fake Telegram, a scripted model, and people who write."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from tests.fakes.telegram_server import TOKEN, TelegramServer

from hermes.app import App, build
from hermes.core.ports import Ids
from hermes.events.bus import Bus
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import GatewaySettings, TelegramSettings
from hermes.settings.media import MediaSettings
from hermes.settings.models import ModelSettings
from hermes.settings.sections import CodexSettings, StoreSettings
from hermes.surfaces.gateway.gateway import Gateway
from hermes.testing.model_server import ModelServer

PATIENCE = 20.0
OWNER = 1
KEY = "sk-test-0000000000000000"


class Harness:
    """What a test sees of it."""

    def __init__(
        self, app: App, telegram: TelegramServer, model: ModelServer, gateway: Gateway
    ) -> None:
        self.app = app
        self.telegram = telegram
        self.model = model
        self.gateway = gateway

    @property
    def session(self) -> str:
        """The session of the owner's chat."""
        binding = self.app.store.chats.find(f"telegram/{OWNER}")
        assert binding is not None
        return binding.session


NO_OCR = MediaSettings(vision="off")
"""OCR takes seconds to load; `test_vision` tries it."""


def settings_for(telegram: TelegramServer, folder: Path, /, **more: object) -> Settings:
    gateway = GatewaySettings(
        platforms=("telegram",),
        owners=(f"telegram:{OWNER}",),
        folder=str(folder / "work"),
        telegram=TelegramSettings(api_url=telegram.url, per_second=1000.0),
        port=0,
        drain_timeout=5.0,
    )
    model = more.pop("model", ModelSettings())
    assert isinstance(model, ModelSettings)
    store = more.pop("store", StoreSettings())
    assert isinstance(store, StoreSettings)
    media = more.pop("media", NO_OCR)
    assert isinstance(media, MediaSettings)
    codex = more.pop("codex", CodexSettings())
    assert isinstance(codex, CodexSettings)
    section = msgspec.structs.replace(gateway, **more)
    return Settings(gateway=section, model=model, store=store, media=media, codex=codex)


@asynccontextmanager
async def opened(
    folder: Path,
    model: ModelServer,
    telegram: TelegramServer,
    ids: Ids | None = None,
    /,
    **more: object,
) -> AsyncIterator[Harness]:
    """A gateway that runs in this process, over a home in `folder`."""
    secrets = Secrets(
        {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": model.url,
        },
        {},
    )
    with build(
        settings_for(telegram, folder, **more),
        Home(folder / "home"),
        bus=Bus(),
        ids=ids,
    ) as app:
        gateway = Gateway(app, secrets)
        await gateway.start()
        try:
            yield Harness(app, telegram, model, gateway)
        finally:
            await asyncio.wait_for(gateway.stop(), PATIENCE)


async def until(holds: Callable[[], object]) -> None:
    """Waits until that holds; for what nothing tells of."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - other processes can't set an event of ours
            await asyncio.sleep(0.02)

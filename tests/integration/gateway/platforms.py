"""A gateway on loopback with one platform of choice, a home of its own and a scripted model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from tests.integration.gateway.harness import KEY, NO_OCR, PATIENCE

from hermes.app import App, build
from hermes.events.bus import Bus
from hermes.schema.messages import Message
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import GatewaySettings
from hermes.settings.media import MediaSettings
from hermes.surfaces.gateway.gateway import Gateway
from hermes.surfaces.gateway.sender import Counters
from hermes.surfaces.gateway.status import PartStatus
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63f8cfc000000301010018dd8db00000000049454e44ae426082"
)


class Running:
    """What a test sees of it."""

    def __init__(self, app: App, gateway: Gateway, platform: str) -> None:
        self.app = app
        self.gateway = gateway
        self._platform = platform

    @property
    def counters(self) -> Counters:
        return self.gateway.senders[self._platform].counters

    @property
    def status(self) -> PartStatus:
        found = (one for one in self.gateway.status.parts if one.name == self._platform)
        return next(found, PartStatus(name=self._platform))

    def said(self, key: str) -> list[Message]:
        """The conversation of a place."""
        binding = self.app.store.chats.find(key)
        assert binding is not None, key
        return self.app.store.log.messages(binding.session)


@asynccontextmanager
async def running(
    folder: Path,
    model: ModelServer,
    secrets: dict[str, str],
    settings: GatewaySettings,
    media: MediaSettings = NO_OCR,
) -> AsyncIterator[Running]:
    """A gateway that runs in this process, over a home in `folder`; it can be run again over the same one."""
    every = Secrets(
        {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url, **secrets}, {}
    )
    gateway = msgspec.structs.replace(
        settings, folder=str(folder / "work"), port=0, drain_timeout=5.0
    )
    with build(
        Settings(gateway=gateway, media=media), Home(folder / "home"), bus=Bus()
    ) as app:
        opened = Gateway(app, every)
        await opened.start()
        try:
            yield Running(app, opened, settings.platforms[0])
        finally:
            await asyncio.wait_for(opened.stop(), PATIENCE)


def asks_to_write(request: Recorded) -> ScriptedResponse:
    """A model that writes a file for which Hermes asks, and says `written` whatever became of it."""
    if b'"role":"tool"' in request.body.replace(b" ", b""):
        return ScriptedResponse(text="written")
    call = ServedCall("write_file", '{"path": "/etc/motd", "content": "x"}')
    return ScriptedResponse(calls=(call,))

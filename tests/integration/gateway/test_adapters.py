"""An adapter of one page that a plugin brings, and what the port leaves to the gateway."""

import asyncio
from pathlib import Path

from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import KEY, OWNER, PATIENCE, opened, until

from hermes.app import build
from hermes.events.bus import Bus
from hermes.plugins import PluginRegistry
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import GatewaySettings
from hermes.surfaces.gateway.gateway import Gateway
from hermes.surfaces.gateway.registry import configured_platforms
from hermes.testing.model_server import ModelServer

_ADAPTER = '''
import asyncio
from pathlib import Path
from hermes.surfaces.gateway.port import Adapter, Chat, Inbound, Limits, Person


class Files(Adapter):
    """Says what is in a file, and writes answers beside it."""

    name = "files"
    limits = Limits(text=40, edit=False, buttons=False, typing=0.0)

    def __init__(self, folder):
        self.folder = folder

    async def run(self, inlet):
        await inlet.connected("the folder")
        said = (self.folder / "said.txt").read_text()
        await inlet.receive(Inbound(id="1", chat=Chat("files", "here"), person=Person("me"), text=said))
        await asyncio.Event().wait()

    async def send(self, chat, out):
        with (self.folder / "answers.txt").open("a") as file:
            file.write(out.text + "\\n===\\n")
        return "1"


ADAPTERS = {"files": lambda harness: Files(harness.app.home.root)}
'''


def plugin(home: Path, name: str, code: str) -> Path:
    folder = home / "plugins" / name
    (folder / "dashboard").mkdir(parents=True)
    (folder / "gateway").mkdir()
    (folder / "dashboard" / "manifest.json").write_text(f'{{"name": "{name}"}}')
    (folder / "gateway" / "adapter.py").write_text(code)
    return folder / "gateway" / "adapter.py"


async def test_a_plugin_brings_an_adapter_of_one_page_once_it_is_enabled(
    tmp_path: Path,
) -> None:
    plugin(tmp_path, "files-chat", _ADAPTER)
    (tmp_path / "said.txt").write_text("hello")
    home = Home(tmp_path)
    text = "a reply that is longer than forty characters, so that it comes in pieces"
    async with ModelServer(text) as model:
        secrets = Secrets({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url}, {})
        settings = Settings(
            gateway=GatewaySettings(owners=("files:me",), folder=str(tmp_path / "work"))
        )
        assert configured_platforms(settings, secrets, home) == []
        PluginRegistry(home).enable("files-chat")
        assert configured_platforms(settings, secrets, home) == ["files"]
        answers = tmp_path / "answers.txt"
        with build(settings, home, bus=Bus()) as app:
            gateway = Gateway(app, secrets)
            await gateway.start()
            try:
                await until(
                    lambda: answers.exists() and "pieces" in answers.read_text()
                )
            finally:
                await asyncio.wait_for(gateway.stop(), PATIENCE)
        pieces = [
            piece.strip() for piece in answers.read_text().split("===") if piece.strip()
        ]
    assert " ".join(pieces) == text
    assert all(len(piece) <= 40 for piece in pieces)


def test_a_platform_that_changes_after_it_was_looked_at_does_not_run(
    tmp_path: Path,
) -> None:
    """All plugins are looked at, then the first of them changes the second."""
    home, ran = Home(tmp_path), tmp_path / "ran"
    second = plugin(tmp_path, "b", "ADAPTERS = {'agreed': None}")
    swapped = f"from pathlib import Path; Path({str(ran)!r}).touch(); ADAPTERS = {{'swapped': None}}"
    write = f"from pathlib import Path; Path({str(second)!r}).write_text({swapped!r})"
    plugin(tmp_path, "a", f"{write}; ADAPTERS = {{'first': None}}")
    for name in ("a", "b"):
        PluginRegistry(home).enable(name)
    assert configured_platforms(Settings(), Secrets({}, {}), home) == ["first"]
    assert not ran.exists()


async def test_a_platform_that_can_not_be_made_is_shown_and_stops_no_other(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("hello") as model,
        opened(
            tmp_path, model, telegram, platforms=("nonsense", "telegram")
        ) as harness,
    ):
        telegram.say("hi", sender=OWNER)
        await telegram.sees("hello")
        await until(lambda: len(harness.gateway.status.parts) == 2)
        broken = harness.gateway.status.parts[1]
    assert (broken.name, broken.state) == ("nonsense", "failed")
    assert "There is no platform 'nonsense'" in broken.error


async def test_many_sessions_leave_nothing_behind(tmp_path: Path) -> None:
    """What is kept of a chat that is at rest does not grow with the number of chats."""
    async with TelegramServer() as telegram, ModelServer("ok", repeat=True) as model:
        async with opened(tmp_path, model, telegram, allow=("telegram:*",)) as harness:
            for sender in range(100, 140):
                telegram.say("hi", sender=sender)
            await telegram.until(lambda server: len(server.messages) == 40)
            await until(lambda: not harness.app.store.chats.busy())
            assert harness.gateway.is_idle
        assert len(model.posts) == 40

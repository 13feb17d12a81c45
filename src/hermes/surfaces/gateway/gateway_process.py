"""The gateway as a process: runs until a signal, drains, reloads on SIGHUP."""

import asyncio
import logging
import signal

from hermes.app import App
from hermes.errors import HermesError, UsageError, in_sentences
from hermes.primitives.tasks import run_until_first, running
from hermes.settings import Secrets
from hermes.settings.load import load, load_secrets
from hermes.surfaces.gateway.gateway import Gateway
from hermes.surfaces.gateway.registry import wanted
from hermes.surfaces.terminal.text import one_line

log = logging.getLogger("hermes.gateway")

_LOOK = 0.25  # seconds between looks at how platforms are


def serve(app: App, secrets: Secrets) -> None:
    """Serves until SIGINT or SIGTERM; a second one ends it at once."""
    if not wanted(app.settings, secrets, app.home):
        raise UsageError(
            "No platform is configured.",
            hint="Store a token first, such as: hermes config set TELEGRAM_BOT_TOKEN. Then see: hermes gateway --help",
        )
    asyncio.run(_serve(app, secrets))


async def _serve(app: App, secrets: Secrets) -> None:
    loop = asyncio.get_running_loop()
    stop, reload = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _stopping, stop, loop)
    loop.add_signal_handler(signal.SIGHUP, reload.set)
    gateway = Gateway(app, secrets)
    gateway.set_reload(reload)
    await gateway.start()
    print("The gateway runs. Ctrl-C drains and ends it.", flush=True)
    async with running(_tell(gateway)):
        while not stop.is_set():
            await run_until_first(stop.wait(), reload.wait())
            if reload.is_set() and not stop.is_set():
                reload.clear()
                await _reload(gateway, app)
    await gateway.stop()


async def _tell(gateway: Gateway) -> None:
    """Prints how each platform is, whenever that changes, for whoever watches."""
    told: dict[str, str] = {}
    while True:
        for part in gateway.status.parts:
            line = f"{part.name} is connected as {part.identity}."
            if part.state != "connected":
                line = f"{part.name} is not connected: {part.error}"
            if (
                part.state in {"connected", "retrying", "failed"}
                and told.get(part.name) != line
            ):
                told[part.name] = line
                print(one_line(line), flush=True)
        await asyncio.sleep(_LOOK)


async def _reload(gateway: Gateway, app: App) -> None:
    """With settings that can't be used everything stays as it is, and the status says so."""
    try:
        settings, secrets = load(home=app.home), load_secrets(home=app.home)
    except HermesError as error:
        log.error("the settings were not reloaded: %s", in_sentences(error))  # noqa: TRY400 - the words say it all
        gateway.status.problem = (
            f"The settings were not reloaded. {in_sentences(error)}"
        )
        return
    await gateway.reload(settings, secrets)
    log.info("the settings were reloaded")


def _stopping(stop: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    stop.set()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)  # the next one does what it always does

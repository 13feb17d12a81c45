"""The gateway as a process: runs until a signal, then drains; reloads on SIGHUP."""

import asyncio
import logging
import signal

from hermes.app import App
from hermes.errors import HermesError, UsageError, in_sentences
from hermes.primitives.tasks import run_until_first, running
from hermes.settings import Secrets
from hermes.settings.load import load, load_secrets
from hermes.surfaces.gateway.gateway import Gateway
from hermes.surfaces.gateway.registry import configured_platforms
from hermes.surfaces.terminal.text import one_line
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


log = logging.getLogger("hermes.gateway")

_REPORT_INTERVAL_S = 0.25


def serve(app: App, secrets: Secrets) -> None:
    """Serves until SIGINT or SIGTERM; a second one ends it at once."""
    if not configured_platforms(app.settings, secrets, app.home):
        raise UsageError(
            t("No platform is configured."),
            hint=t(
                "Store a token first, such as: hermes config set TELEGRAM_BOT_TOKEN. Then see: hermes gateway --help"
            ),
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
    print(
        t("The gateway is running. Ctrl-C stops it after running turns have finished."),
        flush=True,
    )
    async with running(_print_states(gateway)):
        while not stop.is_set():
            await run_until_first(stop.wait(), reload.wait())
            if reload.is_set() and not stop.is_set():
                reload.clear()
                await _reload(gateway, app)
    await gateway.stop()


async def _print_states(gateway: Gateway) -> None:
    """Prints the state of each platform whenever it changes."""
    printed: dict[str, str] = {}
    while True:
        for part in gateway.status.parts:
            line = t(
                "{name} is connected as {identity}.",
                name=part.name,
                identity=part.identity,
            )
            if part.state != "connected":
                line = t(
                    "{name} is not connected: {error}",
                    name=part.name,
                    error=shown_reason(part.error),
                )
            if (
                part.state in {"connected", "retrying", "failed"}
                and printed.get(part.name) != line
            ):
                printed[part.name] = line
                print(one_line(line), flush=True)
        await asyncio.sleep(_REPORT_INTERVAL_S)


async def _reload(gateway: Gateway, app: App) -> None:
    """Reloads the settings. Invalid ones change nothing, and the status says so."""
    try:
        settings, secrets = load(home=app.home), load_secrets(home=app.home)
    except HermesError as error:
        log.error("the settings were not reloaded: %s", in_sentences(error))  # noqa: TRY400 - the words say it all
        gateway.status.problem = t(
            "The settings were not reloaded. {error}", error=in_sentences(error)
        )
        return
    await gateway.reload(settings, secrets)
    log.info("the settings were reloaded")


def _stopping(stop: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    stop.set()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)  # the next signal ends the process at once

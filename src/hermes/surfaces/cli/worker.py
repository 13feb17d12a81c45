"""`hermes worker`: runs turns for other processes until a signal, then drains."""

import asyncio
import signal

from hermes.app import App, build
from hermes.app.worker import Worker
from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.commands.views import TextResult, message
from hermes.settings import Secrets
from hermes.text.translation import translator

t = translator(__name__)


@command("worker")
def run_worker(context: CommandContext) -> TextResult:
    """Run turns that gateways and dashboards leave to workers, until Ctrl-C or SIGTERM.

    A worker takes sessions of its own machine, and sessions in shared folders (`worker.places`). Processes on other
    machines are found through `store.url`. The first signal lets running turns finish; the second one ends it at once.
    """
    with build(context.settings, context.home) as app:
        done = asyncio.run(_serve(app, context.secrets))
    return message(
        t("The worker has stopped. It worked on sessions {done} times.", done=done)
    )


async def _serve(app: App, secrets: Secrets) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def stopping() -> None:
        stop.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)  # the next one ends it at once

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping)
    worker = Worker(app, secrets, lambda line: print(line, flush=True))
    await worker.start()
    print(
        t(
            "The worker is running for {place}. Ctrl-C stops it after running turns have finished.",
            place=worker.place,
        ),
        flush=True,
    )
    await stop.wait()
    await worker.drain()
    return worker.done

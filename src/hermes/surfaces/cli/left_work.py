"""`hermes agents resume`: continues background work whose chat was closed, until it is done."""

import asyncio
import signal
from typing import Annotated

from hermes.app.agent import Agent
from hermes.app.child_sessions import child_status
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.errors import HermesError, for_reader
from hermes.schema.events import TurnEnded
from hermes.settings.load import load_secrets
from hermes.surfaces.cli.answer import DONE, FAILED
from hermes.surfaces.cli.logs import start as start_log
from hermes.surfaces.terminal.run_options import Approvals
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.text import one_line

_GO_ON = (  # not translated: for the model
    "The chat was closed while you worked, which stopped you. Go on where you stopped. If a command was running, look at "
    "what it did before you run it again."
)
_SURFACE = "background"


@command("agents resume")
async def resume_agents(
    context: CommandContext,
    ids: Annotated[tuple[str, ...], Arg("background tasks, by session id", metavar="ID")],
    *,
    approvals: Annotated[Approvals, Arg("what runs without asking")] = "ask",
    model: Annotated[str, Arg("the model for this run", metavar="NAME")] = "",
) -> int:  # fmt: skip
    """Go on with background tasks that were stopped, until they are done."""
    start_log()
    app = context.app
    sessions = [app.store.sessions.find(one).id for one in ids]
    secrets = load_secrets(home=app.home)
    app.go_live(secrets, _SURFACE)
    agent = Agent(app, secrets, approvals=approvals, model=model)
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    try:
        with agent.questions.attached(_SURFACE):
            works = [_go_on(agent, one) for one in sessions]
            work = asyncio.ensure_future(asyncio.gather(*works))
            stop = asyncio.ensure_future(stopping.wait())
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            if not work.done():
                work.cancel()
    finally:
        await agent.close()
    for one in sessions:
        status = await asyncio.to_thread(child_status, app, one, parent="")
        print(one_line(f"{one} {status.state}: {status.answer or status.doing}"))
    return DONE if work.done() and not work.cancelled() and all(work.result()) else FAILED  # fmt: skip


async def _go_on(agent: Agent, session: str) -> bool:
    """Works on a session until it has nothing to do. Returns whether it did not fail."""
    service = agent.service
    try:
        if await service.was_stopped(session):
            await service.submit(session, _GO_ON, via=_SURFACE)
        else:
            await service.resume(session)
        ended: TurnEnded | None = await service.at_rest(session)
    except HermesError as error:
        say(for_reader(error))
        return False
    return ended is None or ended.reason == "done"

"""Leaving a chat while something works in the background: never silently, and it can go on without the terminal."""

import asyncio
from pathlib import Path

from tests.integration.gateway.harness import until

from hermes.app import build
from hermes.app.child_sessions import child_ids, child_status, unreported_ends
from hermes.schema.goals import ChildEnded
from hermes.schema.messages import UserMessage
from hermes.settings import Home, Settings
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

ENTER, CTRL_D = "\r", "\x04"
READY = "Ctrl-D quits ›"


def _slow_first(request: Recorded) -> ScriptedResponse:
    """The task hangs until it is told to go on."""
    if b"The chat was closed" in request.body:
        return ScriptedResponse(text="The report is written.")
    if b"write the report" in request.body:
        return ScriptedResponse(fault=ServerFault(hang="head"))
    return ScriptedResponse(text="Hello.")


async def test_quitting_names_background_work_and_the_second_time_stops_it(
    tmp_path: Path,
) -> None:
    async with ModelServer(respond=_slow_first) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("/bg write the report" + ENTER)
            await terminal.until(lambda shown: "Working on it" in shown)
            await asyncio.wait_for(server.hanging.wait(), 30)
            terminal.type(CTRL_D)
            await terminal.until(lambda shown: "Still at work: 1 background task" in shown)  # fmt: skip
            terminal.type(CTRL_D)
            await terminal.until(lambda shown: "hermes agents resume" in shown)


async def test_background_work_goes_on_without_the_terminal(tmp_path: Path) -> None:
    async with ModelServer(respond=_slow_first) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("hi" + ENTER)
            await terminal.until(lambda shown: "Hello." in shown)
            terminal.type("/bg write the report" + ENTER)
            await terminal.until(lambda shown: "Working on it" in shown)
            await asyncio.wait_for(server.hanging.wait(), 30)
            terminal.type("/quit leave" + ENTER)
            await terminal.until(
                lambda shown: "Goes on without this terminal:" in shown
            )
        with build(Settings(), Home(hermes.home)) as app:
            (parent,) = [one.id for one in app.store.sessions.recent()]
            (child,) = child_ids(app, parent)
            await until(lambda: child_status(app, child, parent=parent).state == "done")
            status = child_status(app, child, parent=parent)
            assert status.answer == "The report is written."
            rows = [row.event for row in app.store.log.every_event(child)]
            said = [one.text for one in rows if isinstance(one, UserMessage)]
            assert len(said) == 2
            await until(lambda: not unreported_ends(app, parent))
            ends = [row.event for row in app.store.log.every_event(parent) if isinstance(row.event, ChildEnded)]  # fmt: skip
            assert [one.reason for one in ends] == ["done"], "its move is not an end"

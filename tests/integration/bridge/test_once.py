"""A run of `hermes` beside a dashboard of its home: the dashboard's bus carries each of its events, once and in order,
although a row can come both ways, over the bridge and from the log."""

import asyncio
from pathlib import Path

from tests.integration.bridge.stage import Witness, until
from websockets.asyncio.client import connect

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


async def test_events_of_a_terminal_are_on_the_dashboard_once(tmp_path: Path) -> None:
    look = ServedCall(
        name="terminal", arguments='{"command": "echo hello; sleep 0.5; echo again"}'
    )
    async with ModelServer(ScriptedResponse(calls=(look,)), "It says hello.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        witness = Witness(tmp_path)
        await witness.start()
        url = f"ws://127.0.0.1:{witness.port}/api/feed"
        async with connect(
            url, additional_headers=witness.headers(), proxy=None
        ) as feed:
            await feed.recv()  # somebody watches: from now on the dashboard reads what others write to the log, too
            run = await hermes.run("--json", "--approvals", "full", "-z", "look")
            assert run.code == 0
            rows = [
                (event["session_id"], event["seq"])
                for event in run.events
                if "seq" in event
            ]
            await until(lambda: len(_rows(witness)) >= len(rows))
            # Both ways have had their turn when a row of another process has come: one that has no bridge.
            await hermes.run("sessions", "rename", rows[0][0], "another title")
            await until(lambda: len(_rows(witness)) > len(rows))
        await witness.kill()
    assert _rows(witness)[: len(rows)] == rows
    assert len(_rows(witness)) == len(set(_rows(witness))) == len(rows) + 1
    deltas = [
        event for event in witness.events() if event["type"] == "agent.message.delta"
    ]
    assert (
        len(deltas)
        == len(
            [event for event in run.events if event["type"] == "agent.message.delta"]
        )
        > 0
    )


def _rows(witness: Witness) -> list[tuple[str, int]]:
    return [
        (event["session_id"], event["seq"])
        for event in witness.events()
        if "seq" in event
    ]


async def test_a_process_that_runs_already_finds_a_dashboard_that_is_started(
    tmp_path: Path,
) -> None:
    def wait_for(name: str) -> ScriptedResponse:
        command = f"touch begun; while [ ! -e {name} ]; do sleep 0.05; done"
        return ScriptedResponse(
            calls=(
                ServedCall(name="terminal", arguments=f'{{"command": "{command}"}}'),
            )
        )

    async with ModelServer(wait_for("first"), wait_for("second"), "done") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        process = await hermes.start("--approvals", "full", "-z", "wait")
        assert process.stdin is not None
        process.stdin.close()
        await until((hermes.work / "begun").exists)
        witness = Witness(tmp_path)
        await witness.start()
        await until(lambda: any((witness.home.root / "bridge").glob("home/*")))
        (hermes.work / "first").touch()
        await until(
            lambda: (
                "agent.tool.finished" in [event["type"] for event in witness.events()]
            )
        )
        (hermes.work / "second").touch()
        await asyncio.wait_for(process.wait(), 30)
        await witness.kill()

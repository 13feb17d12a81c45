"""Hooks as a user has them: written, trusted, and run by every surface, also for children and jobs."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_HANDLER = """
import json
async def handle(event_type, context):
    with open({out!r}, "a") as file:
        file.write(json.dumps([event_type, context["platform"], context.get("message", "")]) + chr(10))
"""


def _write(hermes: InstalledHermes, out: Path) -> Path:
    folder = hermes.home / "hooks" / "note"
    folder.mkdir(parents=True)
    (folder / "HOOK.yaml").write_text('name: note\nevents: ["*"]\n')
    (folder / "handler.py").write_text(_HANDLER.format(out=str(out)))
    return folder


def _notes(out: Path) -> list[list[Any]]:
    return (
        [json.loads(line) for line in out.read_text().splitlines()]
        if out.exists()
        else []
    )


async def test_a_hook_is_listed_trusted_tried_and_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with ModelServer("one", "two") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        assert "There are no hooks" in (await hermes.run("hooks")).out
        folder = _write(hermes, out)
        assert "off until you trust it" in (await hermes.run("hooks", "list")).out
        refused = await hermes.run("hooks", "test", "note")
        assert (refused.code, "not trusted" in refused.err) == (1, True)
        await hermes.run("-z", "hi")
        assert _notes(out) == []
        assert (
            "is trusted as it is now"
            in (await hermes.run("hooks", "trust", "note")).out
        )
        assert (await hermes.run("hooks", "test", "note", "agent:end")).code == 0
        assert _notes(out) == [["agent:end", "test", "hello"]]
        out.unlink()
        await hermes.run("-z", "hi again")
        assert _notes(out) == [
            ["session:start", "cli", ""],
            ["agent:start", "cli", "hi again"],
            ["agent:step", "cli", ""],
            ["agent:end", "cli", "hi again"],
            ["session:end", "cli", ""],
        ]
        (folder / "handler.py").write_text(
            "def handle(event_type, context): raise ValueError('new')\n"
        )
        (state,) = json.loads((await hermes.run("hooks", "list", "--json")).out)[
            "hooks"
        ]
        assert state["state"] == "changed"
        assert (
            "was not trusted" not in (await hermes.run("hooks", "untrust", "note")).out
        )


async def test_children_and_jobs_fire_hooks_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    child = ServedCall(
        name="delegate", arguments='{"action": "start", "task": "count to three"}'
    )
    async with ModelServer(
        ScriptedResponse(calls=(child,)), "1 2 3", "The child counted.", "job done"
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        _write(hermes, out)
        await hermes.run("hooks", "trust", "note")
        await hermes.run("-z", "let a child count")
        kinds = [(kind, platform) for kind, platform, _ in _notes(out)]
        assert kinds.count(("session:start", "delegate")) == 1
        assert (
            kinds.count(("agent:start", "delegate"))
            == kinds.count(("agent:end", "delegate"))
            == 1
        )
        assert kinds.index(("agent:start", "cli")) < kinds.index(
            ("agent:start", "delegate")
        )
        assert kinds.index(("agent:end", "delegate")) < kinds.index(
            ("agent:end", "cli")
        )
        out.unlink()
        added = await hermes.run(
            "cron", "add", "every day at 9", "say something", "--name", "daily"
        )
        assert added.code == 0, added
        await hermes.run("cron", "run", "daily")
        assert [kind for kind, platform, _ in _notes(out) if platform == "cron"] == [
            "session:start", "agent:start", "agent:step", "agent:end", "session:end",
        ]  # fmt: skip


async def test_the_dashboard_fires_hooks(tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with ModelServer("from the page") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        _write(hermes, out)
        await hermes.run("hooks", "trust", "note")
        dashboard = await hermes.start("dashboard", "--port", "0", "--no-open")
        assert dashboard.stdout is not None
        try:
            url = (
                (await asyncio.wait_for(dashboard.stdout.readline(), 30))
                .decode()
                .split()[-1]
            )
            token = (
                await hermes.run("dashboard", "--print-token", "--scope", "chat")
            ).out.strip()
            async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
                await client.post(
                    "/api/sessions",
                    json={"text": "hello"},
                    headers={"Authorization": f"Bearer {token}"},
                )
            async with asyncio.timeout(30):
                while ["agent:end", "dashboard", "hello"] not in _notes(out):  # noqa: ASYNC110 - another process writes it
                    await asyncio.sleep(0.05)
        finally:
            dashboard.terminate()
            await dashboard.communicate()
    assert [kind for kind, _, _ in _notes(out)] == [
        "session:start", "agent:start", "agent:step", "agent:end", "session:end",
    ]  # fmt: skip


async def test_commands_of_the_terminal_fire_hooks_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with ModelServer("hello") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        _write(hermes, out)
        await hermes.run("hooks", "trust", "note")
        async with hermes.terminal() as terminal:
            await terminal.sees("Ctrl-D quits ›")
            for typed, told in (
                ("hi", "agent:end"),
                ("/cost", "command:cost"),
                ("/new", "session:reset"),
            ):
                terminal.type(f"{typed}\r")
                async with asyncio.timeout(30):
                    while told not in {kind for kind, *_ in _notes(out)}:  # noqa: ASYNC110 - another process writes it
                        await asyncio.sleep(0.05)
            terminal.type("\x04")
            assert await terminal.ends() == 0
    kinds = [kind for kind, platform, _ in _notes(out) if platform == "cli"]
    assert [kind for kind in kinds if not kind.startswith("agent:")] == [
        "session:start", "command:cost", "command:new", "session:start", "session:reset", "session:end",
    ]  # fmt: skip

"""`hermes codex` and what `hermes doctor` says of it, as a user runs them, with the real codex program."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.codex_program import config_for, installed_codex

from hermes.testing.fetched import NotFetched
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


@pytest.fixture(scope="session")
def program() -> Path:
    try:
        return installed_codex()
    except NotFetched as why:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(why))


def environ(folder: Path, program: Path | None) -> dict[str, str]:
    (folder / "user").mkdir(exist_ok=True)
    found = f"{program.parent}{os.pathsep}" if program else ""
    return {"HOME": str(folder / "user"), "PATH": f"{found}/usr/bin:/bin"}


async def test_on_is_refused_without_the_program_and_says_how_to_get_it(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)
    refused = await hermes.run("codex", "on", **environ(tmp_path, None))
    assert refused.code == 1
    assert "npm install -g @openai/codex" in refused.err
    assert not (hermes.home / "config.yaml").exists()


async def test_on_status_doctor_and_off(tmp_path: Path, program: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    here = environ(tmp_path, program)
    config = tmp_path / "user" / ".codex" / "config.toml"
    config.parent.mkdir(parents=True)
    mine = f'model = "gpt-5.5" # sk-{"k" * 24}\n'
    config.write_text(mine)
    shown = await hermes.run("codex", "on", "--dry-run", **here)
    assert '+default_permissions = ":workspace"' in shown.out
    assert "kkkk" not in shown.out
    assert "# ********" in shown.out
    assert config.read_text() == mine
    on = await hermes.run("codex", "on", **here)
    assert (on.code, on.err) == (0, "")
    status = await hermes.run("codex", **here)
    assert "Engine of new sessions: codex" in status.out
    assert "with Hermes' block" in status.out
    report = json.loads((await hermes.run("doctor", "--json", **here)).out)
    said: dict[str, Any] = {
        one["message"]: one for one in report["findings"] if one["check"] == "codex"
    }
    assert said["codex 0.166.0"]["status"] == "ok"
    assert said["not signed in"]["to_do"].startswith("Run: codex login")
    assert any("with Hermes' block" in message for message in said)
    off = await hermes.run("codex", "off", **here)
    assert off.code == 0
    assert config.read_text() == mine
    again = json.loads((await hermes.run("doctor", "--json", **here)).out)
    assert not any(one["check"] == "codex" for one in again["findings"])


async def test_a_conversation_begins_on_codex_comes_back_to_hermes_and_is_lent_tools(
    tmp_path: Path, program: Path
) -> None:
    lent = ScriptedResponse(
        calls=(
            ServedCall(
                "todo",
                '{"items": [{"text": "boil water", "status": "pending"}]}',
                namespace="mcp__hermes",
            ),
        )
    )
    async with ModelServer("From codex.", lent, "Noted.", "From Hermes.") as server:
        hermes = InstalledHermes(tmp_path)
        here = environ(tmp_path, program)
        config = tmp_path / "user" / ".codex" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(config_for(server.url))
        on = await hermes.run("codex", "on", **here)
        assert (on.code, on.err) == (0, "")
        first = await hermes.run("-z", "who are you?", **here)
        assert (first.code, first.out) == (0, "From codex.\n"), first.err
        assert (
            "codex runs your turns, with its own model"
            in (await hermes.run("model", "show", **here)).out
        )
        second = await hermes.run("--continue", "--json", "-z", "note it", **here)
        assert second.code == 0, second.err
        events = [json.loads(line) for line in second.out.splitlines()]
        assert {
            event["runtime"]
            for event in events
            if event["type"] == "agent.turn.started"
        } == {"codex"}
        results = [event for event in events if event["type"] == "agent.tool.finished"]
        assert len(results) == 2, (
            results
        )  # the lent tool itself, and codex's call of it
        assert all(
            event.get("ok", True) and "boil water" in event["text"] for event in results
        ), results
        await hermes.run("codex", "off", **here)
        service = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        third = await hermes.run("--continue", "-z", "and now?", **here, **service)
        assert (third.code, third.out) == (0, "From Hermes.\n"), third.err
        said = json.dumps(json.loads(server.posts[-1].body)["messages"])
        assert "From codex." in said
        assert "boil water" in said


async def test_codex_in_plan_mode_only_reads_until_its_plan_is_accepted(
    tmp_path: Path, program: Path
) -> None:
    plan = {
        "title": "Make tea",
        "steps": ["boil water"],
        "files": ["tea.txt"],
        "risks": ["none"],
        "check": "taste it",
    }

    def run(script: str, number: str) -> ScriptedResponse:
        arguments = json.dumps({"cmd": script})
        return ScriptedResponse(calls=(ServedCall("exec_command", arguments, number),))

    presented = ServedCall(
        "present_plan", json.dumps(plan), "call_2", namespace="mcp__hermes"
    )
    replies = (
        run("echo early > early.txt; cat notes.txt", "call_1"),
        ScriptedResponse(calls=(presented,)),
        ScriptedResponse(text="Starting."),
        run("echo tea > tea.txt", "call_3"),
        ScriptedResponse(text="The tea is made."),
        run("echo more > more.txt", "call_4"),
        ScriptedResponse(text="No more tea."),
    )
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path)
        (hermes.work / "notes.txt").write_text("two cups")
        here = environ(tmp_path, program)
        config = tmp_path / "user" / ".codex" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(config_for(server.url))
        await hermes.run("codex", "on", **here)
        async with hermes.terminal(
            "--approvals", "plan", HOME=here["HOME"], PATH=here["PATH"]
        ) as terminal:
            await terminal.sees("Ctrl-D quits ›")
            terminal.type("plan some tea\r")
            await terminal.until(lambda shown: "a number or a key" in shown)
            assert "boil water" in terminal.shown
            assert not (hermes.work / "early.txt").exists()
            assert b"two cups" in server.posts[-1].body
            terminal.type("3")
            await terminal.until(lambda shown: "The tea is made." in shown)
            terminal.type("/approvals plan\r")
            await terminal.until(lambda shown: "· plan ·" in shown)
            terminal.type("more tea\r")
            await terminal.until(lambda shown: "No more tea." in shown)
        assert not (hermes.work / "more.txt").exists()
        assert (hermes.work / "tea.txt").read_text() == "tea\n"

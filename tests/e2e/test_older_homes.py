"""Homes that earlier versions of Hermes made, in `tests/data/homes`: each opens and goes on.

`2026-11-15` was made by the first version that could answer a question (commit 917b35f4), `2026-11-16` by the last one
before commands became typed functions (f74d40c5). Both had settings and a secret, and were killed in the middle of the
third turn of their session. The newer home also had a job, a note, a skill and rules.
"""

import tarfile
from pathlib import Path

import msgspec
import pytest

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer

HOMES = Path(__file__).parents[1] / "data/homes"
ALL = ("2026-11-15", "2026-11-16")
NEWEST = ALL[-1]


def older(folder: Path, name: str, url: str = "") -> InstalledHermes:
    """An installed Hermes with the home that an earlier version made."""
    hermes = InstalledHermes(folder, url)
    hermes.home.mkdir(mode=0o700)
    with tarfile.open(HOMES / f"{name}.tar.xz") as archive:
        archive.extractall(hermes.home, filter="data")
    return hermes


@pytest.mark.parametrize("name", ALL)
async def test_every_row_is_there_and_whole(tmp_path: Path, name: str) -> None:
    hermes = older(tmp_path, name)
    checked = await hermes.run("sessions", "check")
    assert checked.code == 0
    assert "no problems" in checked.out
    shown = await hermes.run("sessions", "show", "last")
    for words in ("write a file", "Let me write it.", "It says hello.", "and now?"):
        assert words in shown.out


@pytest.mark.parametrize("name", ALL)
async def test_the_session_goes_on_after_the_turn_that_was_killed(
    tmp_path: Path, name: str
) -> None:
    async with ModelServer("Once more: hello.") as server:
        hermes = older(tmp_path, name, server.url)
        done = await hermes.run("--continue", "and once more?")
        assert (done.code, done.out) == (0, "Once more: hello.\n"), done.err
        messages = msgspec.json.decode(server.posts[-1].body)["messages"]
    texts = [message.get("content") for message in messages]
    assert texts.count("write a file") == 1
    assert "Written." in texts
    assert texts.index("and now?") < texts.index("and once more?")
    assert messages[0]["role"] == "system"
    calls = [call["id"] for one in messages for call in one.get("tool_calls") or ()]
    results = [one["tool_call_id"] for one in messages if one["role"] == "tool"]
    assert results == calls
    assert "no problems" in (await hermes.run("sessions", "check")).out


@pytest.mark.parametrize("name", ALL)
async def test_settings_and_secrets_still_count(tmp_path: Path, name: str) -> None:
    hermes = older(tmp_path, name)
    assert "per_day" in (hermes.home / "config.yaml").read_text()
    shown = await hermes.run("config", "show")
    assert shown.code == 0
    for key, value in (("budget.per_day", "200k tokens"), ("display.color", "never")):
        line = next(line for line in shown.out.splitlines() if key in line)
        assert value in line
        assert "config.yaml" in line
    assert "TRACKER_API_KEY" in shown.out
    assert "tracker-key-1234567890" not in shown.out
    assert (await hermes.run("config", "check")).code == 0


async def test_jobs_notes_skills_and_rules_are_there(tmp_path: Path) -> None:
    hermes = older(tmp_path, NEWEST)
    assert "every weekday at 9" in (await hermes.run("cron", "list")).out
    memory = await hermes.run("memory", "show")
    assert "The build server is called larch." in memory.out
    assert "release-notes" in (await hermes.run("skills", "list")).out
    rules = await hermes.run("policy", "show")
    assert "docker push" in rules.out
    assert "write_file in /tmp: made.txt" in rules.out
    refused = await hermes.run("policy", "check", "docker push example")
    assert refused.code != 0

"""`hermes codex` and what `hermes doctor` says of it, as a user runs them, with the real codex program."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hermes.testing.codex_program import NoCodex, installed_codex
from hermes.testing.installed import InstalledHermes


@pytest.fixture(scope="session")
def program() -> Path:
    try:
        return installed_codex()
    except NoCodex as why:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(why))


def environ(folder: Path, program: Path | None) -> dict[str, str]:
    (folder / "user").mkdir(exist_ok=True)
    found = f"{program.parent}{os.pathsep}" if program else ""
    return {"HOME": str(folder / "user"), "PATH": f"{found}/usr/bin:/bin"}


async def test_on_is_refused_without_the_program_and_says_how_to_get_it(tmp_path: Path) -> None:
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
    config.write_text('model = "gpt-5.5"\n')
    shown = await hermes.run("codex", "on", "--dry-run", **here)
    assert '+default_permissions = ":workspace"' in shown.out
    assert config.read_text() == 'model = "gpt-5.5"\n'
    on = await hermes.run("codex", "on", **here)
    assert (on.code, on.err) == (0, "")
    status = await hermes.run("codex", **here)
    assert "Who runs new sessions: codex." in status.out
    assert "with Hermes' block" in status.out
    report = json.loads((await hermes.run("doctor", "--json", **here)).out)
    said: dict[str, Any] = {one["message"]: one for one in report["findings"] if one["check"] == "codex"}
    assert said["codex 0.166.0"]["status"] == "ok"
    assert said["not signed in"]["to_do"].startswith("Run: codex login")
    assert any("with Hermes' block" in message for message in said)
    off = await hermes.run("codex", "off", **here)
    assert off.code == 0
    assert config.read_text() == 'model = "gpt-5.5"\n'
    again = json.loads((await hermes.run("doctor", "--json", **here)).out)
    assert not any(one["check"] == "codex" for one in again["findings"])

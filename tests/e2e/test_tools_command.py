"""`hermes tools` as a user runs it: the settings decide what is offered."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERMES = Path(sys.executable).with_name("hermes")


def hermes(home: Path, *arguments: str) -> str:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    done = subprocess.run(
        [HERMES, *arguments], env={**kept, "HERMES_HOME": str(home)}, capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    return done.stdout


def offered(home: Path, *arguments: str) -> set[str]:
    tools = json.loads(hermes(home, "tools", "--json", *arguments))["tools"]
    return {tool["name"] for tool in tools if tool["offered"]}


def test_settings_and_surface_decide_what_is_offered(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert {
        "terminal",
        "apply_patch",
        "run_python",
        "session_search",
        "ask_user",
    } <= offered(home)
    assert "ask_user" not in offered(home, "--surface", "cron")
    hermes(home, "config", "set", "tools.disabled", '["run_python", "files"]')
    assert not {"run_python", "apply_patch", "read_file"} & offered(home)
    hermes(home, "config", "set", "tools.enabled", '["nothing-like-it"]')
    assert "No tool or set is called nothing-like-it" in hermes(home, "tools")


def test_listing_tools_opens_no_log(tmp_path: Path) -> None:
    hermes(tmp_path / "home", "tools")
    assert not (tmp_path / "home" / "state.db").exists()


def test_tools_of_the_agent_itself_are_listed(tmp_path: Path) -> None:
    assert "delegate" in offered(tmp_path / "home")

"""What `hermes doctor` says of the gateway."""

from pathlib import Path

import pytest

from hermes.settings import Home
from hermes.store.leases import this_process
from hermes.surfaces.gateway import doctor_checks
from hermes.surfaces.gateway.doctor_checks import findings
from hermes.surfaces.gateway.status import GatewayStatus, PartStatus, write_status
from hermes.surfaces.terminal.style import FAIL, OK, WARN


def told(folder: Path, *secrets: tuple[str, str]) -> dict[str, str]:
    return {
        one.text: one.mark
        for one in findings(Home(folder), {"HOME": str(folder), **dict(secrets)})
    }


def test_nothing_is_said_where_nothing_is_set_up(tmp_path: Path) -> None:
    assert told(tmp_path) == {}


def test_half_a_platform_and_a_missing_part_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = told(tmp_path, ("SLACK_BOT_TOKEN", "xoxb-1"))
    assert half == {"slack does not run: SLACK_APP_TOKEN is not set": WARN}
    half = told(tmp_path, ("MATTERMOST_TOKEN", "x" * 26))
    assert half == {"mattermost does not run: gateway.mattermost.url is not set": WARN}
    (tmp_path / "config.yaml").write_text(
        "gateway: {platforms: [telegram, discord], allow: ['discord:*']}\n"
    )
    monkeypatch.setitem(
        doctor_checks._EXTRA_MODULES, "discord", "a_module_that_is_not_there"
    )
    found = told(tmp_path, ("DISCORD_BOT_TOKEN", "1.2.3"))
    assert found["telegram can't connect: TELEGRAM_BOT_TOKEN is not set"] == FAIL
    assert found["discord needs a package that is not installed"] == FAIL
    assert found["everybody on discord has access"] == WARN


def test_how_it_runs_is_said(tmp_path: Path) -> None:
    assert (
        told(tmp_path, ("TELEGRAM_BOT_TOKEN", "1:x"))["the gateway is not running"]
        == WARN
    )
    part = PartStatus("telegram", "failed", error="Telegram rejected the bot's token.")
    status = GatewayStatus(this_process(), 0.0, 1e12, state="running", parts=[part])
    write_status(Home(tmp_path), status)
    found = told(tmp_path, ("TELEGRAM_BOT_TOKEN", "1:x"))
    assert found["telegram is configured"] == OK
    assert (
        found["telegram is not connected: Telegram rejected the bot's token."] == WARN
    )
    assert any(text.startswith("the gateway is running") for text in found)

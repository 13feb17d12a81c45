"""The unit and the compose file of the guide: they are well formed, and what they start starts."""

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import yaml12
from tests.fakes.machines import Cluster
from tests.fakes.nats_server import LocalNats
from tests.fakes.postgres_server import LocalPostgres

from hermes.commands.table import find_command, find_topic
from hermes.settings import Home
from hermes.settings.load import load
from hermes.settings.setting_keys import find_key, parse_value

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = DOCS / "guide/many-machines.md"
SETTING = re.compile(r"hermes config set ([a-z_]+(?:\.[\w-]+)+ [^`\n]+)")


def block(language: str) -> str:
    """The only block of the guide in that language."""
    (found,) = re.findall(
        rf"^```{language}\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    return found


def test_the_unit_starts_a_command_and_leaves_time_to_drain(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.read_string(block("ini"))
    program, topic, *rest = shlex.split(unit["Service"]["ExecStart"])
    found = find_topic(topic)
    assert Path(program).is_absolute()
    assert found is not None
    assert find_command(found, rest) is not None
    drain = load(home=Home(tmp_path), environ={}).worker.drain_timeout
    assert float(unit["Service"]["TimeoutStopSec"]) > drain
    assert unit["Service"]["KillSignal"] == "SIGTERM"


def compose() -> dict[str, Any]:
    return msgspec.convert(yaml12.parse_yaml(block("yaml")), dict[str, Any])


def test_the_settings_of_the_compose_file_are_settings(tmp_path: Path) -> None:
    services = compose()["services"]
    for name in ("worker", "gateway"):
        settings = load(home=Home(tmp_path), environ=services[name]["environment"])
        assert settings.store.url.startswith("postgresql://")
        assert settings.events.url == "nats://nats:4222"
        assert settings.worker.places == ("/srv/shared",)
        program, topic, *rest = services[name]["command"]
        found = find_topic(topic)
        assert program == "hermes"
        assert found is not None
        assert find_command(found, rest) is not None


async def test_what_the_unit_starts_runs(
    tmp_path: Path, postgres: LocalPostgres, nats: LocalNats
) -> None:
    cluster = Cluster(
        folder=tmp_path, store_url=postgres.new_url(), events_url=nats.url
    )
    async with cluster.surface() as desk, cluster.worker("one"):
        await desk.sees_workers(1)
        (role,) = desk.store.roles.held("worker:")
        assert role.facts["place"] == "one"


def test_the_settings_that_the_guides_name_are_accepted() -> None:
    """One of them, the address of NATS with its user, was not."""
    lines = [
        line
        for file in DOCS.rglob("*.md")
        for line in SETTING.findall(file.read_text())
    ]
    assert "events.url nats://hermes@nats.example:4222" in lines
    for line in lines:
        name, value, *_ = shlex.split(line, comments=True)
        key = find_key(name)
        assert key is not None, line
        parse_value(key, value)

"""`docs/editors` is an entry as the registry of the Agent Client Protocol takes it."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from hermes import __version__

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "docs" / "editors"


@pytest.fixture
def entry() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "agent.json").read_text())
    return found


def test_it_names_this_version_in_the_registrys_form(entry: dict[str, Any]) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert entry["version"] == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    assert {"name", "description", "distribution"} <= entry.keys()


def test_it_is_started_from_the_published_package(entry: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    name = project["project"]["name"]
    scripts = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-scripts"]
    assert set(entry["distribution"]) == {"uvx"}  # the registry takes no bare command
    package = entry["distribution"]["uvx"]
    assert package.keys() <= {"package", "cmd", "args", "env"}
    assert package["package"] == f"{name}[acp]=={__version__}"
    assert package["cmd"] in scripts.values()
    assert package["args"] == ["acp"]


def test_its_icon_is_small_and_has_the_colour_of_the_theme() -> None:
    icon = ET.fromstring((FOLDER / "icon.svg").read_text())  # noqa: S314 - our own file
    assert (icon.get("width"), icon.get("height")) == ("16", "16")
    colours = {
        part.get(name)
        for part in icon.iter()
        for name in ("fill", "stroke")
        if part.get(name)
    }
    assert colours <= {"currentColor", "none"}

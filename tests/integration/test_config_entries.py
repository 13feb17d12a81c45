"""Removing something that has a name from config.yaml; everything around it stays."""

from pathlib import Path

import pytest

from hermes.settings.edit import remove_entry

TEXT = """\
# before
mcp_servers:
  one:            # the first
    command: a
    env:
      X: "1"
  two:            # the second
    url: https://example.org/mcp
display:
  color: never
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT)
    return path


def test_an_entry_goes_and_its_neighbours_stay(config: Path) -> None:
    assert remove_entry(config, "mcp_servers", "one")
    assert config.read_text() == TEXT.replace(
        '  one:            # the first\n    command: a\n    env:\n      X: "1"\n', ""
    )


def test_the_last_entry_takes_its_table_along(config: Path) -> None:
    assert remove_entry(config, "mcp_servers", "one")
    assert remove_entry(config, "mcp_servers", "two")
    assert config.read_text() == "# before\ndisplay:\n  color: never\n"


def test_what_is_not_there_changes_nothing(config: Path) -> None:
    assert not remove_entry(config, "mcp_servers", "three")
    assert not remove_entry(config, "custom_providers", "one")
    assert config.read_text() == TEXT

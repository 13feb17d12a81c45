"""The command table."""

from hermes.surfaces.cli.commands import COMMANDS, EXAMPLES
from hermes.surfaces.cli.frame import overview


def test_the_table_is_short_lines_without_doubles() -> None:
    names = [command.name for command in COMMANDS]
    assert len(names) == len(set(names))
    for command in COMMANDS:
        assert command.module.startswith("hermes.surfaces.")
        assert not command.summary.endswith(".")


def test_the_overview_fits_80_columns_and_names_every_command() -> None:
    text = overview()
    assert max(len(line) for line in text.splitlines()) <= 80
    for command in COMMANDS:
        assert f"  {command.name} " in text
    for example, _ in EXAMPLES:
        assert example in text

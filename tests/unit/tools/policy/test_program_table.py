"""The table of programs: every entry can be read, names a function that exists, and effects that have a sentence."""

from pathlib import Path

import pytest

from hermes.settings.yaml_read import parse_yaml
from hermes.tools.policy import program_table
from hermes.tools.policy.command_judge import JUDGES
from hermes.tools.policy.effects import EFFECTS
from hermes.tools.policy.file_programs import FILE_JUDGES
from hermes.tools.policy.interpreters import MODULE_JUDGES
from hermes.tools.policy.program_table import UNKNOWN, all_names, program

FUNCTIONS = {"", "cd", *JUDGES, *FILE_JUDGES, *MODULE_JUDGES}


def test_every_entry_names_effects_and_functions_that_exist() -> None:
    for name in all_names():
        entry = program(name)
        assert entry is not UNKNOWN, name
        effects = {*entry.subcommands, *entry.options, *entry.arguments, entry.effect}
        assert effects <= EFFECTS.keys(), name
        assert entry.judge in FUNCTIONS, name


def test_the_entries_are_those_of_the_whole_file() -> None:
    file = Path(program_table.__file__).with_name("programs.yaml")
    data = parse_yaml(file.read_text())
    assert isinstance(data, dict)
    keys = [name for key in data if key != "effects" for name in key.split(", ")]
    words = " ".join(data["effects"].values()).split()
    assert len(keys) == len(set(keys))
    assert sorted([*keys, *words]) == sorted(all_names())


@pytest.mark.parametrize(
    ("name", "effect"),
    [("python3.12", "python"), ("mkfs.ext4", "mkfs"), ("nosuchprogram", "")],
)
def test_a_version_or_a_file_system_in_a_name_is_the_same_program(
    name: str, effect: str
) -> None:
    assert program(name) == (program(effect) if effect else UNKNOWN)

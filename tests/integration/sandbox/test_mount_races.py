"""Commands that swap folders and links, or set times back, so that the sandbox of another command shows too much."""

from pathlib import Path

import pytest
from tests.integration.sandbox.machine import SECRET, Machine, make_sandbox

from hermes.errors import ToolFailed
from hermes.tools.process.resource_limits import ResourceLimits

# What a link in place of the folder does, if it is there only while bubblewrap looks for what to mount.
SWAPPING = """#!/bin/bash
arguments=()
previous=
for each in "$@"; do
  [ "$previous" = --ro-bind ] && [ "$each" = {folder} ] && each={outside}
  arguments+=("$each"); previous=$each
done
exec {program} "${{arguments[@]}}"
"""


async def test_a_command_does_not_begin_with_a_folder_from_outside(
    place: Path, bubblewrap: Path, limits: ResourceLimits
) -> None:
    """The command would see the home's keys in a folder that is mounted again to make it read-only."""
    program = place / "bwrap"
    machine = Machine(place, make_sandbox("bubblewrap", program), limits)
    folder = machine.workspace / ".vscode"
    folder.mkdir()
    outside = machine.home / ".ssh"
    program.write_text(
        SWAPPING.format(folder=folder, outside=outside, program=bubblewrap)
    )
    program.chmod(0o755)
    with pytest.raises(ToolFailed, match="sandbox could not be set up"):
        await machine.run("cat .vscode/id_ed25519")
    program.unlink()
    program.symlink_to(bubblewrap)
    assert "[exit code 0]" in (await machine.run("ls .vscode")).text
    await machine.close()


async def test_a_secret_stays_hidden_when_its_folder_was_renamed(
    place: Path, bubblewrap: Path, limits: ResourceLimits
) -> None:
    machine = Machine(place, make_sandbox("bubblewrap", bubblewrap), limits)
    folder = machine.workspace / "a"
    folder.mkdir()
    (folder / ".env").write_text(f"TOKEN={SECRET}")
    times = "touch -r . /tmp/top; touch -r a /tmp/inner"
    move = f"{times}; mv a b; mkdir a; touch -r /tmp/inner a; touch -r /tmp/top ."
    assert "[exit code 0]" in (await machine.run(move)).text
    for _ in range(2):
        assert SECRET not in (await machine.run("cat a/.env b/.env; true")).text
    assert (machine.workspace / "b/.env").read_text() == f"TOKEN={SECRET}"
    assert not (machine.workspace / "a/.env").exists()
    await machine.close()


async def test_a_link_above_a_protected_folder_keeps_no_command_from_running(
    place: Path, bubblewrap: Path, limits: ResourceLimits
) -> None:
    machine = Machine(place, make_sandbox("bubblewrap", bubblewrap), limits)
    (machine.workspace / "shared/instructions").mkdir(parents=True)
    (machine.workspace / ".github").symlink_to("shared")
    (machine.workspace / ".cargo").symlink_to(machine.home / ".ssh")
    text = (await machine.run("echo x > .github/instructions/a; cat .cargo/*")).text
    assert "Read-only file system" in text
    assert SECRET not in text
    await machine.close()

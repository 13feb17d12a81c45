"""Project notes in sub-folders that a command wrote do not reach a prompt before a person accepts them."""

from pathlib import Path

import pytest
from tests.integration.sandbox.machine import Machine

from hermes.app.project_notes import read_project_files
from hermes.core.prompt import ProjectFile
from hermes.tools.sandbox.repositories import MAX_FOLDERS
from hermes.tools.sandbox.written_notes import accept, record_cut

WRITE = "open('docs/AGENTS.md', 'w').write('Obey.')"


def notes(machine: Machine, folder: str) -> dict[str, ProjectFile]:
    place = machine.workspace / folder
    return {file.name: file for file in read_project_files(place, hermes_home(machine))}


def hermes_home(machine: Machine) -> Path:
    return machine.home / ".hermes"


async def test_they_are_left_out_until_they_are_accepted(machine: Machine) -> None:
    (machine.workspace / "docs").mkdir()
    (machine.workspace / "docs" / "CLAUDE.md").write_text("A person's.\n")
    command = f'python3 -c "{WRITE}"; mkdir -p a/b; cp docs/AGENTS.md a/b/.hermes.md'
    result = await machine.run(command)
    assert "docs/AGENTS.md" in result.text
    assert "hermes policy accept FILE" in result.text
    found = notes(machine, "docs")
    assert (found["CLAUDE.md"].text, found["CLAUDE.md"].refusal) == (
        "A person's.\n",
        "",
    )
    assert found["AGENTS.md"].text == ""
    assert "has not accepted it" in found["AGENTS.md"].refusal
    assert notes(machine, "a/b")[".hermes.md"].refusal

    await machine.run("mv docs moved; touch -d 2020-01-01 moved/AGENTS.md")
    assert notes(machine, "moved")["AGENTS.md"].refusal, "wherever a command moves it"

    file = machine.workspace / "moved" / "AGENTS.md"
    assert accept(hermes_home(machine), file)
    assert notes(machine, "moved")["AGENTS.md"].text == "Obey."
    assert not accept(hermes_home(machine), file)
    await machine.run("echo more >> moved/AGENTS.md")
    assert notes(machine, "moved")["AGENTS.md"].refusal, "accepted only as it was"


async def test_what_a_person_writes_is_read(machine: Machine) -> None:
    (machine.workspace / "docs").mkdir()
    await machine.run(f'python3 -c "{WRITE}"')
    (machine.workspace / "docs" / "AGENTS.md").write_text("Mine now.")
    assert notes(machine, "docs")["AGENTS.md"].text == "Mine now."
    result = await machine.run("ls docs; cat docs/AGENTS.md")
    assert "policy accept" not in result.text
    assert notes(machine, "docs")["AGENTS.md"].text == "Mine now."


async def test_in_a_workspace_too_large_to_search_all_that_changed_since_counts(
    machine: Machine,
) -> None:
    for number in range(MAX_FOLDERS + 1):
        (machine.workspace / f"{number}").mkdir()
    await machine.run("mkdir 1/deep; echo Obey. > 1/deep/AGENTS.md")
    assert notes(machine, "1/deep")["AGENTS.md"].refusal
    file = machine.workspace / "1/deep/AGENTS.md"
    assert accept(hermes_home(machine), file)
    assert notes(machine, "1/deep")["AGENTS.md"].text == "Obey.\n"
    file.write_text("Obey more.")
    assert notes(machine, "1/deep")["AGENTS.md"].refusal, "accepted only as it was"


@pytest.mark.parametrize(("later_s", "is_read"), [(1_000, True), (-1_000, False)])
def test_what_was_there_before_the_command_is_read(
    tmp_path: Path, later_s: int, is_read: bool
) -> None:
    file = tmp_path / "work/docs/AGENTS.md"
    file.parent.mkdir(parents=True)
    file.write_text("A person's.")
    began_ns = file.lstat().st_ctime_ns + later_s * 10**9
    home = tmp_path / "home"
    home.mkdir()
    record_cut(home, tmp_path / "work", began_ns)
    (found,) = read_project_files(file.parent, home)
    assert (found.text != "") is is_read

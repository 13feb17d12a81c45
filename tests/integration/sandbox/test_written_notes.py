"""Project notes in sub-folders that a command wrote do not reach a prompt before a person accepts them."""

from pathlib import Path

from tests.integration.sandbox.machine import Machine

from hermes.app.project_notes import read_project_files
from hermes.core.prompt import ProjectFile
from hermes.tools.sandbox.written_notes import accept

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

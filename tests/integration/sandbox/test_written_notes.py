"""Project notes that a command wrote, or that appeared meanwhile, do not reach a prompt before a person accepts them."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.integration.sandbox.machine import Machine

from hermes.app.project_notes import has_accepted_notes, read_project_files
from hermes.core.prompt import ProjectFile
from hermes.tools.sandbox.command_markers import FOLDER
from hermes.tools.sandbox.repositories import MAX_FOLDERS
from hermes.tools.sandbox.written_notes import accept, record, record_cut, stamps

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


async def test_new_notes_stay_in_their_place_until_they_are_accepted(
    machine: Machine,
) -> None:
    (machine.workspace / "CLAUDE.md").write_text("A person's.")
    result = await machine.run(
        "sh -c 'echo Obey. > AGENTS.md; cp AGENTS.md .hermes.md; ln -s keep.txt x; mv x .cursorrules'"
    )
    found = notes(machine, ".")
    assert found["CLAUDE.md"].text == "A person's."
    for name in ("AGENTS.md", ".hermes.md"):
        assert (machine.workspace / name).read_text() == "Obey.\n", "nobody's is moved"
        assert found[name].text == ""
        assert "has not accepted it" in found[name].refusal
        assert name in result.text
    assert not (machine.workspace / ".cursorrules").is_symlink()

    await machine.run("sh -c 'echo more >> AGENTS.md'")
    assert notes(machine, ".")["AGENTS.md"].refusal, "a second command changes nothing"
    (machine.workspace / "docs").mkdir()
    codex_cwd = machine.workspace / "docs"
    assert not has_accepted_notes(hermes_home(machine), codex_cwd), "codex reads both"
    assert accept(hermes_home(machine), machine.workspace / "AGENTS.md")
    assert notes(machine, ".")["AGENTS.md"].text == "Obey.\n"
    (machine.workspace / ".hermes.md").write_text("Mine now.")
    assert notes(machine, ".")[".hermes.md"].text == "Mine now."
    assert has_accepted_notes(hermes_home(machine), codex_cwd)


def test_what_was_accepted_while_another_command_ran_stays_accepted(
    tmp_path: Path,
) -> None:
    home, file = tmp_path / "home", tmp_path / "AGENTS.md"
    home.mkdir()
    file.write_text("Obey.")
    after = stamps([str(file)])
    assert record(home, {}, after) == [file]
    assert accept(home, file)
    assert record(home, {}, after) == []
    (found,) = read_project_files(tmp_path, home)
    assert found.text == "Obey."


def test_what_an_undo_brings_back_is_still_a_commands(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "AGENTS.md"
    home.mkdir()

    def refused(text: str) -> bool:
        file.write_text(text)
        (found,) = read_project_files(tmp_path, home)
        return bool(found.refusal)

    for text in ("Obey.", "Obey more."):
        file.write_text(text)
        record(home, {}, stamps([str(file)]))
    assert refused("Obey more.")
    assert refused("Obey.")
    assert not refused("A person's.")
    file.unlink()
    other = tmp_path / "CLAUDE.md"
    other.write_text("Obey.")
    record(home, {}, stamps([str(other)]))
    other.unlink()
    assert refused("Obey more.")
    assert accept(home, file)
    assert not refused("Obey more.")
    assert refused("Obey.")
    assert accept(home, file)
    assert not refused("Obey more."), "it was accepted before"


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


async def test_a_second_name_does_not_change_notes_unseen(machine: Machine) -> None:
    result = await machine.run("echo ok > x.txt; ln x.txt AGENTS.md")
    assert not (machine.workspace / "AGENTS.md").exists(), "moved aside"
    assert "AGENTS.md" in result.text
    person = machine.workspace / "CLAUDE.md"
    person.write_text("A person's.")
    os.link(person, machine.workspace / "y.txt")
    (machine.workspace / ".hermes.md").symlink_to("z.txt")
    (machine.workspace / "z.txt").write_text("A person's.")
    await machine.run("echo harmless")
    assert {file.text for file in notes(machine, ".").values()} == {"A person's."}
    await machine.run("echo Obey. > y.txt; echo Obey. > z.txt")
    assert "Obey." not in {file.text for file in notes(machine, ".").values()}


def test_what_has_a_second_name_and_was_written_once_is_not_read(
    tmp_path: Path,
) -> None:
    home, file, other = tmp_path / "home", tmp_path / "AGENTS.md", tmp_path / "x.txt"
    home.mkdir()
    file.write_text("ok")
    record(home, {}, stamps([str(file)]))
    os.link(file, other)
    other.write_text("Obey.")
    assert read_project_files(tmp_path, home)[0].refusal
    assert accept(home, file)
    assert read_project_files(tmp_path, home)[0].text == "Obey."
    other.write_text("Obey more.")
    assert read_project_files(tmp_path, home)[0].refusal


async def test_notes_of_a_running_command_are_not_read(machine: Machine) -> None:
    for name in ("old", "evil", "docs"):
        (machine.workspace / name).mkdir()
    (machine.workspace / "old/AGENTS.md").write_text("A person's.")
    (machine.workspace / "CLAUDE.md").write_text("A person's.")
    await machine.run("echo Obey. > evil/AGENTS.md")
    script = (
        "mkdir pkg; echo Obey. > pkg/AGENTS.md; echo Obey. > AGENTS.md;"
        " echo Obey. > docs/AGENTS.override.md; mv evil good; echo ready; sleep 1000"
    )
    said = (await machine.run(script, background=True)).text
    for _ in range(60):
        if "ready" in said:
            break
        said += (await machine.process_tool("wait", "p1", timeout=1)).text
    for folder in ("pkg", ".", "good"):
        assert notes(machine, folder)["AGENTS.md"].refusal, folder
    assert not has_accepted_notes(hermes_home(machine), machine.workspace / "docs")
    assert notes(machine, "old")["AGENTS.md"].text == "A person's."
    if machine.sandbox.kind == "bubblewrap":  # the kernel protects it
        (machine.workspace / "CLAUDE.md").write_text("Edited.")
        assert notes(machine, ".")["CLAUDE.md"].text == "Edited."
    assert accept(hermes_home(machine), machine.workspace / "pkg/AGENTS.md")
    assert notes(machine, "pkg")["AGENTS.md"].text == "Obey.\n"

    await machine.process_tool("kill", "p1")
    assert not list((hermes_home(machine) / FOLDER).iterdir())
    assert notes(machine, "pkg")["AGENTS.md"].text == "Obey.\n"
    for folder in (".", "good"):
        assert notes(machine, folder)["AGENTS.md"].refusal, folder
    assert not has_accepted_notes(hermes_home(machine), machine.workspace / "docs")
    assert (machine.workspace / "AGENTS.md").exists(), "nobody's is moved"


SWAP = """
import os
while not os.path.exists("stop"):
    for words in ("Obey.", "Good."):
        with open("next", "w") as file:
            file.write(words)
        os.replace("next", "docs/AGENTS.md")
    open("swapping", "w").close()
"""


async def test_a_note_that_a_command_swaps_is_judged_by_what_was_read(
    machine: Machine,
) -> None:
    """The accepted words stand there whenever somebody looks only at the file."""
    folder = machine.workspace / "docs"
    folder.mkdir()
    await machine.run("sh -c 'printf Good. > docs/AGENTS.md'")
    assert accept(hermes_home(machine), folder / "AGENTS.md")
    (machine.workspace / "swap.py").write_text(SWAP)
    command = asyncio.create_task(machine.run("python3 swap.py"))
    texts, reads = set[str](), 0
    try:
        while reads < 400 and not command.done():
            found = await asyncio.to_thread(notes, machine, "docs")
            texts |= {file.text for file in found.values()}
            reads += (machine.workspace / "swapping").exists()
    finally:
        (machine.workspace / "stop").touch()
        await command
    assert reads == 400
    assert texts <= {"", "Good."}

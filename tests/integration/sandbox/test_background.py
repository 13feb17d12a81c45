"""Commands in the background: looked at, waited for, written to, killed, and gone with the session."""

import re

import pytest
from tests.integration.sandbox.machine import Machine

from hermes.errors import ToolFailed
from hermes.tools.files.file_stamps import FileStamps
from hermes.tools.files.file_tools import FileTools
from hermes.tools.sandbox import NoSandbox


async def begin(machine: Machine, command: str) -> tuple[str, str]:
    """Starts a command; returns its handle and what was said."""
    text = (await machine.run(command, background=True)).text
    found = re.search(r"\[(p\d+) ", text)
    assert found, text
    return found[1], text


async def test_a_command_runs_on_while_others_run(machine: Machine) -> None:
    handle, text = await begin(machine, "read line; echo got $line; read line")
    assert f"[{handle} runs, for " in text
    assert (await machine.run("echo beside")).text == "beside\n[exit code 0]"
    written = await machine.type_in(handle, "hello\n")
    waited = (
        written.text
        if "got hello" in written.text
        else (await machine.process_tool("poll", handle)).text
    )
    assert waited.startswith("got hello\n")
    assert "got" not in (await machine.process_tool("poll", handle)).text, (
        "output is shown once"
    )
    await machine.type_in(handle, "\n")
    assert (
        await machine.process_tool("wait", handle)
    ).text == f"[{handle} ended with exit code 0]"


async def test_a_command_that_fails_at_once_says_so_at_once(machine: Machine) -> None:
    result = await machine.run("echo oops; exit 3", background=True)
    if "ended" not in result.text:  # a busy machine
        result = await machine.process_tool("wait", "p1")
    assert "ended with exit code 3]" in result.text
    assert not result.ok


async def test_waiting_ends_when_time_is_up(machine: Machine) -> None:
    handle, _ = await begin(machine, "sleep 600")
    assert "runs, for" in (await machine.process_tool("wait", handle, timeout=1)).text


async def test_killing_ends_the_whole_tree(machine: Machine) -> None:
    handle, _ = await begin(
        machine,
        "setsid sleep 600 & trap '' TERM; echo up; while :; do sleep 0.01; done",
    )
    result = await machine.process_tool("kill", handle)
    assert f"[{handle} killed]" in result.text
    assert (await machine.process_tool("poll", handle)).text == f"[{handle} killed]"
    assert machine.marked_processes() == []


async def test_everything_ends_with_the_session(machine: Machine) -> None:
    for _ in range(3):
        await begin(machine, "sleep 600")
    listed = (await machine.process_tool("list")).text
    assert [line.split()[0] for line in listed.splitlines()] == ["p1", "p2", "p3"]
    assert machine.marked_processes()
    await machine.terminal.close()
    assert machine.marked_processes() == []


async def test_a_flood_is_capped_and_kept(machine: Machine) -> None:
    handle, _ = await begin(machine, "read line; seq 1 50000")
    await machine.type_in(handle, "\n")
    text = (await machine.process_tool("wait", handle)).text
    assert len(text) < 21_000
    assert (
        text.endswith(f"50000\n[{handle} ended with exit code 0]")
        or text == f"[{handle} ended with exit code 0]"
    )
    (kept,) = (machine.root / "outputs").iterdir()
    assert kept.read_text().endswith("\n49999\n50000\n")


async def test_a_background_command_is_confined_too(machine: Machine) -> None:
    await machine.prove()
    handle, _ = await begin(
        machine, f"rm -rf {machine.home}/projects; cat {machine.home}/.ssh/id_ed25519"
    )
    assert not (await machine.process_tool("wait", handle)).ok
    machine.assert_untouched()


PLANT = "mkdir .vscode; echo x > .vscode/tasks.json; echo evil > AGENTS.md; echo done; read line"


async def planted(machine: Machine, handle: str, file: str) -> None:
    while not (machine.workspace / file).exists():
        await machine.process_tool("wait", handle, timeout=1)


async def test_what_it_changed_of_what_runs_later_is_undone(machine: Machine) -> None:
    handle, _ = await begin(machine, PLANT)
    await planted(machine, handle, "AGENTS.md")
    text = (await machine.process_tool("kill", handle)).text
    assert (
        f"undone, as it can run something later: {machine.workspace}/.vscode (" in text
    )
    assert f"{machine.workspace}/AGENTS.md: sessions in that folder do not read" in text
    left = {path.name for path in machine.workspace.iterdir()}
    assert left == {"keep.txt", "AGENTS.md"}


async def test_what_the_file_tools_changed_meanwhile_stays(machine: Machine) -> None:
    seen = FileStamps()
    seen.on_write(machine.terminal.accept)
    write_file = FileTools(seen).write_file
    handle, _ = await begin(machine, PLANT)
    await planted(machine, handle, "AGENTS.md")
    for name in ("AGENTS.md", ".vscode/settings.json", "CLAUDE.md", "plain.txt"):
        path = machine.workspace / name
        await write_file.run({"path": str(path), "content": "mine"}, machine.context())
    (machine.workspace / "CLAUDE.md").write_text("evil")
    (machine.workspace / "plain.txt").write_text("changed")
    await machine.process_tool("kill", handle)
    left = {
        str(path.relative_to(machine.workspace))
        for path in machine.workspace.rglob("*")
        if path.is_file()
    }
    assert left == {
        "keep.txt",
        "AGENTS.md",
        ".vscode/settings.json",
        "CLAUDE.md",
        "plain.txt",
    }
    assert (machine.workspace / "AGENTS.md").read_text() == "mine"
    assert (machine.workspace / "CLAUDE.md").read_text() == "mine"
    assert (machine.workspace / "plain.txt").read_text() == "changed"


async def test_what_runs_outside_the_sandbox_takes_no_input(machine: Machine) -> None:
    text = (await machine.run("cat", reach="machine", background=True)).text
    assert "[p1 runs" in text
    with pytest.raises(ToolFailed, match="outside the sandbox"):
        await machine.type_in("p1", "rm\n")
    assert not isinstance(machine.sandbox, NoSandbox)


@pytest.mark.parametrize(
    ("action", "handle"), [("poll", "p9"), ("kill", ""), ("wait", "../p1")]
)
async def test_a_process_that_does_not_exist_is_told(
    machine: Machine, action: str, handle: str
) -> None:
    with pytest.raises(ToolFailed, match="There is no process"):
        await machine.process_tool(action, handle)
    with pytest.raises(ToolFailed, match="There is no process"):
        await machine.type_in(handle, "x")


async def test_there_is_a_most(machine: Machine) -> None:
    for _ in range(16):
        await begin(machine, "sleep 600")
    with pytest.raises(ToolFailed, match="16 processes are already running"):
        await begin(machine, "sleep 600")


async def test_a_process_that_ended_takes_no_input(machine: Machine) -> None:
    handle, _ = await begin(machine, "true")
    await machine.process_tool("wait", handle)
    with pytest.raises(ToolFailed, match="has ended"):
        await machine.type_in(handle, "x")


async def test_typing_is_an_effect_and_looking_is_not(machine: Machine) -> None:
    processes = machine.terminal.processes
    assert (processes.process.effect, processes.process_write.effect) == (
        "read",
        "other",
    )
    with pytest.raises(ToolFailed, match="action"):
        await machine.process_tool("write", "p1", text="x")


async def test_a_line_typed_in_pieces_is_known_until_it_ends(machine: Machine) -> None:
    processes = machine.terminal.processes
    handle, _ = await begin(machine, "cat")
    assert processes.about(handle) == ("workspace", "cat")
    for text, unfinished in (
        ("rm ", "rm "),
        ("-rf", "rm -rf"),
        (" x\nls", "ls"),
        (" \\\n", "ls \\\n"),
        ("a\\\\\n", ""),
    ):
        await machine.type_in(handle, text)
        assert processes.typed(handle) == unfinished
    await machine.type_in(handle, "x" * 4000)
    with pytest.raises(ToolFailed, match="can't be longer"):
        await machine.type_in(handle, "y")
    assert processes.typed(handle) == "x" * 4000


async def test_nothing_is_known_of_a_process_that_is_not_there(
    machine: Machine,
) -> None:
    assert machine.terminal.processes.typed("p9") == ""
    assert machine.terminal.processes.about("p9") == ("workspace", "")


async def test_what_a_command_with_the_network_says_may_be_anybodys_words(
    machine: Machine,
) -> None:
    assert (await machine.run("echo hi", reach="network")).source == "network"
    assert not (await machine.run("echo hi")).source
    await machine.run("cat", reach="network", background=True)
    assert machine.terminal.processes.about("p1") == ("network", "cat")
    assert (await machine.process_tool("poll", "p1")).source == "network"


async def test_long_output_from_the_network_stays_marked_in_its_file(
    machine: Machine,
) -> None:
    text = (await machine.run("seq 1 20000", reach="network")).text
    (kept,) = (machine.root / "outputs").iterdir()
    assert str(kept) in text
    assert (await machine.run(f"tail -n 1 {kept}")).source == "kept outputs"

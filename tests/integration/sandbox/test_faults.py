"""Commands that hang, hide, multiply, flood and kill: in each sandbox nothing of them is left, and Hermes lives."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from tests.integration.sandbox.machine import PYTHON, Machine, make_sandbox

from hermes.children.process_tree import (
    end_leftovers,
    marks_of,
    new_mark,
    running_pids,
)
from hermes.tools.process.resource_limits import ResourceLimits
from hermes.tools.sandbox import NoSandbox, Sandbox, detect
from hermes.tools.sandbox.bubblewrap import Bubblewrap
from hermes.tools.sandbox.confinement import ConfinedLaunch, Fence

DAEMON = """
import os, sys, time
if os.fork(): sys.exit()
os.setsid()
if os.fork(): os._exit(0)
for fd in range(256):
    try: os.close(fd)
    except OSError: pass
open(sys.argv[1], "w").write("up")
time.sleep(600)
"""


def marked_processes(session: str) -> list[int]:
    """The processes that carry a mark of a session."""
    wanted = new_mark(session) >> 24
    return [
        pid
        for pid in running_pids()
        if any(mark >> 24 == wanted for mark in marks_of(pid))
    ]


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Whatever confines, or does not, a command ends whole."""
    if request.param == "none":
        return NoSandbox("a test")
    program = (
        request.getfixturevalue("bubblewrap") if request.param == "bubblewrap" else None
    )
    return make_sandbox(request.param, program)


def test_the_kernel_ends_every_program_with_hermes_but_a_probe(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$0.arguments"\n')
    program.chmod(0o755)
    sandbox = Bubblewrap(program, None, administrator=False)
    null = subprocess.DEVNULL
    for is_probe in (True, False):
        launch = ConfinedLaunch(["true"], tmp_path, {}, null, null, is_probe=is_probe)
        sandbox.start(launch, Fence(tmp_path, tmp_path)).process.wait(20)
        given = Path(f"{program}.arguments").read_text().splitlines()
        assert ("--die-with-parent" in given) is not is_probe


def test_what_a_killed_probe_had_started_ends_too(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\nsleep 600 &\necho $! > "$0.pid"\nkill -9 $$\n')
    program.chmod(0o755)
    assert detect._try(Bubblewrap(program, None, administrator=False))
    left = int(Path(f"{program}.pid").read_text())
    try:
        process = os.pidfd_open(left)
    except ProcessLookupError:
        return
    assert select.select([process], [], [], 20)[0], "it still runs"
    os.close(process)


async def test_a_command_that_hangs_ends_when_its_time_is_up(machine: Machine) -> None:
    result = await machine.run("sleep 600", timeout=1)
    assert "stopped: it ran longer than 1 s" in result.text
    assert machine.marked_processes() == []


async def test_a_command_that_ignores_every_signal_ends(machine: Machine) -> None:
    stubborn = "trap '' TERM HUP INT; bash -c 'trap \"\" TERM; while :; do :; done' & while :; do :; done"
    assert not (await machine.run(stubborn, timeout=1)).ok
    assert machine.marked_processes() == []


async def test_a_command_can_say_goodbye(machine: Machine) -> None:
    """SIGTERM comes first, and there is time to act on it."""
    await machine.run(
        "trap 'echo bye > said; exit' TERM; while :; do sleep 0.01; done", timeout=1
    )
    assert (machine.workspace / "said").read_text() == "bye\n"


@pytest.mark.parametrize(
    "start", ["{}", "env -i {}", "(setsid env -i {} </dev/null >/dev/null 2>&1 &)"]
)
async def test_a_daemon_is_named_and_ends(machine: Machine, start: str) -> None:
    (machine.workspace / "daemon.py").write_text(DAEMON)
    command = start.format(f"{PYTHON} daemon.py up")
    result = await machine.run(
        f"{command}\nuntil [ -s up ]; do sleep 0.01; done", timeout=30
    )
    assert "exit code 0; stopped what it left running: python" in result.text
    assert machine.marked_processes() == []


UNMARKED = """
import os, resource, sys, time
if os.fork(): sys.exit()
os.setsid()
if os.fork(): os._exit(0)
for limits in ((5, resource.getrlimit(10)[1]), (5, 5)):
    try: resource.setrlimit(10, limits)
    except (OSError, ValueError): pass
os.closerange(0, 50)
code = "import os, sys, time; os.rename('number.new', 'number'); time.sleep(600)"
open("number.new", "w").write(str(os.getpid()))
os.execve(sys.executable, [sys.executable, "-c", code], {})
"""


async def test_a_daemon_that_drops_its_marks_ends_too(machine: Machine) -> None:
    """Seen by a pipe it holds open, not by the marks that end it: the pipe ends only when nobody runs any more."""
    if machine.sandbox.kind == "none":
        pytest.skip("nothing would hold it")
    (machine.workspace / "daemon.py").write_text(UNMARKED)
    pipe = machine.workspace / "life"
    os.mkfifo(pipe)
    life = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        start = f"exec 60>life; {PYTHON} daemon.py; until [ -s number ]; do sleep 0.01; done"
        assert "exit code 0" in (await machine.run(start, timeout=30)).text
        poll = select.poll()
        poll.register(life, 0)
        assert poll.poll(10_000), "somebody still holds the other end"
    finally:
        os.close(life)


async def test_bounds_are_for_good(machine: Machine) -> None:
    if machine.sandbox.kind == "none":
        pytest.skip("nothing would hold it")
    text = (
        await machine.run("ulimit -H -x; ulimit -S -x; ulimit -n 100; ulimit -n")
    ).text.splitlines()
    assert text[0] == text[1] != "unlimited"
    assert text[2] == "100"
    if machine.sandbox.kind == "landlock":
        assert (
            await machine.run("ulimit -S -x 5; ulimit -x 5; ulimit -S -x")
        ).text.splitlines()[-2] != "5"


async def test_an_interrupt_ends_what_ignores_it(machine: Machine) -> None:
    for _ in range(3):
        machine.seen.clear()
        stubborn = (
            "trap '' TERM; echo up; setsid sleep 600 & while :; do sleep 0.01; done"
        )
        task = asyncio.create_task(machine.run(stubborn))
        await asyncio.wait_for(machine.seen.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)
        assert machine.marked_processes() == []


async def test_binary_and_one_line_of_100_mb(machine: Machine) -> None:
    assert (
        "binary output, 9 bytes"
        in (await machine.run(r"printf '\0\1\2\377\376abcd'")).text
    )
    text = (await machine.run("head -c 100000000 /dev/zero | tr '\\0' x")).text
    assert "of 100,000,000 bytes left out here" in text
    assert len(text) < 31_000


@pytest.mark.parametrize(
    "attack",
    [
        "kill -9 $PPID",
        "kill -9 {hermes}",
        "kill -9 -- -$(ps -o pgid= {hermes} | tr -d ' ')",
    ],
)
async def test_a_command_cannot_kill_hermes(machine: Machine, attack: str) -> None:
    if machine.sandbox.kind == "none":
        pytest.skip("nothing would hold it")
    await machine.prove()
    result = await machine.run(attack.format(hermes=os.getpid()))
    assert "exit code" in result.text
    machine.assert_untouched()


async def test_killall_ends_only_its_own(machine: Machine) -> None:
    """killall as a loop over all there is to see, as the program may not be installed."""
    if machine.sandbox.kind == "none":
        pytest.skip("nothing would hold it")
    await machine.prove()
    await machine.run(
        "for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p != $$ ] && kill -9 $p; done 2>/dev/null; true"
    )
    machine.assert_untouched()


async def test_a_fork_bomb_is_stopped(place: Path, sandbox: Sandbox) -> None:
    if sandbox.kind == "none":
        pytest.skip("tried only where it is held")
    machine = Machine(place, sandbox, ResourceLimits(processes=100))
    try:
        # bounded by itself too: each of at most 2,000 waits for the end
        bomb = "for i in $(seq 2000); do (sleep 300) & done; wait"
        result = await machine.run(bomb, timeout=60)
        assert not result.ok
        assert (
            "stopped: it had started more than 100 processes" in result.text
            or "fork" in result.text
        )
        assert machine.marked_processes() == []
    finally:
        await machine.close()


async def test_a_bomb_that_doubles_is_stopped(place: Path, sandbox: Sandbox) -> None:
    if sandbox.kind == "none":
        pytest.skip("tried only where it is held")
    machine = Machine(place, sandbox, ResourceLimits(processes=100))
    try:
        # doubles at most ten times: 1,024 in all, if nothing stopped it
        bomb = (
            "b() { [ $1 -lt 10 ] && { b $(($1+1)) & b $(($1+1)) & }; sleep 300; }; b 0"
        )
        result = await machine.run(bomb, timeout=60)
        assert not result.ok
        assert machine.marked_processes() == []
    finally:
        await machine.close()


async def test_a_full_temporary_folder_stops_the_command_and_is_emptied(
    machine: Machine,
) -> None:
    fill = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > $TMPDIR/$i; sleep 0.02; done"
    if machine.sandbox.kind == "none":
        pytest.skip("it has the machine's own")
    result = await machine.run(fill, timeout=60)
    assert (
        "stopped: its temporary files took more than 8 MiB, and were deleted"
        in result.text
    )
    assert list(machine.temporary().iterdir()) == []


async def test_a_disk_that_runs_full_stops_the_command(
    place: Path, sandbox: Sandbox
) -> None:
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    machine = Machine(place, sandbox, ResourceLimits(free=free - 50_000_000))
    try:
        fill = "i=0; while :; do i=$((i+1)); head -c 2000000 /dev/zero > f$i; sleep 0.02; [ $i -lt 100 ] || break; done"
        result = await machine.run(f"{fill}; sleep 60", timeout=60)
        assert "were left on the disk of" in result.text
    finally:
        await machine.close()


VICTIM = """
    import asyncio, os, sys
    from pathlib import Path
    from tests.integration.sandbox.machine import Machine, make_sandbox
    from hermes.core.ports import ToolContext
    from hermes.tools.process.resource_limits import ResourceLimits
    from hermes.tools.sandbox import NoSandbox

    async def main(place, kind, program):
        sandbox = NoSandbox("a test") if kind == "none" else make_sandbox(kind, Path(program))
        machine = Machine(place, sandbox, ResourceLimits())
        context = ToolContext("c1", f"victim of {place}", machine.workspace, lambda text: print("up", flush=True))
        hidden = "(setsid env -i sleep 611 </dev/null >/dev/null 2>&1 &)"
        await machine.terminal.terminal.run({"command": f"{hidden}; trap '' HUP TERM; echo up; sleep 612"}, context)

    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
"""


def start_victim(
    place: Path, sandbox: Sandbox, program: Path
) -> "subprocess.Popen[bytes]":
    """Another Hermes with a command that runs, and has hidden a part of itself."""
    victim = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(VICTIM),
            str(place),
            sandbox.kind,
            str(program),
        ],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert victim.stdout is not None
    assert victim.stdout.readline() == b"up\n"
    return victim


def gone(session: str, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not marked_processes(session):
            return True
        time.sleep(0.01)
    return False


def test_commands_end_when_hermes_is_killed(
    place: Path, sandbox: Sandbox, bubblewrap: Path
) -> None:
    victim = start_victim(place, sandbox, bubblewrap)
    with victim:
        assert marked_processes(f"victim of {place}")
        victim.kill()
    assert gone(f"victim of {place}")
    end_decoys(place)


def test_leftovers_of_a_killed_hermes_are_ended_later(
    place: Path, bubblewrap: Path
) -> None:
    """Even when whoever would have ended them was killed too."""
    victim = start_victim(place, NoSandbox("a test"), bubblewrap)
    with victim:
        reapers = subprocess.run(
            ["pgrep", "-P", str(victim.pid), "-x", "sh"],
            capture_output=True,
            text=True,
            check=True,
        )
        for pid in reapers.stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        victim.kill()
    assert len(marked_processes(f"victim of {place}")) >= 2
    assert end_leftovers("another") == []
    assert sorted(set(end_leftovers(f"victim of {place}"))) in (
        ["bash", "sleep"],
        ["sleep"],
    )
    assert marked_processes(f"victim of {place}") == []
    end_decoys(place)


def end_decoys(place: Path) -> None:
    """The killed victim's own decoy process."""
    wanted = f"DECOY_OF={place.resolve()}".encode()
    for pid in running_pids():
        try:
            if wanted in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue

"""Ways around the fence that few programs use: the kernel's own settings, raw sockets, signals by other calls, numbers
that overflow, and files that run as their owner."""

import os
import socket
import stat
from pathlib import Path

import pytest
from tests.integration.sandbox.machine import PYTHON, Machine, make_sandbox

from hermes.schema.events import Reach
from hermes.tools.process.resource_limits import ResourceLimits

RAW = """
import socket, sys
for make in (lambda: socket.socket(1, 3), lambda: socket.socketpair(1, 3)[0], lambda: socket.socketpair(1, 2)[0]):
    try: make().sendmsg([b"heard"], [], 0, sys.argv[1])
    except OSError as error: print(error)
"""
SIGNALS = """
import fcntl, os, signal, sys, time
pid = int(sys.argv[1])
try: signal.pidfd_send_signal(os.open(f"/proc/{pid}", os.O_RDONLY), signal.SIGTERM)
except OSError as error: print(error)
try:
    r, w = os.pipe()
    fcntl.fcntl(r, fcntl.F_SETOWN, pid); fcntl.fcntl(r, 10, signal.SIGTERM)
    fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK); os.write(w, b"x")
except OSError as error: print(error)
"""
ODD = [
    "os.chown('keep.txt', 3000000000, -1)",
    "__import__('ctypes').CDLL(None).chmod(__import__('ctypes').c_void_p(2**64 - 8), 0)",
    "os.utime('keep.txt', (2**62, 2**62))",
]
SET_ID = """
import os
def attempt(call, *arguments):
    try: call(*arguments)
    except OSError as error: print(error)
for mode in (0o4755, 0o2755):
    open("a", "w").close()
    attempt(os.chmod, "a", mode)
    attempt(os.open, f"b{mode}", os.O_CREAT | os.O_WRONLY, mode)
    attempt(os.mknod, f"c{mode}", mode | 0o100000)
"""


def probe(machine: Machine, code: str) -> str:
    (machine.workspace / "probe.py").write_text(code)
    return f"{PYTHON} probe.py"


async def test_the_kernels_settings_cannot_be_written(machine: Machine) -> None:
    """The same value is written, so that nothing changes where it can be."""
    if os.geteuid() != 0:
        pytest.skip("only root could")
    code = "p = '/proc/sys/kernel/core_pattern'; v = open(p).read(); open(p, 'w').write(v); print('written')"
    text = (await machine.run(probe(machine, code))).text
    assert "Read-only file system" in text or "Permission denied" in text


@pytest.mark.parametrize("reach", ["workspace", "network"])
async def test_no_socket_without_a_connection_reaches_others(
    machine: Machine, reach: Reach
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(machine.root / "datagrams"))
        listener.setblocking(False)
        text = (
            await machine.run(f"{probe(machine, RAW)} {machine.root}/datagrams", reach)
        ).text
        assert "[exit code 0]" in text
        with pytest.raises(BlockingIOError):
            listener.recv(100)


@pytest.mark.parametrize("abi", [5, 99])
async def test_no_signal_takes_another_way(place: Path, abi: int) -> None:
    machine = Machine(place, make_sandbox(f"landlock-{abi}"), ResourceLimits())
    try:
        await machine.run(f"{probe(machine, SIGNALS)} {machine.process.pid}")
        machine.assert_untouched()
    finally:
        await machine.close()


@pytest.mark.parametrize("call", ODD)
async def test_a_call_with_odd_numbers_is_answered(machine: Machine, call: str) -> None:
    """Nobody waits for an answer that never comes, and what comes next is answered too."""
    result = await machine.run(
        f"{probe(machine, f'import os; {call}')}; chmod 600 keep.txt && echo on",
        timeout=30,
    )
    assert "on\n[exit code 0]" in result.text


async def test_no_file_runs_as_its_owner(machine: Machine) -> None:
    assert "[exit code 0]" in (await machine.run(probe(machine, SET_ID))).text
    made = {path.name: path.stat().st_mode for path in machine.workspace.iterdir()}
    assert "a" in made
    assert not [
        name for name, mode in made.items() if mode & (stat.S_ISUID | stat.S_ISGID)
    ]


async def test_folders_in_memory_are_bounded(machine: Machine) -> None:
    if machine.sandbox.kind != "bubblewrap":
        pytest.skip("only bubblewrap makes them")
    sizes = (
        await machine.run(
            "df -B1 --output=size /run /var/tmp /dev/shm | tail -n +2; touch /dev/x"
        )
    ).text
    assert [line.strip() for line in sizes.splitlines()[:3]] == [str(256 * 1024**2)] * 3
    assert "/dev/x" in sizes
    assert (
        await machine.run("touch /dev/shm/x /run/x /var/tmp/x && echo y > /dev/null")
    ).ok


async def test_an_older_bubblewrap_leaves_them_read_only(
    place: Path, bubblewrap: Path
) -> None:
    from hermes.tools.sandbox.bubblewrap import Bubblewrap

    machine = Machine(
        place,
        Bubblewrap(bubblewrap, None, administrator=os.geteuid() == 0, sizes=False),
        ResourceLimits(),
    )
    try:
        text = (
            await machine.run(
                "touch /run/x; touch /var/tmp/x; echo $TMPDIR > $TMPDIR/x && cat $TMPDIR/x"
            )
        ).text
        assert text.count("Read-only file system") == 2
        assert "[exit code 0]" in text
    finally:
        await machine.close()


@pytest.mark.parametrize(
    "how", ["absolute", "relative", "renamed", "linked", "with a line end"]
)
async def test_a_programs_socket_in_the_workspace_cannot_be_reached(
    place: Path, bubblewrap: Path, limits: ResourceLimits, how: str
) -> None:
    machine = Machine(place, make_sandbox("bubblewrap", bubblewrap), limits)
    folder = machine.workspace / "tmp"
    folder.mkdir(parents=True)
    path = folder / ("a\nb" if how == "with a line end" else "server")
    before = Path.cwd()
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            os.chdir(folder)
            listener.bind(
                {"relative": "server", "renamed": "old", "linked": f"{place}/s"}.get(
                    how, str(path)
                )
            )
        finally:
            os.chdir(before)
        if how == "renamed":
            (folder / "old").rename(path)
        elif how == "linked":
            path.hardlink_to(place / "s")
        listener.listen()
        listener.setblocking(False)
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r}); print('connected')"
        assert "connected\n" not in (await machine.run(probe(machine, code))).text
        with pytest.raises(BlockingIOError):
            listener.accept()
    await machine.close()


async def test_commands_still_reach_each_others_sockets(
    place: Path, bubblewrap: Path, limits: ResourceLimits
) -> None:
    machine = Machine(place, make_sandbox("bubblewrap", bubblewrap), limits)
    code = "from socket import AF_UNIX, socket; s = socket(AF_UNIX); s.bind('own'); s.listen(); c = socket(AF_UNIX)"
    code += "; c.connect('own'); print('connected')"
    assert "connected" in (await machine.run(f'{PYTHON} -c "{code}"')).text
    await machine.close()

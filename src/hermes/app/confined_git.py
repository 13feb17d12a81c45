"""Runs git in a folder that sandboxed commands can write to, confined like them.

Programs that a repository's settings name can be checked beforehand, but a command that is still running may change
the settings before git reads them. So everything that git starts there runs in the sandbox, too.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes.settings.load import find_home
from hermes.tools.sandbox import ConfinedLaunch, Fence, find_sandbox
from hermes.tools.sandbox.session_tmp import TemporaryFolder


def run_confined_git(
    command: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    timeout_s: float,
) -> "subprocess.CompletedProcess[bytes] | None":
    """Runs git in a folder; None if bubblewrap can't be used here. Raises OSError, subprocess.TimeoutExpired."""
    sandbox = find_sandbox(environ.get("PATH", ""), Path.home())
    if sandbox.kind != "bubblewrap":
        return None
    temporary = TemporaryFolder()
    folder = Path(os.path.realpath(folder))
    fence = Fence(
        folder,
        temporary.path(),
        user_home=Path(os.path.realpath(Path.home())),
        hermes_home=Path(os.path.realpath(find_home(dict(environ)).root)),
    )
    try:
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            number = errors.fileno()
            script = f'exec "$@" 2>/dev/fd/{number}'
            launch = ConfinedLaunch(
                ["/bin/sh", "-c", script, "sh", *command],
                folder,
                environ,
                subprocess.DEVNULL,
                output.fileno(),
                (number,),
            )
            code = _exit_code(sandbox.start(launch, fence).process, timeout_s)
            output.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(
                command, code, output.read(), errors.read()
            )
    finally:
        temporary.close()


def _exit_code(process: "subprocess.Popen[bytes]", timeout_s: float) -> int:
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise

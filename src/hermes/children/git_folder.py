"""A git folder of Hermes' own: found, locked, made and used apart from the user's git settings and hooks.

Its lock is handed to every git process: when Hermes is killed, the next one waits for the git it left behind, and what
is still locked after that is a leftover.
"""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hermes.children.helper_programs import find_program
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import PRIVATE_FILE, make_private_folder, replace_file

ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"
"""Files are kept byte for byte, whatever a project's own attributes say."""


class Busy(Exception):
    """Another process held the lock for too long."""


class TooSlow(Exception):
    """Git took so long that it was given up on."""


def find_git(environment: Mapping[str, str]) -> str:
    """Where git is; empty when there is none."""
    return find_program("git", environment) or ""


def take_lock(folder: Path, timeout_s: float) -> FileLock:
    """Creates the folder if needed and locks it for this caller alone, until the lock is closed. Raises Busy."""
    lock = FileLock(make_private_folder(folder) / "lock")
    if not lock.acquire(timeout_s):
        lock.close()
        raise Busy
    return lock


def make(
    folder: Path, folders: Iterable[str], files: Mapping[str, str], config: str
) -> None:
    """Makes an empty repository, unless there is one. Its settings are always ours: others could run programs."""
    if _reads(folder / "config", config):
        return
    for name in folders:
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    # The configuration is written last: whoever sees it sees a whole repository.
    for name, text in {**files, "config": config}.items():
        replace_file(folder / name, text.encode(), mode=PRIVATE_FILE, durable=False)


def _reads(path: Path, text: str) -> bool:
    try:
        return not path.is_symlink() and path.read_text(errors="replace") == text
    except FileNotFoundError:
        return False


class GitRunner(msgspec.Struct, frozen=True):
    """How git is run in such a folder, while its lock is held."""

    git: str
    folder: Path
    lock: FileLock
    slow: float
    """Seconds after which it is given up on."""

    def __call__(
        self,
        arguments: Sequence[str | bytes],
        environment: Mapping[str, str],
        cwd: Path | bytes,
        given: bytes = b"",
    ) -> "subprocess.CompletedProcess[bytes]":
        """Runs git to its end. Raises TooSlow."""
        apart = {
            "GIT_DIR": str(self.folder),
            "GIT_COMMON_DIR": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": str(self.folder),
            "LC_ALL": "C",
        }
        try:
            return subprocess.run(
                [self.git, *arguments],
                input=given,
                capture_output=True,
                env={**apart, **environment},
                cwd=cwd,
                pass_fds=(self.lock.fd,),
                start_new_session=True,  # Ctrl-C is for Hermes, which lets this finish
                timeout=self.slow,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TooSlow(f"git took longer than {self.slow:.0f} seconds") from error


def complaint(done: "subprocess.CompletedProcess[bytes]") -> str:
    """The last thing git said about what went wrong."""
    said = done.stderr.decode(errors="backslashreplace").strip().splitlines()
    return said[-1] if said else str(done.returncode)

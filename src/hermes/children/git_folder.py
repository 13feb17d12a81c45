"""A private git folder of Hermes: found, locked, created and used independently of the user's git settings and hooks.

Every git process inherits the lock: if Hermes is killed, the next Hermes waits for the git process that it left behind.
Lock files that exist after that are leftovers.
"""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hermes.children.helper_programs import find_program
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import PRIVATE_FILE, make_private_folder, replace_file
from hermes.text.translation import translator

t = translator(__name__)


ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"
"""Files are stored byte for byte, whatever a project's own attributes say."""


class Busy(Exception):
    """Another process held the lock for too long."""


class TooSlow(Exception):
    """Git took too long and was abandoned."""


def find_git(environment: Mapping[str, str]) -> str:
    """Returns the path of git; empty if it is not installed."""
    return find_program("git", environment) or ""


def take_lock(folder: Path, timeout_s: float) -> FileLock:
    """Creates the folder if needed and locks it exclusively until the lock is closed. Raises Busy."""
    lock = FileLock(make_private_folder(folder) / "lock")
    if not lock.acquire(timeout_s):
        lock.close()
        raise Busy
    return lock


def make(
    folder: Path, folders: Iterable[str], files: Mapping[str, str], config: str
) -> None:
    """Creates an empty repository if there is none. Always writes our settings: others could run programs."""
    if _reads(folder / "config", config):
        return
    for name in folders:
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    # The configuration is written last, so that a repository with one is complete.
    for name, text in {**files, "config": config}.items():
        replace_file(folder / name, text.encode(), mode=PRIVATE_FILE, durable=False)


def _reads(path: Path, text: str) -> bool:
    try:
        return not path.is_symlink() and path.read_text(errors="replace") == text
    except FileNotFoundError:
        return False


class GitRunner(msgspec.Struct, frozen=True):
    """Runs git in such a folder, while its lock is held."""

    git: str
    folder: Path
    lock: FileLock
    slow: float
    """Seconds after which git is abandoned."""

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
                start_new_session=True,  # Ctrl-C is for Hermes, which lets git finish
                timeout=self.slow,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TooSlow(
                t.logged("git took longer than {slow:.0f} seconds", slow=self.slow)
            ) from error


def complaint(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Returns the last line that git wrote about what went wrong."""
    said = done.stderr.decode(errors="backslashreplace").strip().splitlines()
    return said[-1] if said else str(done.returncode)

"""A private git repository inside the home, independent of the user's git settings and hooks.

Its work tree is the home, but it tracks only `memories/` and `skills/`. One process uses it at a
time.
"""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from hermes.children import git_folder
from hermes.learning.change import LearningError
from hermes.primitives.file_lock import FileLock
from hermes.text.translation import translator

t = translator(__name__)

KEPT = ("memories", "skills")
_HISTORY_LOCK_TIMEOUT_S = 20.0  # for another process to release the lock
_HISTORY_GIT_TIMEOUT_S = 60.0  # for one git command
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = false
\tsharedRepository = 0600
\tsymlinks = true
\tautocrlf = false
\thooksPath = /dev/null
\texcludesFile = /dev/null
\tattributesFile = /dev/null
\tfsmonitor = false
\tquotePath = false
[gc]
\tauto = 0
[commit]
\tgpgSign = false
"""
_FILES = {
    "HEAD": "ref: refs/heads/main\n",
    "info/attributes": git_folder.ATTRIBUTES,
    "info/exclude": ".*.lock\n.*.new\n.staging/\n.pending.json\n",
}


class HistoryRepository:
    """The repository's folder. `locked` creates it if needed and gives exclusive access."""

    def __init__(
        self, root: Path, folder: Path, environment: Mapping[str, str]
    ) -> None:
        self._root = root
        self._folder = folder
        self._environment = environment

    @property
    def _git(self) -> str:
        return git_folder.find_git(self._environment)

    @property
    def usable(self) -> bool:
        """Whether git is installed."""
        return bool(self._git)

    @property
    def exists(self) -> bool:
        """Whether anything was ever committed."""
        return (self._folder / "config").exists()

    @contextlib.contextmanager
    def locked(self) -> Iterator["HistoryGit"]:
        """Opens the repository exclusively. Removes a lock file that a killed git left behind."""
        if not self._git:
            raise LearningError(
                t.later("There is no history: git is not installed."),
                hint=t.later("Install git to get one."),
            )
        try:
            lock = self._lock()
        except OSError as error:
            raise _unusable(self._folder, error) from error
        try:
            self._prepare()
            yield HistoryGit(
                self._root,
                git_folder.GitRunner(
                    self._git, self._folder, lock, _HISTORY_GIT_TIMEOUT_S
                ),
            )
        finally:
            lock.close()

    def _prepare(self) -> None:
        try:
            git_folder.make(self._folder, ("objects", "refs", "info"), _FILES, _CONFIG)
            (self._folder / "index.lock").unlink(missing_ok=True)
        except OSError as error:
            raise _unusable(self._folder, error) from error

    def _lock(self) -> FileLock:
        try:
            return git_folder.take_lock(self._folder, _HISTORY_LOCK_TIMEOUT_S)
        except git_folder.Busy as error:
            raise LearningError(
                t.later(
                    "Another process has been using the history of memory and skills for too long."
                ),
                hint=t.later("Try again when that process is done."),
            ) from error


def _unusable(folder: Path, error: OSError) -> LearningError:
    return LearningError(
        t.later("The history can't be used ({strerror}).", strerror=error.strerror),
        hint=t.later("Check {folder}.", folder=folder),
    )


class HistoryGit:
    """The repository while its lock is held."""

    def __init__(self, root: Path, git: git_folder.GitRunner) -> None:
        self._root = root
        self._git = git

    def run(self, *arguments: str, given: bytes = b"", may_fail: bool = False) -> bytes:
        """Runs git and returns its output."""
        done = self._run(arguments, given)
        if done.returncode and not may_fail:
            raise LearningError(
                t.later(
                    "git {arguments} failed: {complaint}",
                    arguments=arguments[0],
                    complaint=git_folder.complaint(done),
                ),
                hint=t.later("The history of memory and skills was not changed."),
            )
        return done.stdout if not done.returncode else b""

    @property
    def root(self) -> Path:
        """The home."""
        return self._root

    @property
    def program(self) -> str:
        """The path of git."""
        return self._git.git

    def transfer(
        self, *arguments: str, environment: Mapping[str, str]
    ) -> "subprocess.CompletedProcess[bytes]":
        """Runs a git command that talks to another repository."""
        return self._run(("-c", "fetch.fsckObjects=true", *arguments), b"", environment)

    def text(self, *arguments: str, may_fail: bool = False) -> str:
        """Runs git and returns its output as text, without the last newline."""
        return (
            self.run(*arguments, may_fail=may_fail)
            .decode(errors="replace")
            .rstrip("\n")
        )

    def show(self, commit: str, path: str) -> bytes | None:
        """Returns a file of a commit; None if it does not exist there."""
        done = self._run(("cat-file", "blob", f"{commit}:{path}"), b"")
        return None if done.returncode else done.stdout

    def merge(self, current: bytes, base: bytes, other: bytes) -> bytes | None:
        """Applies the changes from `base` to `other` to `current`; None if both changed the same lines."""
        with tempfile.TemporaryDirectory(dir=self._git.folder) as folder:
            names = [Path(folder) / name for name in ("current", "base", "other")]
            for path, data in zip(names, (current, base, other), strict=True):
                path.write_bytes(data)
            done = self._run(("merge-file", "-p", "-q", *map(str, names)), b"")
        return None if done.returncode else done.stdout

    def _run(
        self,
        arguments: tuple[str, ...],
        given: bytes,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> "subprocess.CompletedProcess[bytes]":
        environment = {
            "GIT_WORK_TREE": str(self._root),
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_AUTHOR_NAME": "Hermes",
            "GIT_AUTHOR_EMAIL": "hermes@localhost",
            "GIT_COMMITTER_NAME": "Hermes",
            "GIT_COMMITTER_EMAIL": "hermes@localhost",
        }
        try:
            return self._git(arguments, {**environment, **more}, self._root, given)
        except git_folder.TooSlow as error:
            raise LearningError(
                f"{error}.", hint=t.later("The history was not changed.")
            ) from error

"""A bare git repository that only Hermes uses, one process at a time: see `children.git_folder`."""

import contextlib
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hermes.children import git_folder
from hermes.text.translation import translator

t = translator(__name__)


EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_SHADOW_LOCK_TIMEOUT_S = 120.0  # for another session to release the lock
_SHADOW_GIT_TIMEOUT_S = 120.0  # for one git command
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tautocrlf = false
\thooksPath = /dev/null
\texcludesFile = /dev/null
\tattributesFile = /dev/null
\tfsmonitor = false
\tprotectHFS = false
\tprotectNTFS = false
\tquotePath = false
\tfsync = none
\tlooseCompression = 1
[gc]
\tauto = 0
[submodule]
\trecurse = false
"""
# Files that builds create again. In a project without ignore rules they would be most of the files.
EXCLUDED = (
    *(
        "node_modules/",
        "__pycache__/",
        ".venv/",
        ".tox/",
        ".nox/",
        ".mypy_cache/",
        ".ruff_cache/",
        ".pytest_cache/",
    ),
)
_FILES = {
    "HEAD": "ref: refs/heads/none\n",
    "info/attributes": git_folder.ATTRIBUTES,
    "info/exclude": "\n".join((*EXCLUDED, "")),
}


class ShadowFailed(Exception):
    """An operation on the shadow repository failed; the message says why."""


def blob_id(data: bytes) -> str:
    """The name that git gives to this content."""
    return hashlib.sha1(_whole(data), usedforsecurity=False).hexdigest()


class View(NamedTuple):
    """A folder, the top of the project around it, whose ignore rules apply, and the index file for both."""

    root: bytes
    top: bytes
    index: Path


class ShadowRepository:
    """The folder of one shadow repository. `locked` creates it if necessary and admits one caller at a time."""

    def __init__(self, folder: Path, git: str) -> None:
        self.folder = folder
        self._git = git

    @contextlib.contextmanager
    def locked(self) -> Iterator["ShadowGit"]:
        """Locks the repository for this caller. Raises ShadowFailed."""
        if not self._git:
            raise ShadowFailed(t.logged("git is not installed"))
        try:
            lock = git_folder.take_lock(self.folder, _SHADOW_LOCK_TIMEOUT_S)
        except git_folder.Busy as error:
            raise ShadowFailed(
                t.logged("another session used the undo folder for too long")
            ) from error
        try:
            git_folder.make(
                self.folder,
                ("objects", "refs", "info", "indexes", "turns"),
                _FILES,
                _CONFIG,
            )
            for leftover in self.folder.glob("indexes/*.lock"):
                leftover.unlink(missing_ok=True)
            yield ShadowGit(
                self.folder,
                git_folder.GitRunner(
                    self._git, self.folder, lock, _SHADOW_GIT_TIMEOUT_S
                ),
            )
        finally:
            lock.close()


class ShadowGit:
    """A repository while its lock is held."""

    def __init__(self, folder: Path, git: git_folder.GitRunner) -> None:
        self.folder = folder
        self._git = git

    def run(
        self,
        *arguments: str | bytes,
        given: bytes = b"",
        view: View | None = None,
        may_fail: bool = False,
    ) -> bytes:
        """Runs git and returns its output. Without a view, it sees no working tree. Raises ShadowFailed."""
        return self.run_with_stderr(
            *arguments, given=given, view=view, may_fail=may_fail
        )[0]

    def run_with_stderr(
        self,
        *arguments: str | bytes,
        given: bytes = b"",
        view: View | None = None,
        may_fail: bool = False,
    ) -> tuple[bytes, bytes]:
        """The same, but also returns stderr."""
        own = os.fsencode(self.folder)
        view = view or View(own, own, self.folder / "indexes" / "none")
        environment = {
            "GIT_WORK_TREE": os.fsdecode(view.top),
            "GIT_INDEX_FILE": str(view.index),
        }
        try:
            done = self._git(arguments, environment, view.root, given)
        except git_folder.TooSlow as error:
            raise ShadowFailed(str(error)) from error
        if done.returncode and not may_fail:
            raise ShadowFailed(
                f"git {arguments[0]!s} failed: {git_folder.complaint(done)}"
            )
        return done.stdout, done.stderr

    def view(self, root: bytes, top: bytes) -> View:
        """A folder with its own index file, so that only changed files are read again."""
        return View(
            root,
            top,
            self.folder
            / "indexes"
            / hashlib.sha256(top + b"\0" + root).hexdigest()[:32],
        )

    def write_blob(self, data: bytes) -> str:
        """Saves content and returns its name. Writes git's format itself, which saves a process."""
        name = blob_id(data)
        target = self.folder / "objects" / name[:2] / name[2:]
        if not target.exists():
            target.parent.mkdir(mode=0o700, exist_ok=True)
            draft = target.with_name(f"tmp_obj_{name}")
            draft.write_bytes(zlib.compress(_whole(data), 1))
            draft.chmod(0o400)
            draft.rename(target)
        return name

    def read_blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """Returns saved content by name. Raises ShadowFailed if one is missing."""
        wanted = dict.fromkeys(names)
        if not wanted:
            return {}
        out = self.run(
            "cat-file",
            "--batch",
            given="".join(f"{name}\n" for name in wanted).encode(),
        )
        found: dict[str, bytes] = {}
        place = 0
        for name in wanted:
            end = out.index(b"\n", place)
            head = out[place:end].split()
            if head[-1] == b"missing":
                raise ShadowFailed(
                    t.logged(
                        "a saved file ({name}) is gone from the undo folder",
                        name=name[:8],
                    )
                )
            size = int(head[2])
            found[name] = out[end + 1 : end + 1 + size]
            place = end + size + 2
        return found

    def has(self, tree: str, path: bytes) -> bool:
        """Whether a saved tree has something at `path`."""
        out = self.run(
            "cat-file", "--batch-check", "-z", given=tree.encode() + b":" + path + b"\0"
        )
        return not out.rstrip().endswith(b"missing")


def _whole(data: bytes) -> bytes:
    return b"blob %d\0" % len(data) + data

"""A bare repository of our own, used by one process at a time, cut off from the user's git settings and hooks.

Its lock is handed to every git process: when Hermes is killed, the next one waits for the git it left behind, and what
is still locked after that is a leftover.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_PATIENCE = 120.0  # seconds for another session to let go of the lock
_SLOW = 120.0  # seconds after which git is given up on
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
# Files are kept byte for byte, whatever the project's own attributes say.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"
# What any build makes again; in a project without ignore rules it would be most of the files.
EXCLUDED = (
    *("node_modules/", "__pycache__/", ".venv/", ".tox/", ".nox/", ".mypy_cache/", ".ruff_cache/", ".pytest_cache/"),
)
_FILES = {"HEAD": "ref: refs/heads/none\n", "info/attributes": _ATTRIBUTES, "info/exclude": "\n".join((*EXCLUDED, ""))}


class ShadowFailed(Exception):
    """The shadow repository could not do what was asked; the words say why."""


def find_git(environment: Mapping[str, str]) -> str:
    """Where git is; empty when there is none."""
    return shutil.which("git", path=environment.get("PATH", os.defpath)) or ""


def blob_id(data: bytes) -> str:
    """The name git gives to a content."""
    return hashlib.sha1(_whole(data), usedforsecurity=False).hexdigest()


class View(NamedTuple):
    """A folder that is looked at, the project around it, whose ignore rules count, and git's memory of both."""

    root: bytes
    top: bytes
    index: Path


class Repository:
    """The folder of one shadow repository. `locked` makes it if needed and lets one user in at a time."""

    def __init__(self, folder: Path, git: str) -> None:
        self.folder = folder
        self._git = git

    @contextlib.contextmanager
    def locked(self) -> Iterator["Git"]:
        """The repository, for this caller alone."""
        if not self._git:
            raise ShadowFailed("git is not installed")
        lock = self._lock()
        try:
            self._make()
            for leftover in self.folder.glob("indexes/*.lock"):
                leftover.unlink(missing_ok=True)
            yield Git(self.folder, self._git, lock)
        finally:
            os.close(lock)

    def _lock(self) -> int:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(lock)
                    raise ShadowFailed("another session kept the undo folder busy for too long") from None
                time.sleep(0.005)
            else:
                return lock

    def _make(self) -> None:
        if (self.folder / "config").exists():
            return
        for name in ("objects", "refs", "info", "indexes", "turns"):
            (self.folder / name).mkdir(mode=0o700, exist_ok=True)
        for name, text in _FILES.items():
            (self.folder / name).write_text(text)
        draft = self.folder / "config.new"
        draft.write_text(_CONFIG)
        draft.rename(self.folder / "config")  # last: whoever sees it sees a whole repository


class Git:
    """A repository while its lock is held."""

    def __init__(self, folder: Path, git: str, lock: int) -> None:
        self.folder = folder
        self._git = git
        self._lock = lock

    def run(
        self, *arguments: str | bytes, given: bytes = b"", view: View | None = None, may_fail: bool = False
    ) -> bytes:
        """Runs git and returns what it wrote. Without a view it looks at no folder."""
        return self.run_aloud(*arguments, given=given, view=view, may_fail=may_fail)[0]

    def run_aloud(
        self, *arguments: str | bytes, given: bytes = b"", view: View | None = None, may_fail: bool = False
    ) -> tuple[bytes, bytes]:
        """The same, also with what it complained about."""
        own = os.fsencode(self.folder)
        view = view or View(own, own, self.folder / "indexes" / "none")
        environment = {
            b"GIT_DIR": own,
            b"GIT_WORK_TREE": view.top,
            b"GIT_INDEX_FILE": os.fsencode(view.index),
            b"GIT_CONFIG_NOSYSTEM": b"1",
            b"GIT_CONFIG_GLOBAL": b"/dev/null",
            b"GIT_ATTR_NOSYSTEM": b"1",
            b"GIT_TERMINAL_PROMPT": b"0",
            b"HOME": own,
            b"LC_ALL": b"C",
        }
        try:
            done = subprocess.run(
                [self._git, *arguments],
                input=given,
                capture_output=True,
                env=environment,
                cwd=view.root,
                pass_fds=(self._lock,),
                start_new_session=True,  # Ctrl-C is for Hermes, which lets this finish
                timeout=_SLOW,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ShadowFailed(f"git took longer than {_SLOW:.0f} seconds") from error
        if done.returncode and not may_fail:
            said = done.stderr.decode(errors="backslashreplace").strip().splitlines()
            raise ShadowFailed(f"git {arguments[0]!s} failed: {said[-1] if said else done.returncode}")
        return done.stdout, done.stderr

    def view(self, root: bytes, top: bytes) -> View:
        """A folder with the file that remembers what was seen in it, so that only what changed is read again."""
        return View(root, top, self.folder / "indexes" / hashlib.sha256(top + b"\0" + root).hexdigest()[:32])

    def write_blob(self, data: bytes) -> str:
        """Keeps a content and returns its name. Ours is as good as git's, and needs no process."""
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
        """Kept contents by name. One that is gone is an error."""
        wanted = dict.fromkeys(names)
        if not wanted:
            return {}
        out = self.run("cat-file", "--batch", given="".join(f"{name}\n" for name in wanted).encode())
        found: dict[str, bytes] = {}
        place = 0
        for name in wanted:
            end = out.index(b"\n", place)
            head = out[place:end].split()
            if head[-1] == b"missing":
                raise ShadowFailed(f"a kept file ({name[:8]}) is gone from the undo folder")
            size = int(head[2])
            found[name] = out[end + 1 : end + 1 + size]
            place = end + size + 2
        return found

    def has(self, tree: str, path: bytes) -> bool:
        """Whether a kept tree has something at `path`."""
        out = self.run("cat-file", "--batch-check", "-z", given=tree.encode() + b":" + path + b"\0")
        return not out.rstrip().endswith(b"missing")


def _whole(data: bytes) -> bytes:
    return b"blob %d\0" % len(data) + data

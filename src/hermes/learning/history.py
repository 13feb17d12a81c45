"""The history of memory and skills: when each change was made, by whom, what it changed, and how to
revert it.
"""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from hermes.learning.change import By, LearningError, LearningNotFound, Provenance
from hermes.learning.history_repository import KEPT, HistoryGit, HistoryRepository
from hermes.primitives.files import make_private_folder
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.settings import atomic
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.learning")

_BY: tuple[By, ...] = ("user", "model", "review", "hermes", "import")
_MAX_DIFF_CHARS = 200_000
_TRAILERS = "%x1f".join(
    f"%(trailers:key={key},valueonly,separator=%x2c)"
    for key in ("By", "Session", "Turn")
)
_SHOWN = f"%H%x1f%ct%x1f%s%x1f{_TRAILERS}%x1e"
_EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the hash of an empty tree


class HistoryEntry(msgspec.Struct, frozen=True):
    """One change in the history."""

    hash: str
    when: float
    title: str
    origin: Provenance


class RevertReport(msgspec.Struct, frozen=True):
    """The result of a revert: its own hash in the history, and the files it changed."""

    hash: str
    files: tuple[str, ...]


class LearningHistory:
    """The history of one home. Without git, changes are made but not recorded."""

    def __init__(self, root: Path, repository: HistoryRepository) -> None:
        self._root = root
        self._repository = repository

    @property
    def missing(self) -> str:
        """Why there is no history; empty if there is one."""
        return (
            ""
            if self._repository.usable
            else t.logged("git is not installed: changes are made, but not recorded")
        )

    def commit_manual_edits(self) -> None:
        """Commits manual edits since the last change, under the user's name."""
        self.commit("edited by hand", Provenance("user"))  # not translated

    def commit(self, title: str, origin: Provenance) -> str:
        """Commits the files as they are. Returns the commit's hash; empty if nothing changed.

        A change is made whether or not it can be committed: errors are logged.
        """
        if not self._repository.usable:
            return ""
        try:
            with self._repository.locked() as git:
                return _commit(git, title, origin, self.present())
        except LearningError as error:
            log.warning(
                "a change was not recorded in the history (%s): %s", title, error
            )
            return ""

    def commit_into(self, git: HistoryGit, title: str, origin: Provenance) -> None:
        """Commits the files as they are, to a repository that is locked already."""
        _commit(git, title, origin, self.present())

    def log(self, path: str, *, limit: int = 50) -> list[HistoryEntry]:
        """Returns the changes of a file or folder, newest first."""
        if not self._repository.usable or not self._repository.exists:
            return []
        with self._repository.locked() as git:
            _commit(
                git, "edited by hand", Provenance("user"), self.present()
            )  # not translated
            out = git.text(
                "log",
                f"--max-count={limit}",
                f"--format={_SHOWN}",
                "--",
                path,
                may_fail=True,
            )
        return [_entry(record) for record in out.split("\x1e") if record.strip()]

    def diff(self, change: str, path: str = "") -> str:
        """Returns the diff of a change."""
        with self._repository.locked() as git:
            commit = _find(git, change)
            paths = ("--", path) if path else ()
            out = git.text(
                "diff-tree", "-p", "--root", "--no-commit-id", "-r", commit, *paths
            )
        return out[:_MAX_DIFF_CHARS]

    def revert(self, change: str, under: str, origin: Provenance) -> RevertReport:
        """Reverts one change and keeps later ones. Raises LearningError if later changes touched
        the same lines.
        """
        with self._repository.locked() as git:
            _commit(
                git, "edited by hand", Provenance("user"), self.present()
            )  # not translated
            commit = _find(git, change)
            planned = [
                self._undone(git, commit, path) for path in _touched(git, commit, under)
            ]
            files = [(path, data) for path, data in planned if data != self._read(path)]
            if not files:
                raise LearningError(
                    t.later("Nothing of {change} is left to revert.", change=change),
                    hint=t.later("Nothing was changed."),
                )
            self.write_files(dict(files))
            name = _commit(git, f"revert {commit[:10]}", origin, self.present())
        return RevertReport(name, tuple(path for path, _ in files))

    def restore(self, change: str, under: str, origin: Provenance) -> RevertReport:
        """Restores everything below `under` to its state after a change."""
        with self._repository.locked() as git:
            _commit(
                git, "edited by hand", Provenance("user"), self.present()
            )  # not translated
            commit = _find(git, change)
            then = set(
                git.text(
                    "ls-tree", "-r", "--name-only", "-z", commit, "--", under
                ).split("\0")
            ) - {""}
            now = set(
                git.text(
                    "ls-tree", "-r", "--name-only", "-z", "HEAD", "--", under
                ).split("\0")
            ) - {""}
            planned = [
                (path, git.show(commit, path) if path in then else None)
                for path in sorted(then | now)
            ]
            files = [(path, data) for path, data in planned if data != self._read(path)]
            self.write_files(dict(files))
            name = _commit(git, f"restore {commit[:10]}", origin, self.present())
        return RevertReport(name, tuple(path for path, _ in files))

    def merge(self, current: str, base: str, other: str) -> str | None:
        """Applies the changes from `base` to `other` to `current`; None if they conflict."""
        if current == base:
            return other
        if not self._repository.usable:
            return None
        with self._repository.locked() as git:
            merged = git.merge(current.encode(), base.encode(), other.encode())
        return None if merged is None else merged.decode()

    def _undone(
        self, git: HistoryGit, commit: str, path: str
    ) -> tuple[str, bytes | None]:
        """Returns a file without the edits of a change."""
        before, after, current = (
            git.show(f"{commit}^", path),
            git.show(commit, path),
            self._read(path),
        )
        if current == after:
            return path, before
        if after is not None and current is not None:
            merged = git.merge(current, after, before or b"")
            if merged is None:
                merged = without(current, before or b"", after)
            if merged is not None:
                return path, merged if merged or before is not None else None
        hint = t.later(
            "Nothing was changed. Restore a whole earlier state with --to, or edit {path} yourself.",
            path=path,
        )
        raise LearningError(
            t.later("{path} was changed since, in the same lines.", path=path),
            hint=hint,
        )

    def _read(self, path: str) -> bytes | None:
        target = self._root / path
        return (
            target.read_bytes()
            if target.is_file() and not target.is_symlink()
            else None
        )

    def write_files(self, files: Mapping[str, bytes | None]) -> None:
        """Writes files of the home, and removes those that are None."""
        for path, data in files.items():
            target = self._root / path
            if data is None:
                target.unlink(missing_ok=True)
                _remove_empty(target.parent, stop=self._root)
            else:
                make_private_folder(target.parent)
                atomic.replace(target, data)

    def is_inside(self, path: str) -> bool:
        """Returns whether a path is in the home itself, and not where a link points."""
        target = self._root / path
        return target.parent.resolve() == self._root.resolve() / Path(path).parent

    def present(self) -> list[str]:
        """Returns the folders that are not empty; git tracks neither empty folders nor what links
        lead to.
        """
        return [
            name
            for name in KEPT
            if not (self._root / name).is_symlink() and any(_files(self._root / name))
        ]


def without(current: bytes, before: bytes, after: bytes) -> bytes | None:
    """Returns `current` without the edits from `before` to `after`, if each is still there exactly
    once.

    A merge rejects neighbouring lines, and in a list of notes most lines are neighbours.
    """
    import difflib

    was, became, lines = (
        text.splitlines(keepends=True) for text in (before, after, current)
    )
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(
        None, was, became, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            continue
        wanted = became[j1:j2] or became[j1 - 1 : j1]
        places = [
            place
            for place in range(len(lines))
            if wanted and lines[place : place + len(wanted)] == wanted
        ]
        if len(places) != 1:
            return None
        kept = [] if kind != "delete" else wanted
        lines[places[0] : places[0] + len(wanted)] = [*kept, *was[i1:i2]]
    return b"".join(lines)


def commit_tree(
    git: HistoryGit, present: list[str], ours: str, theirs: str, *, is_behind: bool
) -> None:
    """Commits the work tree as a merge of two histories. With `is_behind`, fast-forwards if the trees are equal."""
    _stage(git, present)
    tree = git.text("write-tree")
    commit = theirs
    if not is_behind or git.text("rev-parse", f"{theirs}^{{tree}}") != tree:
        parents = [word for one in (ours, theirs) if one for word in ("-p", one)]
        message = b"joined with the remote\n\nBy: hermes\n"
        made = git.run("commit-tree", tree, *parents, given=message)
        commit = made.decode().strip()
    git.run("update-ref", "HEAD", commit, *([ours] if ours else []))


_SECRET = lazy_pattern(
    r"(^|/)(\.env(?!\.(example|sample|template)$)(\.[^/]*)?|\.netrc|\.npmrc|\.pypirc|\.git-credentials|id_(rsa|ecdsa|ed25519)"
    r"|credentials(\.json)?|[^/]*\.(pem|key|p12|pfx))$",
    re.IGNORECASE,
)


def may_be_secret(path: str) -> bool:
    """Returns whether a skill's file is for passwords or keys, judging by its name. The history excludes such files."""
    return _SECRET.search(path) is not None


def _stage(git: HistoryGit, present: list[str]) -> None:
    known = {path.partition("/")[0] for path in _tracked(git)}
    nested = [path for name in present for path in _repositories(git.root, name)]
    if wanted := sorted({*present, *known}):
        without_them = [f":(exclude,literal){path}" for path in nested]
        git.run("--no-literal-pathspecs", "add", "--all", "--", *wanted, *without_them)
    for path in nested:
        _stage_repository(git, path)
    if secrets := [path for path in _tracked(git) if may_be_secret(path)]:
        git.run("rm", "--cached", "-q", "--", *secrets)


def _repositories(root: Path, name: str) -> Iterator[str]:
    """Yields the folders below one of the home that are git repositories themselves, such as a cloned skill."""
    for folder, folders, files in os.walk(root / name):
        if ".git" in folders or ".git" in files:
            folders.clear()
            yield Path(folder).relative_to(root).as_posix()


def _stage_repository(git: HistoryGit, path: str) -> None:
    """Stages the files of a repository that lies inside the home.

    `git add` would stage only the hash of its newest commit, and would fail if it has none.
    """
    git.run(
        "update-index", "--force-remove", "--", path
    )  # the hash of the nested repository's commit
    found = [one.relative_to(git.root) for one in _own_files(git.root / path)]
    names = "".join(f"{one.as_posix()}\0" for one in found).encode(errors="surrogateescape")  # fmt: skip
    ask = ("--no-literal-pathspecs", "check-ignore", "--no-index", "-z", "--stdin")
    ignored = git.run(*ask, given=names, may_fail=True)
    kept = set(names.split(b"\0")) - set(ignored.split(b"\0"))
    gone = git.run("ls-files", "-z", "--", path).split(b"\0")
    wanted = sorted({*kept, *gone} - {b""})
    given = b"".join(one + b"\0" for one in wanted)
    git.run("update-index", "--add", "--remove", "-z", "--stdin", given=given)


def _own_files(folder: Path) -> Iterator[Path]:
    """Yields files and links, except what git keeps for itself."""
    for place, folders, files in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        links = [name for name in folders if Path(place, name).is_symlink()]
        yield from (Path(place, name) for name in (*files, *links) if name != ".git")


def _tracked(git: HistoryGit) -> list[str]:
    return [path for path in git.text("ls-files", "-z").split("\0") if path]


def _commit(git: HistoryGit, title: str, origin: Provenance, present: list[str]) -> str:
    """Commits the work tree. Returns an empty string if nothing changed."""
    _stage(git, present)
    tree = git.text("write-tree")
    head = git.text("rev-parse", "--verify", "-q", "HEAD", may_fail=True)
    if head and git.text("rev-parse", f"{head}^{{tree}}") == tree:
        return ""
    if not head and tree == _EMPTY:
        return ""
    trailers = [f"By: {origin.by}"]
    trailers += [f"Session: {origin.session}"] if origin.session else []
    trailers += [f"Turn: {origin.turn}"] if origin.turn else []
    message = f"{' '.join(title.split())[:200]}\n\n" + "\n".join(trailers) + "\n"
    parents = ("-p", head) if head else ()
    commit = (
        git.run("commit-tree", tree, *parents, given=message.encode()).decode().strip()
    )
    git.run("update-ref", "HEAD", commit, *([head] if head else []))
    return commit


def _find(git: HistoryGit, change: str) -> str:
    """Returns the full hash of a change."""
    fit = change.isalnum() and len(change) >= 4
    commit = (
        git.text("rev-parse", "--verify", "-q", f"{change}^{{commit}}", may_fail=True)
        if fit
        else ""
    )
    if not commit:
        raise LearningNotFound(
            t.later("There is no change {change!r}.", change=change),
            hint=t.later("List the changes with `history`."),
        )
    return commit


def _touched(git: HistoryGit, commit: str, under: str) -> list[str]:
    out = git.text(
        "diff-tree",
        "--root",
        "--no-commit-id",
        "-r",
        "--name-only",
        "-z",
        commit,
        "--",
        under,
    )
    return [path for path in out.split("\0") if path]


def _entry(record: str) -> HistoryEntry:
    name, when, title, by, session, turn = record.strip("\n").split("\x1f")
    known: dict[str, By] = {one: one for one in _BY}
    return HistoryEntry(
        name, float(when), title, Provenance(known.get(by, "hermes"), session, turn)
    )


def _files(folder: Path) -> Iterator[Path]:
    return (
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith((".lock", ".new"))
    )


def _remove_empty(folder: Path, *, stop: Path) -> None:
    while folder != stop and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent

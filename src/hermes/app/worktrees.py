"""Worktrees: copies of a git repository to work in beside the user's checkout, made, merged and dropped on request.

A worktree here is a clone that borrows the repository's objects, not one of `git worktree`: its git folder lies inside
it, so commands in the sandbox can commit there and still reach neither the hooks nor the settings of the repository.
Worktrees live outside every checkout. A file beside each says where it came from; no sandboxed command can write it.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec

from hermes.app.carried_notes import NOTE_PATTERNS, carried_notes
from hermes.app.confined_git import run_confined_git
from hermes.children.git_folder import complaint, find_git
from hermes.errors import HermesError, NotFound, Refused, UsageError
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import PRIVATE_FILE, make_private_folder, replace_file
from hermes.settings.load import environment, find_home
from hermes.text.formats import count
from hermes.text.translation import JoinedWords, translator
from hermes.tools.sandbox.git_settings import is_harmless

t = translator(__name__)


_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_GIT_TIMEOUT_S = 300.0
_LOCK_TIMEOUT_S = 60.0
_HIDDEN_IN_SANDBOX = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - commands have their own
_MAX_NAMED_FILES = 5
_OWN_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "commit.gpgSign=false", "-c", "protocol.ext.allow=never"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    *("-c", "diff.ignoreSubmodules=dirty", "-c", "submodule.recurse=false"),
)
"""Nothing of a repository runs when Hermes uses git in it."""


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a repository, on a branch of its own."""

    name: str
    folder: str
    source: str
    """The checkout that it was made from, and is merged into."""
    base: str
    """The commit that it began with."""
    created: float = 0.0

    @property
    def branch(self) -> str:
        """Its branch, there and, after a merge, in the repository."""
        return f"hermes/{self.name}"


class WorktreeState(msgspec.Struct, frozen=True, kw_only=True):
    """What a worktree holds that its repository does not have."""

    commits: int = 0
    uncommitted: int = 0
    """Files that are changed or new, without those that git ignores."""
    problem: str = ""
    """Why that is not known."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing would be lost if it were deleted."""
        return not (self.commits or self.uncommitted or self.problem)

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        parts = [
            count(self.commits, "commit") if self.commits else "",
            count(self.uncommitted, "uncommitted file") if self.uncommitted else "",
        ]
        return ", ".join(filter(None, parts)) or "no changes"


class WorktreeMerge(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a merge."""

    commits: int
    into: str
    """The branch of the checkout; a commit if it has none."""


class WorktreeFailed(HermesError):
    """Git could not do something with a worktree. Nothing was lost."""


def worktrees_folder(environ: Mapping[str, str], home: Path) -> Path:
    """Where the worktrees of a user are."""
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
    return data / "hermes" / "worktrees"


def user_worktrees() -> "Worktrees":
    """The worktrees of the user of this process."""
    return Worktrees(worktrees_folder(environment(), Path.home()), environment())


class Worktrees:
    """Makes, finds, merges and drops worktrees. All methods block."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self._root = root
        self._environment = environ

    def repository(self, folder: Path) -> Path:
        """The checkout that a folder is in. Raises UsageError if it is in none, or has no commit yet."""
        done = self._try(folder, "rev-parse", "--show-toplevel")
        top = done.stdout.decode(errors="surrogateescape").strip()
        if done.returncode or not top:
            raise UsageError(
                t.later("{folder} is not in a git repository.", folder=folder),
                hint=t.later("Worktrees need one: git init, and a first commit."),
            )
        if self._try(Path(top), "rev-parse", "--verify", "-q", "HEAD").returncode:
            raise UsageError(
                t.later("The repository {top} has no commit yet.", top=top),
                hint=t.later("Commit something first."),
            )
        return Path(top)

    def all(self, source: Path | None = None) -> list[Worktree]:
        """The worktrees of a checkout, or of all checkouts, oldest first."""
        pattern = f"{_place(source)}/*.json" if source else "*/*.json"
        found = [_read(path) for path in sorted(self._root.glob(pattern))]
        return sorted((one for one in found if one), key=lambda one: one.created)

    def at(self, folder: Path) -> Worktree | None:
        """The worktree that a folder is in; None if it is in none."""
        place = folder.resolve()
        inside = (one for one in self.all() if place.is_relative_to(one.folder))
        return next(inside, None)

    def find(self, folder: Path, name: str) -> Worktree:
        """The worktree of that name, of the repository of a folder. Raises NotFound."""
        own = self.at(folder)
        if own is not None and own.name == name:
            return own
        source = Path(own.source) if own is not None else self.repository(folder)
        names = {one.name: one for one in self.all(source)}
        if name not in names:
            make_one = t.later("Make one: hermes worktree new {name}", name=name)
            known = t.later("There are: {names}.", names=", ".join(names))
            raise NotFound(
                t.later(
                    "There is no worktree {name!r} of {source}.",
                    name=name,
                    source=source,
                ),
                hint=JoinedWords(known, make_one) if names else make_one,
            )
        return names[name]

    def make(self, folder: Path, name: str = "", *, now: float = 0.0) -> Worktree:
        """Makes a worktree of the repository of a folder, at its current commit. Raises UsageError or WorktreeFailed."""
        source = self.repository(folder)
        if name and not _NAME.fullmatch(name):
            raise UsageError(
                t.later("{name!r} can't be the name of a worktree.", name=name),
                hint=t.later("Use up to 40 lower-case letters, digits, - and _."),
            )
        place = make_private_folder(self._root / _place(source))
        with self._locked(place):
            name = name or _free_name(place)
            target = place / name
            if target.exists() or (place / f"{name}.json").exists():
                raise UsageError(
                    t.later("The worktree {name} is already there.", name=name),
                    hint=t.later("Work in it: hermes --worktree {name}", name=name),
                )
            return self._make(source, target, now)

    def open(self, folder: Path, name: str = "", *, now: float = 0.0) -> Worktree:
        """The worktree of that name, made if there is none yet; without a name, a new one."""
        if name:
            try:
                return self.find(folder, name)
            except NotFound:
                pass
        return self.make(folder, name, now=now)

    def state(self, tree: Worktree) -> WorktreeState:
        """What would be lost without the worktree."""
        try:
            folder = self._checked(tree)
            listed = self._git_inside(folder, "status", "--porcelain=v1", "-z", "-uall")
            tip = self._git_inside(folder, "rev-parse", "HEAD").strip()
            known = self._try(Path(tree.source), "cat-file", "-e", f"{tip}^{{commit}}")
            commits = 0
            if known.returncode or not self._is_merged(tree, tip):
                log = self._git_inside(
                    folder, "rev-list", "--count", f"{tree.base}..HEAD"
                )
                commits = int(log)
        except (HermesError, OSError) as error:
            return WorktreeState(problem=str(error))
        entries = [one for one in listed.split("\0") if one[2:3] == " "]
        return WorktreeState(commits=commits, uncommitted=len(entries))

    def merge(self, tree: Worktree) -> WorktreeMerge:
        """Commits what is uncommitted, and merges the worktree's branch into the checkout it was made from.

        Raises Refused if that needs a person; then the checkout is as it was, and has the branch.
        """
        folder, source = self._checked(tree), Path(tree.source)
        with self._locked(folder.parent):
            self._commit_all(folder, tree)
            before = self._git(source, "rev-parse", "HEAD").strip()
            refs = f"+HEAD:refs/heads/{tree.branch}"
            self._git(source, "fetch", "--no-tags", "-q", str(folder), refs)
            ahead = self._git(source, "rev-list", "--count", f"HEAD..{tree.branch}")
            said = f"Merge worktree {tree.name}"  # not translated
            arguments = ("merge", "--no-edit", "-m", said, tree.branch)
            with self._carried(folder, source):
                done = self._try(source, *self._identity(source), *arguments)
                if done.returncode:
                    raise self._unmerged(tree, before, done)
            head = self._try(source, "symbolic-ref", "--short", "-q", "HEAD")
            into = head.stdout.decode(errors="replace").strip() or before[:10]
            return WorktreeMerge(commits=int(ahead), into=into)

    def drop(self, tree: Worktree, *, force: bool = False) -> str:
        """Deletes a worktree. Raises Refused if something would be lost, unless forced.

        With force, what it held is kept under a ref of the repository, whose name is returned.
        """
        state, kept = self.state(tree), ""
        if not state.is_clean and not force:
            raise Refused(
                t.later(
                    "The worktree {name} has work that is not merged: {state}.",
                    name=tree.name,
                    state=state,
                ),
                hint=t.later(
                    "Merge it (worktree merge {name}), or delete it anyway (worktree drop {name} --force).",
                    name=tree.name,
                ),
            )
        folder = Path(tree.folder)
        make_private_folder(folder.parent)
        with self._locked(folder.parent):
            if not state.is_clean and not state.problem:
                self._commit_all(folder, tree)
                tip = self._git_inside(folder, "rev-parse", "HEAD").strip()
                kept = f"refs/hermes/dropped/{tree.name}-{tip[:10]}"
                self._git(
                    Path(tree.source), "fetch", "-q", str(folder), f"+HEAD:{kept}"
                )
            self._remove(tree)
        return kept

    def _make(self, source: Path, target: Path, now: float) -> Worktree:
        base = self._git(source, "rev-parse", "HEAD").strip()
        tree = Worktree(
            name=target.name,
            folder=str(target),
            source=str(source),
            base=base,
            created=now,
        )
        # Written first: a copy that a crash left half made is listed, and can be dropped.
        note = msgspec.json.encode(tree)
        replace_file(_note(tree), note, mode=PRIVATE_FILE)
        try:
            # The ref keeps the borrowed objects, whatever becomes of the user's branches.
            self._git(source, "update-ref", f"refs/hermes/worktrees/{tree.name}", base)
            how = "--no-hardlinks" if self._is_hidden(source) else "--shared"
            copied = ("--no-checkout", "--template=", "--origin", "checkout")
            self._git(source, "clone", "-q", how, *copied, str(source), str(target))
            self._copy_identity(source, target)
            with self._carried(source, target):
                self._git(target, "checkout", "-q", "-b", tree.branch, base)
        except HermesError:
            self._remove(tree)
            raise
        return tree

    def _carried(self, origin: Path, target: Path) -> AbstractContextManager[None]:
        """Notes which project notes git brings from one checkout to the other that are not a person's."""
        home = Path(os.path.realpath(find_home(dict(self._environment)).root))

        def tracked() -> list[str]:
            listed = self._git(target, "ls-files", "-z", "--", *NOTE_PATTERNS)
            return [one for one in listed.split("\0") if one]

        place = Path(os.path.realpath(target))
        return carried_notes(home, origin, place, tracked)

    def _is_hidden(self, source: Path) -> bool:
        """Whether commands in the sandbox can't read the repository, so that its objects must be copied."""
        place = str(source.resolve())
        return any(place.startswith(f"{one}/") for one in _HIDDEN_IN_SANDBOX)

    def _copy_identity(self, source: Path, target: Path) -> None:
        for key in ("user.name", "user.email"):
            found = self._try(source, "config", "--get", key).stdout.decode().strip()
            default = "Hermes" if key == "user.name" else "hermes@localhost"
            self._git(target, "config", key, found or default)

    def _identity(self, source: Path) -> tuple[str, ...]:
        """Options that name an author where the user has set none."""
        if self._try(source, "config", "--get", "user.email").stdout.strip():
            return ()
        return ("-c", "user.name=Hermes", "-c", "user.email=hermes@localhost")

    def _commit_all(self, folder: Path, tree: Worktree) -> None:
        self._git_inside(folder, "add", "-A")
        if self._try(folder, "diff", "--cached", "--quiet", confined=True).returncode:
            self._git_inside(
                folder,
                "commit",
                "-q",
                "--no-verify",
                "-m",
                f"Work in {tree.name}",  # not translated
            )

    def _is_merged(self, tree: Worktree, tip: str) -> bool:
        source = Path(tree.source)
        return not self._try(
            source, "merge-base", "--is-ancestor", tip, "HEAD"
        ).returncode

    def _unmerged(
        self,
        tree: Worktree,
        before: str,
        done: "subprocess.CompletedProcess[bytes]",
    ) -> Refused:
        source = Path(tree.source)
        listed = self._try(source, "diff", "--name-only", "--diff-filter=U", "-z")
        files = [
            one for one in listed.stdout.decode(errors="replace").split("\0") if one
        ]
        if files:
            self._git(source, "merge", "--abort")
            names = ", ".join(files[:_MAX_NAMED_FILES])
            why = f"{count(len(files), 'file')} conflict: {names}"
        else:
            why = complaint(done)
        return Refused(
            t.later(
                "{name} was not merged: {why}. Your checkout is as it was ({before}).",
                name=tree.name,
                why=why,
                before=before[:10],
            ),
            hint=t.later(
                "Its work is on the branch {branch}: git merge {branch}",
                branch=tree.branch,
            ),
        )

    def _checked(self, tree: Worktree) -> Path:
        """The folder of a worktree, if its git folder is still one that runs nothing. Raises WorktreeFailed."""
        folder = Path(tree.folder)
        git = folder / ".git"
        if not git.is_dir() or git.is_symlink():
            raise WorktreeFailed(
                t.later(
                    "{folder} is gone, or is no longer a git repository.", folder=folder
                )
            )
        borrowed = git / "objects/info/alternates"
        lenders = borrowed.read_text() if borrowed.exists() else ""
        own = (Path(tree.source) / ".git/objects").resolve()
        foreign = [
            one
            for one in lenders.splitlines()
            if one and not self._lends(tree, Path(one), own)
        ]
        settings = (git / "config").read_bytes()
        is_changed = not is_harmless(settings) or (git / "commondir").exists()
        if foreign or is_changed or _has_armed_repository(folder):
            raise WorktreeFailed(
                t.later(
                    "The git settings of {folder} were changed, so Hermes does not run git there.",
                    folder=folder,
                )
            )
        return folder

    def _lends(self, tree: Worktree, objects: Path, own: Path) -> bool:
        """Whether objects may be borrowed from a folder: it is the repository's, also if that is a linked worktree."""
        if objects.resolve() == own:
            return True
        place = self._try(Path(tree.source), "rev-parse", "--git-path", "objects")
        named = Path(tree.source) / place.stdout.decode().strip()
        return objects.resolve() == named.resolve()

    def _remove(self, tree: Worktree) -> None:
        folder = Path(tree.folder)
        if folder.parent.parent != self._root:
            raise WorktreeFailed(
                t.later("{folder} is not a worktree of Hermes.", folder=folder)
            )
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
        if Path(tree.source).is_dir():
            self._try(
                Path(tree.source),
                "update-ref",
                "-d",
                f"refs/hermes/worktrees/{tree.name}",
            )
        _note(tree).unlink(missing_ok=True)

    def _git(self, folder: Path, *arguments: str, confined: bool = False) -> str:
        """What git printed. Raises WorktreeFailed."""
        done = self._try(folder, *arguments, confined=confined)
        if done.returncode:
            verb = next(one for one in arguments if not one.startswith("-"))
            raise WorktreeFailed(
                t.later(
                    "git {verb} failed in {folder}: {complaint}",
                    verb=verb,
                    folder=folder,
                    complaint=complaint(done),
                )
            )
        return done.stdout.decode(errors="surrogateescape")

    def _git_inside(self, folder: Path, *arguments: str) -> str:
        """What git printed in a worktree that commands may have changed. Raises WorktreeFailed."""
        return self._git(folder, *arguments, confined=True)

    def _try(
        self, folder: Path, *arguments: str, confined: bool = False
    ) -> "subprocess.CompletedProcess[bytes]":
        git = find_git(self._environment)
        if not git:
            raise WorktreeFailed(
                t.later("git is not installed."), hint=t.later("Worktrees need it.")
            )
        names = ("PATH", "HOME", "XDG_CONFIG_HOME", "LANG")
        known = {
            one: self._environment[one] for one in names if one in self._environment
        }
        environ = {**known, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
        command = [git, "-C", str(folder), *_OWN_SETTINGS, *arguments]
        try:
            if confined:
                done = run_confined_git(command, folder, environ, _GIT_TIMEOUT_S)
                if done is not None:
                    return done
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=environ,
                cwd="/",
                start_new_session=True,
                timeout=_GIT_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise WorktreeFailed(
                t.later("git took too long in {folder}.", folder=folder)
            ) from error

    @contextmanager
    def _locked(self, place: Path) -> Iterator[None]:
        with FileLock(place / "lock") as lock:
            if not lock.acquire(_LOCK_TIMEOUT_S):
                raise WorktreeFailed(
                    t.later("Another process is changing these worktrees.")
                )
            yield


def _has_armed_repository(folder: Path) -> bool:
    """Whether a repository inside has settings that name programs: git looks into it, too, and would run them."""
    for place, folders, files in os.walk(folder):
        if place == str(folder):
            folders.remove(".git")
            continue
        if ".git" in files:
            return True
        if ".git" in folders:
            git = Path(place) / ".git"
            settings = git / "config"
            if git.is_symlink() or (git / "commondir").exists() or (
                settings.exists() and not is_harmless(settings.read_bytes())
            ):  # fmt: skip
                return True
            folders.remove(".git")
    return False


def _place(source: Path) -> str:
    """The name of the folder for the worktrees of a checkout."""
    digest = hashlib.sha256(os.fsencode(source)).hexdigest()[:8]
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", source.name).strip("-") or "repository"
    return f"{stem[:40]}-{digest}"


def _free_name(place: Path) -> str:
    number = 1
    while (place / f"work-{number}").exists() or (
        place / f"work-{number}.json"
    ).exists():
        number += 1
    return f"work-{number}"


def _note(tree: Worktree) -> Path:
    folder = Path(tree.folder)
    return folder.with_name(f"{folder.name}.json")


def _read(path: Path) -> Worktree | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Worktree)
    except (OSError, msgspec.MsgspecError):
        return None

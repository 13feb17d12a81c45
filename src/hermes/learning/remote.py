"""Syncs memory and skills between machines through any git address: pulls before a change, pushes after it.

The remote's branch moves only forward, and git updates it only if nobody else did in the meantime. If two machines push
at once, one is refused, merges the other's changes, and tries again. Git only transports: files are read and written
here, so nothing from the remote can run, and nothing outside `memories/` and `skills/` is touched.
"""

import contextlib
import logging
import re
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import msgspec

from hermes.children.helper_programs import find_program
from hermes.learning.change import LearningError, Provenance
from hermes.learning.history import LearningHistory, commit_tree, may_be_secret
from hermes.learning.history_repository import KEPT, HistoryGit, HistoryRepository
from hermes.learning.memory_entries import Notes
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.redaction import mask
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.learning")

BRANCH = "refs/heads/hermes"
_THEIRS = "refs/remotes/origin/hermes"
_MAX_ATTEMPTS = 5
_MAX_FILE_BYTES = 1_000_000
_PROTOCOLS = "file:git:http:https:ssh"
_REGULAR = ("100644", "100755", "000000")  # modes in git; the last is of a deleted file
_PASSED_ON = ("SSH_AUTH_SOCK", "PATH", "https_proxy", "HTTPS_PROXY", "no_proxy")


class RemoteUnreachable(LearningError):
    """The remote did not answer. Nothing is lost: everything is stored here."""


class LearningConflict(msgspec.Struct, frozen=True):
    """A file that was changed at the same place here and elsewhere. The file now has `theirs`."""

    path: str
    ours: bytes | None
    theirs: bytes | None


class SyncReport(msgspec.Struct, frozen=True):
    """What a sync received and sent."""

    pulled: tuple[str, ...] = ()
    pushed: bool = False
    conflicts: tuple[LearningConflict, ...] = ()


class LearningRemote:
    """The remote of one home. The caller holds the locks of memory and skills."""

    def __init__(
        self,
        url: str,
        repository: HistoryRepository,
        history: LearningHistory,
        environment: Mapping[str, str],
    ) -> None:
        self._url = _checked(url)
        self._repository = repository
        self._history = history
        self._environment = environment

    def sync(self) -> SyncReport:
        """Merges what others have pushed, and pushes what they lack. Raises RemoteUnreachable."""
        pulled: dict[str, None] = {}
        conflicts: list[LearningConflict] = []
        with self._repository.locked() as git:
            self._history.commit_into(
                git, "edited by hand", Provenance("user")
            )  # not translated
            for _ in range(_MAX_ATTEMPTS):
                theirs = self._fetch(git)
                if theirs and theirs != _head(git):
                    files, more = self._join(git, theirs)
                    pulled |= dict.fromkeys(files)
                    conflicts += more
                ours = _head(git)
                is_even = ours in {theirs, ""}
                if not is_even:
                    _require_shareable(git, theirs)
                if is_even or self._push(git):
                    return SyncReport(tuple(pulled), not is_even, tuple(conflicts))
        raise RemoteUnreachable(
            t.later("Other machines kept changing memory and skills."), hint=_LATER
        )

    def _fetch(self, git: HistoryGit) -> str:
        """Fetches the remote's branch. Returns its commit; empty if the remote is new."""
        listed = self._transfer(git, "ls-remote", "--", self._url, BRANCH)
        if not listed.strip():
            return ""
        flags = ("--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "-q")
        self._transfer(git, "fetch", *flags, "--", self._url, f"+{BRANCH}:{_THEIRS}")
        return git.text("rev-parse", "--verify", "-q", _THEIRS)

    def _push(self, git: HistoryGit) -> bool:
        """Pushes. Returns False if another machine pushed first."""
        program: tuple[str, ...] = ()
        if _is_folder(self._url):  # its hooks would run on this machine
            quiet = f"{shlex.quote(git.program)} -c core.hooksPath=/dev/null"
            program = (f"--receive-pack={quiet} receive-pack",)
        words = ("push", "-q", "--porcelain", *program, "--", self._url)
        done = git.transfer(*words, f"HEAD:{BRANCH}", environment=self._variables())
        if done.returncode and re.search(rb"^!\t", done.stdout, re.MULTILINE):
            return False
        if done.returncode:
            raise self._unreachable(done.stderr)
        return True

    def _transfer(self, git: HistoryGit, *arguments: str) -> bytes:
        done = git.transfer(*arguments, environment=self._variables())
        if done.returncode:
            raise self._unreachable(done.stderr)
        return done.stdout

    def _unreachable(self, errors: bytes) -> RemoteUnreachable:
        lines = errors.decode(errors="replace").strip().splitlines() or ["no answer"]
        return RemoteUnreachable(
            t.later(
                "The remote of memory and skills can't be reached: {lines}",
                lines=mask(lines[-1]),
            ),
            hint=_LATER,
        )

    def _variables(self) -> dict[str, str]:
        found = {
            name: self._environment[name]
            for name in _PASSED_ON
            if name in self._environment
        }
        ssh = find_program("ssh", self._environment)
        return found | {
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_ASKPASS": "",
            "GIT_SSH_COMMAND": f"{shlex.quote(ssh or 'ssh')} -oBatchMode=yes",
        }

    def _join(
        self, git: HistoryGit, theirs: str
    ) -> tuple[list[str], list[LearningConflict]]:
        """Applies the changes of others. Returns the files that changed here, and the conflicts."""
        ours = _head(git)
        base = git.text("merge-base", ours, theirs, may_fail=True) if ours else ""
        files: dict[str, bytes | None] = {}
        conflicts: list[LearningConflict] = []
        for path in filter(self._history.is_inside, _changed(git, base, theirs)):
            was = git.show(base, path) if base else None
            mine = git.show(ours, path) if ours else None
            other = git.show(theirs, path)
            if other in (mine, was):
                continue
            joined = other
            if mine != was:
                joined = _merged(git, path, mine, was, other)
                if joined is None:
                    conflicts.append(LearningConflict(path, mine, other))
                    joined = other
            if joined != mine:
                files[path] = joined
        try:
            self._history.write_files(files)
        except OSError as error:
            raise LearningError(
                t.later(
                    "Changes from other machines can't be written ({strerror}).",
                    strerror=error.strerror,
                ),
                hint=t.later("Check the folders memories and skills in the home."),
            ) from error
        commit_tree(git, self._history.present(), ours, theirs, is_behind=base == ours)
        return list(files), conflicts


_BEGIN_ANEW = t.later(
    "To begin a new history without it, delete the folder learning/history.git in the home."
)
_LATER = t.later(
    "Your changes are kept here and are pushed with the next one, or by: hermes memory sync"
)


def _head(git: HistoryGit) -> str:
    return git.text("rev-parse", "--verify", "-q", "HEAD", may_fail=True)


def _require_shareable(git: HistoryGit, theirs: str) -> None:
    """Raises LearningError if the commits to push ever contained a secret, or a file for secrets."""
    since = (f"^{theirs}",) if theirs else ()
    names = git.text("log", "--format=", "--name-only", "-z", "HEAD", *since, "--")
    found = next(filter(may_be_secret, map(str.strip, names.split("\0"))), "")
    if found:
        raise LearningError(
            t.later(
                "Nothing was pushed: the history holds {found}, which may be a secret.",
                found=found,
            ),
            hint=_BEGIN_ANEW,
        )
    words = ("log", "-p", "-m", "--text", "--unified=0", "--no-renames", "--format=")
    path = _path_with_secret(git.run(*words, "HEAD", *since, "--"))
    if path:
        raise LearningError(
            t.later(
                "Nothing was pushed: {path} holds, or held, what looks like a password or key.",
                path=path,
            ),
            hint=t.later(
                "Remove it from the file. {begin_anew}", begin_anew=_BEGIN_ANEW
            ),
        )


def _path_with_secret(patch: bytes) -> str:
    """Returns the first file to which a patch adds a secret; empty if there is none."""
    path = ""
    for block in re.split(rb"^diff --git .*\n", patch, flags=re.MULTILINE)[1:]:
        head, _, body = block.partition(b"\n@@")
        name = re.search(rb"^\+\+\+ b/([^\t\n]*)", head, re.MULTILINE)
        path = name[1].decode("utf-8", "replace") if name else path
        added = re.findall(rb"^\+(.*)$", body, re.MULTILINE)
        if _holds_secret(path, b"\n".join(added).decode("utf-8", "replace")):
            return path
    return ""


def _holds_secret(path: str, text: str) -> bool:
    """Returns whether a text contains a secret.

    Notes are a person's own words, so anything that would be masked counts. Skills contain examples: `password=example`
    does not count.
    """
    if path.startswith("memories/"):
        return mask(text) != text
    return is_secret_value(text)


def _changed(git: HistoryGit, base: str, theirs: str) -> list[str]:
    """Returns the files that others changed, without those that do not belong here."""
    empty = git.run("hash-object", "-t", "tree", "--stdin").decode().strip()
    words = ("diff-tree", "-r", "-z", "--no-renames", "--raw", base or empty, theirs)
    fields = git.run(*words).split(b"\0")
    found: list[str] = []
    for facts, name in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, blob, _ = facts.decode().split(" ")
        path = name.decode("utf-8", "replace")
        size = git.text("cat-file", "-s", blob, may_fail=True) or "0"
        if mode in _REGULAR and _belongs(path) and int(size) <= _MAX_FILE_BYTES:
            found.append(path)
        else:
            log.warning("%r of the remote of memory and skills is left out", path)
    return found


def _belongs(path: str) -> bool:
    """Returns whether a path in the remote is a file of memory or skills, rather than one of git's or Hermes' own."""
    parts = PurePosixPath(path).parts
    is_odd = any(part.startswith(".") or not part.isprintable() for part in parts)
    return len(parts) > 1 and parts[0] in KEPT and not is_odd and "\\" not in path


def _merged(
    git: HistoryGit,
    path: str,
    mine: bytes | None,
    was: bytes | None,
    other: bytes | None,
) -> bytes | None:
    """Returns a file with both changes; None if they conflict."""
    if path.startswith("memories/") and path.endswith(".md"):
        return _merged_notes(mine or b"", was or b"", other or b"")
    if mine is None or other is None:
        return None
    return git.merge(mine, was or b"", other)


def _merged_notes(mine: bytes, was: bytes, other: bytes) -> bytes:
    """Returns their notes, without those removed here and with those added here: notes never conflict."""
    ours, base, merged = (
        Notes(data.decode("utf-8", "replace")) for data in (mine, was, other)
    )
    known, kept = {one.text for one in base.notes}, {one.text for one in ours.notes}
    for text in known - kept:
        for note in [one for one in merged.notes if one.text == text]:
            merged = merged.removed(note)
    there = {one.text for one in merged.notes}
    for note in ours.notes:
        if note.text not in known and note.text not in there:
            merged = merged.added(note.text)
    return merged.text.encode()


def _checked(url: str) -> str:
    """Returns the address, if git can use it without running anything and it contains no password."""
    parts = urlsplit(url)
    if url.startswith("-") or "::" in url or "\n" in url:
        raise LearningError(
            t.later("The address in `learning.remote` is not one that git can use."),
            hint=t.later(
                "Use https://..., ssh://..., user@host:path or an absolute folder."
            ),
        )
    if parts.password or (parts.scheme.startswith("http") and parts.username):
        raise LearningError(
            t.later("The address in `learning.remote` must not hold a password."),
            hint=t.later("Use ssh with a key, or a server that knows this machine."),
        )
    return url


def _is_folder(url: str) -> bool:
    """Returns whether git treats an address as a local folder, as it does with any address without a host."""
    is_address = "://" in url or ":" in url.partition("/")[0]
    return url.startswith("file:") or not is_address


def keep_aside(folder: Path, conflict: LearningConflict) -> Path:
    """Saves this machine's version to a file, in case it can't become a proposal."""
    name = conflict.path.replace("/", "__")
    target = folder / name
    number = 1
    while target.exists():
        number += 1
        target = folder / f"{name}.{number}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(parents=True, mode=0o700)
    target.write_bytes(conflict.ours or b"")
    return target

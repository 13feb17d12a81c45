"""Where a word of a command leads, seen from the workspace: inside, temporary, outside; delicate or not."""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from hermes.tools.policy.shell_words import Word
from hermes.tools.sensitive import Guard, is_build_product, is_within

_ROOTS = frozenset(
    (
        *(
            "/",
            "/bin",
            "/boot",
            "/dev",
            "/etc",
            "/home",
            "/lib",
            "/lib32",
            "/lib64",
            "/media",
            "/mnt",
            "/opt",
            "/proc",
        ),
        *(
            "/root",
            "/run",
            "/sbin",
            "/srv",
            "/sys",
            "/usr",
            "/var",
            "/Users",
            "/System",
            "/Library",
            "/Applications",
        ),
        *(
            "/usr/bin",
            "/usr/lib",
            "/usr/local",
            "/usr/share",
            "/usr/sbin",
            "/var/lib",
            "/var/log",
            "/private",
            "/snap",
        ),
        *("/etc/ssh", "/etc/systemd", "/lib/modules", "/Volumes"),
    )
)
_STREAMS = frozenset(
    ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/full")
)
_SOURCES = frozenset(("/dev/zero", "/dev/random", "/dev/urandom"))
_DEVICE = r"/dev/(?!null$|stdout$|stderr$|stdin$|tty$|full$|fd/|shm(/|$)|pts/|tcp/|udp/|zero$|u?random$)"
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"), Path("/private/tmp"), Path("/dev/shm"))  # noqa: S108 - judged, not used
_TELLTALE = (
    "id_rsa",
    "id_ed25519",
    "shadow",
    "sudoers",
    ".netrc",
    ".env",
    "credentials",
    ".git-credentials",
    ".npmrc",
)
EXPOSING_NAME = r"(?i)(SECRET|TOKEN|PASSW|API_?KEY|CREDENTIAL|PRIVATE_?KEY)"
_EXPOSING = rf"{EXPOSING_NAME[:4]}\$\{{?!?\w*{EXPOSING_NAME[4:]}"


class PathContext(msgspec.Struct, frozen=True):
    """The places that matter. `folders` are all those the command may be in, by its own `cd`s."""

    workspace: Path
    folders: tuple[Path, ...]
    home: Path
    guard: Guard
    search_path: str = ""
    """The PATH of the command."""
    seen: dict[Word, tuple[Path, ...]] = msgspec.field(default_factory=dict)
    """Words that were looked up already."""

    def moved(self, target: Path | None) -> "PathContext":
        """After a `cd`: it may be there, or still where it was."""
        if target is None or target in self.folders:
            return self
        return msgspec.structs.replace(self, folders=(*self.folders, target), seen={})

    def paths(self, word: Word) -> tuple[Path, ...]:
        """Where a word may lead; nothing if that can't be told."""
        found = self.seen.get(word)
        if found is None:
            found = self.seen[word] = self._paths(word)
        return found

    def _paths(self, word: Word) -> tuple[Path, ...]:
        text = word.text
        if word.tilde and text.startswith("~"):
            head, slash, rest = text.partition("/")
            base = (
                self.home
                if head == "~"
                else Path("/home") / head[1:]
                if head != "~root"
                else Path("/root")
            )
            text = f"{base}{slash}{rest}"
        if not word.known and text.startswith(("$", "`", "<(", ">(")):
            return ()
        if "\0" in text or len(text) > 4096:
            return ()
        found: dict[Path, None] = {}
        for folder in self.folders:
            joined = folder / text
            found[Path(os.path.normpath(joined))] = None
            if not word.pattern and word.known:
                try:
                    found[Path(os.path.realpath(joined))] = None
                except (OSError, ValueError):
                    continue
        return tuple(found)

    def is_inside(self, path: Path) -> bool:
        """Whether a path is in the workspace."""
        return is_within(path, self.workspace)

    def is_temporary(self, path: Path) -> bool:
        """Whether a path is in a folder for what is not kept."""
        return any(is_within(path, folder) for folder in _TEMPORARY)

    def own_program(self, name: str) -> Path | None:
        """The file that the shell would run for a program's name, if it is in the workspace or a temporary folder: then
        the name says nothing about what it does."""
        for program in (
            self.paths(Word(name)) if "/" in name else self._found_on_path(name)
        ):
            if any(
                self.is_inside(place) or self.is_temporary(place)
                for place in (program, program.resolve())
            ):
                return program
        return None

    def _found_on_path(self, name: str) -> Iterator[Path]:
        """The first on PATH. What lies in a relative folder depends on where the command is, and counts too."""
        for folder in self.search_path.split(os.pathsep) if self.search_path else ():
            places = (
                [Path(folder)]
                if os.path.isabs(folder)  # noqa: PTH117
                else [place / folder for place in self.folders]
            )
            programs = [
                place / name for place in places if os.access(place / name, os.X_OK)
            ]
            yield from programs
            if programs:
                return

    def is_root(self, word: Word) -> bool:
        """Whether a word means the whole system, a main part of it, a home, or Hermes' own home."""
        bare = re.sub(r"(/+(\*+|\.\*|\.\[!?\.\]\*|\{.*\}|\.)?)+$", "", word.text)
        if not bare and word.text.startswith("/"):
            bare = "/"
        if not bare or (word.pattern and bare in ("*", ".*")):
            bare = "."
        places = self.paths(Word(bare, word.known, pattern=False, tilde=word.tilde))
        return any(str(path) in _ROOTS or path in self._homes() for path in places)

    def _homes(self) -> tuple[Path, ...]:
        return (self.home, *self.home.parents, self.guard.home, self.home / ".hermes")


def is_stream(text: str) -> bool:
    """Whether writing there goes to nobody, or back to the terminal."""
    return text in _STREAMS or text.startswith("/dev/fd/")


def is_device(text: str) -> bool:
    """Whether this is a device that should not be written to."""
    return bool(
        re.match(_DEVICE, os.path.normpath(text) if text.startswith("/") else text)
    )


def is_endless(text: str) -> bool:
    """Whether this is a source of zeros or noise."""
    return text in _SOURCES


def spelled_paths(word: Word) -> Iterator[Word]:
    """A word, and what in it may be a path of its own: behind `=`, `@`, or `:`."""
    yield word
    for sign in ("=", "@", ":"):
        _, found, rest = (
            word.text.rpartition(sign) if sign == ":" else word.text.partition(sign)
        )
        if found and rest and not rest.startswith("//"):
            yield Word(rest, word.known, word.pattern, tilde=rest.startswith("~"))


def secret_reason(site: PathContext, word: Word) -> str:
    """Why reading what a word names needs a person; empty when it does not."""
    if not word.known and re.search(_EXPOSING, word.text):
        return "it shows a password, key or token"
    for spelled in spelled_paths(word):
        paths = site.paths(spelled)
        ordinary = [
            path
            for path in paths
            if not is_stream(str(path)) and not is_endless(str(path))
        ]
        reason = site.guard.secret(ordinary, site.workspace)
        if reason:
            return reason
        if word.pattern and _may_match_secret(paths):
            return f"{word.text} may stand for files that hold secrets"
    return ""


def _may_match_secret(paths: tuple[Path, ...]) -> bool:
    for path in paths:
        literal = re.sub(r"\[.*?\]|[*?]", "", path.name)
        if len(literal) >= 2 and any(
            fnmatchcase(name, path.name) for name in _TELLTALE
        ):
            return True
    return False


def write_reason(site: PathContext, word: Word) -> tuple[str, bool]:
    """Why writing where a word leads needs a person (empty: it does not), and whether that lies outside."""
    if is_stream(word.text):
        return "", False
    paths = site.paths(word)
    if not paths:
        return "", False
    for path in paths:
        if site.is_temporary(path) and not site.is_inside(path):
            continue
        reason = site.guard.carrying((path,), site.workspace)
        if reason and not (
            site.is_inside(path) and site.guard.only_private(path) and not path.exists()
        ):
            return reason, not site.is_inside(path)
    return "", False


def is_expendable(site: PathContext, word: Word) -> bool:
    """Whether what a word names is surely a build product or temporary: nobody misses it."""
    paths = site.paths(word)
    return (
        bool(paths) and word.known and all(_is_expendable(site, path) for path in paths)
    )


def _is_expendable(site: PathContext, path: Path) -> bool:
    if site.is_inside(path):
        return path != site.workspace and is_build_product(
            path.relative_to(site.workspace)
        )
    return (
        site.is_temporary(path)
        and path not in _TEMPORARY
        and path.parent.name != ""
        and path.name not in ("*", ".*")
    )

"""Resolves a word of a command to paths: in the workspace, in a temporary folder, or elsewhere."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from hermes.tools.policy.shell_words import Word, word_set
from hermes.tools.sensitive import Guard, is_within

_ROOTS = word_set(
    "/ /bin /boot /dev /etc /home /lib /lib32 /lib64 /media /mnt /opt /proc /root /run /sbin /srv /sys /usr /var"
    " /Users /System /Library /Applications /usr/bin /usr/lib /usr/local /usr/share /usr/sbin /var/lib /var/log"
    " /private /snap /etc/ssh /etc/systemd /lib/modules /Volumes"
)
_STREAM = r"/dev/(null|stdout|stderr|stdin|tty|full|fd/.*)"
_ENDLESS = r"/dev/(zero|u?random)"
_DEVICE = r"/dev/(?!null$|stdout$|stderr$|stdin$|tty$|full$|fd/|shm(/|$)|pts/|tcp/|udp/|zero$|u?random$)"
TEMPORARY = (Path("/tmp"), Path("/var/tmp"), Path("/private/tmp"), Path("/dev/shm"))  # noqa: S108 - judged, not used
_MAX_PATH_CHARS = 4096


class PathContext(msgspec.Struct, frozen=True):
    """Where a command runs. `folders` are all folders that it may be in after its own `cd`s."""

    workspace: Path
    folders: tuple[Path, ...]
    home: Path
    guard: Guard
    search_path: str = ""
    """The PATH of the command."""
    protects: Callable[[Path], str] | None = None
    """Returns the project's rule that protects a path; empty if none does."""
    resolved: dict[Word, tuple[Path, ...]] = msgspec.field(default_factory=dict)
    """Cache: the paths of words that were resolved before."""

    def after_cd(self, target: Path) -> "PathContext":
        """The context after a `cd`: the command may be in the target, or still where it was."""
        if target in self.folders:
            return self
        return msgspec.structs.replace(
            self, folders=(*self.folders, target), resolved={}
        )

    def paths(self, word: Word) -> tuple[Path, ...]:
        """The paths that a word may mean; empty if that is unknown."""
        found = self.resolved.get(word)
        if found is None:
            found = self.resolved[word] = self._paths(word)
        return found

    def _paths(self, word: Word) -> tuple[Path, ...]:
        text = self._with_home(word)
        if not word.known and text.startswith(("$", "`", "<(", ">(")):
            return ()
        if "\0" in text or len(text) > _MAX_PATH_CHARS:
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

    def _with_home(self, word: Word) -> str:
        """The text of a word, with the home directory in place of a leading `~`."""
        if not word.tilde or not word.text.startswith("~"):
            return word.text
        user, slash, rest = word.text.partition("/")
        homes = {"~": self.home, "~root": Path("/root")}
        return f"{homes.get(user, Path('/home') / user[1:])}{slash}{rest}"

    def is_inside(self, path: Path) -> bool:
        """Whether a path is in the workspace."""
        return is_within(path, self.workspace)

    def is_temporary(self, path: Path) -> bool:
        """Whether a path is in a folder for temporary files."""
        return any(is_within(path, folder) for folder in TEMPORARY)

    def project_program(self, name: str) -> Path | None:
        """The file that the shell would run for a name, if it is in the workspace or a temporary folder.

        In that case the name says nothing about what the program does.
        """
        found = self.paths(Word(name)) if "/" in name else self._on_search_path(name)
        for file in found:
            for path in (file, file.resolve()):
                if self.is_inside(path) or self.is_temporary(path):
                    return file
        return None

    def project_file(self, names: Iterable[str]) -> Path | None:
        """The first file with one of these names in a folder that the command may be in, or above it.

        Only the workspace and temporary folders count, because other commands can write there.
        """
        wanted = tuple(names)
        for start in self.folders:
            for folder in (start, *start.parents):
                is_own = self.is_inside(folder) or self.is_temporary(folder)
                if folder == self.home or not is_own:
                    continue
                for name in wanted:
                    if os.path.lexists(folder / name):
                        return folder / name
        return None

    def _on_search_path(self, name: str) -> Iterator[Path]:
        """The first file of this name on PATH. A relative entry is tried in every folder that the command may be in."""
        for entry in self.search_path.split(os.pathsep) if self.search_path else ():
            files = [folder / entry / name for folder in self.folders]
            programs = [
                file for file in dict.fromkeys(files) if os.access(file, os.X_OK)
            ]
            yield from programs
            if programs:
                return

    def is_root(self, word: Word) -> bool:
        """Whether a word means the root of the file system, a top-level part of it, a home folder, or Hermes' home."""
        bare = re.sub(r"(/+(\*+|\.\*|\.\[!?\.\]\*|\{.*\}|\.)?)+$", "", word.text)
        if not bare and word.text.startswith("/"):
            bare = "/"
        if not bare or (word.pattern and bare in ("*", ".*")):
            bare = "."
        found = self.paths(Word(bare, word.known, pattern=False, tilde=word.tilde))
        return any(str(path) in _ROOTS or path in self._homes() for path in found)

    def _homes(self) -> tuple[Path, ...]:
        own = (self.guard.home, self.guard.base, self.home / ".hermes")
        return (self.home, *self.home.parents, *own)


def is_outside(context: PathContext, word: Word) -> bool:
    """Whether a word may mean a path outside the workspace."""
    return not all(context.is_inside(path) for path in context.paths(word))


def is_elsewhere(context: PathContext, word: Word) -> bool:
    """Whether a word may mean a path that is neither in the workspace nor in a temporary folder."""
    return not all(
        context.is_inside(path) or context.is_temporary(path)
        for path in context.paths(word)
    )


def is_temporary_only(context: PathContext, word: Word) -> bool:
    """Whether a word may mean a path in a temporary folder outside the workspace."""
    return any(
        context.is_temporary(path) and not context.is_inside(path)
        for path in context.paths(word)
    )


def is_stream(text: str) -> bool:
    """Whether output to this path is discarded or goes to the terminal."""
    return bool(re.fullmatch(_STREAM, text, re.DOTALL))


def is_device(text: str) -> bool:
    """Whether this is a device that should not be written to."""
    path = os.path.normpath(text) if text.startswith("/") else text
    return bool(re.match(_DEVICE, path))


def is_endless(text: str) -> bool:
    """Whether this is an endless source of zeros or noise."""
    return bool(re.fullmatch(_ENDLESS, text))

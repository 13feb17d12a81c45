"""Lists the files and folders in the working folder for the model. Names only; contents come from tools."""

import difflib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import msgspec

_MAX_ENTRIES = 300
_MAX_DEPTH = 3
_MAX_LISTED_CHARACTERS = 500
_LEFT_OUT = frozenset(
    ("node_modules", "__pycache__", "venv", "dist", "build", "target", "site-packages")
)
_EXTENSIONS = (
    "bat c cc cfg conf cpp cs css csv db diff doc docx env gitignore go h hpp htm html ini ipynb java js json jsonl jsx kt "
    "lock log lua md mjs pdf php pl png jpg properties ps1 py rb rs rst scss sh sql svg swift tex toml ts tsv tsx txt vue "
    "xls xlsx xml yaml yml zig zip"
)
_FILE = re.compile(
    r"(?<![\w@:/.])(?:[\w.~-]{0,255}/){0,64}[\w.-]{0,255}\w?\.(?:"
    + "|".join(_EXTENSIONS.split())
    + r")(?![\w/])"
    r"|\b(?:Makefile|Dockerfile|README|LICENSE|CHANGELOG)\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(?<!\w)\w++://\S+|(?<!\S)[^\s@]++@\S+")
_WORD = re.compile(r"(?<![\w.-])(?:[.-]*+\w)+")
_MIN_STEM_CHARACTERS = 4


class FolderView(msgspec.Struct, frozen=True, kw_only=True):
    """The names in a folder. `complete` is False if there are more names than were read."""

    root: str = ""
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    complete: bool = True

    @property
    def known(self) -> bool:
        """Whether the folder was read."""
        return bool(self.root)

    def exists(self, path: str) -> bool:
        """Returns whether a file or folder exists, including those that were not listed."""
        name = path.removeprefix("./").rstrip("/")
        if name in self.files or name in self.folders:
            return True
        return self.known and os.path.lexists(Path(self.root, path).expanduser())

    def listing(self) -> str:
        """Returns the names at the top and one level below, in one short line."""
        if not self.known:
            return ""
        top = [name for name in self.files if "/" not in name]
        below = [f"{name}/" for name in self.folders if "/" not in name]
        deep = [name for name in self.files if "/" in name]
        line = ""
        for name in (*top, *below, *deep):
            if len(line) + len(name) > _MAX_LISTED_CHARACTERS:
                return f"{line}, ..."
            line += f", {name}" if line else name
        return line or "(empty)"

    def counts(self) -> str:
        """Returns the numbers of files and folders, as text."""
        top = [name for name in self.files if "/" not in name]
        folders = [name for name in self.folders if "/" not in name]
        kinds = Counter(PurePosixPath(name).suffix or "no extension" for name in top)
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(8))
        more = "" if self.complete else " or more"
        below = f", {len(self.files)}{more} with those in folders" if folders else ""
        kinds_text = f" ({listed})" if listed else ""
        return f"{len(top)} files{kinds_text} and {len(folders)} folders here{below}"

    def resolve(self, name: str) -> str:
        """Returns the file that a name in a request refers to, ignoring case; empty if there is none."""
        wanted = name.removeprefix("./").lower()
        for path in self.files:
            pure = PurePosixPath(path.lower())
            if wanted in {path.lower(), pure.name, pure.stem}:
                return path
        if self.known and Path(self.root, name).is_file():
            return name
        return ""

    def nearest(self, name: str) -> str:
        """Returns the file with the most similar name; empty if none is similar."""
        found = difflib.get_close_matches(name, self.files, n=1, cutoff=0.75)
        return found[0] if found else ""


NO_FOLDER = FolderView()
FolderLook: TypeAlias = Callable[[str], FolderView]


def look_at_folder(root: str) -> FolderView:
    """Lists the names in a folder, a few levels deep, without hidden, unprintable and generated ones."""
    files: list[str] = []
    folders: list[str] = []
    if not root or not Path(root).is_dir():
        return NO_FOLDER
    for name, is_folder in _walk(root, "", _MAX_DEPTH):
        if len(files) + len(folders) >= _MAX_ENTRIES:
            return FolderView(
                root=root, files=tuple(files), folders=tuple(folders), complete=False
            )
        (folders if is_folder else files).append(name)
    return FolderView(root=root, files=tuple(files), folders=tuple(folders))


def _walk(root: str, below: str, depth: int) -> Iterator[tuple[str, bool]]:
    """Yields the names at this level first, then those in its folders."""
    try:
        with os.scandir(Path(root, below)) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    deeper: list[str] = []
    for entry in found:
        if entry.name.startswith(".") or entry.name in _LEFT_OUT:
            continue
        if not entry.name.isprintable():  # it could look like a line of the prompt
            continue
        name = f"{below}/{entry.name}" if below else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        deeper += [name] if is_folder else []
        yield name, is_folder
    for name in deeper if depth > 1 else ():
        yield from _walk(root, name, depth - 1)


def named_files(request: str) -> list[str]:
    """Returns the parts of a request that look like file names."""
    found = _FILE.findall(_ADDRESS.sub(" ", request))
    return list(dict.fromkeys(name.strip("`'\"") for name in found))


def mentioned_files(request: str, view: FolderView) -> list[str]:
    """Returns the files of the folder that a request mentions: by name, or by the name without its extension."""
    paths = [view.resolve(name) for name in named_files(request)]
    stems: dict[str, str] = {}
    for path in view.files:
        stems.setdefault(PurePosixPath(path).stem.lower(), path)
    words = [word.lower() for word in _WORD.findall(request)]
    paths += [
        stems[word]
        for word in words
        if len(word) >= _MIN_STEM_CHARACTERS and word in stems
    ]
    return list(dict.fromkeys(path for path in paths if path))


def absent_files(request: str, view: FolderView) -> list[str]:
    """Returns the file names in a request that do not exist in the folder."""
    if not view.known:
        return []
    return [name for name in named_files(request) if not view.resolve(name)]

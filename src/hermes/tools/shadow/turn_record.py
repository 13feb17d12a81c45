"""The record of one turn: what was saved before it, and the state at its end. It is an append-only file of JSON lines; a
partial last line is ignored. The tags of the lines are in existing files, so they stay when a class is renamed."""

import os
from pathlib import Path
from typing import TypeAlias

import msgspec

from hermes.primitives.files import open_private
from hermes.tools.shadow.path_state import PathState


class TurnHeader(msgspec.Struct, frozen=True, tag="Begun", omit_defaults=True):
    """The first line: which turn this is."""

    session: str
    turn: str
    workspace: bytes
    at: float


class Touched(msgspec.Struct, frozen=True, tag="Touched", omit_defaults=True):
    """A file as it was before the turn's first call that names it."""

    path: bytes
    state: PathState
    late: bool = False
    """Whether the whole folder was saved before, so that something may have changed the file in between."""
    made: tuple[bytes, ...] = ()
    """The folders above it that did not exist before."""


class Unkept(msgspec.Struct, frozen=True, tag="Unkept", omit_defaults=True):
    """Something that could not be saved. `mark` changes when it does."""

    path: bytes
    why: str
    mark: str = ""


class Tree(msgspec.Struct, frozen=True, omit_defaults=True):
    """A folder with its content; `tree` is empty if it could not be saved. Paths are relative to `root`."""

    root: bytes
    tree: str = ""
    plain: int = 0o644
    executable: int = 0o755
    modes: tuple[tuple[bytes, int], ...] = ()
    """Files with unusual permissions."""
    empty: tuple[bytes, ...] = ()
    """Empty folders."""
    unkept: tuple[Unkept, ...] = ()
    ignored: str = ""
    """The name of the blob that lists what git ignores in it; see `not_kept`."""


class Whole(msgspec.Struct, frozen=True, tag="Whole"):
    """The working directory before the first call that may change anything in it. Nested repositories are separate trees."""

    trees: tuple[Tree, ...]


class Ended(msgspec.Struct, frozen=True, tag="Ended"):
    """The state of everything that was saved, at the end of the turn."""

    at: float
    states: tuple[tuple[bytes, PathState], ...]
    trees: tuple[Tree, ...] = ()


Line: TypeAlias = TurnHeader | Touched | Unkept | Whole | Ended

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class TurnRecord:
    """The parsed record of a turn."""

    def __init__(self, begun: TurnHeader) -> None:
        self.begun = begun
        self.touched: dict[bytes, Touched] = {}
        self.unkept: list[Unkept] = []
        self.whole: Whole | None = None
        self.ended: Ended | None = None

    @property
    def trees(self) -> "tuple[Tree, ...]":
        """The folders as they were before the turn; empty if they were not saved as a whole."""
        return self.whole.trees if self.whole else ()

    def add(self, line: Line) -> None:
        """Adds the next line. The first state saved for a path counts."""
        match line:
            case Touched():
                self.touched.setdefault(line.path, line)
            case Unkept():
                self.unkept.append(line)
            case Whole():
                self.whole = self.whole or line
            case Ended():
                self.ended = self.ended or line
            case TurnHeader():
                pass


def append(file: Path, *lines: Line) -> None:
    """Appends lines in one write. Ends a partial last line first."""
    data = b"".join(_encode(line) + b"\n" for line in lines)
    handle = open_private(file, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    with os.fdopen(handle, "rb+") as stream:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        stream.write(b"\n" + data if torn else data)


def read(file: Path) -> TurnRecord | None:
    """The record in a file; None if there is none."""
    try:
        raw = file.read_bytes().splitlines()
    except FileNotFoundError:
        return None
    record: TurnRecord | None = None
    for text in raw:
        try:
            line = _decode(text)
        except msgspec.DecodeError:  # cut off by a kill; its call did not run
            continue
        if isinstance(line, TurnHeader):
            record = record or TurnRecord(line)
        if record:
            record.add(line)
    return record

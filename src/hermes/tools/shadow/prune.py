"""Keeps the undo folder small: drops turns older than 30 days, and the oldest ones if it is too large."""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes.children.helper_programs import add_workspace
from hermes.primitives.files import make_private_folder
from hermes.text.formats import count
from hermes.text.translation import translator
from hermes.tools.shadow.path_state import PathState
from hermes.tools.shadow.repository import EMPTY_TREE, ShadowGit, ShadowRepository
from hermes.tools.shadow.shadows import Shadows
from hermes.tools.shadow.turn_record import Tree, TurnRecord, read

t = translator(__name__)


MAX_AGE_DAYS = 30
MOST_BYTES = 2 * 1024**3
_DAY_S = 86_400.0


def sweep(
    shadows: Shadows, *, most_bytes: int = MOST_BYTES, always: bool = False
) -> str:
    """Drops old turns, at most once a day. Returns a sentence that says how many; empty if none."""
    now = shadows.clock.now()
    stamp = shadows.folder / "swept"
    if not always and stamp.exists() and 0 <= now - stamp.stat().st_mtime < _DAY_S:
        return ""
    make_private_folder(shadows.folder)
    stamp.touch()
    os.utime(stamp, (now, now))
    files = sorted(shadows.folder.glob("*/turns/*.jsonl"), key=_age)
    old = [file for file in files if _age(file) < now - MAX_AGE_DAYS * _DAY_S]
    dropped = _drop(shadows, old)
    left = files[len(old) :]
    while left and _size(shadows.folder) > most_bytes:
        part, left = left[: len(left) // 4 + 1], left[len(left) // 4 + 1 :]
        dropped += _drop(shadows, part)
    if not dropped:
        return ""
    kept = t.logged(
        "{days} days and {most_bytes:,} MB are kept",
        days=MAX_AGE_DAYS,
        most_bytes=most_bytes // 1024**2,
    )
    return t.logged(
        "{count} can no longer be undone: {kept}.",
        count=count(dropped, "turn"),
        kept=kept,
    )


def _drop(shadows: Shadows, files: Iterable[Path]) -> int:
    """Deletes records, and everything that no other record needs."""
    by_folder: dict[Path, list[Path]] = {}
    for file in files:
        by_folder.setdefault(file.parent.parent, []).append(file)
        if record := read(file):
            add_workspace(
                Path(os.fsdecode(record.begun.workspace))
            )  # so that no git from there is run
    for folder, records in by_folder.items():
        with ShadowRepository(folder, shadows.git).locked() as git:
            for file in records:
                file.unlink(missing_ok=True)
            _collect(git)
    return sum(map(len, by_folder.values()))


def _collect(git: ShadowGit) -> None:
    """Removes content that no record refers to. Removes the indexes too, because they may refer to it."""
    for index in (git.folder / "indexes").iterdir():
        index.unlink()
    records = [read(file) for file in (git.folder / "turns").glob("*.jsonl")]
    names = sorted({name for record in records if record for name in _names(record)})
    kinds = git.run(
        "cat-file",
        "--batch-check",
        given="".join(f"{name}\n" for name in names).encode(),
    )
    lines = [line.split() for line in kinds.decode().splitlines()]
    entries = [
        f"{'040000' if kind[0] == 'tree' else '100644'} {kind[0]} {name}\t{name}\n"
        for name, *kind in lines
        if kind[0] in ("tree", "blob")
    ]
    tree = git.run("mktree", given="".join(entries).encode()).decode().strip()
    ref = git.folder / "refs" / "kept"
    ref.write_text(tree + "\n")
    git.run("repack", "-a", "-d", "-q")
    git.run("prune", "--expire=now")


def _names(record: TurnRecord) -> Iterator[str]:
    """The names of all content that a record refers to."""
    states: list[PathState] = [touched.state for touched in record.touched.values()]
    trees: tuple[Tree, ...] = record.trees
    if record.ended:
        states += [state for _, state in record.ended.states]
        trees += record.ended.trees
    yield from (state.blob for state in states if state.kind in ("file", "link"))
    yield from (tree.tree for tree in trees if tree.tree and tree.tree != EMPTY_TREE)
    yield from (tree.ignored for tree in trees if tree.ignored)


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _size(folder: Path) -> int:
    return sum(
        Path(place, name).lstat().st_size
        for place, _, names in os.walk(folder)
        for name in names
    )

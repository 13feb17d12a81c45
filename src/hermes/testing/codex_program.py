"""The real codex program for tests, installed from npm into a cache on first use."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from hermes.codex.binary import native

VERSION = "0.166.0"


class NoCodex(Exception):
    """It can't be had here; the text says why."""


def installed_codex() -> Path:
    """The program of the supported version. NoCodex says why there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes" / f"codex-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "complete").exists():
            _install(cache)
    return native(cache / "node_modules" / ".bin" / "codex")


def _install(cache: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NoCodex("npm is not installed, so the real codex program can't be installed for its tests.")
    command = [npm, "install", "--prefix", str(cache), "--no-audit", "--no-fund", f"@openai/codex@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise NoCodex(f"npm could not install codex {VERSION}: {done.stderr.strip()[-300:]}")
    (cache / "complete").touch()

"""Downloads a wheel of our own distribution from the package index that this copy was installed from."""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hermes.children.own_python import python_command
from hermes.errors import HermesError
from hermes.installation import DISTRIBUTION
from hermes.text.translation import translator

t = translator(__name__)


_TIMEOUT_S = 600.0


def download(environment: Mapping[str, str], version: str = "") -> Path:
    """Downloads the newest version, or the given one. Returns the folder with the wheel, which the caller removes."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-update-"))
    wanted = f"{DISTRIBUTION}=={version}" if version else DISTRIBUTION
    command = python_command(
        "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input",
        "--no-deps", "--only-binary", ":all:", "--dest", str(folder), wanted,
    )  # fmt: skip
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise HermesError(
            t.later("The download failed: {error}.", error=error)
        ) from error
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise HermesError(
            t.later("The download failed: {stderr}", stderr=done.stderr.strip()[-1000:])
        )
    return folder

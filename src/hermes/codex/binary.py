"""Finds the codex program, and checks its version."""

import asyncio
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hermes.children.helper_programs import find_program, skipped_program
from hermes.codex.failures import INSTALL, CodexGone
from hermes.errors import os_reason
from hermes.text.translation import LoggedWords, translator

t = translator(__name__)

OLDEST, NEWEST = (0, 130), (0, 166)
"""The oldest and newest versions that this package is tested with. Versions in between count as tested."""
_RUN_TIMEOUT_S = 20.0  # seconds for a program that only prints something
_USAGE_EXIT_CODE = 2  # exit code for unknown arguments
_TRIPLES = {
    ("Linux", "x86_64"): ("linux-x64", "x86_64-unknown-linux-musl"),
    ("Linux", "aarch64"): ("linux-arm64", "aarch64-unknown-linux-musl"),
    ("Darwin", "x86_64"): ("darwin-x64", "x86_64-apple-darwin"),
    ("Darwin", "arm64"): ("darwin-arm64", "aarch64-apple-darwin"),
}


class ProgramRun(msgspec.Struct, frozen=True):
    """The result of a short run of the program."""

    code: int
    out: str
    err: str

    @property
    def is_misuse(self) -> bool:
        """Whether the program does not know these arguments."""
        return self.code == _USAGE_EXIT_CODE


class _ErrorMessage(msgspec.Struct, frozen=True):
    message: str = ""


class _Complaint(msgspec.Struct, frozen=True):
    error: _ErrorMessage


def find_codex(environ: Mapping[str, str], configured: str = "") -> Path | None:
    """Finds the program that the settings name, else the one on PATH. Skips npm's script and returns its program."""
    if configured:
        wanted = Path(configured).expanduser()
        found = str(wanted) if wanted.is_file() else None
    else:
        found = find_program("codex", environ)
    return native(Path(found).absolute()) if found else None


def require_codex(environ: Mapping[str, str], configured: str = "") -> Path:
    """Returns the program. Raises CodexGone, which says how to install it."""
    found = find_codex(environ, configured)
    if found is None:
        what = t.later("The codex program was not found.")
        if configured:
            what = t.later("There is no codex program at {path}.", path=configured)
        raise CodexGone(what, hint=LoggedWords(how_to_get_codex(environ, configured)))
    return found


def how_to_get_codex(environ: Mapping[str, str], configured: str = "") -> str:
    """Returns instructions for when there is no usable codex program."""
    found = "" if configured else skipped_program("codex", environ)
    if not found:
        return str(INSTALL)
    return t.logged(
        "Hermes does not use the one at {found}: it is in a folder that a model's commands can write to. "
        "If you trust it: hermes config set codex.binary {quoted}",
        found=found,
        quoted=shlex.quote(found),
    )


def native(found: Path) -> Path:
    """Returns the program behind npm's script, which would only add a process."""
    script = found.resolve()
    names = _TRIPLES.get((platform.system(), platform.machine()))
    if script.suffix != ".js" or names is None:
        return found
    package, triple = names
    beside = script.parent.parent
    places = (
        beside.parent / f"codex-{package}",
        beside / "node_modules" / "@openai" / f"codex-{package}",
        beside,
    )
    programs = [
        place / "vendor" / triple / folder / "codex"
        for place in places
        for folder in ("bin", "codex")
    ]
    return next((program for program in programs if program.is_file()), found)


def parse_version(text: str) -> tuple[int, ...]:
    """Parses `codex-cli 0.166.0`, or a user agent such as `hermes/0.166.0 (Linux; ...)`. Empty without a version."""
    found = re.search(r"(?:^|[\s/])(\d+)\.(\d+)\.(\d+)", text)
    if found:
        return tuple(int(part) for part in found.groups())
    return ()


def version_warning(version: tuple[int, ...]) -> str:
    """Returns a warning for a version that Hermes is not tested with; empty for the others."""
    oldest, newest = (".".join(map(str, one)) for one in (OLDEST, NEWEST))
    if not version:
        return t.logged(
            "This codex does not report its version; Hermes is tested with {oldest} to {newest}. Continuing.",
            oldest=oldest,
            newest=newest,
        )
    said = ".".join(map(str, version))
    if version[:2] < OLDEST:
        return t.logged(
            "Codex {version} is older than {oldest}, the oldest that Hermes is tested with. Continuing; "
            "update codex if it misbehaves.",
            version=said,
            oldest=oldest,
        )
    if version[:2] > NEWEST:
        return t.logged(
            "Codex {version} is newer than {newest}, the newest that Hermes is tested with. Continuing; "
            "update Hermes if it misbehaves.",
            version=said,
            newest=newest,
        )
    return ""


async def run_once(
    program: Path, arguments: Sequence[str], environ: Mapping[str, str]
) -> ProgramRun:
    """Runs the program to its end, without input. Raises CodexGone if it can't be started or does not end."""
    try:
        process = await asyncio.create_subprocess_exec(
            str(program),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environ),
        )
    except OSError as error:
        raise CodexGone(
            t.later(
                "{program} can't be started ({os_reason}).",
                program=program,
                os_reason=os_reason(error),
            ),
            hint=INSTALL,
        ) from error
    try:
        async with asyncio.timeout(_RUN_TIMEOUT_S):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise CodexGone(
            t.later(
                "{program} {arguments} did not end within {run_timeout_s:.0f} seconds.",
                program=program,
                arguments=" ".join(arguments),
                run_timeout_s=_RUN_TIMEOUT_S,
            )
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return ProgramRun(
        process.returncode or 0,
        out.decode(errors="replace"),
        err.decode(errors="replace"),
    )


async def preflight(program: Path, environ: Mapping[str, str]) -> str:
    """Returns codex's objection to its configuration; empty if it accepts it. Older versions ignore unknown keys."""
    ran = await run_once(
        program, ("app-server", "--strict-config", "--print-startup-config"), environ
    )
    if ran.is_misuse:
        ran = await run_once(program, ("features", "list"), environ)
    return "" if ran.code == 0 else _failure_text(ran)


async def try_sandbox(program: Path, environ: Mapping[str, str]) -> ProgramRun:
    """Runs an empty command in codex's sandbox. Older versions need the sandbox's name."""
    ran = await run_once(program, ("sandbox", "--", "true"), environ)
    if ran.is_misuse:
        kind = "macos" if platform.system() == "Darwin" else "linux"
        ran = await run_once(program, ("sandbox", kind, "--", "true"), environ)
    return ran


def _failure_text(ran: ProgramRun) -> str:
    """Returns the sentence that explains why a run failed, out of codex's longer output."""
    try:
        return msgspec.json.decode(ran.out, type=_Complaint).error.message
    except msgspec.DecodeError:
        lines = plain(ran.err or ran.out).strip().splitlines()
        return (
            lines[0] if lines else t.logged("it ended with code {code}", code=ran.code)
        )


def plain(text: str) -> str:
    """Removes terminal colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)

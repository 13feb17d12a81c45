"""The person's own part of the status line: the first line that a program of theirs prints."""

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hermes.children.helper_programs import find_program
from hermes.settings.load import environment
from hermes.surfaces.terminal.text import one_line
from hermes.text.translation import translator

t = translator(__name__)


_MAX_SECONDS = 2.0
_MAX_OUTPUT_BYTES = 4_096


async def script_line(
    command: str,
    facts: Mapping[str, object],
    folder: Path,
    *,
    max_seconds: float = _MAX_SECONDS,
) -> str:
    """Runs the program with the facts as JSON on its input. Returns its first line, or why there is none."""
    try:
        words = shlex.split(command)
    except ValueError:
        return t("status script: invalid command")
    if words and "/" in words[0] and not words[0].startswith(("/", "~")):
        return t(
            "status script: use an absolute path"
        )  # else any project could bring it
    program = find_program(words[0], environment()) if words else None
    if program is None:
        return t("status script: not found")
    try:
        process = await asyncio.create_subprocess_exec(
            program, *words[1:], cwd=folder, start_new_session=True,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return t("status script: can't be started")
    try:
        async with asyncio.timeout(max_seconds):
            output, _ = await process.communicate(msgspec.json.encode(facts))
    except TimeoutError:
        return t(
            "status script: no answer in {max_seconds:g} s", max_seconds=max_seconds
        )
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    text = output[:_MAX_OUTPUT_BYTES].decode("utf-8", "replace")
    return one_line(text.strip().partition("\n")[0])

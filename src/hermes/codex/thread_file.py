"""Finds a command's output in codex's own file of the thread (the rollout).

Older codex versions omit the output from their reports, or report a command's end after the turn's. The file has what
the model was told.
"""

import re
from pathlib import Path
from typing import Any

import msgspec

from hermes.primitives.untyped import text_of

_TAIL_BYTES = 1024 * 1024  # bytes at the end of the file, where the latest outputs are
_EXITED = re.compile(r"(?m)^Process exited with code (-?\d+)$")
_BODY = "\nOutput:\n"


class Output(msgspec.Struct, frozen=True):
    """What the model was told about a command; without an exit code, it was still running."""

    text: str
    exit_code: int | None = None


class _Payload(msgspec.Struct, frozen=True):
    type: str = ""
    call_id: str = ""
    output: Any = None


class _Line(msgspec.Struct, frozen=True):
    payload: _Payload = _Payload()


_LINE = msgspec.json.Decoder(_Line)


def find_output(rollout: str, call_id: str) -> Output | None:
    """Returns the output of that call; None if the file does not have it (yet) or can't be read."""
    if not rollout or not call_id:
        return None
    try:
        with Path(rollout).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return None
    wanted = call_id.encode()
    for line in reversed(lines):
        if wanted in line and b"function_call_output" in line:
            found = _decoded(line)
            if found is not None and found.call_id == call_id:
                return _read(found.output)
    return None


def _decoded(line: bytes) -> _Payload | None:
    try:
        return _LINE.decode(line).payload
    except msgspec.DecodeError:  # truncated, or another kind of line
        return None


def _read(output: object) -> Output:
    text = text_of(output)
    head, found, body = text.partition(_BODY)
    if not found:
        return Output(text)
    exited = _EXITED.search(head)
    return Output(body, int(exited[1]) if exited else None)

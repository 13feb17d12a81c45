"""What was piped in: read to its end, up to a limit."""

import os
import stat
import sys

from hermes.errors import UsageError, os_reason

MAX_BYTES = 10 * 1024 * 1024


def is_piped() -> bool:
    """Whether stdin is something else than a person."""
    if sys.stdin is None or sys.stdin.closed:
        return False
    try:
        return not os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):
        return False


def read_piped() -> str:
    """All of stdin, as text; empty if it is a terminal or closed."""
    if not is_piped():
        return ""
    try:
        if stat.S_ISDIR(os.fstat(sys.stdin.fileno()).st_mode):
            raise UsageError(
                "Stdin is a folder.", hint="Pipe text into hermes, or use --cwd FOLDER."
            )
        content = sys.stdin.buffer.read(MAX_BYTES + 1)
    except OSError as error:
        reason = os_reason(error)
        raise UsageError(
            f"Stdin can't be read ({reason}).", hint="Run it again with < /dev/null."
        ) from error
    if len(content) > MAX_BYTES:
        raise UsageError(
            "More than 10 MiB came from stdin; nothing was sent.",
            hint="Save it to a file and name the file in the question.",
        )
    if b"\0" in content:
        raise UsageError(
            "What came from stdin is not text; nothing was sent.",
            hint="Name the file in the question.",
        )
    return content.decode("utf-8", "replace").removeprefix("\ufeff").strip("\n")


def joined(question: str | None, piped: str) -> str:
    """The question with what was piped in below it."""
    return "\n\n".join(
        part for part in (question, piped if piped.strip() else "") if part
    )

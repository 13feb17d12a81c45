"""Messages on stderr, beside the output: wrapped to the terminal, without control characters."""

import contextlib
import sys

from hermes.errors import StoreError
from hermes.surfaces.terminal.style import Style, hanging, printable, stderr_style
from hermes.text.translation import translator

t = translator(__name__)


def say(
    message: str, hint: str = "", *, styled: bool = True, alarming: bool = True
) -> None:
    """Prints a message, and a hint below it. Does nothing if stderr is closed."""
    style = stderr_style() if styled else Style(enabled=False)
    paint = style.red if alarming else style.dim
    try:
        first, *rest = printable(message).split("\n")
        print(paint("hermes:"), hanging(first, sys.stderr, 8), file=sys.stderr)
        for line in rest:
            print("  " + hanging(line.strip(), sys.stderr, 4), file=sys.stderr)
        for line in printable(hint).split("\n") if hint else ():
            print(style.dim(hanging(line, sys.stderr, 0)), file=sys.stderr, flush=True)
    except OSError:  # stderr is closed; the exit code must do
        return


def remark(text: str) -> None:
    """Prints a dim line on stderr."""
    with contextlib.suppress(OSError):  # stderr is closed
        print(
            stderr_style().dim(hanging(printable(text), sys.stderr, 0)),
            file=sys.stderr,
            flush=True,
        )


def not_saved(error: StoreError) -> str:
    """Returns "Not saved: ..." with the error's reason, which may already start with it."""
    reason = error.message
    is_said = reason[:11].lower() == "not saved: "
    return t("Not saved: {reason}", reason=reason[11:] if is_said else reason)

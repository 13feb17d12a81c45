"""What Hermes says to a person beside its output: on stderr, fitted to the terminal, harmless."""

import contextlib
import sys

from hermes.errors import StoreError
from hermes.surfaces.terminal.style import Style, hanging, printable, stderr_style


def say(
    message: str, hint: str = "", *, styled: bool = True, alarming: bool = True
) -> None:
    """A message, and below it what can be done. Without a stderr nothing is said."""
    style = stderr_style() if styled else Style(enabled=False)
    paint = style.red if alarming else style.dim
    try:
        first, *rest = printable(message).split("\n")
        print(paint("hermes:"), hanging(first, sys.stderr, 8), file=sys.stderr)
        for line in rest:
            print("  " + hanging(line.strip(), sys.stderr, 4), file=sys.stderr)
        if hint:
            print(
                style.dim(hanging(printable(hint), sys.stderr, 0)),
                file=sys.stderr,
                flush=True,
            )
    except OSError:  # stderr is gone: the exit code is all that is left to say
        return


def remark(text: str) -> None:
    """A dim line on stderr, beside the output."""
    with contextlib.suppress(OSError):  # stderr is gone
        print(
            stderr_style().dim(hanging(printable(text), sys.stderr, 0)),
            file=sys.stderr,
            flush=True,
        )


def not_saved(error: StoreError) -> str:
    """That something was not saved, said once: some errors begin with it themselves."""
    reason = error.message
    return (
        f"Not saved: {reason[11:] if reason[:11].lower() == 'not saved: ' else reason}"
    )

"""Messages on stderr, beside the output: wrapped to the terminal, without control characters. Also shows what Hermes
is waiting for."""

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.errors import StoreError
from hermes.surfaces.terminal.style import Style, hanging, printable, stderr_style
from hermes.text.translation import shown_reason, translator

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


class WaitNotices(logging.Handler):
    """Shows log records about waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._say: Callable[[str], object] = remark

    # pyrefly: ignore[missing-override-decorator]
    def emit(self, record: logging.LogRecord) -> None:
        self._say(shown_reason(record.getMessage()))

    @contextmanager
    def shown_by(self, say: Callable[[str], object]) -> Iterator[None]:
        """Shows notices with `say`, from any thread, while the context is open."""
        before, self._say = self._say, say
        try:
            yield
        finally:
            self._say = before


NOTICES = WaitNotices()


def start() -> None:
    """Installs the handler, whatever the log level. Once per process."""
    logger = logging.getLogger("hermes.waiting")
    if NOTICES not in logger.handlers:
        logger.addHandler(NOTICES)
        logger.setLevel(logging.WARNING)

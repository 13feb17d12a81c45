"""Helpers for adapters whose library keeps a connection: they watch the connection and the library's log."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hermes.settings.redaction import mask
from hermes.surfaces.gateway.adapter import Inlet, Unreachable, override
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

_CONNECTION_CHECK_INTERVAL_S = 0.5


async def watch(
    is_up: Callable[[], Awaitable[bool]], inlet: Inlet, timeout_s: float
) -> None:
    """Shows in the status when the library is disconnected.

    Raises Unreachable when the library does not reconnect within `timeout_s`.
    """
    loop = asyncio.get_running_loop()
    lost_at = 0.0
    while True:
        if await is_up():
            if lost_at:
                inlet.disturbed("")
            lost_at = 0.0
        elif not lost_at:
            lost_at = loop.time()
            inlet.disturbed(t.logged("the connection was lost; reconnecting"))
        elif loop.time() - lost_at > timeout_s:
            raise Unreachable(
                t.logged(
                    "the connection was lost and did not come back within {seconds} s",
                    seconds=f"{timeout_s:g}",
                )
            )
        await asyncio.sleep(_CONNECTION_CHECK_INTERVAL_S)


class _RedactingHandler(logging.Handler):
    """Logs warnings of a library in one line each, without tracebacks and secrets."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._name = name

    @override
    def emit(self, record: logging.LogRecord) -> None:
        log.warning("%s: %s", self._name, mask(record.getMessage()))


def redacted_logger(name: str) -> logging.Logger:
    """The logger of a library, set up to log only warnings, and no secrets."""
    logger = logging.getLogger(name)
    if not any(isinstance(one, _RedactingHandler) for one in logger.handlers):
        logger.addHandler(_RedactingHandler(name))
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    return logger

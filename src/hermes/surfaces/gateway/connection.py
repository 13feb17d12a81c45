"""A connection that a library keeps up: signs that it is cut off, and what it logs as one line without secrets."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hermes.settings.redaction import mask
from hermes.surfaces.gateway.adapter import Inlet, Unreachable, override

log = logging.getLogger("hermes.gateway")

_LOOK = 0.5  # seconds


async def watch(
    is_up: Callable[[], Awaitable[bool]], inlet: Inlet, patience: float
) -> None:
    """Shows when the library is cut off; raises Unreachable when it does not come back by itself."""
    loop = asyncio.get_running_loop()
    lost = 0.0
    while True:
        if await is_up():
            if lost:
                inlet.disturbed("")
            lost = 0.0
        elif not lost:
            lost = loop.time()
            inlet.disturbed("the connection was lost; it is being made anew")
        elif loop.time() - lost > patience:
            raise Unreachable(
                f"the connection was lost and did not come back within {patience:g} seconds"
            )
        await asyncio.sleep(_LOOK)


class OneLine(logging.Handler):
    """Passes a library's warnings on: without tracebacks, as the status shows how things are, and without secrets."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._name = name

    @override
    def emit(self, record: logging.LogRecord) -> None:
        log.warning("%s: %s", self._name, mask(record.getMessage()))


def plain_log(name: str) -> logging.Logger:
    """The logger of a library, as we want it."""
    logger = logging.getLogger(name)
    if not any(isinstance(one, OneLine) for one in logger.handlers):
        logger.addHandler(OneLine(name))
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    return logger

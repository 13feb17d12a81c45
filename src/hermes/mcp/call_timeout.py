"""How long a call may be silent. Signs of life extend it, up to a bound; while the user is asked, the clock stands."""

import asyncio
import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Self

_STRETCH = 10
"""Signs of life can extend a call to this many times its patience."""


class CallTimeout:
    """The clock of one call. Leaving it when the time is up raises TimeoutError."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)
        self._last = asyncio.get_running_loop().time() + seconds * _STRETCH
        self._standing = 0
        self._is_over = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._is_over = (
            True  # a question can outlive its call, and then there is no clock to set
        )
        return await self._timeout.__aexit__(kind, error, trace)

    def heard(self) -> None:
        """There was a sign of life."""
        if not self._standing and not self._is_over and not self._timeout.expired():
            self._timeout.reschedule(
                min(asyncio.get_running_loop().time() + self._seconds, self._last)
            )

    @contextlib.contextmanager
    def standing(self) -> Iterator[None]:
        """While somebody is asked, time does not count."""
        began = asyncio.get_running_loop().time()
        self._standing += 1
        if not self._is_over and not self._timeout.expired():
            self._timeout.reschedule(None)
        try:
            yield
        finally:
            self._standing -= 1
            self._last += asyncio.get_running_loop().time() - began
            self.heard()

"""Lets a server stop without breaking off requests: accepted requests are answered, later ones are asked to try
again."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from hermes.surfaces.web.errors import ErrorFormat, Refusal

RETRY_AFTER_S = 5.0
"""When somebody who was turned away should try again; by then another server usually listens."""


class DrainingApplication:
    """Counts the requests that an application answers, and refuses new ones once it drains."""

    def __init__(self, application: ASGIApp, errors: ErrorFormat) -> None:
        self._application = application
        self._errors = errors
        self._is_draining = False
        self._requests = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_draining:
            await self._refuse(scope, receive, send)
            return
        self._requests += 1
        self._idle.clear()
        try:
            await self._application(scope, receive, send)
        finally:
            self._requests -= 1
            if not self._requests:
                self._idle.set()

    async def drain(self) -> None:
        """Refuses new requests from now on; returns once all others are answered."""
        self._is_draining = True
        await self._idle.wait()

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = Refusal(
            503,
            "Hermes is stopping or starting again.",
            "Try again in a few seconds.",
            code="server_stopping",
            wait=RETRY_AFTER_S,
        )
        response = self._errors.response(refusal, scope)
        response.headers["connection"] = "close"
        await response(scope, receive, send)

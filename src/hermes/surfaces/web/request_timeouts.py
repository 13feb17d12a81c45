"""HTTP connections on uvicorn that nobody can hold by sending a request letter by letter, or not at all."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from hermes.surfaces.web.strict_http import StrictConnection

HEAD_SECONDS = 20.0  # for the head of a request, all in all
BODY_SECONDS = 60.0  # of silence in the middle of its body


class HastyRequests(H11Protocol):
    """Lets go of a peer whose request does not come. An answer may take as long as it likes."""

    haste: tuple[float, float] = (HEAD_SECONDS, BODY_SECONDS)
    _look: asyncio.TimerHandle | None = None
    _for_head = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        size = self.config.h11_max_incomplete_event_size
        self.conn = StrictConnection(
            h11.SERVER, **({} if size is None else {"max_incomplete_event_size": size})
        )

    # pyrefly: ignore[missing-override-decorator]
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._hurry()

    # pyrefly: ignore[missing-override-decorator]
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._hurry()

    # pyrefly: ignore[missing-override-decorator]
    def connection_lost(self, exc: Exception | None) -> None:
        self._unhurry()
        super().connection_lost(exc)

    def _hurry(self) -> None:
        """A head has one term, however it trickles in; a body has a new one with each piece."""
        if (
            self.transport.get_protocol() is not self
        ):  # it is a WebSocket by now: no body of a request will end
            self._unhurry()
            return
        state = self.conn.their_state
        if state is h11.IDLE and self._look is not None and self._for_head:
            return
        self._unhurry()
        self._for_head = state is h11.IDLE
        if state in (h11.IDLE, h11.SEND_BODY):
            self._look = self.loop.call_later(
                self.haste[0 if self._for_head else 1], self._check
            )

    def _check(self) -> None:
        self._look = None
        if self.flow.read_paused and not self._for_head:  # it is we who are behind
            self._hurry()
        else:
            self.transport.abort()

    def _unhurry(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

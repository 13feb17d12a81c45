"""HTTP on uvicorn, made strict: ambiguous requests are refused and slow ones are cut off."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_TIMEOUT_S = 20.0
"""The time for the whole head of a request."""
BODY_TIMEOUT_S = 60.0
"""The time without a byte in the middle of a body."""
_BLANKS = (b" ", b"\t")


class StrictConnection(h11.Connection):
    """Refuses requests whose length two servers could read differently (request smuggling).

    These have folded headers, or both Content-Length and Transfer-Encoding; h11 accepts both.
    """

    # pyrefly: ignore[missing-override-decorator]
    def next_event(self) -> "type[h11.NEED_DATA | h11.PAUSED] | h11.Event":
        if self.their_state is h11.IDLE:
            _require_unambiguous(self.trailing_data[0])
        return super().next_event()


class StrictHttpProtocol(H11Protocol):
    """Drops a client whose request does not arrive in time. A response may take any time."""

    head_timeout_s = HEAD_TIMEOUT_S
    body_timeout_s = BODY_TIMEOUT_S
    _timer: asyncio.TimerHandle | None = None
    _is_for_head = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        size = self.config.h11_max_incomplete_event_size
        limit = {} if size is None else {"max_incomplete_event_size": size}
        self.conn = StrictConnection(h11.SERVER, **limit)

    # pyrefly: ignore[missing-override-decorator]
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._restart_timer()

    # pyrefly: ignore[missing-override-decorator]
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._restart_timer()

    # pyrefly: ignore[missing-override-decorator]
    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    def _restart_timer(self) -> None:
        """Restarts the timeout. A head has one for all of it; in a body, each piece starts a new one."""
        if self.transport.get_protocol() is not self:  # upgraded to a WebSocket
            self._cancel_timer()
            return
        state = self.conn.their_state
        if state is h11.IDLE and self._timer is not None and self._is_for_head:
            return
        self._cancel_timer()
        self._is_for_head = state is h11.IDLE
        if state in (h11.IDLE, h11.SEND_BODY):
            seconds = self.head_timeout_s if self._is_for_head else self.body_timeout_s
            self._timer = self.loop.call_later(seconds, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        if (
            self.flow.read_paused and not self._is_for_head
        ):  # we are slow, not the client
            self._restart_timer()
        else:
            self.transport.abort()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _require_unambiguous(data: bytes) -> None:
    """Raises if the head of a request, once complete, can be read in more than one way."""
    head, end, _ = data.lstrip(b"\r\n").replace(b"\r\n", b"\n").partition(b"\n\n")
    if not end:
        return
    lines = head.split(b"\n")[1:]
    if any(line.startswith(_BLANKS) for line in lines):
        raise h11.RemoteProtocolError(
            "a header continues on a second line", error_status_hint=400
        )
    names = [line.partition(b":")[0].strip().lower() for line in lines]
    encodings = names.count(b"transfer-encoding")
    if encodings > 1 or (encodings and b"content-length" in names):
        raise h11.RemoteProtocolError(
            "Content-Length and Transfer-Encoding in one request", error_status_hint=400
        )

"""uvicorn, set up for every server of Hermes."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from hermes.primitives.acceptor import Acceptor
from hermes.primitives.repeated_errors import RepeatedErrors


class UvicornServer(uvicorn.Server):
    """Survives running out of file handles, and leaves signals to its caller: uvicorn would raise them again before
    anything is closed."""

    def __init__(
        self, config: uvicorn.Config, errors: RepeatedErrors, name: str
    ) -> None:
        super().__init__(config)
        self._errors = errors
        self._name = name

    @contextlib.contextmanager
    # pyrefly: ignore[missing-override-decorator]
    def capture_signals(self) -> Iterator[None]:
        yield

    # pyrefly: ignore[missing-override-decorator]
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to serve on sockets that listen."""
        await super().startup(sockets=[])
        what = f"accepting connections of {self._name}"
        tls = self.config.ssl
        # pyrefly: ignore[bad-assignment]
        self.servers = [
            Acceptor(one, self._protocol, errors=self._errors, what=what, tls=tls)
            for one in sockets or []
        ]

    def _protocol(self) -> asyncio.BaseProtocol:
        make: Any = self.config.http_protocol_class
        return make(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

"""Accepts connections. When the process has run out of file handles, logs that once and retries with a growing pause.

asyncio's own servers would log a traceback for every pending connection, every second.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any

from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.primitives.tasks import BackgroundTasks

log = logging.getLogger("hermes.primitives.acceptor")


class Acceptor:
    """Accepts connections on a listening socket, from its creation until `close`."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.BaseProtocol],
        *,
        errors: RepeatedErrors | None = None,
        what: str = "accepting connections",
        tls: "ssl.SSLContext | None" = None,
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._protocol = protocol
        self._errors = errors or RepeatedErrors(log)
        self._what = what
        self._tls = tls
        self._connecting = BackgroundTasks("setting up a connection")
        self._accepting = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Stops accepting and closes the listening socket. Open connections continue."""
        self._accepting.cancel()
        self._connecting.cancel()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Returns once no connection is being accepted any more."""
        await asyncio.wait({self._accepting})
        await self._connecting.join()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except ConnectionAbortedError:  # the peer has disconnected
                continue
            except OSError as error:
                if self._listener.fileno() < 0:
                    return
                await asyncio.sleep(self._errors.note(self._what, error))
                continue
            self._errors.succeeded(self._what)
            self._connecting.start(self._connect(connection))

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol, connection, ssl=self._tls
            )
        except OSError as error:  # TLS failed, or the peer has disconnected
            log.debug("could not set up a connection: %s", error)
            connection.close()
        except BaseException:
            connection.close()
            raise


def accept_streams(
    listener: socket.socket,
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any],
    *,
    limit: int,
) -> Acceptor:
    """Returns an acceptor that calls `serve` with a reader and a writer for each connection."""
    loop = asyncio.get_running_loop()

    def protocol() -> asyncio.BaseProtocol:
        return asyncio.StreamReaderProtocol(
            asyncio.StreamReader(limit=limit, loop=loop), serve, loop=loop
        )

    return Acceptor(listener, protocol)

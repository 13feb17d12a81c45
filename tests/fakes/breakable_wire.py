"""A TCP proxy on loopback that can be cut, or swallow what passes through it."""

import asyncio
import contextlib


class Wire:
    """A proxy in front of a port, which can be cut, and slowed down."""

    def __init__(self, to: int, port: int = 0) -> None:
        self._to = to
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.flows = asyncio.Event()
        self.flows.set()
        """While this is not set, what is sent arrives nowhere, and nobody is told."""
        self.is_cut = False
        self.connections = 0
        self.port = port

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """Breaks what is connected, and lets nothing through."""
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    async def stop(self) -> None:
        self.cut()
        self.flows.set()
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        there, to = await asyncio.open_connection("127.0.0.1", self._to)
        self.connections += 1
        self._writers |= {writer, to}
        self._tasks |= {
            asyncio.ensure_future(self._pass(reader, to)),
            asyncio.ensure_future(self._pass(there, writer)),
        }

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(16384):
                await self.flows.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

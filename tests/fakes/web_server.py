"""A web server on loopback that behaves as a test says, down to the bytes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import TypeAlias

import msgspec


class Asked(msgspec.Struct, frozen=True):
    """A request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


class Page(msgspec.Struct, frozen=True):
    """An answer: a status, a body, and headers beside its length."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    """Without a Content-Type it is HTML in UTF-8."""


Raw: TypeAlias = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""An answer that is written by hand, whatever it does to the protocol."""
Handler: TypeAlias = Callable[[Asked], Page | Raw]


class WebServer:
    """What was asked of it, and where it is."""

    def __init__(self, handler: Handler) -> None:
        self.asked: list[Asked] = []
        self.port = 0
        self._handler = handler
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection, one answer."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            asked = await _read(reader)
            self.asked.append(asked)
            answer = self._handler(asked)
            if isinstance(answer, Page):
                writer.write(_encoded(answer))
            else:
                await answer(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone, which some tests are about
        finally:
            writer.close()
            with contextlib.suppress(OSError):  # also a client that takes no more bytes
                async with asyncio.timeout(5):
                    await writer.wait_closed()
            self._tasks.discard(task)

    async def stop(self) -> None:
        """Ends answers that would never end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def web_server(
    handler: Handler, *, tls: SSLContext | None = None, port: int = 0
) -> AsyncIterator[WebServer]:
    """A server while the block runs."""
    server = WebServer(handler)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", port, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.stop()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    return Asked(
        method,
        target,
        headers,
        await reader.readexactly(int(headers.get("content-length", "0"))),
    )


def _encoded(page: Page) -> bytes:
    body = page.body.encode() if isinstance(page.body, str) else page.body
    headers = {
        "Content-Length": str(len(body)),
        "Connection": "close",
        "Content-Type": "text/html; charset=utf-8",
        **page.headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {page.status} Status\r\n{head}\r\n".encode("latin-1") + body

"""A fake model service on loopback. It speaks the three real wire formats, follows a script and fails on demand.

In a test: `async with ModelServer(Served(text="hi")) as server: ... server.url`. A request without a scripted
reply gets a 500 and fails the test at the end. From a shell, `python -m hermes.testing.model_server --port 0
--script FILE` prints its address; a script is a JSON list of replies (see `hermes.testing.scripted_responses`).
"""

import argparse
import asyncio
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from hermes.primitives.tasks import BackgroundTasks
from hermes.testing.formats import Format, error_body, error_frame, render, render_whole
from hermes.testing.scripted_responses import (
    ScriptedResponse,
    ServerFault,
    parse_script,
)

_FORMATS: dict[str, Format] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "anthropic",
}
_REASONS = {
    200: "OK",
    401: "Unauthorized",
    404: "Not Found",
    429: "Too Many Requests",
    500: "Internal Server Error",
}

_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class Recorded(msgspec.Struct, frozen=True):
    """A request exactly as it was received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class _RequestBody(msgspec.Struct):
    model: str = "unknown"


class ModelServer:
    """`requests` holds the received requests. With `repeat`, the last reply is repeated.

    With `respond`, each reply is computed from its request instead, so that a client may reconnect after a crash.
    """

    def __init__(
        self,
        *replies: ScriptedResponse | str,
        repeat: bool = False,
        respond: Callable[[Recorded], ScriptedResponse] | None = None,
        models: tuple[str, ...] = ("fake-1",),
    ) -> None:
        self.requests: list[Recorded] = []
        self.disconnected = (
            asyncio.Event()
        )  # a client disconnected while it was being answered
        self.hanging = asyncio.Event()  # a scripted silence began
        self.go_on = asyncio.Event()  # ends the pauses of scripted replies
        self.connections = 0
        self.url = ""  # the base address for all three formats, once it listens
        self.record: Path | None = None
        self._replies = [
            ScriptedResponse(text=reply) if isinstance(reply, str) else reply
            for reply in replies
        ]
        self._repeat = repeat
        self._respond = respond
        self._models = models
        self._unexpected = 0
        self._served = 0
        self._tasks = BackgroundTasks("a connection of the model server")
        self._open: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    @property
    def left(self) -> int:
        """The number of scripted replies that were not used."""
        return len(self._replies)

    @property
    def posts(self) -> list[Recorded]:
        """The requests for a model reply."""
        return [request for request in self.requests if request.method == "POST"]

    async def start(self, port: int = 0) -> None:
        """Starts listening."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def close(self) -> None:
        """Stops. Fails if there were more requests than scripted replies."""
        if self._server is not None:
            self._server.close()
        await self._tasks.close()
        for connection in self._open:  # whose task was cancelled before it started
            connection.close()
        if self._server is not None:
            await self._server.wait_closed()
        if self._unexpected:
            raise AssertionError(
                f"the model server was asked {self._unexpected} times more than was scripted"
            )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._unexpected = 0  # the test has already failed with its own error
        await self.close()

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        connection = _Connection(reader, writer, self)
        self._open.add(connection)
        self._tasks.start(self._serve(connection))

    async def _serve(self, connection: "_Connection") -> None:
        try:
            while (request := await connection.read_request()) is not None:
                self.requests.append(request)
                self._save(request)
                if not await self._answer(request, connection):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            self.disconnected.set()
        finally:
            self._open.discard(connection)
            connection.close()

    def _save(self, request: Recorded) -> None:
        if self.record is not None:
            line = {
                "method": request.method,
                "path": request.path,
                "body": request.body.decode(),
            }
            with self.record.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")

    async def _answer(self, request: Recorded, connection: "_Connection") -> bool:
        """Answers a request. Returns whether the connection stays open."""
        if request.method == "GET" and request.path.endswith("/models"):
            listing = {
                "object": "list",
                "data": [{"id": name, "object": "model"} for name in self._models],
            }
            return await connection.send(200, msgspec.json.encode(listing))
        kind = next(
            (kind for path, kind in _FORMATS.items() if request.path.endswith(path)),
            None,
        )
        if kind is None or request.method != "POST":
            return await connection.send(
                404, error_body("chat", 404, f"no such path: {request.path}", "")
            )
        try:
            model = msgspec.json.decode(request.body, type=_RequestBody).model
        except msgspec.DecodeError as error:
            return await connection.send(
                400, error_body(kind, 400, f"the body is not JSON: {error}", "")
            )
        reply = self._next(request)
        if reply is None:
            self._unexpected += 1
            return await connection.send(
                500, error_body(kind, 500, "the script has no reply left", "")
            )
        self._served += 1
        events = render(kind, reply, model, self._served)
        if reply.fault is not None:
            return await self._fail(reply.fault, events, kind, connection)
        if reply.delivery == "json":
            events = [render_whole(kind, reply, model, self._served)]
        return await (
            connection.stream_in_two(events)
            if reply.pauses
            else connection.stream(events, reply.delay, reply.delivery)
        )

    def _next(self, request: Recorded) -> ScriptedResponse | None:
        if self._respond is not None:
            return self._respond(request)
        if self._repeat and len(self._replies) == 1:
            return self._replies[0]
        return self._replies.pop(0) if self._replies else None

    async def _fail(
        self,
        fault: ServerFault,
        events: list[bytes],
        kind: Format,
        connection: "_Connection",
    ) -> bool:
        half = events[: max(1, len(events) // 2)]
        if fault.hang:
            await connection.hang(
                half if fault.hang == "middle" else [], head=fault.hang != "head"
            )
            return False
        if fault.cut_after is not None:
            await connection.cut(b"".join(events)[: fault.cut_after])
            return False
        if fault.malformed:
            return await connection.stream([*half, b"data: {not json\n\n"], 0)
        if fault.error_frame:
            return await connection.stream([*half, error_frame(kind, fault.message)], 0)
        if fault.empty:
            return await connection.stream([], 0)
        return await connection.send(*_whole(fault, kind))


def _whole(fault: ServerFault, kind: Format) -> tuple[int, bytes, Mapping[str, str]]:
    """Returns the response for a fault that is not a stream."""
    if fault.status:
        body = fault.body.encode() or error_body(
            kind, fault.status, fault.message, fault.code
        )
        return (
            fault.status,
            body,
            {"retry-after": fault.retry_after} if fault.retry_after else {},
        )
    if fault.html:
        page = b"<!doctype html><html><head><title>Sign in</title></head><body>Welcome</body></html>"
        return 200, page, {"content-type": "text/html; charset=utf-8"}
    return 200, fault.body.encode(), {"content-type": fault.content_type}


def _packed(events: list[bytes], window: int) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=window)
    for event in events:
        yield packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


class _Connection:
    """The part of HTTP/1.1 that clients of a model service need, on one socket."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server: ModelServer,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._owner = server

    async def read_request(self) -> Recorded | None:
        """Returns the next request; None if the client has closed the connection."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return None
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        return Recorded(method, path.partition("?")[0], headers, body)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}",
            *(f"{k}: {v}" for k, v in headers.items()),
        ]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def _chunk(self, data: bytes) -> None:
        self._writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def send(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> bool:
        """Sends a complete response."""
        self._head(
            status,
            {
                "content-type": "application/json",
                "content-length": str(len(body)),
                **(headers or {}),
            },
        )
        self._writer.write(body)
        await self._writer.drain()
        return True

    def _begin(self, delivery: str = "stream") -> None:
        kind = {"plain": "text/plain", "json": "application/json"}.get(
            delivery, "text/event-stream"
        )
        coding = {"content-encoding": delivery} if delivery in _WINDOWS else {}
        self._head(
            200,
            {
                "content-type": f"{kind}; charset=utf-8",
                "transfer-encoding": "chunked",
                **coding,
            },
        )

    async def stream(
        self, events: list[bytes], delay: float, delivery: str = "stream"
    ) -> bool:
        """Sends a complete stream."""
        self._begin(delivery)
        for event in (
            _packed(events, _WINDOWS[delivery]) if delivery in _WINDOWS else events
        ):
            self._chunk(event)
            if delay:
                await self._writer.drain()
                await asyncio.sleep(delay)
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()
        return True

    async def stream_in_two(self, events: list[bytes]) -> bool:
        """Sends half of a stream, and the rest when the server's `go_on` is set."""
        self._begin()
        half = len(events) // 2
        self._chunk(b"".join(events[:half]))
        await self._writer.drain()
        self._owner.hanging.set()
        await self._owner.go_on.wait()
        self._chunk(b"".join(events[half:]))
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()
        return True

    async def cut(self, data: bytes) -> None:
        """Sends a stream that is cut off."""
        self._begin()
        if data:
            self._chunk(data)
        await self._writer.drain()

    async def hang(self, events: list[bytes], *, head: bool) -> None:
        """Sends part of a stream, then nothing until the client disconnects."""
        if head:
            self._begin()
        for event in events:
            self._chunk(event)
        await self._writer.drain()
        self._owner.hanging.set()
        await self._reader.read(1)
        self._owner.disconnected.set()

    def close(self) -> None:
        self._writer.close()


async def _run(server: ModelServer, port: int) -> None:
    await server.start(port)
    sys.stdout.write(server.url + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    """Runs the server as a process until it is killed."""
    parser = argparse.ArgumentParser(
        prog="python -m hermes.testing.model_server",
        description="A fake model service.",
    )
    parser.add_argument(
        "--port", type=int, default=0, help="0 takes a free one; the address is printed"
    )
    parser.add_argument(
        "--script", type=Path, required=True, help="a JSON list of replies"
    )
    parser.add_argument(
        "--record",
        type=Path,
        help="append each request to this file, one JSON object per line",
    )
    parser.add_argument(
        "--repeat", action="store_true", help="give the last reply again and again"
    )
    options = parser.parse_args()
    server = ModelServer(
        *parse_script(options.script.read_bytes()), repeat=options.repeat
    )
    server.record = options.record
    try:
        asyncio.run(_run(server, options.port))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()

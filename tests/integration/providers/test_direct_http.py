"""Connections straight to a server: where a name led to is checked before anything is sent."""

import asyncio
import contextlib

import pytest

from hermes.providers.direct_http import Direct
from hermes.providers.http_response import ConnectionBroken
from hermes.providers.metadata_addresses import is_hidden_metadata
from hermes.surfaces.web import override


async def test_a_name_that_leads_to_the_clouds_metadata_gets_no_request() -> None:
    got: list[bytes] = []
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionResetError):
            got.append(await reader.read(1))
        writer.close()
        closed.set()

    class Rebound(asyncio.StreamWriter):
        @override
        def get_extra_info(self, name: str, default: object = None) -> object:
            return ("169.254.169.254", 80) if name == "peername" else default

    async def rebinding(
        host: str, port: int, **more: object
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        assert host == "models.example"
        reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(
            lambda: asyncio.StreamReaderProtocol(reader), "127.0.0.1", port
        )
        return reader, Rebound(transport, protocol, reader, loop)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(OSError, match=r"leads to 169\.254\.169\.254"):
            await Direct(rebinding).connect(f"http://models.example:{port}/v1")
        await asyncio.wait_for(closed.wait(), 20)
    assert b"".join(got) == b""


@pytest.mark.parametrize(
    ("host", "peer", "refused"),
    [
        ("models.example", "169.254.169.254", True),
        ("models.example", "::ffff:169.254.169.254", True),
        ("models.example", "fd00:ec2::254", True),
        ("models.example", "fe80::1%eth0", False),
        ("models.example", "127.0.0.1", False),
        ("100.100.100.200", "100.100.100.200", False),  # typed by a person
    ],
)
def test_which_addresses_are_refused(host: str, peer: str, refused: bool) -> None:
    assert is_hidden_metadata(host, peer) is refused


async def test_what_came_before_a_broken_piece_is_read_first() -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + b"3\r\none\r\n3\r\ntwo\r\nno length\r\n")
        await writer.drain()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        connection = await Direct().connect(url)
        await connection.send("GET", url, {}, b"")
        assert await connection.chunk() == b"onetwo"
        with pytest.raises(ConnectionBroken, match="chunk header"):
            await connection.chunk()
        connection.close()
        async with asyncio.timeout(30):
            await ended.wait()  # or its connection is left open


async def test_a_server_that_closes_before_it_answers_is_named_in_plain_words() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        connection = await Direct().connect(url)
        with pytest.raises(
            ConnectionBroken, match=r"^the server closed the connection$"
        ):
            await connection.send("GET", url, {}, b"")
        connection.close()

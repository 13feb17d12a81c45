"""Connections straight to a server: where a name led to is checked before anything is sent."""

import asyncio
import contextlib

import pytest

from hermes.providers.direct_http import Direct
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

"""The HTTP path to a model: connections are used again, a dead one is replaced, a broken answer is reported."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
FAST = HttpTimeouts(connect=5.0, first_byte=5.0, idle=5.0, total=10.0)
HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return head + await reader.readexactly(int(line.partition(b":")[2]))
    return head


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    tasks: set[asyncio.Task[None]] = set()

    async def accept(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        async with asyncio.timeout(30):
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def fetch(http: Http, url: str, body: bytes = b"{}") -> bytes:
    reply = await http.send("POST", url, {"x-test": "1"}, body, FAST)
    async with reply:
        return (
            await reply.read_all(1000)
            if reply.status == 200
            else str(reply.status).encode()
        )


async def test_the_next_call_uses_the_same_connection() -> None:
    connections = 0

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal connections
        connections += 1
        while True:
            request = await read_request(reader)
            assert request.startswith(b"POST /v1 HTTP/1.1\r\nhost: 127.0.0.1:")
            writer.write(HELLO)

    async with serving(handler) as url:
        http = Http()
        for _ in range(3):
            reply = await http.send("POST", url, {}, b"{}", FAST)
            async with reply:
                assert await reply.read() == b"hello"
                await reply.drain()
        await http.aclose()
    assert connections == 1


async def test_a_connection_that_died_while_it_waited_is_replaced() -> None:
    connections = 0
    gone = asyncio.Event()

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal connections
        connections += 1
        await read_request(reader)
        writer.write(HELLO)
        await writer.drain()
        writer.close()
        gone.set()

    async with serving(handler) as url:
        http = Http()
        for _ in range(3):
            reply = await http.send("POST", url, {}, b"{}", FAST)
            async with reply:
                assert await reply.read() == b"hello"
                await reply.drain()
            await gone.wait()
            gone.clear()
        await http.aclose()
    assert connections == 3


async def test_a_request_that_may_have_been_read_is_not_sent_again_behind_the_callers_back() -> (
    None
):
    requests = 0

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal requests
        await read_request(reader)
        requests += 1
        writer.write(HELLO)
        await read_request(reader)
        requests += 1

    async with serving(handler) as url:
        http = Http()
        reply = await http.send("POST", url, {}, b"{}", FAST)
        async with reply:
            assert await reply.read() == b"hello"
            await reply.drain()
        with pytest.raises(TransportFailure) as caught:
            await http.send("POST", url, {}, b"{}", FAST)
        await http.aclose()
    assert (caught.value.phase, requests) == ("cut", 2)


async def test_an_answer_in_the_middle_of_which_the_connection_breaks_is_not_asked_for_again() -> (
    None
):
    requests = 0

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal requests
        await read_request(reader)
        requests += 1
        writer.write(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\nd"
        )

    async with serving(handler) as url:
        http = Http()
        reply = await http.send("POST", url, {}, b"{}", FAST)
        async with reply:
            said = b""
            while said != b"abcd":
                said += await reply.read()
            with pytest.raises(TransportFailure) as caught:
                await reply.read()
        assert caught.value.phase == "cut"
        await http.aclose()
    assert requests == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: " + b"x" * 100_000,
        b"\0" * 64,
    ],
)
async def test_what_is_no_http_answer_is_a_cut(answer: bytes) -> None:
    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await read_request(reader)
        writer.write(answer)

    async with serving(handler) as url:
        http = Http()
        with pytest.raises(TransportFailure) as caught:
            await fetch(http, url)
        assert caught.value.phase == "cut"
        await http.aclose()


async def test_a_continue_before_the_answer_and_an_answer_without_a_length_are_understood() -> (
    None
):
    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await read_request(reader)
        writer.write(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nuntil the end"
        )

    async with serving(handler) as url:
        http = Http()
        assert await fetch(http, url) == b"until the end"
        await http.aclose()


async def test_a_large_request_arrives_whole() -> None:
    sizes: list[int] = []

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        sizes.append(len((await read_request(reader)).partition(b"\r\n\r\n")[2]))
        writer.write(HELLO)

    async with serving(handler) as url:
        http = Http()
        assert await fetch(http, url, b"x" * 8_000_000) == b"hello"
        await http.aclose()
    assert sizes == [8_000_000]


async def test_a_proxy_of_the_environment_is_used_for_what_is_far_away() -> None:
    lines: list[bytes] = []

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        lines.append((await read_request(reader)).split(b"\r\n")[0])
        writer.write(HELLO)

    async with serving(handler) as url:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HTTP_PROXY", url.removesuffix("/v1"))
            patch.setenv("http_proxy", url.removesuffix("/v1"))
            patch.delenv("NO_PROXY", raising=False)
            patch.delenv("no_proxy", raising=False)
            http = Http({"HTTP_PROXY": url})
            assert await fetch(http, "http://models.example/v1") == b"hello"
            assert await fetch(http, url) == b"hello"
            await http.aclose()
    assert lines == [b"POST http://models.example/v1 HTTP/1.1", b"POST /v1 HTTP/1.1"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/v1", "https://nowhere.invalid/v1", "http://[::1/v1"]
)
async def test_an_address_without_a_server_is_a_failure_to_connect(url: str) -> None:
    http = Http()
    with pytest.raises(TransportFailure) as caught:
        await fetch(http, url)
    assert caught.value.phase == "connect"
    await http.aclose()


async def test_no_connection_is_explained_without_error_numbers() -> None:
    http = Http()
    free = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = free.sockets[0].getsockname()[1]
    free.close()
    with pytest.raises(TransportFailure) as refused:
        await fetch(http, f"http://127.0.0.1:{port}/v1")
    with pytest.raises(TransportFailure) as unknown:
        await fetch(http, "http://no-such-host.invalid/v1")
    with pytest.raises(TransportFailure) as impossible:
        await fetch(http, "http://a..b/v1")
    assert refused.value.detail == "the connection was refused"
    assert unknown.value.detail == "its host name could not be resolved"
    assert impossible.value.detail == "its host name is not valid"
    await http.aclose()


async def test_a_certificate_nobody_vouches_for_is_refused() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).parent / "data" / "self_signed.pem")
    asked = 0

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal asked
        asked += 1
        writer.close()

    server = await asyncio.start_server(handler, "127.0.0.1", 0, ssl=context)
    async with server:
        http = Http()
        with pytest.raises(TransportFailure, match="certificate") as caught:
            await fetch(
                http, f"https://localhost:{server.sockets[0].getsockname()[1]}/v1"
            )
        await http.aclose()
    assert caught.value.phase == "connect"
    assert asked == 0

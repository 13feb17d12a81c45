"""Requests to the API when its process stops or reads its settings again: what was accepted is answered to its end."""

import asyncio
import re
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from tests.integration.gateway.harness import until

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

_PATIENCE = 30.0
_SLOW_TEXT = "a slow answer that has a beginning and an end"
_LONGER_THAN_A_CUT_S = 1.5  # a server that is ended at once has ended by then


def respond(request: Recorded) -> ScriptedResponse:
    slow = b"take your time" in request.body
    return ScriptedResponse(text=_SLOW_TEXT if slow else "at once", pauses=slow)


class ApiProcess:
    """A process that serves the API, and one client."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.model = model
        self.hermes = InstalledHermes(folder, model.url)
        self.hermes.home.mkdir()
        self.port = _free_port()
        self.key = ""

    def configure(self, *, drain_timeout: float = 20.0, **api: object) -> None:
        section = {"port": self.port, "folder": str(self.hermes.work), **api}
        settings = {"api": section, "gateway": {"drain_timeout": drain_timeout}}
        path = self.hermes.home / "config.yaml"
        path.write_bytes(msgspec.json.encode(settings))

    @asynccontextmanager
    async def running(self, *command: str) -> AsyncIterator[asyncio.subprocess.Process]:
        made = await self.hermes.run("api", "key", "add", "test")
        self.key = made.out.splitlines()[0]
        process = await self.hermes.start(*command)
        try:
            assert process.stdout is not None
            said = b""
            async with asyncio.timeout(_PATIENCE):
                while b"/v1" not in said:
                    said = await process.stdout.readline()
                    assert said, "it has ended"
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            _, err = await process.communicate()
            assert b"Traceback" not in err, err.decode()

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}/v1",
            headers={"authorization": f"Bearer {self.key}"},
            timeout=_PATIENCE,
        )

    async def ask(self, text: str, path: str = "/chat/completions") -> httpx2.Response:
        async with self.client() as client:
            return await client.post(path, json=_body(text, stream=False))

    @asynccontextmanager
    async def slow_stream(self) -> AsyncIterator["asyncio.Task[list[bytes]]"]:
        """A stream that is under way; the task is everything that it sends."""
        begun = asyncio.Event()

        async def read() -> list[bytes]:
            found: list[bytes] = []
            body = _body("take your time", stream=True)
            async with (
                self.client() as client,
                client.stream("POST", "/chat/completions", json=body) as answer,
            ):
                async for piece in answer.aiter_bytes():
                    found.append(piece)
                    if b'"content":"' in piece:
                        begun.set()
            return found

        reading = asyncio.ensure_future(read())
        try:
            await asyncio.wait_for(begun.wait(), _PATIENCE)
            yield reading
        finally:
            self.model.go_on.set()
            reading.cancel()
            await asyncio.wait({reading})

    async def until_refused(self) -> httpx2.Response:
        async with asyncio.timeout(_PATIENCE):
            while (  # noqa: ASYNC110 - other processes can't set an event of ours
                answer := await self.ask("hello")
            ).status_code != 503:
                await asyncio.sleep(0.05)
        return answer

    def logged(self, text: str) -> bool:
        logs = (self.hermes.home / "logs").glob("*.log")
        return any(text in one.read_text() for one in logs)


def _body(text: str, *, stream: bool) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {
        "model": "hermes",
        "messages": [message],
        "stream": stream,
        "max_tokens": 100,
    }


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _text(pieces: list[bytes]) -> str:
    return "".join(re.findall(r'"content":"([^"]*)"', b"".join(pieces).decode()))


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[ApiProcess]:
    async with ModelServer(respond=respond) as model:
        yield ApiProcess(tmp_path, model)


@pytest.mark.parametrize("command", [("gateway", "run"), ("api",)])
async def test_a_process_that_stops_finishes_its_requests_and_asks_others_to_come_back(
    api: ApiProcess, command: tuple[str, ...]
) -> None:
    api.configure()
    async with api.running(*command) as process, api.slow_stream() as reading:
        process.send_signal(signal.SIGTERM)
        refused = await api.until_refused()
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json()["error"]["code"] == "server_stopping"
        as_anthropic = await api.ask("hello", "/messages")
        assert (as_anthropic.status_code, as_anthropic.json()["type"]) == (503, "error")
        await asyncio.sleep(_LONGER_THAN_A_CUT_S)
        assert not reading.done()
        api.model.go_on.set()
        pieces = await asyncio.wait_for(reading, _PATIENCE)
        assert _text(pieces) == _SLOW_TEXT
        assert b"".join(pieces).endswith(b"data: [DONE]\n\n")
        assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0


async def test_a_stream_that_takes_longer_than_the_drain_time_ends_with_an_error(
    api: ApiProcess,
) -> None:
    api.configure(drain_timeout=1.0)
    async with (
        api.running("gateway", "run") as process,
        api.slow_stream() as reading,
    ):
        process.send_signal(signal.SIGTERM)
        waiting = asyncio.ensure_future(api.ask("take your time, in one piece"))
        pieces = await asyncio.wait_for(reading, _PATIENCE)
        assert b'"code":"server_stopping"' in b"".join(pieces)
        assert b'"finish_reason":"stop"' not in b"".join(pieces)
        whole = await asyncio.wait_for(waiting, _PATIENCE)
        assert (whole.status_code, whole.headers["retry-after"]) == (503, "5")
        assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0


async def _reloaded(api: ApiProcess, process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGHUP)
    await until(lambda: api.logged("the settings were reloaded"))


async def test_a_reload_that_leaves_the_api_alone_refuses_nobody(
    api: ApiProcess,
) -> None:
    api.configure()
    async with (
        api.running("gateway", "run") as process,
        api.slow_stream() as reading,
    ):
        api.configure(drain_timeout=19.0)
        await _reloaded(api, process)
        assert (await api.ask("hello")).status_code == 200
        assert not reading.done()
        api.model.go_on.set()
        assert _text(await asyncio.wait_for(reading, _PATIENCE)) == _SLOW_TEXT
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0


async def test_a_reload_that_changes_the_api_finishes_its_requests_first(
    api: ApiProcess,
) -> None:
    api.configure()
    async with (
        api.running("gateway", "run") as process,
        api.slow_stream() as reading,
    ):
        api.configure(show_tools=True)
        process.send_signal(signal.SIGHUP)
        await api.until_refused()
        api.model.go_on.set()
        assert _text(await asyncio.wait_for(reading, _PATIENCE)) == _SLOW_TEXT
        await until(lambda: api.logged("the settings were reloaded"))
        await until(_listens(api.port))
        assert (await api.ask("hello")).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0


def _listens(port: int) -> Callable[[], bool]:
    def holds() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    return holds

"""The fake model server as a process, and what it does when it is asked too much."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from hermes.errors import ModelError
from hermes.providers.build import Timing, build_model
from hermes.schema.messages import UserMessage
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.settings import Secrets, Settings
from hermes.testing.model_server import ModelServer

REQUEST = ModelRequest(system=(), messages=(UserMessage(text="hi"),))


async def ask(url: str) -> str:
    """One answer, chosen by the environment alone and without a key."""

    async def no_sleep(seconds: float) -> None:
        return

    model = build_model(
        Settings(), Secrets({}, {"OPENAI_BASE_URL": url}), timing=Timing(sleep=no_sleep)
    )
    try:
        events = [event async for event in model.stream(REQUEST)]
    finally:
        await model.close()
    assert isinstance(events[-1], ReplyFinished)
    return events[-1].message.text


async def test_running_out_of_replies_is_an_error_and_fails_the_test_at_the_end() -> (
    None
):
    server = ModelServer("one")
    await server.start()
    assert await ask(server.url) == "one"
    with pytest.raises(ModelError, match="no reply left"):
        await ask(server.url)
    with pytest.raises(AssertionError, match="4 times more"):
        await server.close()


async def test_it_runs_as_a_process_with_a_script_and_records_what_it_is_asked(
    tmp_path: Path,
) -> None:
    script, record = tmp_path / "script.json", tmp_path / "asked.jsonl"
    script.write_text('["first", {"text": "second", "delay": 0.001}]', encoding="utf-8")
    arguments = [
        "--port",
        "0",
        "--script",
        str(script),
        "--record",
        str(record),
        "--repeat",
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hermes.testing.model_server",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            url = (await process.stdout.readline()).decode().strip()
            assert [await ask(url) for _ in range(3)] == ["first", "second", "second"]
    finally:
        process.terminate()
        await process.wait()
    lines = [msgspec.json.decode(line) for line in record.read_bytes().splitlines()]
    assert [line["method"] for line in lines] == ["GET", "POST"] * 3
    assert msgspec.json.decode(lines[1]["body"])["messages"] == [
        {"role": "user", "content": "hi"}
    ]


async def test_a_connection_that_comes_at_the_end_is_closed() -> None:
    server = ModelServer()
    await server.start()
    reader, writer = await asyncio.open_connection(*_address(server))
    server._accept(reader, writer)  # its task has not begun when the server ends
    await server.close()
    assert writer.is_closing()


def _address(server: ModelServer) -> tuple[str, int]:
    host, port = server.url.removeprefix("http://").removesuffix("/v1").split(":")
    return host, int(port)

"""Model servers that send tokens at a steady pace, and note when."""

import asyncio
import json
import re
import time
from contextlib import suppress

TOKENS = 400
INTERVAL = 0.015  # seconds
FAST = 0.005  # seconds between tokens: 200 in a second
LONG = 16_000  # characters of a block before the tokens whose CPU counts
KINDS = {"prose": ("", " "), "code": ("```python\n", " = 1\n")}
BLOCKS = {
    "paragraph": ("", "some more words and `code` for a paragraph. "),
    "table": (
        "| name | value | text |\n|---|---|---|\n",
        "| row | 4711 | what is said of a row |\n",
    ),
    "code": (
        "```python\nclass A:\n",
        "    def method(self, value: int = 1) -> str: return f'{value}'\n",
    ),
}
_BEGIN = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Paced:
    """Answers every request with tokens at a steady pace, and remembers when each was sent."""

    def __init__(self, kind: str) -> None:
        self._before, self._behind = KINDS[kind]
        self.sent: dict[int, float] = {}
        self.left = asyncio.Event()

    async def handle(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One request, one stream."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await _read_request(reader)
            writer.write(_BEGIN + _delta({"content": self._before}))
            for number in range(TOKENS):
                self.sent[number] = time.perf_counter()
                writer.write(_delta({"content": f"q{number:03d}z{self._behind}"}))
                await writer.drain()
                await asyncio.sleep(INTERVAL)
            writer.write(_delta({}, finish="stop") + _chunk(b"[DONE]") + b"0\r\n\r\n")
            await writer.drain()
        self.left.set()


class Long:
    """Answers with a long block at once, then with tokens of four characters at a steady pace. Notes where it is."""

    def __init__(self, kind: str) -> None:
        before, line = BLOCKS[kind]
        self._head = before + line * (LONG // len(line))
        self._more = line * (TOKENS * 4 // len(line) + 1)
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.ended = asyncio.Event()
        self.left = asyncio.Event()

    async def handle(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One request, one stream."""
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await _read_request(reader)
        writer.write(_BEGIN)
        for at in range(0, len(self._head), 400):
            writer.write(_delta({"content": self._head[at : at + 400]}))
        await writer.drain()
        self.begun.set()
        await self.go.wait()
        for number in range(TOKENS):
            writer.write(_delta({"content": self._more[number * 4 : number * 4 + 4]}))
            await writer.drain()
            await asyncio.sleep(FAST)
        self.ended.set()
        await reader.read()  # until the chat is gone


async def _read_request(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    await reader.readexactly(int(found[1]) if found else 0)


def _delta(delta: dict[str, str], finish: str | None = None) -> bytes:
    return _chunk(
        json.dumps(
            {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        ).encode()
    )


def _chunk(data: bytes) -> bytes:
    event = b"data: " + data + b"\n\n"
    return f"{len(event):x}\r\n".encode() + event + b"\r\n"

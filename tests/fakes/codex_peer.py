"""A codex whose part the test plays: a real process whose two pipes end in the test.

`async with CodexPeer(folder) as peer` listens; `peer.program` and `peer.arguments` start the process, which only
carries lines. The test then reads what the client sent (`await peer.receive("turn/start")`) and says what it likes.
"""

import asyncio
import contextlib
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

_PATIENCE = 10.0
_LIMIT = 64 * 1024 * 1024
_RELAY = Path(__file__).with_name("codex_relay.py")


class CodexPeer:
    """Answers the handshake and the opening of a thread by itself, unless told otherwise."""

    def __init__(
        self, folder: Path, *, version: str = "0.166.0", signed_in: bool = True
    ) -> None:
        self.program = Path(sys.executable)
        self.received: list[dict[str, Any]] = []
        self.starts = 0
        self.answers: dict[str, Any] = {
            "initialize": {"userAgent": f"hermes/{version} (Linux; x86_64) unknown"},
            "account/read": {
                "account": {"type": "apiKey"} if signed_in else None,
                "requiresOpenaiAuth": True,
            },
            "thread/start": {"thread": {"id": "thread-1"}, "model": "gpt-peer"},
            "thread/resume": {"thread": {"id": "thread-1"}, "model": "gpt-peer"},
            "thread/inject_items": {},
            "thread/backgroundTerminals/clean": {},
        }
        self._path = folder / "peer.sock"
        self._arrived: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._aside: list[dict[str, Any]] = []
        self._writer: asyncio.StreamWriter | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the process is started with."""
        return ("-I", "-S", str(_RELAY), str(self._path))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(
            self._accept, self._path, limit=_LIMIT
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hang_up()
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def hang_up(self) -> None:
        """The process ends, as one that crashes does."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._writer = writer
        self._writers.append(writer)
        self.starts += 1
        while line := await _line(reader):
            message = msgspec.json.decode(line)
            self.received.append(message)
            answer = self.answers.get(message.get("method", ""))
            if answer is not None and "id" in message:
                self.send({"id": message["id"], "result": answer})
            else:
                self._arrived.put_nowait(message)

    def send(self, *messages: dict[str, Any]) -> None:
        """Says something, message by message."""
        self.raw(b"".join(msgspec.json.encode(message) + b"\n" for message in messages))

    def raw(self, data: bytes) -> None:
        """Says anything."""
        if self._writer is None:
            raise ConnectionError("the process is not there")
        self._writer.write(data)

    def notify(self, method: str, **params: Any) -> None:
        """Tells something."""
        self.send({"method": method, "params": params, "emittedAtMs": 0})

    async def receive(
        self, method: str = "", *, number: int | str | None = None
    ) -> dict[str, Any]:
        """The next message with this method, or the answer to a question with this number."""
        for kept in self._aside:
            if _fits(kept, method, number):
                self._aside.remove(kept)
                return kept
        async with asyncio.timeout(_PATIENCE):
            while not _fits(message := await self._arrived.get(), method, number):
                self._aside.append(message)
        return message

    async def begin_turn(self, turn: str = "turn-1") -> dict[str, Any]:
        """Takes the next `turn/start` and says that the turn has begun. Returns what was asked."""
        asked = await self.receive("turn/start")
        self.send({"id": asked["id"], "result": {"turn": {"id": turn}}})
        self.notify(
            "turn/started",
            threadId="thread-1",
            turn={"id": turn, "status": "inProgress"},
        )
        return asked

    def item(self, event: str, item: dict[str, Any], turn: str = "turn-1") -> None:
        """`started` or `completed`."""
        self.notify(f"item/{event}", threadId="thread-1", turnId=turn, item=item)

    def delta(self, text: str, item: str = "msg-1", turn: str = "turn-1") -> None:
        """More of a message."""
        self.notify(
            "item/agentMessage/delta",
            threadId="thread-1",
            turnId=turn,
            itemId=item,
            delta=text,
        )

    def end_turn(
        self,
        status: str = "completed",
        turn: str = "turn-1",
        error: dict[str, Any] | None = None,
    ) -> None:
        """The turn is over."""
        self.notify(
            "turn/completed",
            threadId="thread-1",
            turn={"id": turn, "status": status, "error": error},
        )

    def say(self, text: str, item: str = "msg-1", turn: str = "turn-1") -> None:
        """A whole message."""
        self.item("started", {"type": "agentMessage", "id": item, "text": ""}, turn)
        self.delta(text, item, turn)
        self.item("completed", {"type": "agentMessage", "id": item, "text": text}, turn)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line; nothing when the process is gone, however it went."""
    try:
        return await reader.readline()
    except ConnectionError:
        return b""


def _fits(message: dict[str, Any], method: str, number: int | str | None) -> bool:
    if method:
        return message.get("method") == method
    return "method" not in message and message.get("id") == number

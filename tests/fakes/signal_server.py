"""A fake of signal-cli's daemon on loopback (`daemon --http --receive-mode=on-connection`): JSON-RPC calls of several
accounts and the stream of server-sent events. Messages wait on Signal's server while nobody listens. Events have ids;
those after the id that a client names (all of them, if it is unknown) are repeated.

`async with SignalServer() as server:` and set `gateway.signal.url` to `server.url`. `say` is what people do; `messages` is what
they see.
"""

import asyncio
import base64
import re
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import web
from tests.fakes.chat_server import ChatServer, Shown, override

ACCOUNT = "+15550100"
GROUP = "aGVsbG8/Z3JvdXA+aWRzIGFyZSBiYXNlNjQ="
_URI = re.compile(r"data:(?P<type>[^;]+);filename=(?P<name>[^;]+);base64,(?P<data>.+)")
_STYLE = re.compile(r"\d+:[1-9]\d*:(BOLD|ITALIC|STRIKETHROUGH|MONOSPACE|SPOILER)")
_METHODS = frozenset(("send", "sendTyping", "getAttachment", "listAccounts"))


def uuid_of(number: int) -> str:
    """The id of a person."""
    return f"00000000-0000-4000-8000-{number:012d}"


class SignalServer(ChatServer):
    """People are numbers; `gone` are those who left Signal."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: set[str] = set()
        self.waiting: list[dict[str, Any]] = []
        self.kept: list[dict[str, Any]] = []
        self.listeners = 0
        self._now = 1_700_000_000_000
        self._dropped = asyncio.Event()
        self._arrived = asyncio.Event()

    @override
    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/v1/rpc", self._rpc),
            web.get("/api/v1/events", self._events),
        ]

    # --- what people do

    def say(
        self, text: str | None, sender: int = 1, *, group: str = "", **more: Any
    ) -> int:
        """Somebody writes; the timestamp of their message."""
        self._now += 1
        message: dict[str, Any] = {
            "timestamp": self._now,
            "message": text,
            "expiresInSeconds": 0,
        }
        if group:
            about = {"groupId": group, "groupName": "Friends", "type": "DELIVER"}
            message["groupInfo"] = about | {"revision": 1}
        self.tell({"dataMessage": message | more}, sender)
        return self._now

    def react(
        self, shown: Shown, emoji: str, sender: int = 1, *, group: str = ""
    ) -> None:
        """Somebody puts an emoji on a message."""
        target = {"targetAuthorNumber": ACCOUNT, "targetSentTimestamp": int(shown.id)}
        reaction = {"emoji": emoji, "isRemove": False, **target}
        self.say(None, sender, group=group, reaction=reaction)

    def tell(self, content: dict[str, Any], sender: int = 1) -> dict[str, Any]:
        """An event."""
        source = {
            "source": f"+1555000{sender}",
            "sourceNumber": f"+1555000{sender}",
            "sourceUuid": uuid_of(sender),
            "sourceName": f"Person {sender}",
            "sourceDevice": 1,
        }
        event = {"envelope": source | {"timestamp": self._now} | content}
        self.again(event | {"account": ACCOUNT})
        return event

    def again(self, event: dict[str, Any]) -> None:
        """Puts an event into the stream."""
        self.waiting.append(event)
        self._arrived.set()

    def attach(self, data: bytes, kind: str, name: str | None = None) -> dict[str, Any]:
        """A file of a person, as a message names it."""
        number = f"file{self.next_id()}"
        self.files[number] = data
        return {"contentType": kind, "filename": name, "id": number, "size": len(data)}

    def drop(self) -> None:
        """Ends every stream, as a restart of the daemon does."""
        self._dropped.set()
        self._dropped = asyncio.Event()

    # --- the daemon

    async def _rpc(self, request: web.Request) -> web.Response:
        if not request.headers.get("content-type", "").startswith("application/json"):
            return web.Response(status=415)
        asked = msgspec.json.decode(await request.read(), type=dict[str, Any])
        method, params = asked["method"], asked.get("params") or {}
        self.calls.append((method, params))
        try:
            result = self._result(method, params)
        except RpcError as error:
            body: dict[str, Any] = {"error": error.body}
        else:
            body = {"result": result}
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **body})

    def _result(self, method: str, params: dict[str, Any]) -> Any:
        if method not in _METHODS:
            raise RpcError(-32601, "Method not implemented")
        if method == "listAccounts":
            return [{"number": ACCOUNT}]
        if params.get("account") != ACCOUNT:
            raise RpcError(-32602, "Specified account does not exist")
        if failure := self.failing(method):
            raise RpcError(failure.code, failure.reason, failure.retry_after)
        if method == "getAttachment":
            if params["id"] not in self.files:
                raise RpcError(-1, "Could not find attachment with ID")
            return {"data": base64.b64encode(self.files[params["id"]]).decode()}
        if method == "sendTyping":
            return None
        return self._send(params)

    def _send(self, params: dict[str, Any]) -> dict[str, Any]:
        text, attachments = params.get("message", ""), params.get("attachments", ())
        if not text and not attachments:
            raise RpcError(-1, "Sending empty message is not allowed")
        if len(text.encode()) > 2000:
            raise RpcError(-1, "the test wants no message that becomes a file")
        for style in params.get("textStyle", ()):
            assert _STYLE.fullmatch(style), style
        chat = params.get("groupId") or params["recipient"][0]
        if "groupId" in params and chat != GROUP:
            raise RpcError(-1, "Group not found")
        self._now += 1
        address = {"recipientAddress": {"uuid": chat}}
        if chat in self.gone:
            results = [address | {"type": "UNREGISTERED_FAILURE"}]
            return {"timestamp": self._now, "results": results}
        shown = Shown(chat, str(self._now), text, raw=params)
        for uri in attachments:
            found = _URI.fullmatch(uri)
            assert found is not None, uri[:100]
            data = base64.b64decode(found["data"])
            shown.file, shown.name = data, unquote(found["name"])
        self.messages.append(shown)
        return {
            "timestamp": self._now,
            "results": [address | {"type": "SUCCESS"}],
        }

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("account") != ACCOUNT:
            return web.Response(status=400)
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        dropped = asyncio.create_task(self._dropped.wait())
        self.listeners += 1
        try:
            await stream.write(b":\n")
            for number in self._repeated(request.headers.get("last-event-id", "")):
                await self._write(stream, number)
            while not dropped.done():
                while self.waiting:
                    self.kept.append(self.waiting.pop(0))
                    await self._write(stream, len(self.kept))
                self._arrived.clear()
                arrived = asyncio.create_task(self._arrived.wait())
                await asyncio.wait({dropped, arrived}, return_when="FIRST_COMPLETED")
                arrived.cancel()
        finally:
            self.listeners -= 1
            dropped.cancel()
        return stream

    def _repeated(self, last: str) -> range:
        """The numbers of the events that a client has not stored. One that names none gets only what is new."""
        if not last:
            return range(0)
        is_known = last.isdecimal() and int(last) <= len(self.kept)
        return range(int(last) + 1 if is_known else 1, len(self.kept) + 1)

    async def _write(self, stream: web.StreamResponse, number: int) -> None:
        event = msgspec.json.encode(self.kept[number - 1])
        await stream.write(b"id:%d\nevent:receive\ndata:%b\n\n" % (number, event))


class RpcError(Exception):
    """What a call answers instead of a result."""

    def __init__(self, code: int, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.body: dict[str, Any] = {"code": code, "message": message, "data": None}
        if retry_after:
            result = {"type": "RATE_LIMIT_FAILURE", "retryAfterSeconds": retry_after}
            self.body["data"] = {"response": {"results": [result]}}

"""A fake ntfy on loopback that speaks its real API: publishing as JSON and by PUT with headers, attachments, the JSON stream
with `open`, `keepalive` and `message`, `since` and `poll`, access by token, errors with ntfy's codes.

`async with NtfyServer() as ntfy:` and set `gateway.ntfy.url` to `ntfy.url`. `say` is what a person with a token does;
`messages` is what subscribers see.
"""

import asyncio
import email.header
import re
import time
from typing import Any

import msgspec
from aiohttp import web
from tests.fakes.chat_server import ChatServer, Shown, override

TOKEN = "tk_loopbacktokenofatest000000000"  # noqa: S105 - of nobody
_TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
_MESSAGE_BYTES = 4096
_ATTACHMENT_BYTES = 15 * 1024 * 1024


class NtfyServer(ChatServer):
    """`protected` topics accept only the token; a topic in `write_only` may be written to by all, as `ntfy access` allows."""

    def __init__(self, protected: tuple[str, ...] = ("home",)) -> None:
        super().__init__()
        self.protected = set(protected)
        self.write_only: set[str] = set()
        self.forbidden: set[str] = set()
        """Topics that not even the token may use."""
        self.cache: list[dict[str, Any]] = []
        self.keepalive_s = 45.0
        self.since: list[str] = []
        """What subscribers asked for."""
        self.now = lambda: int(time.time())
        self._streams: set[asyncio.Queue[dict[str, Any] | None]] = set()

    @override
    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/", self._publish_json),
            web.get("/file/{name}", self._file),
            web.get("/{topic}/json", self._subscribe),
            web.put("/{topic}", self._publish),
            web.post("/{topic}", self._publish),
        ]

    def say(self, text: str, topic: str = "home", **more: Any) -> dict[str, Any]:
        """A person publishes."""
        return self._add({"topic": topic, "message": text, **more})

    def attach(
        self, name: str, data: bytes, topic: str = "home", kind: str = "text/plain"
    ) -> None:
        """A person publishes a file."""
        self._add({"topic": topic, "message": f"You received a file: {name}"}, (name, data, kind))  # fmt: skip

    def drop(self) -> None:
        """Ends every stream, as a restart of the server does; what was published stays."""
        for queue in self._streams:
            queue.put_nowait(None)

    @property
    def subscribers(self) -> int:
        return len(self._streams)

    def _add(self, fields: dict[str, Any], file: tuple[str, bytes, str] | None = None) -> dict[str, Any]:  # fmt: skip
        now = self.now()
        message: dict[str, Any] = {
            "id": f"msg{self.next_id():09d}",
            "time": now,
            "expires": now + 43200,
        }
        message |= {"event": "message"} | fields
        if file is not None:
            name, data, kind = file
            stored = f"{message['id']}.bin"
            self.files[stored] = data
            message["attachment"] = {
                "name": name, "type": kind, "size": len(data), "expires": now + 10800,
                "url": f"{self.url}/file/{stored}",
            }  # fmt: skip
        self.cache.append(message)
        for queue in self._streams:
            queue.put_nowait(message)
        if "hermes" in message.get("tags", ()):
            self._show(message, file[1] if file else b"")
        self.changed()
        return message

    def _show(self, message: dict[str, Any], data: bytes) -> None:
        name = message.get("attachment", {}).get("name", "")
        self.messages.append(
            Shown(
                message["topic"],
                message["id"],
                message.get("message", ""),
                file=data,
                name=name,
                raw=message,
            )
        )

    def _refusal(self, request: web.Request, topic: str, *, write: bool) -> web.Response | None:  # fmt: skip
        given = request.headers.get("authorization", "")
        if not _TOPIC.fullmatch(topic):
            return _error(40009, 400, "invalid request: topic invalid")
        if given and given != f"Bearer {TOKEN}":
            return _error(40101, 401, "unauthorized")
        is_open = topic not in self.protected or (write and topic in self.write_only)
        if topic in self.forbidden or not (given or is_open):
            return _error(40301, 403, "forbidden")
        failure = self.failing("publish") if write else None
        if failure is not None:
            return _error(failure.code * 100 + 1, failure.code, failure.reason)
        return None

    async def _publish_json(self, request: web.Request) -> web.Response:
        fields = msgspec.json.decode(await request.read(), type=dict[str, Any])
        self.calls.append(("publish", fields))
        topic = str(fields.get("topic", ""))
        if refusal := self._refusal(request, topic, write=True):
            return refusal
        if len(str(fields.get("message", "")).encode()) > _MESSAGE_BYTES:
            return _error(41301, 413, "message too large")
        if fields.get("priority", 3) not in range(1, 6):
            return _error(40007, 400, "invalid priority parameter")
        for action in fields.get("actions", ()):
            if action.get("action") not in {"view", "broadcast", "http"} or not action.get("label"):  # fmt: skip
                return _error(40018, 400, "invalid actions")
        return web.json_response(self._add(fields))

    async def _publish(self, request: web.Request) -> web.Response:
        topic = request.match_info["topic"]
        headers = {name.lower(): _decoded(value) for name, value in request.headers.items()}  # fmt: skip
        self.calls.append(("put", headers | {"topic": topic}))
        if refusal := self._refusal(request, topic, write=True):
            return refusal
        if headers.get("priority", "3") not in "12345":
            return _error(40007, 400, "invalid priority parameter")
        data = await request.read()
        if len(data) > _ATTACHMENT_BYTES:
            return _error(41301, 413, "attachment too large")
        fields: dict[str, Any] = {"topic": topic, "title": headers.get("title", "")}
        fields["tags"] = headers.get("tags", "").split(",")
        name = headers.get("filename", "")
        if not name:
            return web.json_response(self._add(fields | {"message": data.decode()}))
        fields["message"] = f"You received a file: {name}"
        return web.json_response(self._add(fields, (name, data, "application/octet-stream")))  # fmt: skip

    async def _file(self, request: web.Request) -> web.Response:
        data = self.files.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        topic, since = request.match_info["topic"], request.query.get("since", "none")
        if refusal := self._refusal(request, topic, write=False):
            return refusal
        self.since.append(since)
        response = web.StreamResponse(headers={"content-type": "application/x-ndjson; charset=utf-8"})  # fmt: skip
        await response.prepare(request)
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._streams.add(queue)
        self.changed()
        try:
            await self._feed(response, queue, topic, since)
        except ConnectionError:
            pass  # the subscriber went away
        finally:
            self._streams.discard(queue)
            self.changed()
        return response

    async def _feed(
        self, response: web.StreamResponse, queue: "asyncio.Queue[dict[str, Any] | None]", topic: str, since: str
    ) -> None:  # fmt: skip
        async def write(event: dict[str, Any]) -> None:
            await response.write(msgspec.json.encode(event) + b"\n")

        await write(self._plain("open", topic))
        for message in self._cached(topic, since):
            await write(message)
        while True:
            try:
                message = await asyncio.wait_for(queue.get(), self.keepalive_s)
            except TimeoutError:
                await write(self._plain("keepalive", topic))
                continue
            if message is None:
                return
            if message["topic"] == topic:
                await write(message)

    def _plain(self, kind: str, topic: str) -> dict[str, Any]:
        return {"id": f"evt{self.next_id():09d}", "time": self.now(), "event": kind, "topic": topic}  # fmt: skip

    def _cached(self, topic: str, since: str) -> list[dict[str, Any]]:
        found = [one for one in self.cache if one["topic"] == topic]
        if since == "none":
            return []
        if since.isdecimal():
            return [one for one in found if one["time"] >= int(since)]
        ids = [one["id"] for one in found]
        return found[ids.index(since) + 1 :] if since in ids else found


def _decoded(value: str) -> str:
    return str(email.header.make_header(email.header.decode_header(value)))


def _error(code: int, status: int, why: str) -> web.Response:
    body = {"code": code, "http": status, "error": why, "link": "https://ntfy.sh/docs"}
    return web.json_response(body, status=status)

"""A fake Slack on loopback that speaks the real Web API and Socket Mode: envelopes that are sent again until they are
acknowledged, messages, changes, buttons, files, rate limits and faults on command.

`async with SlackServer() as server:` and set `gateway.slack.api_url` to `server.api`. `say`, `press` and `command` are
what people do; `messages` is what they see.
"""

import asyncio
import time
from typing import Any

import msgspec
from aiohttp import WSMsgType, web
from tests.fakes.chat_server import ChatServer, Failure, Shown, override

BOT_TOKEN, APP_TOKEN = "xoxb-loopback-bot-of-a-test", "xapp-loopback-app-of-a-test"
ME, CHANNEL = "UBOT", "C600"
_LONGEST_CHANGE = 4000  # characters
_LONGEST_SECTION = 3000


class SlackServer(ChatServer):
    """The platform and the people on it. `D1` is the direct channel of `U1`."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[dict[str, Any]] = []  # messages of people
        self.unacknowledged: dict[str, dict[str, Any]] = {}
        self.acknowledged: list[str] = []
        self.connections = 0
        self._uploads: dict[str, tuple[str, bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def api(self) -> str:
        """Where the Web API is."""
        return f"{self.url}/api/"

    # --- what people do

    def say(
        self,
        text: str,
        *,
        sender: str = "U1",
        channel: str = "",
        quietly: bool = False,
        **more: Any,
    ) -> str:
        """Somebody writes, by default to Hermes alone; the message's time, which is its id."""
        place = channel or f"D{sender[1:]}"
        kind = "im" if place.startswith("D") else "channel"
        event = {
            "type": "message",
            "user": sender,
            "text": text,
            "ts": self._ts(),
            "channel": place,
        } | more
        self.history.append(event)
        if not quietly:
            self.tell(
                "events_api",
                {"type": "event_callback", "event": event | {"channel_type": kind}},
            )
            if f"<@{ME}>" in text and kind != "im":  # Slack tells of this twice
                self.tell(
                    "events_api",
                    {
                        "type": "event_callback",
                        "event": event | {"type": "app_mention"},
                    },
                )
        return str(event["ts"])

    def press(self, shown: Shown, label: str, *, sender: str = "U1") -> None:
        """Somebody presses a button."""
        place = {
            "type": "message",
            "message_ts": shown.id,
            "channel_id": shown.chat,
            "thread_ts": shown.thread or None,
        }
        action = {
            "type": "button",
            "value": shown.buttons[label],
            "action_ts": self._ts(),
        }
        about = {
            "type": "block_actions",
            "user": {"id": sender},
            "container": place,
            "actions": [action],
        }
        self.tell("interactive", about)

    def command(self, text: str, *, sender: str = "U1") -> None:
        """Somebody uses `/hermes`, alone with it."""
        about = {
            "command": "/hermes",
            "text": text,
            "user_id": sender,
            "channel_id": f"D{sender[1:]}",
        }
        self.tell("slash_commands", about | {"trigger_id": self._ts()})

    def tell(self, kind: str, payload: dict[str, Any]) -> str:
        """An envelope, to the newest connection; kept until it is acknowledged."""
        name = f"envelope-{self.next_id()}"
        self.unacknowledged[name] = {
            "type": kind,
            "envelope_id": name,
            "payload": payload,
        }
        self._push(self.unacknowledged[name])
        return name

    def _push(self, message: dict[str, Any]) -> None:
        if self.sockets:
            task = asyncio.get_running_loop().create_task(
                _send(self.sockets[-1], message)
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def refresh(self) -> None:
        """Slack asks for a new connection, as it does every few hours."""
        self._push({"type": "disconnect", "reason": "refresh_requested"})

    def _ts(self) -> str:
        return f"{int(time.time())}.{self.next_id():06d}"

    # --- the wire

    @override
    def routes(self) -> list[web.RouteDef]:
        """Those of Slack that an app needs."""
        return [
            web.get("/socket", self._socket),
            web.get("/files/{name}", self._file),
            web.post("/upload/{id}", self._upload),
            web.get("/api/{method}", self._answer),
            web.post("/api/{method}", self._answer),
        ]

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.connections += 1
        await _send(socket, {"type": "hello", "num_connections": 1})
        self.sockets.append(socket)
        for message in list(self.unacknowledged.values()):
            await _send(socket, message | {"retry_attempt": 1})
        async for frame in socket:
            if frame.type is WSMsgType.TEXT:
                name = msgspec.json.decode(frame.data)["envelope_id"]
                self.acknowledged.append(name)
                self.unacknowledged.pop(name, None)
                self.changed()
        if socket in self.sockets:
            self.sockets.remove(socket)
        return socket

    async def _answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        fields = dict(request.query)
        if request.content_type == "application/json":
            fields |= await request.json()
        elif request.can_read_body:
            fields |= {
                name: str(value) for name, value in (await request.post()).items()
            }
        token = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if request.headers.get("Authorization") != f"Bearer {token}":
            return web.json_response({"ok": False, "error": "invalid_auth"})
        self.calls.append((method, fields))
        failure = self.failing(method)
        if failure is not None:
            return _error(failure)
        handle = getattr(self, f"_{method.replace('.', '_')}", None)
        if handle is None:
            return web.json_response({"ok": False, "error": "unknown_method"})
        try:
            return web.json_response({"ok": True, **handle(fields)})
        except ValueError as error:
            return web.json_response({"ok": False, "error": str(error)})

    def _auth_test(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"user_id": ME, "user": "hermes", "team": "Loopback", "bot_id": "B1"}

    def _apps_connections_open(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"url": f"{self.url.replace('http', 'ws')}/socket?ticket=t"}

    def _users_info(self, fields: dict[str, Any]) -> dict[str, Any]:
        name = fields["user"]
        return {
            "user": {
                "id": name,
                "real_name": f"Person {name[1:]}",
                "profile": {"display_name": ""},
            }
        }

    def _conversations_history(self, fields: dict[str, Any]) -> dict[str, Any]:
        found = [one for one in self._since(fields) if not one.get("thread_ts")]
        return {"messages": found[::-1], "has_more": False}

    def _conversations_replies(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {
            "messages": [
                one
                for one in self._since(fields)
                if fields["ts"] in (one["ts"], one.get("thread_ts"))
            ]
        }

    def _since(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        oldest = float(fields.get("oldest", 0))
        return [
            one
            for one in self.history
            if one["channel"] == fields["channel"] and float(one["ts"]) > oldest
        ]

    def _chat_postMessage(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if not str(fields.get("text", "")).strip():
            raise ValueError("no_text")
        ts = self._ts()
        buttons, thread = (
            _labels(fields.get("blocks") or []),
            str(fields.get("thread_ts", "")),
        )
        self.messages.append(
            Shown(fields["channel"], ts, fields["text"], buttons, thread, raw=fields)
        )
        return {"ts": ts, "channel": fields["channel"]}

    def _chat_update(self, fields: dict[str, Any]) -> dict[str, Any]:
        found = next(
            (
                one
                for one in self.messages
                if (one.chat, one.id) == (fields["channel"], fields["ts"])
            ),
            None,
        )
        if found is None:
            raise ValueError("message_not_found")
        if len(fields["text"]) > _LONGEST_CHANGE:
            raise ValueError("msg_too_long")
        found.text = fields["text"]
        found.buttons = (
            _labels(fields["blocks"]) if "blocks" in fields else found.buttons
        )
        found.changes += 1
        return {"ts": found.id, "channel": found.chat}

    def _chat_postEphemeral(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.notes.append(fields["text"])
        return {"message_ts": self._ts()}

    def _files_getUploadURLExternal(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name = f"F{self.next_id()}"
        self._uploads[name] = (fields["filename"], b"")
        return {"upload_url": f"{self.url}/upload/{name}", "file_id": name}

    def _files_completeUploadExternal(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        files = fields["files"]
        for one in msgspec.json.decode(files) if isinstance(files, str) else files:
            name, data = self._uploads.pop(one["id"])
            place = (
                fields["channel_id"],
                self._ts(),
                "",
                {},
                str(fields.get("thread_ts", "")),
            )
            self.messages.append(Shown(*place, file=data, name=name))
        return {
            "files": msgspec.json.decode(files) if isinstance(files, str) else files
        }

    async def _upload(self, request: web.Request) -> web.Response:
        number = request.match_info["id"]
        self._uploads[number] = (self._uploads[number][0], await request.read())
        return web.Response(text="OK")

    async def _file(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(
                text="<!DOCTYPE html><html>sign in</html>", content_type="text/html"
            )
        return web.Response(body=self.files[request.match_info["name"]])


async def _send(socket: web.WebSocketResponse, message: dict[str, Any]) -> None:
    if not socket.closed:
        await socket.send_str(msgspec.json.encode(message).decode())


def _labels(blocks: Any) -> dict[str, str]:
    blocks = msgspec.json.decode(blocks) if isinstance(blocks, str) else blocks
    if any(
        len(one["text"]["text"]) > _LONGEST_SECTION
        for one in blocks
        if one["type"] == "section"
    ):
        raise ValueError("invalid_blocks")
    rows = [one["elements"] for one in blocks if one["type"] == "actions"]
    return {one["text"]["text"]: one["value"] for row in rows for one in row}


def _error(failure: Failure) -> web.Response:
    headers = {"Retry-After": f"{failure.retry_after:g}"} if failure.retry_after else {}
    status = failure.code if failure.code != 400 else 200
    return web.json_response(
        {"ok": False, "error": failure.reason}, status=status, headers=headers
    )

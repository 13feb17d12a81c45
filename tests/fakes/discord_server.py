"""A fake Discord on loopback that speaks the real API, version 10: HTTP routes for messages, changes, buttons, files
and commands, and a gateway with hello, identify, ready, heartbeats, resume and replays.

`async with DiscordServer() as server:` and set `gateway.discord.api_url` to `server.api`. `say` and `press` are what
people do; `messages` is what they see.
"""

import asyncio
import re
import time
from typing import Any

import msgspec
from aiohttp import WSMsgType, web
from tests.fakes.chat_server import ChatServer, Failure, Shown, override

TOKEN = "loopback.bot-token.of-a-test"  # noqa: S105 - of nobody
ME, GUILD, CHANNEL = "900", "500", "600"
_EPOCH = 1_420_070_400_000
_MOST = 2000
_CONTENT_INTENT = 1 << 15
_TIME = "2026-01-01T00:00:00.000000+00:00"


class DiscordServer(ChatServer):
    """The platform and the people on it. Channels below 100 are direct ones, with the person of that number."""

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__()
        self.token = token
        self.history: list[dict[str, Any]] = []  # messages of people
        self.identified: list[dict[str, Any]] = []
        self.resumed: list[int] = []
        self.typed: list[str] = []
        self.commands: list[dict[str, Any]] = []
        self.may_read = True  # the message content intent is switched on
        self.starts = 1000  # identifies that are left today
        self.forgetful = False  # sessions can't be resumed
        self.threads: dict[str, str] = {}  # a thread and its channel
        self._sent: list[dict[str, Any]] = []  # events of the session
        self._tasks: set[asyncio.Task[None]] = set()
        self._nonces: dict[tuple[str, str], dict[str, Any]] = {}

    @property
    def api(self) -> str:
        """Where the API is."""
        return f"{self.url}/api/v10"

    # --- what people do

    def snowflake(self) -> str:
        """An id of now."""
        return str(((int(time.time() * 1000) - _EPOCH) << 22) + self.next_id())

    def say(
        self,
        text: str,
        *,
        sender: str = "1",
        channel: str = "",
        quietly: bool = False,
        **more: Any,
    ) -> dict[str, Any]:
        """Somebody writes, by default to Hermes alone. `quietly`: nobody is told, as when nobody listens."""
        message = self._message(channel or sender, sender, text) | more
        self.history.append(message)
        if not quietly:
            self.tell("MESSAGE_CREATE", message)
        return message

    def press(self, shown: Shown, label: str, *, sender: str = "1") -> None:
        """Somebody presses a button."""
        self._interact(
            shown.chat,
            sender,
            3,
            {"component_type": 2, "custom_id": shown.buttons[label]},
            shown.raw,
        )

    def command(self, name: str, words: str = "", *, sender: str = "1") -> None:
        """Somebody uses a slash command, alone with Hermes."""
        options = [{"name": "words", "type": 3, "value": words}] if words else []
        self._interact(
            sender,
            sender,
            2,
            {"id": "1", "name": name, "type": 1, "options": options},
            {},
        )

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """An event, to whoever listens or resumes."""
        event = {"op": 0, "t": kind, "s": len(self._sent) + 1, "d": data}
        self._sent.append(event)
        for socket in self.sockets:
            task = asyncio.get_running_loop().create_task(_send(socket, event))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _interact(
        self,
        channel: str,
        sender: str,
        kind: int,
        data: dict[str, Any],
        message: dict[str, Any],
    ) -> None:
        number = self.snowflake()
        about = {
            "id": number,
            "application_id": ME,
            "type": kind,
            "token": f"press-{number}",
            "version": 1,
            "data": data,
        }
        place: dict[str, Any] = {
            "channel_id": channel,
            "channel": self._channel(channel),
        }
        place |= {"message": message} if message else {}
        place |= {
            "user": _user(sender),
            "attachment_size_limit": 10_000_000,
            "entitlements": [],
        }
        self.tell(
            "INTERACTION_CREATE", about | place | {"authorizing_integration_owners": {}}
        )

    # --- the gateway

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await _send(socket, {"op": 10, "d": {"heartbeat_interval": 45_000}})
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                break
            await self._hear(socket, msgspec.json.decode(frame.data))
        if socket in self.sockets:
            self.sockets.remove(socket)
        self.changed()
        return socket

    async def _hear(self, socket: web.WebSocketResponse, told: dict[str, Any]) -> None:
        match told["op"]:
            case 1:
                await _send(socket, {"op": 11})
            case 2:
                await self._identify(socket, told["d"])
            case 6 if self.forgetful:
                await _send(socket, {"op": 9, "d": False})
            case 6:
                self.resumed.append(told["d"]["seq"])
                for event in self._sent[told["d"]["seq"] :]:
                    await _send(socket, event)
                self.sockets.append(socket)
                self.tell("RESUMED", {})
            case _:
                pass
        self.changed()

    async def _identify(
        self, socket: web.WebSocketResponse, data: dict[str, Any]
    ) -> None:
        self.identified.append(data)
        if data["token"] != self.token:
            await socket.close(code=4004)
            return
        if data["intents"] & _CONTENT_INTENT and not self.may_read:
            await socket.close(code=4014)
            return
        self._sent.clear()
        self.sockets.append(socket)
        gateway = f"{self.url.replace('http', 'ws')}/gateway"
        ready = {
            "v": 10,
            "user": _user(ME, bot=True),
            "guilds": [{"id": GUILD, "unavailable": True}],
        }
        ready |= {
            "session_id": "session",
            "resume_gateway_url": gateway,
            "application": {"id": ME, "flags": 0},
        }
        self.tell("READY", ready)
        channel = self._channel(CHANNEL)
        threads = [self._channel(one) for one in self.threads]
        guild = {
            "id": GUILD,
            "name": "Guild",
            "owner_id": "1",
            "member_count": 2,
            "large": False,
            "emojis": [],
        }
        guild |= {
            "roles": [
                {
                    "id": GUILD,
                    "name": "@everyone",
                    "permissions": "0",
                    "position": 0,
                    "color": 0,
                }
            ]
        }
        self.tell(
            "GUILD_CREATE",
            guild
            | {
                "channels": [channel],
                "threads": threads,
                "members": [],
                "features": [],
            },
        )

    # --- the routes

    @override
    def routes(self) -> list[web.RouteDef]:
        """Those of Discord that a bot needs."""
        api, message = "/api/v10", "/api/v10/channels/{channel}/messages"
        return [
            web.get("/gateway/", self._gateway),
            web.get("/gateway", self._gateway),
            web.get("/cdn/{name}", self._file),
            web.get(f"{api}/users/@me", self._me),
            web.get(f"{api}/oauth2/applications/@me", self._application),
            web.get(f"{api}/gateway/bot", self._bot),
            web.get(f"{api}/applications/{ME}/commands", self._list_commands),
            web.put(f"{api}/applications/{ME}/commands", self._put_commands),
            web.get(f"{api}/channels/{{channel}}", self._get_channel),
            web.get(message, self._read),
            web.post(message, self._post),
            web.patch(f"{message}/{{message}}", self._change),
            web.post(f"{api}/channels/{{channel}}/typing", self._type),
            web.post(f"{api}/interactions/{{id}}/{{token}}/callback", self._callback),
            web.post(f"{api}/webhooks/{ME}/{{token}}", self._note),
        ]

    def _refusal(self, request: web.Request, method: str) -> web.Response | None:
        if request.headers.get("Authorization") != f"Bot {self.token}":
            return _error(Failure(401, "401: Unauthorized"))
        failure = self.failing(method)
        return _error(failure) if failure is not None else None

    async def _me(self, request: web.Request) -> web.Response:
        return self._refusal(request, "me") or _json(_user(ME, bot=True))

    async def _application(self, _: web.Request) -> web.Response:
        about = {
            "id": ME,
            "name": "Hermes",
            "icon": None,
            "description": "",
            "bot_public": False,
            "flags": 0,
        }
        return _json(
            about
            | {"bot_require_code_grant": False, "owner": _user("1"), "verify_key": "k"}
        )

    async def _bot(self, _: web.Request) -> web.Response:
        limit = {
            "total": 1000,
            "remaining": self.starts,
            "reset_after": 60_000,
            "max_concurrency": 1,
        }
        url = f"{self.url.replace('http', 'ws')}/gateway"
        return _json({"url": url, "shards": 1, "session_start_limit": limit})

    async def _list_commands(self, _: web.Request) -> web.Response:
        return _json(self.commands)

    async def _put_commands(self, request: web.Request) -> web.Response:
        self.commands = await request.json()
        return _json(self.commands)

    async def _get_channel(self, request: web.Request) -> web.Response:
        return _json(self._channel(request.match_info["channel"]))

    async def _read(self, request: web.Request) -> web.Response:
        channel, after = (
            request.match_info["channel"],
            int(request.query.get("after", 0)),
        )
        found = [
            one
            for one in self.history
            if one["channel_id"] == channel and int(one["id"]) > after
        ]
        return _json(found[: int(request.query.get("limit", 50))][::-1])

    async def _post(self, request: web.Request) -> web.Response:
        if (refusal := self._refusal(request, "send")) is not None:
            return refusal
        fields, files = await _fields(request)
        channel = request.match_info["channel"]
        self.calls.append(("send", fields))
        nonce = (channel, str(fields.get("nonce", "")))
        if fields.get("enforce_nonce") and nonce in self._nonces:
            return _json(self._nonces[nonce])
        if len(fields.get("content") or "") > _MOST:
            return _error(Failure(400, "Must be 2000 or fewer in length."))
        if not fields.get("content") and not files:
            return _error(Failure(400, "Cannot send an empty message"))
        made = self._message(channel, ME, fields.get("content") or "", bot=True)
        made["components"] = fields.get("components") or []
        self._nonces[nonce] = made
        name, data = files[0] if files else ("", b"")
        self.messages.append(
            Shown(
                channel,
                made["id"],
                made["content"],
                _labels(made["components"]),
                file=data,
                name=name,
                raw=made,
            )
        )
        failure = self.failing("send after")
        return _error(failure) if failure is not None else _json(made)

    async def _change(self, request: web.Request) -> web.Response:
        if (refusal := self._refusal(request, "edit")) is not None:
            return refusal
        fields, _ = await _fields(request)
        self.calls.append(("edit", fields))
        found = next(
            (one for one in self.messages if one.id == request.match_info["message"]),
            None,
        )
        if found is None:
            return _error(Failure(404, "Unknown Message"))
        if len(fields["content"]) > _MOST:
            return _error(Failure(400, "Must be 2000 or fewer in length."))
        found.text = fields["content"]
        if "components" in fields:
            found.buttons = _labels(fields["components"])
        found.changes += 1
        return _json(
            found.raw
            | {"content": found.text, "components": fields.get("components", [])}
        )

    async def _type(self, request: web.Request) -> web.Response:
        self.typed.append(request.match_info["channel"])
        return web.Response(status=204)

    async def _callback(self, request: web.Request) -> web.Response:
        fields, _ = await _fields(request)
        self.calls.append(("callback", fields))
        about = {
            "id": request.match_info["id"],
            "type": 3,
            "response_message_loading": False,
        }
        return _json({"interaction": about | {"response_message_ephemeral": False}})

    async def _note(self, request: web.Request) -> web.Response:
        fields, _ = await _fields(request)
        if not any(name == "callback" for name, _ in self.calls):
            return _error(Failure(404, "Unknown Webhook"))
        self.notes.append(fields["content"])
        return _json(self._message("1", ME, fields["content"], bot=True))

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return (
            web.Response(body=self.files[name])
            if name in self.files
            else web.Response(status=404)
        )

    # --- its objects

    def _channel(self, number: str) -> dict[str, Any]:
        if number in self.threads:
            times = {
                "archived": False,
                "auto_archive_duration": 60,
                "archive_timestamp": _TIME,
                "locked": False,
            }
            about = {
                "id": number,
                "type": 11,
                "parent_id": self.threads[number],
                "guild_id": GUILD,
                "owner_id": "1",
            }
            return about | {
                "name": "a thread",
                "message_count": 1,
                "member_count": 1,
                "thread_metadata": times,
            }
        if int(number) < 100:
            return {
                "id": number,
                "type": 1,
                "recipients": [_user(number)],
                "last_message_id": None,
            }
        return {
            "id": number,
            "type": 0,
            "guild_id": GUILD,
            "name": "general",
            "position": 0,
            "permission_overwrites": [],
        }

    def _message(
        self, channel: str, sender: str, text: str, *, bot: bool = False
    ) -> dict[str, Any]:
        mentions = [
            _user(one, bot=one == ME) for one in re.findall(r"<@!?(\d+)>", text)
        ]
        times = {
            "timestamp": _TIME,
            "edited_timestamp": None,
            "tts": False,
            "pinned": False,
            "type": 0,
        }
        empty: dict[str, Any] = {
            "attachments": [],
            "embeds": [],
            "mention_roles": [],
            "components": [],
        }
        about = {
            "id": self.snowflake(),
            "channel_id": channel,
            "author": _user(sender, bot=bot),
            "content": text,
        }
        place = {"guild_id": GUILD} if int(channel) >= 100 else {}
        return (
            about
            | times
            | empty
            | place
            | {"mentions": mentions, "mention_everyone": False}
        )


def _json(
    data: Any, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """As Discord names it: without a character set."""
    body = msgspec.json.encode(data)
    return web.Response(
        body=body, status=status, headers=headers, content_type="application/json"
    )


async def _send(socket: web.WebSocketResponse, event: dict[str, Any]) -> None:
    if not socket.closed:
        await socket.send_str(msgspec.json.encode(event).decode())


async def _fields(
    request: web.Request,
) -> tuple[dict[str, Any], list[tuple[str, bytes]]]:
    if request.content_type != "multipart/form-data":
        return await request.json(), []
    form = await request.post()
    files = [
        (one.filename, one.file.read())
        for one in form.values()
        if isinstance(one, web.FileField)
    ]
    return msgspec.json.decode(str(form["payload_json"])), files


def _labels(components: list[dict[str, Any]]) -> dict[str, str]:
    if len(components) > 5 or any(len(row["components"]) > 5 for row in components):
        raise web.HTTPBadRequest(text="too many components")
    return {
        one["label"]: one["custom_id"]
        for row in components
        for one in row["components"]
    }


def _user(number: str, *, bot: bool = False) -> dict[str, Any]:
    name = "hermes" if bot else f"person{number}"
    return {
        "id": number,
        "username": name,
        "discriminator": "0",
        "avatar": None,
        "bot": bot,
        "global_name": None,
    }


def _error(failure: Failure) -> web.Response:
    body: dict[str, Any] = {"message": failure.reason, "code": 0}
    headers = {"Via": "1.1 loopback"}
    if failure.retry_after:
        body |= {"retry_after": failure.retry_after, "global": False}
        headers["Retry-After"] = str(failure.retry_after)
    return _json(body, status=failure.code, headers=headers)

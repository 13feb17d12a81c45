"""A fake Matrix homeserver on loopback that speaks the client-server API: sync with long polling, rooms with state,
invitations, sending with transaction ids, typing, media, and what end-to-end encryption needs (device keys, one-time keys,
messages to devices). It knows nothing of the encryption itself; real clients do that.

`async with MatrixServer() as server:` and set `gateway.matrix.url` to `server.url`. `say` and `react` are what people do;
`messages` is what they see of the bot.
"""

import asyncio
import time
from typing import Any

import msgspec
from aiohttp import web
from tests.fakes.chat_server import ChatServer, Shown, override

TOKEN = "syt_aGVybWVz_loopbacktokenofatest_0"  # noqa: S105 - of nobody
BOT = "@hermes:test"
_API = "/_matrix/client/v3"


def user(number: int) -> str:
    """The id of a person."""
    return f"@person{number}:test"


class MatrixServer(ChatServer):
    """`direct(1)` is a room of the bot and one person."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = {TOKEN: (BOT, "BOTDEVICE")}
        self.rooms: dict[str, dict[str, str]] = {}
        """The membership of people in rooms."""
        self.events: list[dict[str, Any]] = []
        self.aliases: dict[str, str] = {}
        self.device_keys: dict[str, dict[str, Any]] = {}
        self.one_time_keys: dict[tuple[str, str], dict[str, Any]] = {}
        self.to_device: list[tuple[int, str, str, dict[str, Any]]] = []
        self.transactions: dict[str, str] = {}
        self.gone = False  # refuses everything with 502
        self._place = 0

    @override
    def routes(self) -> list[web.RouteDef]:
        room = f"{_API}/rooms/{{room}}"
        return [
            web.get(f"{_API}/account/whoami", self._for_user(self._whoami)),
            web.get(f"{_API}/profile/{{user}}/displayname", self._for_user(self._name)),
            web.get(f"{_API}/sync", self._for_user(self._sync)),
            web.put(f"{room}/send/{{type}}/{{tx}}", self._for_user(self._send)),
            web.put(f"{room}/typing/{{user}}", self._for_user(self._typing)),
            web.get(f"{room}/joined_members", self._for_user(self._members)),
            web.post(f"{_API}/join/{{room}}", self._for_user(self._join)),
            web.post(f"{_API}/createRoom", self._for_user(self._create)),
            web.get(f"{_API}/directory/room/{{alias}}", self._alias),
            web.post("/_matrix/media/v3/upload", self._for_user(self._upload)),
            web.get(
                "/_matrix/client/v1/media/download/{server}/{id}",
                self._for_user(self._download),
            ),
            web.get(
                "/_matrix/client/v1/media/download/{server}/{id}/{name}",
                self._for_user(self._download),
            ),
            web.post(f"{_API}/keys/upload", self._for_user(self._keys_upload)),
            web.post(f"{_API}/keys/query", self._for_user(self._keys_query)),
            web.post(f"{_API}/keys/claim", self._for_user(self._keys_claim)),
            web.put(
                f"{_API}/sendToDevice/{{type}}/{{tx}}", self._for_user(self._to_device)
            ),
        ]

    # --- what people do

    def room(self, *members: str, name: str = "!room", encrypted: bool = False) -> str:
        """A room with these members."""
        # Rooms of version 12 and later have no server in their id.
        server = "" if name == "!direct" else ":test"
        room = f"{name}{self.next_id()}{server}"
        self.rooms[room] = {}
        self.add(room, members[0], "m.room.create", {"room_version": "10"}, state="")
        for member in members:
            self.member(room, member, "join")
        if encrypted:
            content = {"algorithm": "m.megolm.v1.aes-sha2"}
            self.add(room, members[0], "m.room.encryption", content, state="")
        return room

    def direct(self, number: int = 1, *, encrypted: bool = False) -> str:
        """A room of the bot and one person."""
        return self.room(user(number), BOT, name="!direct", encrypted=encrypted)

    def member(self, room: str, who: str, membership: str, by: str = "") -> None:
        """Somebody joins, is invited or leaves."""
        self.rooms[room][who] = membership
        content = {"membership": membership, "displayname": who[1:].partition(":")[0]}
        self.add(room, by or who, "m.room.member", content, state=who)

    def say(self, room: str, text: str, sender: int = 1, **content: Any) -> str:
        """Somebody writes; the id of their event."""
        body = {"msgtype": "m.text", "body": text} | content
        return self.add(room, user(sender), "m.room.message", body)

    def age(self, seconds: float) -> None:
        """Makes everything that was said so far older."""
        for event in self.events:
            event["origin_server_ts"] -= int(seconds * 1000)

    def react(self, room: str, message: str, emoji: str, sender: int = 1) -> None:
        """Somebody puts an emoji on a message."""
        relation = {"rel_type": "m.annotation", "event_id": message, "key": emoji}
        self.add(room, user(sender), "m.reaction", {"m.relates_to": relation})

    def attach(self, data: bytes, kind: str, name: str) -> dict[str, Any]:
        """A file of a person, as a message names it."""
        number = f"media{self.next_id()}"
        self.files[number] = data
        info = {"mimetype": kind, "size": len(data)}
        return {"url": f"mxc://test/{number}", "info": info, "filename": name}

    def add(
        self,
        room: str,
        sender: str,
        kind: str,
        content: dict[str, Any],
        state: str | None = None,
    ) -> str:
        """An event in a room; its id."""
        self._place += 1
        event = {
            "event_id": f"${self._place}event",
            "sender": sender,
            "type": kind,
            "content": content,
            "origin_server_ts": int(time.time() * 1000),
            "room_id": room,
        }
        if state is not None:
            event["state_key"] = state
        self.events.append(event | {"place": self._place})
        self.changed()
        return event["event_id"]

    # --- the API

    def _for_user(self, handler: Any) -> Any:
        async def serve(request: web.Request) -> web.StreamResponse:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if self.gone:
                return web.Response(status=502, text="bad gateway")
            if given not in self.tokens:
                return _error(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.")
            failure = self.failing(handler.__name__.strip("_"))
            if failure is not None and not failure.effect:
                more = (
                    {"retry_after_ms": int(failure.retry_after * 1000)}
                    if failure.retry_after
                    else {}
                )
                return _error(failure.code, failure.reason, "it failed", **more)
            answer = await handler(request, *self.tokens[given])
            if failure is not None:
                return _error(failure.code, failure.reason, "it failed")
            return answer

        return serve

    async def _whoami(self, _: web.Request, who: str, device: str) -> web.Response:
        about = {"user_id": who, "is_guest": False}
        return web.json_response(about | ({"device_id": device} if device else {}))

    async def _name(self, request: web.Request, *_: str) -> web.Response:
        name = request.match_info["user"][1:].partition(":")[0]
        return web.json_response({"displayname": name.title()})

    async def _sync(self, request: web.Request, who: str, device: str) -> web.Response:
        since = int(request.query.get("since", "s0")[1:])
        limit = time.monotonic() + int(request.query.get("timeout", 0)) / 1000
        is_full = request.query.get("full_state") == "true"
        self.calls.append(("sync", dict(request.query)))
        while not self._news(who, device, since) and time.monotonic() < limit:
            self._changed.clear()
            try:
                await asyncio.wait_for(
                    self._changed.wait(), min(0.2, limit - time.monotonic())
                )
            except TimeoutError:
                if self.gone:
                    return web.Response(status=502, text="bad gateway")
        return web.json_response(self._synced(who, device, since, is_full))

    def _news(self, who: str, device: str, since: int) -> bool:
        mine = any(
            place > since and (to, at) == (who, device)
            for place, to, at, _ in self.to_device
        )
        return mine or any(
            one["place"] > since and who in self.rooms[one["room_id"]]
            for one in self.events
        )

    def _synced(
        self, who: str, device: str, since: int, is_full: bool
    ) -> dict[str, Any]:
        join, invite = dict[str, Any](), dict[str, Any]()
        for room, members in self.rooms.items():
            events = [one for one in self.events if one["room_id"] == room]
            news = [one for one in events if one["place"] > since]
            state = [one for one in events if "state_key" in one]
            if members.get(who) == "invite" and news:
                stripped = [_public(one) for one in state]
                invite[room] = {"invite_state": {"events": stripped}}
            if members.get(who) != "join" or not (news or is_full):
                continue
            joined = max(one["place"] for one in state if one.get("state_key") == who)
            shown = [one for one in state if is_full or joined > since]
            in_timeline = events if joined > since else news
            timeline: dict[str, Any] = {
                "events": [_public(one) for one in in_timeline[-100:]],
                "limited": False,
            }
            timeline["prev_batch"] = f"s{since}"
            before = [_public(one) for one in shown if one not in in_timeline]
            join[room] = {
                "timeline": timeline,
                "state": {"events": before},
                "ephemeral": {"events": list[Any]()},
                "account_data": {"events": list[Any]()},
            }
        to_device = [
            event
            for place, to, at, event in self.to_device
            if place > since and (to, at) == (who, device)
        ]
        counts = {"signed_curve25519": len(self.one_time_keys.get((who, device), ()))}
        return {
            "next_batch": f"s{self._place}",
            "rooms": {"join": join, "invite": invite, "leave": dict[str, Any]()},
            "to_device": {"events": to_device},
            "device_one_time_keys_count": counts,
            "device_lists": {"changed": list(self.device_keys), "left": list[str]()},
            "presence": {"events": list[Any]()},
        }

    async def _send(self, request: web.Request, who: str, device: str) -> web.Response:
        room, kind = request.match_info["room"], request.match_info["type"]
        content = msgspec.json.decode(await request.read(), type=dict[str, Any])
        self.calls.append(("send", content))
        if len(msgspec.json.encode(content)) > 60_000:
            return _error(413, "M_TOO_LARGE", "event too large")
        if self.rooms.get(room, {}).get(who) != "join":
            return _error(403, "M_FORBIDDEN", f"User {who} not in room {room}")
        mark = f"{device} {request.match_info['tx']}"
        if mark not in self.transactions:
            self.transactions[mark] = self.add(room, who, kind, content)
            if who == BOT and kind == "m.room.message":
                self._show(room, self.transactions[mark], content)
        return web.json_response({"event_id": self.transactions[mark]})

    def _show(self, room: str, event: str, content: dict[str, Any]) -> None:
        relation = content.get("m.relates_to") or {}
        if relation.get("rel_type") == "m.replace":
            found = next(one for one in self.messages if one.id == relation["event_id"])
            found.text = content["m.new_content"]["body"]
            found.changes += 1
            return
        thread = relation.get("event_id", "")
        shown = Shown(room, event, content["body"], thread=thread, raw=content)
        if "url" in content:
            shown.file = self.files[content["url"].rpartition("/")[2]]
            shown.name = content["body"]
        self.messages.append(shown)

    async def _typing(self, request: web.Request, *_: str) -> web.Response:
        self.calls.append(("typing", await request.json()))
        return web.json_response({})

    async def _members(self, request: web.Request, *_: str) -> web.Response:
        members = self.rooms[request.match_info["room"]]
        found = {
            who: {"display_name": who[1:].partition(":")[0], "avatar_url": None}
            for who, state in members.items()
            if state == "join"
        }
        return web.json_response({"joined": found})

    async def _join(self, request: web.Request, who: str, _: str) -> web.Response:
        room = request.match_info["room"]
        if who not in self.rooms.get(room, {}):
            return _error(403, "M_FORBIDDEN", "You are not invited to this room.")
        if self.rooms[room][who] != "join":
            self.member(room, who, "join")
        return web.json_response({"room_id": room})

    async def _create(self, request: web.Request, who: str, _: str) -> web.Response:
        asked = await request.json()
        room = self.room(who, name="!made")
        for other in asked.get("invite", ()):
            self.member(room, other, "invite", by=who)
        return web.json_response({"room_id": room})

    async def _alias(self, request: web.Request) -> web.Response:
        alias = request.match_info["alias"]
        if alias not in self.aliases:
            return _error(404, "M_NOT_FOUND", f"Room alias {alias} not found")
        return web.json_response({"room_id": self.aliases[alias], "servers": ["test"]})

    async def _upload(self, request: web.Request, *_: str) -> web.Response:
        number = f"media{self.next_id()}"
        self.files[number] = await request.read()
        return web.json_response({"content_uri": f"mxc://test/{number}"})

    async def _download(self, request: web.Request, *_: str) -> web.Response:
        name = request.match_info["id"]
        if name not in self.files:
            return _error(404, "M_NOT_FOUND", "Not found")
        return web.Response(
            body=self.files[name], content_type="application/octet-stream"
        )

    # --- for encryption

    async def _keys_upload(
        self, request: web.Request, who: str, device: str
    ) -> web.Response:
        body = msgspec.json.decode(await request.read(), type=dict[str, Any])
        if keys := body.get("device_keys"):
            self.device_keys.setdefault(who, {})[device] = keys
            self._place += 1
        stored = self.one_time_keys.setdefault((who, device), {})
        stored |= body.get("one_time_keys") or {}
        self.changed()
        return web.json_response(
            {"one_time_key_counts": {"signed_curve25519": len(stored)}}
        )

    async def _keys_query(self, request: web.Request, *_: str) -> web.Response:
        asked = (await request.json())["device_keys"]
        found = {who: self.device_keys.get(who, dict[str, Any]()) for who in asked}
        return web.json_response({"device_keys": found, "failures": dict[str, Any]()})

    async def _keys_claim(self, request: web.Request, *_: str) -> web.Response:
        asked = (await request.json())["one_time_keys"]
        found: dict[str, Any] = {}
        for who, devices in asked.items():
            for device in devices:
                stored = self.one_time_keys.get((who, device))
                if stored:
                    name = next(iter(stored))
                    found.setdefault(who, {})[device] = {name: stored.pop(name)}
        return web.json_response({"one_time_keys": found, "failures": dict[str, Any]()})

    async def _to_device(self, request: web.Request, who: str, _: str) -> web.Response:
        body = msgspec.json.decode(await request.read(), type=dict[str, Any])
        for to, devices in body["messages"].items():
            for device, content in devices.items():
                self._place += 1
                event = {
                    "type": request.match_info["type"],
                    "sender": who,
                    "content": content,
                }
                self.to_device.append((self._place, to, device, event))
        self.changed()
        return web.json_response({})


def _public(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "place"}


def _error(status: int, code: str, why: str, **more: Any) -> web.Response:
    return web.json_response({"errcode": code, "error": why, **more}, status=status)

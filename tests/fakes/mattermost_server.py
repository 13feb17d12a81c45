"""A fake Mattermost on loopback that speaks its real API: REST v4 with posts, threads, edits, files, channels and reactions,
and the WebSocket with its authentication challenge. Events go only to sockets that are open, as on the real server.

`async with MattermostServer() as server:` and set `gateway.mattermost.url` to `server.url`. `say` is what people do;
`messages` is what they see.
"""

import json
import time
from typing import Any

import msgspec
from aiohttp import WSMsgType, web
from tests.fakes.chat_server import ChatServer, Shown, override

TOKEN = "mmtokenofatest000000000000"  # noqa: S105 - of nobody
ME = "botuser00000000000000000me"
CHANNEL = "town0square000000000000000"
_MAX_POST = 16383


class MattermostServer(ChatServer):
    """`D1` is the direct channel of the person `U1`, and so on."""

    def __init__(self) -> None:
        super().__init__()
        self.posts: dict[str, dict[str, Any]] = {}
        self.now_ms = 0
        self.pending: dict[str, str] = {}
        self.infos: dict[str, dict[str, Any]] = {}

    @override
    def routes(self) -> list[web.RouteDef]:
        api = "/api/v4"
        return [
            web.get(f"{api}/websocket", self._socket),
            web.get(f"{api}/users/me", self._ok(self._user_me)),
            web.get(f"{api}/users/me/channels", self._ok(self._channels)),
            web.post(f"{api}/users/me/typing", self._ok(self._typing)),
            web.get(f"{api}/users/username/{{name}}", self._ok(self._user_by_name)),
            web.get(f"{api}/users/{{id}}", self._ok(self._user)),
            web.post(f"{api}/channels/direct", self._ok(self._direct)),
            web.get(f"{api}/channels/{{id}}/posts", self._ok(self._posts_since)),
            web.post(f"{api}/posts", self._ok(self._post)),
            web.put(f"{api}/posts/{{id}}/patch", self._ok(self._patch)),
            web.post(f"{api}/files", self._ok(self._upload)),
            web.get(f"{api}/files/{{id}}", self._ok(self._file)),
        ]

    # --- what people do

    def say(self, text: str, sender: str = "U1", channel: str = "", **more: Any) -> str:
        """Somebody writes; the id of their post."""
        channel = channel or f"D{sender[1:]}"
        post = self._new_post({"channel_id": channel, "message": text, **more}, sender)
        self._tell(
            "posted",
            {
                "channel_type": _letter(channel),
                "channel_name": channel,
                "sender_name": f"@person{sender[1:]}",
                "mentions": "[]",
                "post": json.dumps(post),
            },
        )
        return post["id"]

    def again(self, post: str) -> None:
        """Announces a post once more."""
        letter = _letter(self.posts[post]["channel_id"])
        data = {"channel_type": letter, "post": json.dumps(self.posts[post])}
        self._tell("posted", data)

    def react(self, post: str, emoji: str, sender: str = "U1") -> None:
        """Somebody puts an emoji on a post."""
        self.now_ms += 1
        reaction = {
            "user_id": sender,
            "post_id": post,
            "emoji_name": emoji,
            "create_at": self.now_ms,
        }
        self._tell("reaction_added", {"reaction": json.dumps(reaction)})

    def attach(self, name: str, data: bytes, kind: str) -> dict[str, Any]:
        """Uploads a file of a person; pass what it returns to `say` as `metadata`."""
        info = self._store(name, data, kind)
        return {"files": [info]}

    # --- the API

    def _ok(self, handler: Any) -> Any:
        async def serve(request: web.Request) -> web.StreamResponse:
            if request.headers.get("authorization") != f"Bearer {TOKEN}":
                return _error(
                    401,
                    "api.context.session_expired.app_error",
                    "Invalid or expired session, please login again.",
                )
            failure = self.failing(handler.__name__.strip("_"))
            if failure is not None and not failure.effect:
                limit = {
                    "X-Ratelimit-Limit": "10",
                    "X-Ratelimit-Reset": str(int(failure.retry_after)),
                }
                return _error(
                    failure.code,
                    "app_error",
                    failure.reason,
                    limit if failure.code == 429 else {},
                )
            answer = await handler(request)
            if failure is not None:
                return _error(failure.code, "app_error", failure.reason)
            return answer

        return serve

    async def _user_me(self, _: web.Request) -> web.Response:
        return web.json_response({"id": ME, "username": "hermes", "is_bot": True})

    async def _user(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        return web.json_response({"id": name, "username": f"person{name[1:]}"})

    async def _user_by_name(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if not name.startswith("person"):
            return _error(
                404,
                "app.user.missing_account.const",
                "Unable to find an existing account.",
            )
        return web.json_response({"id": f"U{name[6:]}", "username": name})

    async def _direct(self, request: web.Request) -> web.Response:
        pair = await request.json()
        assert ME in pair
        other = next(one for one in pair if one != ME)
        return web.json_response({"id": f"D{other[1:]}", "type": "D"}, status=201)

    async def _channels(self, _: web.Request) -> web.Response:
        latest: dict[str, int] = {}
        for post in self.posts.values():
            channel = post["channel_id"]
            latest[channel] = max(latest.get(channel, 0), post["create_at"])
        found = [
            {"id": one, "type": _letter(one), "last_post_at": at}
            for one, at in latest.items()
        ]
        return web.json_response(found)

    async def _typing(self, request: web.Request) -> web.Response:
        self.calls.append(("typing", await request.json()))
        return web.json_response({"status": "OK"})

    async def _posts_since(self, request: web.Request) -> web.Response:
        since, channel = int(request.query["since"]), request.match_info["id"]
        found = {
            one["id"]: one
            for one in self.posts.values()
            if one["channel_id"] == channel and one["update_at"] >= since
        }
        return web.json_response({"order": list(reversed(found)), "posts": found})

    async def _post(self, request: web.Request) -> web.Response:
        fields = msgspec.json.decode(await request.read(), type=dict[str, Any])
        self.calls.append(("post", fields))
        files = [self.infos[one] for one in fields.get("file_ids") or ()]
        if len(fields["message"]) > _MAX_POST:
            return _error(
                400,
                "model.post.is_valid.message_length.app_error",
                "Message property is longer than the maximum permitted length.",
            )
        if not fields["message"].strip() and not files:
            return _error(400, "api.post.create_post.app_error", "Invalid message.")
        root = fields.get("root_id")
        if root and (root not in self.posts or self.posts[root].get("root_id")):
            return _error(
                400,
                "api.post.create_post.root_id.app_error",
                "Invalid RootId parameter.",
            )
        known = self.pending.get(fields.get("pending_post_id", ""))
        if known:
            return web.json_response(self.posts[known], status=201)
        post = self._new_post(fields | {"metadata": {"files": files}}, ME)
        self.pending[fields.get("pending_post_id", "")] = post["id"]
        shown = Shown(
            post["channel_id"], post["id"], post["message"], thread=root or ""
        )
        if files:
            shown.file, shown.name = self.files[files[0]["id"]], files[0]["name"]
        self.messages.append(shown)
        self._tell(
            "posted",
            {"channel_type": _letter(post["channel_id"]), "post": json.dumps(post)},
        )
        return web.json_response(post, status=201)

    async def _patch(self, request: web.Request) -> web.Response:
        found = next(
            (one for one in self.messages if one.id == request.match_info["id"]), None
        )
        if found is None:
            return _error(404, "app.post.get.app_error", "Unable to get the post.")
        found.text = (await request.json())["message"]
        found.changes += 1
        return web.json_response(self.posts[found.id])

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["channel_id"]
        file = form["files"]
        assert isinstance(file, web.FileField)
        info = self._store(file.filename, file.file.read(), file.content_type)
        return web.json_response({"file_infos": [info], "client_ids": []}, status=201)

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if name not in self.files:
            return _error(404, "app.file_info.get.app_error", "Unable to get the file.")
        return web.Response(body=self.files[name])

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for line in socket:
            if line.type is not WSMsgType.TEXT:
                break
            asked = json.loads(line.data)
            if asked["action"] == "authentication_challenge":
                if asked["data"]["token"] != TOKEN:
                    await socket.send_json(
                        {
                            "status": "FAIL",
                            "seq_reply": asked["seq"],
                            "error": {"id": "x"},
                        }
                    )
                    break
                await socket.send_json(
                    {"event": "hello", "data": {"server_version": "11.0"}, "seq": 0}
                )
                await socket.send_json({"status": "OK", "seq_reply": asked["seq"]})
                self.sockets.append(socket)
                self.changed()
        if socket in self.sockets:
            self.sockets.remove(socket)
        return socket

    def _new_post(self, fields: dict[str, Any], user: str) -> dict[str, Any]:
        self.now_ms = max(self.now_ms + 1, int(time.time() * 1000))
        post: dict[str, Any] = {
            "id": f"post{self.next_id():022d}",
            "create_at": self.now_ms,
            "update_at": self.now_ms,
            "delete_at": 0,
            "user_id": user,
            "root_id": "",
            "type": "",
            "props": {"from_bot": "true"} if user == ME else {},
            "metadata": None,
        }
        post |= {key: value for key, value in fields.items() if value is not None}
        self.posts[post["id"]] = post
        return post

    def _store(self, name: str, data: bytes, kind: str) -> dict[str, Any]:
        number = f"file{self.next_id():022d}"
        self.files[number] = data
        self.infos[number] = {
            "id": number,
            "name": name,
            "mime_type": kind,
            "size": len(data),
        }
        return self.infos[number]

    def _tell(self, event: str, data: dict[str, Any]) -> None:
        for socket in list(self.sockets):
            self.spawn(
                socket.send_json(
                    {"event": event, "data": data, "broadcast": {}, "seq": 1}
                )
            )


def _letter(channel: str) -> str:
    return "D" if channel.startswith("D") else "O"


def _error(
    status: int, name: str, why: str, headers: dict[str, str] | None = None
) -> web.Response:
    body = {
        "id": name,
        "message": why,
        "detailed_error": "",
        "request_id": "r",
        "status_code": status,
    }
    return web.json_response(body, status=status, headers=headers)

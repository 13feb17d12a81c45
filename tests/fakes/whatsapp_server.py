"""A fake of Meta's Cloud API for WhatsApp on loopback: the Graph API that sends, and the signed webhook calls that tell of
messages, presses and what became of a message. A call that is not answered with 200 is kept, as Meta repeats it for days.

`async with WhatsAppServer() as server:`, set `gateway.whatsapp.api_url` to `server.api` and `server.webhook` to the address of
the gateway. `say` and `press` are what people do; `messages` is what they see.
"""

import hashlib
import hmac
from typing import Any

import aiohttp
import msgspec
from aiohttp import web
from tests.fakes.chat_server import ChatServer, Failure, Shown, override

TOKEN = "EAAloopbacktokenofatest00000000"  # noqa: S105 - of nobody
APP_SECRET = "0123456789abcdef0123456789abcdef"  # noqa: S105 - of nobody
VERIFY_TOKEN = "loopback-verify-token"  # noqa: S105 - of nobody
NUMBER = "106540352242922"
_MEDIA = {
    "image": {"image/jpeg", "image/png"},
    "audio": {"audio/ogg", "audio/mpeg", "audio/aac", "audio/mp4"},
    "video": {"video/mp4"},
    "document": {"text/plain", "application/pdf"},
}


class WhatsAppServer(ChatServer):
    """`silent` are people who wrote more than 24 hours ago."""

    def __init__(self) -> None:
        super().__init__()
        self.webhook = ""
        self.silent: set[str] = set()
        self.kinds: dict[str, str] = {}
        self.unacknowledged: list[dict[str, Any]] = []

    @property
    def api(self) -> str:
        return f"{self.url}/v26.0"

    @override
    def routes(self) -> list[web.RouteDef]:
        base = f"/v26.0/{NUMBER}"
        return [
            web.get(base, self._about),
            web.post(f"{base}/messages", self._message),
            web.post(f"{base}/media", self._upload),
            web.get("/v26.0/{media}", self._media),
            web.get("/files/{media}", self._file),
        ]

    # --- what people do

    async def say(self, text: str = "", sender: str = "491701", **more: Any) -> str:
        """Somebody writes; the id of their message."""
        message: dict[str, Any] = {"from": sender, "id": f"wamid.IN{self.next_id()}"}
        if text:
            message |= {"type": "text", "text": {"body": text}}
        message |= more
        await self.tell(
            {
                "contacts": [{"profile": {"name": f"Person {sender}"}}],
                "messages": [message | {"timestamp": "1700000000"}],
            }
        )
        return message["id"]

    async def press(self, shown: Shown, label: str, sender: str = "491701") -> None:
        """Somebody presses a button or chooses from a list."""
        kind = shown.raw["interactive"]["type"]
        reply = {"id": shown.buttons[label], "title": label}
        await self.say(
            "",
            sender,
            type="interactive",
            context={"from": NUMBER, "id": shown.id},
            interactive={"type": f"{kind}_reply", f"{kind}_reply": reply},
        )

    def attach(self, data: bytes, kind: str, **more: Any) -> dict[str, Any]:
        """A file of a person, as a message names it."""
        name = str(self.next_id())
        self.files[name], self.kinds[name] = data, kind
        return {"id": name, "mime_type": kind, "sha256": "x", **more}

    async def tell(self, value: dict[str, Any]) -> int:
        """A call of the webhook, signed; the status of its answer."""
        about = {"display_phone_number": "15550783881", "phone_number_id": NUMBER}
        value = {"messaging_product": "whatsapp", "metadata": about, **value}
        change = {"value": value, "field": "messages"}
        entry = [{"id": "102290129340398", "changes": [change]}]
        update = {"object": "whatsapp_business_account", "entry": entry}
        try:
            status = await self.post(update)
        except aiohttp.ClientError:
            status = 0
        if status != 200:
            self.unacknowledged.append(update)
        return status

    async def repeat(self) -> None:
        """Calls the webhook again with what was not acknowledged."""
        waiting = tuple(self.unacknowledged)
        self.unacknowledged.clear()
        for update in waiting:
            assert await self.post(update) == 200

    async def post(self, update: dict[str, Any], secret: str = APP_SECRET) -> int:
        body = msgspec.json.encode(update)
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"x-hub-signature-256": f"sha256={digest}"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.webhook, data=body, headers=headers) as answer,
        ):
            return answer.status

    # --- the Graph API

    def _refusal(self, request: web.Request, method: str) -> web.Response | None:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return _error(
                Failure(190, "Error validating access token: Session has expired"), 401
            )
        failure = self.failing(method)
        return _error(failure, 400) if failure is not None else None

    async def _about(self, request: web.Request) -> web.Response:
        if refusal := self._refusal(request, "about"):
            return refusal
        about = {"verified_name": "Hermes", "display_phone_number": "+1 555-078-3881"}
        return web.json_response(about | {"id": NUMBER})

    async def _message(self, request: web.Request) -> web.Response:
        fields = msgspec.json.decode(await request.read(), type=dict[str, Any])
        self.calls.append(("messages", fields))
        method = "typing" if "typing_indicator" in fields else "messages"
        if refusal := self._refusal(request, method):
            return refusal
        assert fields["messaging_product"] == "whatsapp"
        if fields.get("status") == "read":
            return web.json_response({"success": True})
        try:
            shown = self._shown(fields)
        except ValueError as error:
            return _error(Failure(131009, str(error)), 400)
        status: dict[str, Any] = {
            "id": shown.id,
            "status": "sent",
            "recipient_id": shown.chat,
        }
        if shown.chat in self.silent:
            why = "Message failed to send because more than 24 hours have passed since the customer last replied."
            error = {
                "code": 131047,
                "title": "Re-engagement message",
                "error_data": {"details": why},
            }
            status |= {"status": "failed", "errors": [error]}
        else:
            self.messages.append(shown)
        self.spawn(self.tell({"statuses": [status]}))
        answer = {"messages": [{"id": shown.id}], "contacts": [{"wa_id": shown.chat}]}
        return web.json_response({"messaging_product": "whatsapp", **answer})

    def _shown(self, fields: dict[str, Any]) -> Shown:
        chat = str(fields.get("to") or fields["recipient"])
        shown = Shown(chat, f"wamid.OUT{self.next_id()}", "", raw=fields)
        kind = fields["type"]
        content = fields[kind]
        if kind == "text":
            shown.text = content["body"]
            _require(0 < len(shown.text) <= 4096, "text.body length")
        elif kind == "interactive":
            shown.text = content["body"]["text"]
            _require(0 < len(shown.text) <= 1024, "body.text length")
            shown.buttons = _buttons(content)
        else:
            data, found = self.files[content["id"]], self.kinds[content["id"]]
            _require(kind == "document" or found in _MEDIA[kind], f"{found} as {kind}")
            shown.file, shown.name = data, content.get("filename", "")
        return shown

    async def _upload(self, request: web.Request) -> web.Response:
        if refusal := self._refusal(request, "media"):
            return refusal
        form = await request.post()
        assert form["messaging_product"] == "whatsapp"
        file = form["file"]
        assert isinstance(file, web.FileField)
        kind = str(form["type"])
        if not any(kind in one for one in _MEDIA.values()):
            why = (
                f"Param file must be a file with one of the following types; got {kind}"
            )
            return _error(Failure(100, why), 400)
        name = str(self.next_id())
        self.files[name], self.kinds[name] = file.file.read(), kind
        return web.json_response({"id": name})

    async def _media(self, request: web.Request) -> web.Response:
        if refusal := self._refusal(request, "get media"):
            return refusal
        name = request.match_info["media"]
        if name not in self.files:
            return _error(Failure(100, "Unsupported get request."), 400)
        about = {
            "url": f"{self.url}/files/{name}",
            "mime_type": self.kinds[name],
            "file_size": len(self.files[name]),
        }
        return web.json_response(about | {"id": name, "messaging_product": "whatsapp"})

    async def _file(self, request: web.Request) -> web.Response:
        if refusal := self._refusal(request, "file"):
            return refusal
        return web.Response(body=self.files[request.match_info["media"]])


def _buttons(content: dict[str, Any]) -> dict[str, str]:
    """The labels and ids of a question, which obey the limits of the API."""
    action = content["action"]
    if content["type"] == "button":
        replies = [one["reply"] for one in action["buttons"]]
        _require(1 <= len(replies) <= 3, "number of buttons")
        _require(all(1 <= len(one["title"]) <= 20 for one in replies), "button title")
        found = {one["title"]: one["id"] for one in replies}
        _require(len(found) == len(replies), "titles are unique")
        return found
    _require(1 <= len(action["button"]) <= 20, "button length")
    rows = [row for section in action["sections"] for row in section["rows"]]
    _require(1 <= len(rows) <= 10, "number of rows")
    for row in rows:
        _require(1 <= len(row["title"]) <= 24, "row title")
        _require(1 <= len(row.get("description", "x")) <= 72, "row description")
    return {row.get("description", row["title"]): row["id"] for row in rows}


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"Parameter value is not valid: {what}")


def _error(failure: Failure, status: int) -> web.Response:
    error = {
        "message": f"(#{failure.code}) {failure.reason}",
        "type": "OAuthException",
        "code": failure.code,
        "error_data": {"messaging_product": "whatsapp", "details": failure.reason},
        "fbtrace_id": "x",
    }
    headers = (
        {"retry-after": str(int(failure.retry_after))} if failure.retry_after else {}
    )
    return web.json_response({"error": error}, status=status, headers=headers)

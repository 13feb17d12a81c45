"""Telegram, by its Bot API: long polling or a webhook, buttons, changes of messages, files and voice notes."""

import asyncio
import hashlib
import hmac
import re
from typing import Any

from hermes.settings.gateway import TelegramSettings
from hermes.settings.load import environment
from hermes.surfaces.gateway.adapter import (
    AdapterDeps,
    Attachment,
    Chat,
    ChatAdapter,
    DeliveryRefused,
    FileKind,
    Inbound,
    Inlet,
    Outbound,
    OutgoingFile,
    Person,
    PlatformLimits,
    override,
    utf16,
)
from hermes.surfaces.gateway.adapters.telegram.bot_api import BotApi
from hermes.surfaces.gateway.adapters.telegram.html import telegram_html
from hermes.surfaces.gateway.commands import COMMANDS
from hermes.surfaces.gateway.listener import HttpListener
from hermes.surfaces.web.request_json import InvalidRequest, read_json

_POLL = 50  # seconds that Telegram holds a request for messages
_SLACK = 15.0  # seconds more, after which a silent connection is cut
_KINDS = ("message", "callback_query")
_UPLOADS: dict[FileKind, tuple[str, str]] = {
    "image": ("sendPhoto", "photo"),
    "video": ("sendVideo", "video"),
    "audio": ("sendAudio", "audio"),
    "voice": ("sendVoice", "voice"),
    "file": ("sendDocument", "document"),
}
_PHOTO_BYTES = 10_000_000  # a larger picture goes as a file
_MAX_UPDATE_BYTES = 4_000_000
_PATH = "/telegram"


def build(deps: AdapterDeps) -> "TelegramAdapter":
    """From the settings."""
    token = deps.secrets.require("TELEGRAM_BOT_TOKEN")
    return TelegramAdapter(token, deps.app.settings.gateway.telegram, deps.listener)


class TelegramAdapter(ChatAdapter):
    """One bot."""

    name = "telegram"
    limits = PlatformLimits(
        text=4096, size=utf16, edit_every=1.2, file_bytes=20_000_000, typing=5.0
    )

    def __init__(
        self, token: str, settings: TelegramSettings, listener: HttpListener
    ) -> None:
        self._token = token
        self._settings = settings
        self._listener = listener
        self._api = BotApi(settings.api_url, token, settings.per_second, environment())
        self._me: dict[str, Any] = {}

    @override
    async def run(self, inlet: Inlet) -> None:
        """Receives until it is cancelled."""
        self._me = await self._api.call("getMe")
        commands = [
            {"command": one.name, "description": one.summary} for one in COMMANDS
        ]
        await self._api.call("setMyCommands", {"commands": commands})
        if self._settings.webhook_url:
            await self._serve(inlet)
            return
        await self._api.call("deleteWebhook")
        await inlet.connected(f"@{self._me.get('username', '?')}")
        offset = 0
        while True:
            asked = {"offset": offset, "timeout": _POLL, "allowed_updates": _KINDS}
            updates = await self._api.poll("getUpdates", asked, _POLL + _SLACK)
            messages = [
                found
                for update in updates
                if (found := self._inbound(update)) is not None
            ]
            await asyncio.gather(*(inlet.receive(one) for one in messages))
            offset = max(
                [offset, *(update["update_id"] + 1 for update in updates)]
            )  # only now it is acknowledged

    @override
    async def close(self) -> None:
        await self._api.close()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        sent = ""
        if out.text.strip():
            result = await self._write("sendMessage", _place(chat) | _reply(out), out)
            sent = str(result["message_id"])
        for file in out.files:
            sent = str((await self._upload(chat, file))["message_id"])
        return sent

    @override
    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        place = {"chat_id": chat.id, "message_id": int(message)}
        try:
            await self._write("editMessageText", place, out)
        except DeliveryRefused as error:
            if "not modified" not in error.message:
                raise

    @override
    async def typing(self, chat: Chat) -> None:
        await self._api.call("sendChatAction", _place(chat) | {"action": "typing"})

    @override
    async def told(self, inbound: Inbound, note: str) -> None:
        try:
            await self._api.call(
                "answerCallbackQuery",
                {"callback_query_id": inbound.ref, "text": note[:200]},
            )
        except DeliveryRefused:
            return  # pressed too long ago: nobody waits for the note any more

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        if attachment.size > most:
            raise DeliveryRefused(
                f"It has {attachment.size:,} bytes; {most:,} are possible."
            )
        found = await self._api.call("getFile", {"file_id": attachment.ref})
        return await self._api.download(found["file_path"], most)

    async def _serve(self, inlet: Inlet) -> None:
        """Has Telegram call us. It proves itself with a secret that only it was told."""
        from starlette.responses import Response

        from hermes.surfaces.web.endpoint import Endpoint, EndpointCall, read_body
        from hermes.surfaces.web.errors import Refusal

        secret = hashlib.sha256(f"hermes-webhook/{self._token}".encode()).hexdigest()

        async def receive(call: EndpointCall) -> Response:
            given = call.request.headers.get("x-telegram-bot-api-secret-token", "")
            if not hmac.compare_digest(given.encode(), secret.encode()):
                raise Refusal(403, "")
            body = await read_body(call.request, _MAX_UPDATE_BYTES)
            if body is not None and (found := self._inbound(_update(body))) is not None:
                await inlet.receive(found)
            return Response(media_type="text/plain")

        await self._listener.add(Endpoint("POST", _PATH, "open", receive, answer=None))
        try:
            url = self._settings.webhook_url
            await self._api.call(
                "setWebhook",
                {"url": url, "secret_token": secret, "allowed_updates": _KINDS},
            )
            await inlet.connected(f"@{self._me.get('username', '?')}")
            await asyncio.Event().wait()
        finally:
            self._listener.remove(_PATH)

    def _inbound(self, update: dict[str, Any]) -> Inbound | None:
        name = f"{self._me.get('id', '')}:{update.get('update_id')}"
        if pressed := update.get("callback_query"):
            message = pressed.get("message") or {}
            if "chat" not in message:
                return None
            return Inbound(
                id=name,
                chat=_chat(message),
                person=_person(pressed.get("from") or {}),
                pressed=str(pressed.get("data", "")),
                message=str(message.get("message_id", "")),
                ref=str(pressed.get("id", "")),
            )
        message = update.get("message")
        if not message or "chat" not in message:
            return None
        text, addressed = self._words(message)
        return Inbound(
            id=name,
            chat=_chat(message),
            person=_person(
                message.get("from") or {}, anonymous="sender_chat" in message
            ),
            text=text,
            attachments=_attachments(message),
            addressed=addressed,
            message=str(message["message_id"]),
        )

    def _words(self, message: dict[str, Any]) -> tuple[str, bool]:
        """The text without our name, and whether it is meant for us."""
        text = str(message.get("text") or message.get("caption") or _told(message))
        if message["chat"].get("type") == "private":
            return text, True
        mine = f"@{self._me.get('username', '')}"
        mentioned = re.compile(rf"{re.escape(mine)}\b", re.IGNORECASE)
        replied = (message.get("reply_to_message") or {}).get("from") or {}
        addressed = bool(mentioned.search(text)) or replied.get("id") == self._me.get(
            "id"
        )
        return mentioned.sub("", text).strip(), addressed

    async def _write(
        self, method: str, place: dict[str, Any], out: Outbound
    ) -> dict[str, Any]:
        """Sends or changes text; as plain text when Telegram can't read our tags."""
        ending = " ▌" if out.unfinished else ""
        body = place | _keyboard(out) | {"link_preview_options": {"is_disabled": True}}
        try:
            return await self._api.call(
                method,
                body | {"text": telegram_html(out.text) + ending, "parse_mode": "HTML"},
            )
        except DeliveryRefused as error:
            if (
                "parse entities" not in error.message
                and "message is too long" not in error.message
            ):
                raise
        return await self._api.call(method, body | {"text": out.text + ending})

    async def _upload(self, chat: Chat, file: OutgoingFile) -> dict[str, Any]:
        size = (await asyncio.to_thread(file.path.stat)).st_size
        kind: FileKind = (
            "file" if file.kind == "image" and size > _PHOTO_BYTES else file.kind
        )
        method, field = _UPLOADS[kind]
        place = {name: str(value) for name, value in _place(chat).items()}
        return await self._api.upload(method, place, field, file)


def _update(body: bytes) -> dict[str, Any]:
    try:
        return read_json(body, dict[str, Any])
    except InvalidRequest:
        return {}


def _chat(message: dict[str, Any]) -> Chat:
    chat = message["chat"]
    thread = (
        str(message.get("message_thread_id", ""))
        if message.get("is_topic_message")
        else ""
    )
    kind = (
        "direct"
        if chat.get("type") == "private"
        else "channel"
        if chat.get("type") == "channel"
        else "group"
    )
    return Chat("telegram", str(chat["id"]), kind, thread, str(chat.get("title", "")))


def _person(sender: dict[str, Any], *, anonymous: bool = False) -> Person:
    """A group's anonymous administrator is nobody in particular."""
    name = " ".join(
        filter(None, (sender.get("first_name"), sender.get("last_name")))
    ) or sender.get("username", "")
    return Person(
        str(sender.get("id", "")),
        str(name),
        verified=bool(sender.get("id")) and not anonymous,
    )


def _attachments(message: dict[str, Any]) -> tuple[Attachment, ...]:
    found: list[Attachment] = []
    if photos := message.get("photo"):
        largest = max(
            photos, key=lambda one: one.get("width", 0) * one.get("height", 0)
        )
        found.append(
            Attachment(
                "image",
                largest["file_id"],
                "",
                "image/jpeg",
                int(largest.get("file_size") or 0),
            )
        )
    kinds: tuple[FileKind, ...] = ("voice", "audio", "video")
    named: list[tuple[str, FileKind]] = [
        *((kind, kind) for kind in kinds),
        ("video_note", "video"),
        ("document", "file"),
    ]
    for field, kind in named:
        if one := message.get(field):
            media = str(one.get("mime_type", ""))
            size = int(one.get("file_size") or 0)
            seen: FileKind = (
                "image" if kind == "file" and media.startswith("image/") else kind
            )
            found.append(
                Attachment(
                    seen, one["file_id"], str(one.get("file_name", "")), media, size
                )
            )
    return tuple(found)


def _told(message: dict[str, Any]) -> str:
    """What is neither words nor a file, in words: whoever sends it expects an answer."""
    match message:
        case {"sticker": {"emoji": str(emoji)}} | {"dice": {"emoji": str(emoji)}}:
            return emoji
        case {
            "location": {
                "latitude": float() | int() as north,
                "longitude": float() | int() as east,
            }
        }:
            return f"[place: {north}, {east}]"
        case {"contact": {"first_name": str(name), "phone_number": str(number)}}:
            return f"[contact: {name}, {number}]"
        case {"poll": {"question": str(question)}}:
            return f"[poll: {question}]"
        case _:
            return ""


def _place(chat: Chat) -> dict[str, Any]:
    return {"chat_id": chat.id} | (
        {"message_thread_id": int(chat.thread)} if chat.thread else {}
    )


def _reply(out: Outbound) -> dict[str, Any]:
    if not out.reply_to.isdigit():
        return {}
    return {
        "reply_parameters": {
            "message_id": int(out.reply_to),
            "allow_sending_without_reply": True,
        }
    }


def _keyboard(out: Outbound) -> dict[str, Any]:
    if not out.buttons:
        return {}
    rows = [
        [{"text": button.label, "callback_data": button.data} for button in row]
        for row in out.buttons
    ]
    return {"reply_markup": {"inline_keyboard": rows}}

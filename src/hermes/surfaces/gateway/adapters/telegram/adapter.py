"""Telegram, through its Bot API: long polling or a webhook, buttons, edits, files and voice notes."""

import asyncio
import hashlib
import hmac
import re
from typing import Any

from hermes.primitives.untyped import object_in
from hermes.settings.gateway import TelegramSettings
from hermes.settings.load import environment
from hermes.surfaces.gateway.adapter import (
    STREAMING_CURSOR,
    AdapterDeps,
    Attachment,
    Chat,
    ChatAdapter,
    ChatKind,
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
from hermes.surfaces.gateway.adapters.text_formats import telegram_html
from hermes.surfaces.gateway.commands import chat_app_commands
from hermes.surfaces.gateway.listener import HttpListener
from hermes.surfaces.web.request_json import InvalidRequest, read_json

_LONG_POLL_S = 50
"""How long Telegram holds a request for messages."""
_POLL_TIMEOUT_S = _LONG_POLL_S + 15.0
_UPDATE_KINDS = ("message", "callback_query")
_UPLOADS: dict[FileKind, tuple[str, str]] = {
    "image": ("sendPhoto", "photo"),
    "video": ("sendVideo", "video"),
    "audio": ("sendAudio", "audio"),
    "voice": ("sendVoice", "voice"),
    "file": ("sendDocument", "document"),
}
_ATTACHMENT_FIELDS: tuple[tuple[str, FileKind], ...] = (
    ("voice", "voice"),
    ("audio", "audio"),
    ("video", "video"),
    ("video_note", "video"),
    ("document", "file"),
)
_CHAT_KINDS: dict[str, ChatKind] = {"private": "direct", "channel": "channel"}
_MAX_PHOTO_BYTES = 10_000_000
"""A larger picture is sent as a file."""
_MAX_UPDATE_BYTES = 4_000_000
_MAX_NOTE_CHARACTERS = 200
_PATH = "/telegram"


def build(deps: AdapterDeps) -> "TelegramAdapter":
    """Builds the adapter from the settings."""
    token = deps.secrets.require("TELEGRAM_BOT_TOKEN")
    return TelegramAdapter(token, deps.app.settings.gateway.telegram, deps.listener)


class TelegramAdapter(ChatAdapter):
    """One bot."""

    name = "telegram"
    limits = PlatformLimits(
        text=4096,
        size=utf16,
        edit_every=1.2,
        file_bytes=20_000_000,
        typing=5.0,
        voice="ogg",
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
        self._me = await self._api.call("getMe")
        commands = [
            {"command": one.slash.replace("-", "_"), "description": one.summary}
            for one in chat_app_commands()
        ]
        await self._api.call("setMyCommands", {"commands": commands})
        if self._settings.webhook_url:
            await self._serve_webhook(inlet)
        else:
            await self._poll(inlet)

    @override
    async def close(self) -> None:
        await self._api.close()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        sent = ""
        if out.text.strip():
            target = _target(chat) | _reply_parameters(out)
            result = await self._write("sendMessage", target, out)
            sent = str(result["message_id"])
        for file in out.files:
            sent = str((await self._upload(chat, file))["message_id"])
        return sent

    @override
    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        target = {"chat_id": chat.id, "message_id": int(message)}
        try:
            await self._write("editMessageText", target, out)
        except DeliveryRefused as error:
            if "not modified" not in error.message:
                raise

    @override
    async def typing(self, chat: Chat) -> None:
        await self._api.call("sendChatAction", _target(chat) | {"action": "typing"})

    @override
    async def told(self, inbound: Inbound, note: str) -> None:
        text = note[:_MAX_NOTE_CHARACTERS]
        try:
            await self._api.call(
                "answerCallbackQuery", {"callback_query_id": inbound.ref, "text": text}
            )
        except DeliveryRefused:
            return  # pressed too long ago: nobody waits for the note any more

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        found = await self._api.call("getFile", {"file_id": attachment.ref})
        return await self._api.download(found["file_path"], most)

    @property
    def _identity(self) -> str:
        return f"@{self._me.get('username', '?')}"

    async def _poll(self, inlet: Inlet) -> None:
        await self._api.call("deleteWebhook")
        await inlet.connected(self._identity)
        offset = 0
        while True:
            query = {
                "offset": offset,
                "timeout": _LONG_POLL_S,
                "allowed_updates": _UPDATE_KINDS,
            }
            updates = await self._api.poll("getUpdates", query, _POLL_TIMEOUT_S)
            messages = [
                found
                for update in updates
                if (found := self._inbound(update)) is not None
            ]
            await asyncio.gather(*(inlet.receive(one) for one in messages))
            # The next request acknowledges what is below its offset.
            offset = max([offset, *(update["update_id"] + 1 for update in updates)])

    async def _serve_webhook(self, inlet: Inlet) -> None:
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
            webhook = {
                "url": self._settings.webhook_url,
                "secret_token": secret,
                "allowed_updates": _UPDATE_KINDS,
            }
            await self._api.call("setWebhook", webhook)
            await inlet.connected(self._identity)
            await asyncio.Event().wait()
        finally:
            self._listener.remove(_PATH)

    def _inbound(self, update: dict[str, Any]) -> Inbound | None:
        name = f"{self._me.get('id', '')}:{update.get('update_id')}"
        if press := update.get("callback_query"):
            message = object_in(press, "message")
            if "chat" not in message:
                return None
            return Inbound(
                id=name,
                chat=_chat(message),
                person=_person(object_in(press, "from")),
                pressed=str(press.get("data", "")),
                message=str(message.get("message_id", "")),
                ref=str(press.get("id", "")),
            )
        message = update.get("message")
        if not message or "chat" not in message:
            return None
        text, addressed = self._text(message)
        is_anonymous = "sender_chat" in message
        return Inbound(
            id=name,
            chat=_chat(message),
            person=_person(object_in(message, "from"), is_anonymous=is_anonymous),
            text=text,
            attachments=_attachments(message),
            addressed=addressed,
            message=str(message["message_id"]),
        )

    def _text(self, message: dict[str, Any]) -> tuple[str, bool]:
        """The text without the bot's name, and whether it is for the bot."""
        text = str(message.get("text") or message.get("caption") or _described(message))
        if message["chat"].get("type") == "private":
            return text, True
        name = re.escape(f"@{self._me.get('username', '')}")
        mention = re.compile(rf"{name}\b", re.IGNORECASE)
        replied_to = object_in(object_in(message, "reply_to_message"), "from")
        is_reply = replied_to.get("id") == self._me.get("id")
        addressed = bool(mention.search(text)) or is_reply
        return mention.sub("", text).strip(), addressed

    async def _write(
        self, method: str, target: dict[str, Any], out: Outbound
    ) -> dict[str, Any]:
        """Sends or edits text; as plain text when Telegram rejects our HTML."""
        cursor = STREAMING_CURSOR if out.unfinished else ""
        body = target | _keyboard(out) | {"link_preview_options": {"is_disabled": True}}
        text = telegram_html(out.text) + cursor
        try:
            return await self._api.call(
                method, body | {"text": text, "parse_mode": "HTML"}
            )
        except DeliveryRefused as error:
            is_about_format = (
                "parse entities" in error.message
                or "message is too long" in error.message
            )
            if not is_about_format:
                raise
        return await self._api.call(method, body | {"text": out.text + cursor})

    async def _upload(self, chat: Chat, file: OutgoingFile) -> dict[str, Any]:
        size = (await asyncio.to_thread(file.path.stat)).st_size
        is_large_photo = file.kind == "image" and size > _MAX_PHOTO_BYTES
        method, field = _UPLOADS["file" if is_large_photo else file.kind]
        target = {name: str(value) for name, value in _target(chat).items()}
        return await self._api.upload(method, target, field, file)


def _update(body: bytes) -> dict[str, Any]:
    try:
        return read_json(body, dict[str, Any])
    except InvalidRequest:
        return {}


def _chat(message: dict[str, Any]) -> Chat:
    chat = message["chat"]
    kind = _CHAT_KINDS.get(chat.get("type"), "group")
    thread = ""
    if message.get("is_topic_message"):
        thread = str(message.get("message_thread_id", ""))
    return Chat("telegram", str(chat["id"]), kind, thread, str(chat.get("title", "")))


def _person(sender: dict[str, Any], *, is_anonymous: bool = False) -> Person:
    """The sender. The anonymous administrator of a group is nobody in particular."""
    names = filter(None, (sender.get("first_name"), sender.get("last_name")))
    name = " ".join(names) or sender.get("username", "")
    verified = bool(sender.get("id")) and not is_anonymous
    language = str(sender.get("language_code", ""))
    return Person(str(sender.get("id", "")), str(name), verified, language)


def _attachments(message: dict[str, Any]) -> tuple[Attachment, ...]:
    found: list[Attachment] = []
    if photos := message.get("photo"):
        largest = max(
            photos, key=lambda one: one.get("width", 0) * one.get("height", 0)
        )
        size = int(largest.get("file_size") or 0)
        found.append(Attachment("image", largest["file_id"], "", "image/jpeg", size))
    for field, kind in _ATTACHMENT_FIELDS:
        if one := message.get(field):
            media = str(one.get("mime_type", ""))
            is_image = kind == "file" and media.startswith("image/")
            found.append(
                Attachment(
                    "image" if is_image else kind,
                    one["file_id"],
                    str(one.get("file_name", "")),
                    media,
                    int(one.get("file_size") or 0),
                )
            )
    return tuple(found)


def _described(message: dict[str, Any]) -> str:
    """A message that is neither text nor a file, in words: its sender expects an answer."""
    match message:
        case {"sticker": {"emoji": str(emoji)}} | {"dice": {"emoji": str(emoji)}}:
            return emoji
        case {
            "location": {
                "latitude": float() | int() as latitude,
                "longitude": float() | int() as longitude,
            }
        }:
            return f"[place: {latitude}, {longitude}]"
        case {"contact": {"first_name": str(name), "phone_number": str(number)}}:
            return f"[contact: {name}, {number}]"
        case {"poll": {"question": str(question)}}:
            return f"[poll: {question}]"
        case _:
            return ""


def _target(chat: Chat) -> dict[str, Any]:
    thread = {"message_thread_id": int(chat.thread)} if chat.thread else {}
    return {"chat_id": chat.id} | thread


def _reply_parameters(out: Outbound) -> dict[str, Any]:
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

"""WhatsApp, through Meta's Cloud API: a signed webhook receives, the Graph API sends.

Meta repeats unacknowledged messages for days; repeated ones are recognised by their id. Meta accepts messages that it
then does not deliver, such as those later than 24 hours after the person's last one, and reports that to the webhook.
So `send` waits a little for the report, which also keeps messages in order.
"""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.responses import Response

from hermes.primitives.recent import RecentDict
from hermes.primitives.untyped import object_in
from hermes.settings.chat_platforms import WhatsAppSettings
from hermes.surfaces.gateway.adapter import (
    AdapterDeps,
    AdapterError,
    Attachment,
    Button,
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
    TooFast,
    Unauthorized,
    Unreachable,
    file_kind,
    override,
)
from hermes.surfaces.gateway.adapters.text_formats import whatsapp_text
from hermes.surfaces.gateway.listener import HttpListener
from hermes.surfaces.gateway.rest_client import FailedCall, RestClient
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal
from hermes.surfaces.web.request_json import InvalidRequest, read_json
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.gateway")

_PATH = "/whatsapp"
_MAX_WEBHOOK_BYTES = 4_000_000
_MEDIA_HOSTS = ("fbsbx.com", "whatsapp.net")
"""Where the addresses of attachments lead."""
_REPORT_TIMEOUT_S = 5.0
"""How long `send` waits for the report on a message, which usually takes a second."""
_MAX_REMEMBERED = 1000
_MAX_BUTTONS, _MAX_BUTTON_CHARACTERS = 3, 20
_MAX_ROWS, _MAX_ROW_CHARACTERS, _MAX_ROW_DETAIL_CHARACTERS = 10, 24, 72
_MAX_QUESTION_CHARACTERS = 1024
_FILE_FIELDS: tuple[tuple[str, FileKind], ...] = (
    ("image", "image"),
    ("sticker", "image"),
    ("video", "video"),
    ("audio", "audio"),
    ("document", "file"),
)
_OFFICE = "application/vnd.openxmlformats-officedocument"
_SENDABLE_TYPES: dict[str, str] = {
    **dict.fromkeys(("image/jpeg", "image/png"), "image"),
    **dict.fromkeys(("video/mp4", "video/3gpp"), "video"),
    **dict.fromkeys(
        ("audio/aac", "audio/amr", "audio/mpeg", "audio/ogg", "audio/mp4"), "audio"
    ),
    **dict.fromkeys(
        (
            "text/plain",
            "application/pdf",
            "application/msword",
            "application/vnd.ms-excel",
            "application/vnd.ms-powerpoint",
            f"{_OFFICE}.wordprocessingml.document",
            f"{_OFFICE}.spreadsheetml.sheet",
            f"{_OFFICE}.presentationml.presentation",
        ),
        "document",
    ),
}
"""The files that WhatsApp accepts, and what it makes of them."""
_TEXTS = frozenset(
    ("application/json", "application/xml", "application/x-sh", "application/yaml")
)
"""Texts, like everything that begins with `text/`."""
_MAX_IMAGE_BYTES, _MAX_PLAYED_BYTES = 5_000_000, 16_000_000
_TOKEN_HINT = t.logged(
    "Make a permanent one for a system user at business.facebook.com; then: {command}",
    command="hermes config set WHATSAPP_TOKEN",
)
_CLOSED_WINDOW_CODES = frozenset((131047, 470))
_TOKEN_CODES = frozenset((0, 190))
_RATE_CODES = {4: 60.0, 80007: 60.0, 130429: 5.0, 131048: 60.0, 131056: 6.0}
"""Limits, with how long to wait."""
_TEMPORARY_CODES = frozenset((1, 2, 131000, 131016, 133004))
_CLOSED_WINDOW = t.logged(
    "WhatsApp delivers a message only within 24 hours of the person's last one, and that time is over."
    " It can be sent once they have written to Hermes again."
)


class Verification(
    msgspec.Struct,
    frozen=True,
    rename={"mode": "hub.mode", "token": "hub.verify_token", "text": "hub.challenge"},
):
    """What Meta asks when the webhook is set up."""

    mode: str = ""
    token: str = ""
    text: str = ""


def build(deps: AdapterDeps) -> "WhatsAppAdapter":
    """Builds the adapter from the settings."""
    return WhatsAppAdapter(
        deps.secrets.require("WHATSAPP_TOKEN"),
        (
            deps.secrets.require("WHATSAPP_APP_SECRET"),
            deps.secrets.require("WHATSAPP_VERIFY_TOKEN"),
        ),
        deps.app.settings.gateway.whatsapp,
        deps.listener,
    )


class WhatsAppAdapter(ChatAdapter):
    """One business phone number."""

    name = "whatsapp"
    limits = PlatformLimits(
        text=4000, edit=False, buttons=True, file_bytes=100_000_000, typing=25.0
    )

    def __init__(
        self,
        token: str,
        webhook_secrets: tuple[str, str],
        settings: WhatsAppSettings,
        listener: HttpListener,
    ) -> None:
        self._app_secret, self._verify_token = webhook_secrets
        self._number = settings.phone_number_id
        self._listener = listener
        self._api = RestClient(
            "WhatsApp",
            settings.api_url,
            {"authorization": f"Bearer {token}"},
            reason=_reason,
            explain=lambda failed: _explain(object_in(failed.error, "error"), failed),
        )
        self._inlet: Inlet | None = None
        self._is_open = False
        self._last: RecentDict[str, str] = RecentDict(_MAX_REMEMBERED)
        """The id of the last message of a chat."""
        self._reports: RecentDict[str, AdapterError | None] = RecentDict(
            _MAX_REMEMBERED
        )
        """The outcome of messages, by id: None when they were sent."""
        self._reported = asyncio.Condition()

    @override
    async def run(self, inlet: Inlet) -> None:
        self._inlet = inlet
        path = f"/{self._number}?fields=verified_name,display_phone_number"
        about = await self._api.call("GET", path)
        await self._listener.add(
            Endpoint("GET", _PATH, "open", self._verify, Verification, answer=None),
            Endpoint(
                "POST",
                _PATH,
                "open",
                self._serve,
                body=bytes,
                answer=None,
                max_body_bytes=_MAX_WEBHOOK_BYTES,
            ),
        )
        try:
            name = about.get("verified_name") or "?"
            await inlet.connected(f"{name}, {about.get('display_phone_number', '')}")
            self._is_open = True
            await asyncio.Event().wait()
        finally:
            self._is_open = False
            self._listener.remove(_PATH)

    @override
    async def close(self) -> None:
        await self._api.close()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        sent = ""
        for body in _messages(out):
            sent = await self._post(chat, body)
        for file in out.files:
            sent = await self._post(chat, await self._upload(file))
        return sent

    @override
    async def typing(self, chat: Chat) -> None:
        if message := self._last.get(chat.id, ""):
            body = {"status": "read", "message_id": message}
            await self._call(body | {"typing_indicator": {"type": "text"}})

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        about = await self._api.call("GET", f"/{attachment.ref}")
        if int(about.get("file_size") or 0) > most:
            raise DeliveryRefused(
                t.logged("It has more than {size} bytes.", size=f"{most:,}")
            )
        return await self._api.download(str(about["url"]), most, _MEDIA_HOSTS)

    # --- sending

    async def _call(self, body: dict[str, Any]) -> Any:
        body = {"messaging_product": "whatsapp", **body}
        return await self._api.call("POST", f"/{self._number}/messages", body)

    async def _post(self, chat: Chat, body: dict[str, Any]) -> str:
        """Sends a message, and raises what Meta reports of it."""
        # A person who hides their number has an id with letters instead.
        field = "to" if chat.id.lstrip("+").isdecimal() else "recipient"
        target = {"recipient_type": "individual", field: chat.id}
        answer = await self._call(target | body)
        sent = str(answer["messages"][0]["id"])
        await self._await_report(sent)
        return sent

    async def _await_report(self, message: str) -> None:
        """Waits a little for the report on a message. Raises it if the message failed."""
        try:
            async with asyncio.timeout(_REPORT_TIMEOUT_S), self._reported:
                await self._reported.wait_for(lambda: message in self._reports)
        except TimeoutError:
            return
        if (error := self._reports[message]) is not None:
            raise error

    async def _upload(self, file: OutgoingFile) -> dict[str, Any]:
        """Uploads a file; returns the message with it, or one that says why it is not sent."""
        media_type = file.media_type
        if media_type.startswith("text/") or media_type in _TEXTS:
            media_type = "text/plain"
        if media_type not in _SENDABLE_TYPES:
            why = t(
                "{name} can't be sent: WhatsApp does not accept this kind of file ({kind}).",
                name=file.name,
                kind=media_type,
            )
            return {"type": "text", "text": {"body": why}}
        file = msgspec.structs.replace(file, media_type=media_type)
        fields = {"messaging_product": "whatsapp", "type": media_type}
        path = f"/{self._number}/media"
        found = await self._api.upload(path, fields, "file", file)
        kind = _SENDABLE_TYPES[media_type]
        size = (await asyncio.to_thread(file.path.stat)).st_size
        if size > (_MAX_IMAGE_BYTES if kind == "image" else _MAX_PLAYED_BYTES):
            kind = "document"
        media = {"id": found["id"]}
        if kind == "document":
            media["filename"] = file.name
        return {"type": kind, kind: media}

    # --- receiving

    async def _verify(self, call: EndpointCall) -> Response:
        """Proves to Meta that this webhook is ours."""
        asked: Verification = call.query
        fits = hmac.compare_digest(asked.token.encode(), self._verify_token.encode())
        if asked.mode != "subscribe" or not fits:
            raise Refusal(403, "")
        return Response(asked.text, media_type="text/plain")

    async def _serve(self, call: EndpointCall) -> Response:
        """Takes what Meta has signed. Anything but a 200 makes Meta send it again."""
        given = call.request.headers.get("x-hub-signature-256", "")
        digest = hmac.new(self._app_secret.encode(), call.body, hashlib.sha256)
        wanted = f"sha256={digest.hexdigest()}"
        if not hmac.compare_digest(given.encode(), wanted.encode()):
            raise Refusal(403, "")
        try:
            update = read_json(call.body, dict[str, Any])
        except InvalidRequest:
            raise Refusal(400, "") from None
        for value in self._changes(update):
            for status in value.get("statuses") or ():
                await self._report(status)
            if value.get("messages") and not self._is_open:
                raise Refusal(503, "")  # older replies go first
            for message in value.get("messages") or ():
                await self._receive(message, value.get("contacts") or [])
        return Response(media_type="text/plain")

    def _changes(self, update: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What happened on our number; the app may have several."""
        for entry in update.get("entry") or ():
            for change in entry.get("changes") or ():
                value = object_in(change, "value")
                about = object_in(value, "metadata")
                if about.get("phone_number_id") == self._number:
                    yield value

    async def _report(self, status: dict[str, Any]) -> None:
        message, state = str(status.get("id", "")), status.get("status")
        error = None
        if state == "failed":
            details = (status.get("errors") or [{}])[0]
            why = _reason({"error": details}) or t.logged("no reason given")
            error = _explain(details) or DeliveryRefused(
                t.logged(
                    "{platform} refused the request: {reason}",
                    platform="WhatsApp",
                    reason=why,
                )
            )
            log.warning("whatsapp: a message was not delivered: %s", error.message)
        async with self._reported:
            self._reports[message] = error
            self._reported.notify_all()

    async def _receive(
        self, message: dict[str, Any], contacts: list[dict[str, Any]]
    ) -> None:
        assert self._inlet is not None, "it was not run"  # noqa: S101
        inbound = _inbound(message, contacts)
        if inbound is None:
            return
        self._last[inbound.chat.id] = inbound.id
        await self._inlet.receive(inbound)


def _inbound(message: dict[str, Any], contacts: list[dict[str, Any]]) -> Inbound | None:
    """A message as the gateway takes it; None for a group's, a reaction and what the system says."""
    sender = str(message.get("from") or message.get("from_user_id") or "")
    kind = str(message.get("type", ""))
    if not sender or "group_id" in message or kind in {"reaction", "system"}:
        return None
    profile = (contacts[0].get("profile") or {}) if contacts else {}
    pressed = _pressed(message)
    replied_to = str(object_in(message, "context").get("id", ""))
    return Inbound(
        id=str(message["id"]),
        chat=Chat("whatsapp", sender),
        person=Person(sender, str(profile.get("name", ""))),
        text="" if pressed else _text(message),
        attachments=tuple(_attachments(message)),
        pressed=pressed,
        message=replied_to if pressed else str(message["id"]),
    )


def _pressed(message: dict[str, Any]) -> str:
    match message:
        case {"interactive": {"button_reply": {"id": str(data)}}}:
            return data
        case {"interactive": {"list_reply": {"id": str(data)}}}:
            return data
        case _:
            return ""


def _text(message: dict[str, Any]) -> str:
    """The text, the caption, or in words what is neither: its sender expects an answer."""
    match message:
        case {"text": {"body": str(text)}} | {"button": {"text": str(text)}}:
            return text
        case {"location": {"latitude": latitude, "longitude": longitude}}:
            return f"[place: {latitude}, {longitude}]"
        case {"contacts": [{"name": {"formatted_name": str(name)}}, *_]}:
            return f"[contact: {name}]"
        case {"type": "unsupported"}:
            return "[a message of a kind that WhatsApp does not pass on]"
    for field, _ in _FILE_FIELDS:
        if caption := (message.get(field) or {}).get("caption"):
            return str(caption)
    return ""


def _attachments(message: dict[str, Any]) -> Iterator[Attachment]:
    for field, kind in _FILE_FIELDS:
        if one := message.get(field):
            media = str(one.get("mime_type", "")).partition(";")[0]
            found: FileKind = "voice" if one.get("voice") else kind
            if found == "file":
                found = file_kind(media)
            yield Attachment(found, str(one["id"]), str(one.get("filename", "")), media)


def _messages(out: Outbound) -> Iterator[dict[str, Any]]:
    """The messages that a text with its buttons becomes."""
    text = whatsapp_text(out.text)
    context = {"context": {"message_id": out.reply_to}} if out.reply_to else {}
    buttons = [button for row in out.buttons for button in row][:_MAX_ROWS]
    is_short = len(text) <= _MAX_QUESTION_CHARACTERS
    if text.strip() and not (buttons and is_short):
        body = {"body": text, "preview_url": False}
        yield context | {"type": "text", "text": body}
    if buttons:
        question = text if is_short else t("What should Hermes do?")
        yield context | _interactive(question, buttons)


def _interactive(text: str, buttons: list[Button]) -> dict[str, Any]:
    """A question with its answers: as buttons if those fit, otherwise as a list."""
    body: dict[str, Any] = {"body": {"text": text}}
    if len(buttons) <= _MAX_BUTTONS and all(
        len(button.label) <= _MAX_BUTTON_CHARACTERS for button in buttons
    ):
        replies = [
            {"type": "reply", "reply": {"id": button.data, "title": button.label}}
            for button in buttons
        ]
        body |= {"type": "button", "action": {"buttons": replies}}
    else:
        rows = [_row(button) for button in buttons]
        body |= {"type": "list"}
        body["action"] = {"button": "Answer", "sections": [{"rows": rows}]}
    return {"type": "interactive", "interactive": body}


def _row(button: Button) -> dict[str, str]:
    label = button.label
    if len(label) <= _MAX_ROW_CHARACTERS:
        return {"id": button.data, "title": label}
    title = label[: _MAX_ROW_CHARACTERS - 1].rstrip(" ,") + "…"
    detail = label[:_MAX_ROW_DETAIL_CHARACTERS]
    return {"id": button.data, "title": title, "description": detail}


def _reason(error: dict[str, Any]) -> str:
    found = object_in(error, "error")
    details = object_in(found, "error_data").get("details", "")
    return str(details or found.get("message") or found.get("title") or "")


def _explain(
    error: dict[str, Any], failed: FailedCall | None = None
) -> AdapterError | None:
    """The error that a code of Meta stands for; None for one that says nothing special."""
    code = int(error.get("code", -1))
    why = _reason({"error": error})
    if code in _CLOSED_WINDOW_CODES:
        return DeliveryRefused(_CLOSED_WINDOW)
    if code in _TOKEN_CODES:
        return Unauthorized(
            t.logged("{platform} rejected the token.", platform="WhatsApp"),
            hint=_TOKEN_HINT,
        )
    if code in _RATE_CODES:
        asked = failed.headers.get("retry-after", "") if failed else ""
        return TooFast(float(asked) if asked.isdecimal() else _RATE_CODES[code])
    if code in _TEMPORARY_CODES:
        return Unreachable(f"WhatsApp failed: {why}")
    if code == 131030:
        return DeliveryRefused(
            t.logged(
                "WhatsApp lets a test number write only to people on its list of recipients; add this one in the app dashboard."
            )
        )
    return None

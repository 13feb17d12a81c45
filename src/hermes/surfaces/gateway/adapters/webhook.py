"""A signed webhook: your own programs talk to Hermes. A request names a conversation and says something; the reply is
the answer to the request, or is posted to `gateway.webhook.callback_url`.

    POST /webhook
    X-Hermes-Timestamp: 1700000000
    X-Hermes-Signature: sha256=HMAC-SHA256(secret, timestamp + "." + body), in hex
    {"id": "unique", "chat": "deploys", "text": "what failed?", "wait": true}

A request whose time is too far off is refused, and one that came before is not acted on again: its `id` (by default
the signature) is kept for longer than its time is good.
"""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Annotated, Any

import httpx2
import msgspec
from msgspec import Meta

from hermes.settings.gateway import GatewayWebhookSettings
from hermes.surfaces.gateway.adapter import (
    Chat,
    ChatAdapter,
    DeliveryRefused,
    House,
    Inbound,
    Inlet,
    Outbound,
    Person,
    PlatformLimits,
    Receipt,
    Unreachable,
    override,
)
from hermes.surfaces.gateway.listener import HttpListener, answer, read_body
from hermes.surfaces.web.request_json import InvalidRequest, read_json

_PATH = "/webhook"
_BODY = 1_000_000  # bytes
_PATIENCE = 30.0  # seconds for a callback
_SECRET = "GATEWAY_WEBHOOK_SECRET"  # noqa: S105 - its name
_SHORTEST = 16  # characters of a secret
_JSON = "application/json"


class WebhookMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request."""

    text: Annotated[str, Meta(min_length=1, max_length=200_000)]
    chat: Annotated[str, Meta(min_length=1, max_length=200)] = "default"
    person: Annotated[str, Meta(min_length=1, max_length=200)] = "webhook"
    id: Annotated[str, Meta(max_length=200)] = ""
    wait: bool = True


class _Waiting(msgspec.Struct):
    """A caller who waits for the reply."""

    reply: asyncio.Future[str]
    text: str = ""


def build(house: House) -> "WebhookAdapter":
    """From the settings."""
    secret = house.secrets.require(_SECRET)
    if len(secret) < _SHORTEST:
        raise DeliveryRefused(
            f"{_SECRET} is too short to be a secret.",
            hint="Make one with: openssl rand -hex 32",
        )
    return WebhookAdapter(secret, house.app.settings.gateway.webhook, house.listener)


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a request or a callback."""
    return (
        "sha256="
        + hmac.new(
            secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256
        ).hexdigest()
    )


class WebhookAdapter(ChatAdapter):
    """Whoever has the secret is who they say they are: name them in `gateway.allow` as `webhook:NAME`."""

    name = "webhook"
    limits = PlatformLimits(
        text=1_000_000, edit=False, buttons=False, file_bytes=0, typing=0.0, whole=True
    )

    def __init__(
        self, secret: str, settings: GatewayWebhookSettings, listener: HttpListener
    ) -> None:
        self._secret = secret
        self._settings = settings
        self._listener = listener
        self._waiting: dict[str, _Waiting] = {}
        self._client = httpx2.AsyncClient(timeout=_PATIENCE)
        self._inlet: Inlet | None = None

    @override
    async def run(self, inlet: Inlet) -> None:
        self._inlet = inlet
        address = await self._listener.add(_PATH, self._serve)
        try:
            await inlet.connected(address)
            await asyncio.Event().wait()
        finally:
            self._listener.remove(_PATH)

    @override
    async def close(self) -> None:
        await self._client.aclose()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        waiting = [self._waiting[name] for name in out.answers if name in self._waiting]
        for one in waiting:
            one.text = f"{one.text}\n\n{out.text}".strip()
        if waiting:
            if out.key.startswith("hermes-"):  # a notice; of a turn the end is told
                await self.finished(chat, out.answers)
            return out.key
        if self._settings.callback_url:
            await self._call_back(chat, out)
        return out.key

    @override
    async def finished(self, chat: Chat, answers: tuple[str, ...]) -> None:
        del chat
        for one in (self._waiting[name] for name in answers if name in self._waiting):
            if not one.reply.done():
                one.reply.set_result(one.text)

    async def _call_back(self, chat: Chat, out: Outbound) -> None:
        body = msgspec.json.encode({"id": out.key, "chat": chat.id, "text": out.text})
        timestamp = str(int(time.time()))
        headers = {
            "content-type": _JSON,
            "x-hermes-timestamp": timestamp,
            "x-hermes-signature": sign(self._secret, timestamp, body),
        }
        try:
            answered = await self._client.post(
                self._settings.callback_url, content=body, headers=headers
            )
        except httpx2.HTTPError as error:
            raise Unreachable(
                f"the callback did not answer ({type(error).__name__})"
            ) from None
        if answered.status_code >= 500 or answered.status_code in {408, 425, 429}:
            raise Unreachable(f"the callback answered {answered.status_code}")
        if answered.status_code >= 400:
            raise DeliveryRefused(f"the callback refused ({answered.status_code})")

    async def _serve(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """The boundary of a request. What is wrong with one is told only to whoever has signed it."""
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        body = await read_body(receive, _BODY) if scope["method"] == "POST" else b""
        if scope["method"] != "POST" or body is None:
            await answer(send, 405 if body is not None else 413, b"")
            return
        if not self._is_ours(headers, body):
            await answer(
                send, 401, b'{"error": "the signature or its time is wrong"}', _JSON
            )
            return
        try:
            said = read_json(body, WebhookMessage)
        except InvalidRequest as error:
            await answer(send, 400, msgspec.json.encode({"error": str(error)}), _JSON)
            return
        status, told = await self._take(said, headers["x-hermes-signature"])
        await answer(send, status, msgspec.json.encode(told), _JSON)

    def _is_ours(self, headers: Mapping[str, str], body: bytes) -> bool:
        timestamp = headers.get("x-hermes-timestamp", "")
        wanted = sign(self._secret, timestamp, body)
        fits = hmac.compare_digest(
            headers.get("x-hermes-signature", "").encode(), wanted.encode()
        )
        return (
            fits
            and timestamp.isdecimal()
            and len(timestamp) <= 12
            and abs(time.time() - int(timestamp)) <= self._settings.tolerance
        )

    async def _take(
        self, said: WebhookMessage, signature: str
    ) -> tuple[int, dict[str, Any]]:
        assert self._inlet is not None, "it was not run"  # noqa: S101
        name = said.id or signature
        inbound = Inbound(
            id=name,
            chat=Chat("webhook", said.chat),
            person=Person(said.person),
            text=said.text,
        )
        if not said.wait:
            return self._told(await self._inlet.receive(inbound), said.chat)
        waiting = _Waiting(asyncio.get_running_loop().create_future())
        if (
            self._waiting.setdefault(name, waiting) is not waiting
        ):  # the first still waits
            return self._told("repeated", said.chat)
        try:
            if (receipt := await self._inlet.receive(inbound)) != "taken":
                return self._told(receipt, said.chat)
            reply = await asyncio.wait_for(waiting.reply, self._settings.reply_timeout)
        except TimeoutError:
            return 202, {
                "accepted": True,
                "chat": said.chat,
                "note": "still working; the reply was not waited for",
            }
        finally:
            del self._waiting[name]
        return 200, {"chat": said.chat, "reply": reply}

    def _told(self, receipt: Receipt, chat: str) -> tuple[int, dict[str, Any]]:
        match receipt:
            case "taken":
                return 202, {"accepted": True, "chat": chat}
            case "repeated":
                return 409, {
                    "error": "this request came before; it was not acted on again"
                }
            case "refused":
                return 403, {"error": "this person is not let in; see gateway.allow"}

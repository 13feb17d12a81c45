"""A signed webhook, through which your own programs talk to Hermes.

A request names a conversation and contains a message. The reply is the answer to the
request, or is posted to `gateway.webhook.callback_url`.

    POST /webhook
    X-Hermes-Timestamp: 1700000000
    X-Hermes-Signature: sha256=HMAC-SHA256(secret, timestamp + "." + body), in hex
    {"id": "unique", "chat": "deploys", "text": "what failed?", "wait": true}

A request whose time is too far off is refused. A repeated request is not handled again:
its `id` (by default the signature) is stored for longer than its time is valid.
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
from starlette.responses import Response

from hermes.settings.gateway import (
    MIN_WEBHOOK_SECRET_CHARACTERS,
    GatewayWebhookSettings,
)
from hermes.surfaces.gateway.adapter import (
    AdapterDeps,
    Chat,
    ChatAdapter,
    DeliveryRefused,
    Inbound,
    Inlet,
    Outbound,
    Person,
    PlatformLimits,
    Receipt,
    Unreachable,
    override,
)
from hermes.surfaces.gateway.listener import HttpListener
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.surfaces.web.errors import json_response
from hermes.surfaces.web.request_json import InvalidRequest, read_json
from hermes.text.translation import translator

t = translator(__name__)

_PATH = "/webhook"
_MAX_WEBHOOK_BODY_BYTES = 1_000_000
_CALLBACK_TIMEOUT_S = 30.0
_SECRET = "GATEWAY_WEBHOOK_SECRET"  # noqa: S105 - its name
_WRONG_SIGNATURE = "the signature or its time is wrong"


class WebhookMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request."""

    text: Annotated[str, Meta(min_length=1, max_length=200_000)]
    chat: Annotated[str, Meta(min_length=1, max_length=200)] = "default"
    person: Annotated[str, Meta(min_length=1, max_length=200)] = "webhook"
    id: Annotated[str, Meta(max_length=200)] = ""
    wait: bool = True


class _Waiting(msgspec.Struct):
    """A caller that waits for the reply."""

    reply: asyncio.Future[str]
    text: str = ""


def build(deps: AdapterDeps) -> "WebhookAdapter":
    """Builds the adapter from the settings."""
    secret = deps.secrets.require(_SECRET)
    if len(secret) < MIN_WEBHOOK_SECRET_CHARACTERS:
        raise DeliveryRefused(
            t.logged("{variable} is too short to be a secret.", variable=_SECRET),
            hint=t.logged("Make one with: {command}", command="openssl rand -hex 32"),
        )
    return WebhookAdapter(secret, deps.app.settings.gateway.webhook, deps.listener)


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a request or a callback."""
    return (
        "sha256="
        + hmac.new(
            secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256
        ).hexdigest()
    )


class WebhookAdapter(ChatAdapter):
    """Callers with the secret may use any name; allow them in `gateway.allow` as `webhook:NAME`."""

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
        self._client = httpx2.AsyncClient(timeout=_CALLBACK_TIMEOUT_S)
        self._inlet: Inlet | None = None

    @override
    async def run(self, inlet: Inlet) -> None:
        self._inlet = inlet
        endpoint = Endpoint(
            "POST",
            _PATH,
            "open",
            self._serve,
            body=bytes,
            answer=None,
            max_body_bytes=_MAX_WEBHOOK_BODY_BYTES,
        )
        address = await self._listener.add(endpoint)
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
            if out.key.startswith(
                "hermes-"
            ):  # a notice; a turn calls `finished` itself
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
            "content-type": "application/json",
            "x-hermes-timestamp": timestamp,
            "x-hermes-signature": sign(self._secret, timestamp, body),
        }
        try:
            answered = await self._client.post(
                self._settings.callback_url, content=body, headers=headers
            )
        except httpx2.HTTPError as error:
            raise Unreachable(
                t.logged(
                    "the callback did not answer ({error})", error=type(error).__name__
                )
            ) from None
        if answered.status_code >= 500 or answered.status_code in {408, 425, 429}:
            raise Unreachable(
                t.logged("the callback answered {status}", status=answered.status_code)
            )
        if answered.status_code >= 400:
            raise DeliveryRefused(
                t.logged("the callback refused ({status})", status=answered.status_code)
            )

    async def _serve(self, call: EndpointCall) -> Response:
        """Answers a request. Only whoever has signed it learns what is wrong with it."""
        headers = call.request.headers
        if not self._is_signed(headers, call.body):
            return json_response({"error": _WRONG_SIGNATURE}, status=401)
        try:
            message = read_json(call.body, WebhookMessage)
        except InvalidRequest as error:
            return json_response({"error": str(error)}, status=400)
        status, body = await self._receive(message, headers["x-hermes-signature"])
        return json_response(body, status=status)

    def _is_signed(self, headers: Mapping[str, str], body: bytes) -> bool:
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

    async def _receive(
        self, message: WebhookMessage, signature: str
    ) -> tuple[int, dict[str, Any]]:
        assert self._inlet is not None, "it was not run"  # noqa: S101
        name = message.id or signature
        inbound = Inbound(
            id=name,
            chat=Chat("webhook", message.chat),
            person=Person(message.person),
            text=message.text,
        )
        if not message.wait:
            return self._receipt_answer(
                await self._inlet.receive(inbound), message.chat
            )
        waiting = _Waiting(asyncio.get_running_loop().create_future())
        if (
            self._waiting.setdefault(name, waiting) is not waiting
        ):  # the first still waits
            return self._receipt_answer("repeated", message.chat)
        try:
            if (receipt := await self._inlet.receive(inbound)) != "taken":
                return self._receipt_answer(receipt, message.chat)
            reply = await asyncio.wait_for(waiting.reply, self._settings.reply_timeout)
        except TimeoutError:
            return 202, {
                "accepted": True,
                "chat": message.chat,
                "note": "still working; the reply was not ready in time",
            }
        finally:
            del self._waiting[name]
        return 200, {"chat": message.chat, "reply": reply}

    def _receipt_answer(
        self, receipt: Receipt, chat: str
    ) -> tuple[int, dict[str, Any]]:
        match receipt:
            case "taken":
                return 202, {"accepted": True, "chat": chat}
            case "repeated":
                return 409, {"error": "duplicate request: it was not handled again"}
            case "refused":
                return 403, {"error": "this person is not allowed; see gateway.allow"}

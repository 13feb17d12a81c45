"""Telegram's Bot API: calls, uploads and downloads, at a rate that Telegram allows.

The token is part of every address, so no address ever gets into an error or a log.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.primitives.untyped import object_in
from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure
from hermes.surfaces.gateway import files
from hermes.surfaces.gateway.adapter import (
    DeliveryRefused,
    OutgoingFile,
    TooFast,
    Unauthorized,
    Unreachable,
)
from hermes.surfaces.gateway.rest_client import multipart_form
from hermes.text.translation import translator

t = translator(__name__)

_MAX_CONCURRENT_CALLS = 16
"""So few that their connections can be kept open."""
_BOT_API_TIMEOUT_S = 30.0
_MAX_RESPONSE_BYTES = 32 * 1024 * 1024
_DEFAULT_RETRY_AFTER_S = 5
_JSON = "application/json"
_HEADERS = {"user-agent": "hermes", "accept": "*/*", "accept-encoding": "identity"}
_CALL_TIMEOUTS = HttpTimeouts(
    connect=_BOT_API_TIMEOUT_S, first_byte=_BOT_API_TIMEOUT_S, idle=_BOT_API_TIMEOUT_S
)


class BotApi:
    """The API of one bot. It uses a proxy where the environment asks for one."""

    def __init__(
        self,
        address: str,
        token: str,
        per_second: float,
        environment: Mapping[str, str],
    ) -> None:
        self._api = address.rstrip("/")
        self._token = token
        self._interval_s = 1 / per_second
        self._http = Http(environment)
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT_CALLS)
        self._next_call_at = 0.0

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def call(self, method: str, body: Mapping[str, Any] | None = None) -> Any:
        """Calls a method; returns its result."""
        return await self._send_paced(method, _JSON, msgspec.json.encode(body or {}))

    async def poll(self, method: str, body: Mapping[str, Any], timeout_s: float) -> Any:
        """Calls a method that Telegram answers once it has something; it takes no slot."""
        timeouts = HttpTimeouts(
            connect=_BOT_API_TIMEOUT_S, first_byte=timeout_s, idle=_BOT_API_TIMEOUT_S
        )
        return await self._send(method, _JSON, msgspec.json.encode(body), timeouts)

    async def upload(
        self, method: str, fields: Mapping[str, str], field: str, file: OutgoingFile
    ) -> Any:
        """Calls a method with a file."""
        data = await asyncio.to_thread(file.path.read_bytes)
        kind, body = multipart_form(fields, [(field, file, data)])
        return await self._send_paced(method, kind, body)

    async def download(self, path: str, max_bytes: int) -> bytes:
        """The content of an attachment."""
        address = f"{self._api}/file/bot{self._token}/{path}"
        return await files.download(self._http, address, max_bytes)

    async def _send_paced(self, method: str, kind: str, body: bytes) -> Any:
        """Spreads the calls of all chats over time; those of one second may go at once."""
        time = asyncio.get_running_loop().time
        self._next_call_at = max(self._next_call_at, time()) + self._interval_s
        wait = self._next_call_at - time() - 1.0
        if wait > 0:
            await asyncio.sleep(wait)
        async with self._slots:
            return await self._send(method, kind, body, _CALL_TIMEOUTS)

    async def _send(
        self, method: str, kind: str, body: bytes, timeouts: HttpTimeouts
    ) -> Any:
        address = f"{self._api}/bot{self._token}/{method}"
        headers = {**_HEADERS, "content-type": kind}
        try:
            async with await self._http.send(
                "POST", address, headers, body, timeouts
            ) as reply:
                answer = msgspec.json.decode(await reply.read_all(_MAX_RESPONSE_BYTES))
        except TransportFailure as failure:
            raise Unreachable(
                t.logged(
                    "the request to {platform} failed: {reason}",
                    platform="Telegram",
                    reason=failure.phase,
                )
            ) from None
        except msgspec.MsgspecError as error:
            raise Unreachable(
                t.logged(
                    "the request to {platform} failed: {reason}",
                    platform="Telegram",
                    reason=type(error).__name__,
                )
            ) from None
        if not isinstance(answer, dict):
            raise _failure({}, method)
        if not answer.get("ok"):
            raise _failure(answer, method)
        return answer.get("result")


def _failure(answer: dict[str, Any], method: str) -> Exception:
    code = int(answer.get("error_code") or 0)
    why = str(answer.get("description") or t.logged("no reason given"))
    if code == 429:
        parameters = object_in(answer, "parameters")
        return TooFast(float(parameters.get("retry_after") or _DEFAULT_RETRY_AFTER_S))
    if code in {401, 404} and method == "getMe":
        hint = t.logged(
            "Ask @BotFather for it, then: {command}",
            command="hermes config set TELEGRAM_BOT_TOKEN",
        )
        return Unauthorized(
            t.logged("{platform} rejected the token.", platform="Telegram"), hint=hint
        )
    if code == 409:
        return Unreachable(
            t.logged(
                "another program is receiving this bot's messages ({reason})",
                reason=why,
            )
        )
    if code == 401 or code >= 500 or not code:
        return Unreachable(
            t.logged(
                "the request to {platform} failed: {reason}",
                platform="Telegram",
                reason=why,
            )
        )
    return DeliveryRefused(why)

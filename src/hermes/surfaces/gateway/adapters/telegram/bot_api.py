"""Telegram's Bot API on the wire: calls, uploads and downloads, at a pace that Telegram allows.

The token is part of every address, so no address ever gets into an error or a log.
"""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure
from hermes.surfaces.gateway.adapter import (
    DeliveryRefused,
    OutgoingFile,
    TooFast,
    Unauthorized,
    Unreachable,
)

_AT_ONCE = 16  # calls, so that their connections can be kept
_PATIENCE = 30.0  # seconds for an answer
_ANSWER = 32 * 1024 * 1024  # bytes of one
_HEADERS = {"user-agent": "hermes", "accept": "*/*", "accept-encoding": "identity"}
_QUOTED = str.maketrans(
    {'"': "%22", "\r": "%0D", "\n": "%0A"}
)  # as browsers write names in a form


class BotApi:
    """One bot. Through a proxy where the environment asks for one."""

    def __init__(
        self,
        address: str,
        token: str,
        per_second: float,
        environment: Mapping[str, str],
    ) -> None:
        self._api = address.rstrip("/")
        self._token = token
        self._between = 1 / per_second
        self._http = Http(environment)
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._free_at = 0.0

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def call(self, method: str, body: Mapping[str, Any] | None = None) -> Any:
        """One call: its result, or what went wrong in our words."""
        return await self._paced(
            method, "application/json", msgspec.json.encode(body or {})
        )

    async def poll(self, method: str, body: Mapping[str, Any], patience: float) -> Any:
        """A call that Telegram answers when it has something to say; it takes no place of another."""
        return await self._ask(
            method, "application/json", msgspec.json.encode(body), patience
        )

    async def upload(
        self, method: str, fields: Mapping[str, str], field: str, file: OutgoingFile
    ) -> Any:
        """A call with a file."""
        data = await asyncio.to_thread(file.path.read_bytes)
        boundary = secrets.token_hex(16)
        parts = [
            _part(boundary, f'name="{name}"', value.encode())
            for name, value in fields.items()
        ]
        name = f'name="{field}"; filename="{file.name.translate(_QUOTED)}"\r\nContent-Type: {file.media_type}'
        parts.append(_part(boundary, name, data))
        body = b"".join((*parts, f"--{boundary}--\r\n".encode()))
        return await self._paced(
            method, f"multipart/form-data; boundary={boundary}", body
        )

    async def download(self, path: str, most: int) -> bytes:
        """The bytes of a file that somebody has sent, and no more of them than may be."""
        address = f"{self._api}/file/bot{self._token}/{path}"
        deadlines = HttpTimeouts(idle=_PATIENCE)
        try:
            async with await self._http.send(
                "GET", address, _HEADERS, b"", deadlines
            ) as reply:
                if reply.status != 200:
                    raise DeliveryRefused(
                        f"The platform does not give it out ({reply.status})."
                    )
                data = await reply.read_all(most + 1)
        except TransportFailure as failure:
            raise Unreachable(f"It could not be fetched ({failure.phase}).") from None
        if len(data) > most:
            raise DeliveryRefused(f"It has more than {most:,} bytes.")
        return data

    async def _paced(self, method: str, kind: str, body: bytes) -> Any:
        """Leaves a little time between calls, over all chats."""
        time = asyncio.get_running_loop().time
        self._free_at = max(self._free_at, time()) + self._between
        wait = self._free_at - time() - 1.0  # a second's worth may go at once
        if wait > 0:
            await asyncio.sleep(wait)
        async with self._room:
            return await self._ask(method, kind, body, _PATIENCE)

    async def _ask(self, method: str, kind: str, body: bytes, patience: float) -> Any:
        address = f"{self._api}/bot{self._token}/{method}"
        deadlines = HttpTimeouts(connect=_PATIENCE, first_byte=patience, idle=_PATIENCE)
        try:
            headers = {**_HEADERS, "content-type": kind}
            async with await self._http.send(
                "POST", address, headers, body, deadlines
            ) as reply:
                told = msgspec.json.decode(await reply.read_all(_ANSWER))
        except TransportFailure as failure:
            raise Unreachable(
                f"Telegram did not answer properly ({failure.phase})"
            ) from None
        except msgspec.MsgspecError as error:
            raise Unreachable(
                f"Telegram did not answer properly ({type(error).__name__})"
            ) from None
        if isinstance(told, dict) and told.get("ok"):
            return told.get("result")
        raise _failure(told if isinstance(told, dict) else {}, method)


def _part(boundary: str, name: str, data: bytes) -> bytes:
    return b"".join(
        (
            f"--{boundary}\r\nContent-Disposition: form-data; {name}\r\n\r\n".encode(),
            data,
            b"\r\n",
        )
    )


def _failure(told: dict[str, Any], method: str) -> Exception:
    code, why = (
        int(told.get("error_code") or 0),
        str(told.get("description") or "no reason given"),
    )
    if code == 429:
        return TooFast(float((told.get("parameters") or {}).get("retry_after") or 5))
    if code in {401, 404} and method == "getMe":
        hint = "Ask @BotFather for it, then: hermes config set TELEGRAM_BOT_TOKEN"
        return Unauthorized("Telegram does not know this bot's token.", hint=hint)
    if code == 409:
        return Unreachable(f"another program receives this bot's messages ({why})")
    if code == 401 or code >= 500 or not code:
        return Unreachable(f"Telegram failed: {why}")
    return DeliveryRefused(why)

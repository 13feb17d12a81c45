"""JSON APIs of chat platforms over HTTP: calls, uploads and downloads, with errors as AdapterErrors.

No error contains an address or a header: they may hold a secret.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from hermes.providers.http_client import (
    Http,
    HttpReply,
    HttpTimeouts,
    TransportFailure,
)
from hermes.settings.load import environment
from hermes.surfaces.gateway import files
from hermes.surfaces.gateway.adapter import (
    AdapterError,
    DeliveryRefused,
    OutgoingFile,
    TooFast,
    Unauthorized,
    Unreachable,
)
from hermes.text.translation import translator

t = translator(__name__)

_CALL_TIMEOUT_S = 30.0
_MAX_ANSWER_BYTES = 32 * 1024 * 1024
_DEFAULT_RETRY_AFTER_S = 5.0
_HEADERS = {"user-agent": "hermes", "accept": "*/*", "accept-encoding": "identity"}
_SLOWEST_UPLOAD_BYTES_PER_S = 50_000
_FORM_ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
"""How browsers write file names in a form."""


class FailedCall(NamedTuple):
    """An answer that says no. `error` is its JSON, empty if it has none."""

    status: int
    headers: Mapping[str, str]
    error: dict[str, Any]

    @property
    def retry_after_s(self) -> float:
        """How long the platform asks to wait."""
        value = self.headers.get("retry-after", "")
        return float(value) if value.isdecimal() else _DEFAULT_RETRY_AFTER_S


class RestClient:
    """The API of one platform. `reason` finds the platform's own words in an error; `explain` may raise better ones."""

    def __init__(
        self,
        platform: str,
        url: str,
        headers: Mapping[str, str],
        *,
        reason: Callable[[dict[str, Any]], str],
        explain: Callable[[FailedCall], AdapterError | None] = lambda _: None,
    ) -> None:
        self.url = url.rstrip("/")
        self.http = Http(environment())
        self._platform = platform
        self._auth = dict(headers)
        self._reason = reason
        self._explain = explain

    async def close(self) -> None:
        """Closes the connections."""
        await self.http.aclose()

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Calls an endpoint with a JSON body; returns its answer, None where that is empty."""
        data = b"" if body is None else msgspec.json.encode(body)
        kind = {} if body is None else {"content-type": "application/json"}
        return await self._send(method, path, kind, data)

    async def upload(
        self, path: str, fields: Mapping[str, str], field: str, file: OutgoingFile
    ) -> Any:
        """Posts a form with a file."""
        data = await asyncio.to_thread(file.path.read_bytes)
        kind, body = multipart_form(fields, [(field, file, data)])
        return await self._send("POST", path, {"content-type": kind}, body)

    async def stream(
        self, path: str, silence_timeout_s: float, last_event_id: str = ""
    ) -> HttpReply:
        """Opens a stream of events, after the one with that id. The caller closes the reply."""
        timeouts = HttpTimeouts(
            connect=_CALL_TIMEOUT_S,
            first_byte=_CALL_TIMEOUT_S,
            idle=silence_timeout_s,
            total=float("inf"),
        )
        headers = {**_HEADERS, **self._auth, "accept": "text/event-stream"}
        if last_event_id:
            headers["last-event-id"] = last_event_id
        return await self.http.send("GET", self.url + path, headers, b"", timeouts)

    async def download(
        self, address: str, max_bytes: int, hosts: Sequence[str] = ()
    ) -> bytes:
        """A file by its path, or by an address on the same server or one of `hosts`: our credentials go nowhere else."""
        url = self.url + address if address.startswith("/") else address
        if not _is_on(url, self.url, hosts):
            raise DeliveryRefused(
                t.logged("It is on another server, not on the platform's.")
            )
        return await files.download(self.http, url, max_bytes, self._auth)

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Any:
        try:
            async with await self.http.send(
                method,
                self.url + path,
                {**_HEADERS, **self._auth, **headers},
                body,
                _timeouts(len(body)),
            ) as reply:
                answer = await reply.read_all(_MAX_ANSWER_BYTES)
        except TransportFailure as failure:
            raise Unreachable(
                t.logged(
                    "{platform} did not answer ({reason})",
                    platform=self._platform,
                    reason=failure.phase,
                )
            ) from None
        if reply.status >= 300:
            raise self.failure(reply, answer)
        if not answer.strip():
            return None
        try:
            return msgspec.json.decode(answer)
        except msgspec.MsgspecError:
            raise Unreachable(
                t.logged(
                    "the answer of {platform} is not JSON; is its URL right?",
                    platform=self._platform,
                )
            ) from None

    def failure(self, reply: HttpReply, answer: bytes) -> AdapterError:
        """The error that an answer stands for."""
        failed = FailedCall(reply.status, reply.headers, _error_object(answer))
        why = self._reason(failed.error) or f"status {failed.status}"
        if found := self._explain(failed):
            return found
        if failed.status == 429:
            return TooFast(failed.retry_after_s)
        if failed.status == 401:
            return Unauthorized(
                t.logged("{platform} rejected the token.", platform=self._platform)
            )
        if failed.status >= 500 or failed.status < 400 or failed.status == 408:
            return Unreachable(
                t.logged(
                    "the request to {platform} failed: {reason}",
                    platform=self._platform,
                    reason=why,
                )
            )
        return DeliveryRefused(
            t.logged(
                "{platform} refused the request: {reason}",
                platform=self._platform,
                reason=why,
            )
        )


def _timeouts(body_bytes: int) -> HttpTimeouts:
    """The timeouts of a request: a large body takes time before the answer begins."""
    return HttpTimeouts(
        connect=_CALL_TIMEOUT_S,
        first_byte=_CALL_TIMEOUT_S + body_bytes / _SLOWEST_UPLOAD_BYTES_PER_S,
        idle=_CALL_TIMEOUT_S,
    )


def multipart_form(
    fields: Mapping[str, str], uploads: Sequence[tuple[str, OutgoingFile, bytes]]
) -> tuple[str, bytes]:
    """The content type and the body of a form with files."""
    boundary = secrets.token_hex(16)
    parts = [
        _form_part(boundary, f'name="{name}"', value.encode())
        for name, value in fields.items()
    ]
    for field, file, data in uploads:
        file_name = file.name.translate(_FORM_ESCAPES)
        disposition = (
            f'name="{field}"; filename="{file_name}"\r\nContent-Type: {file.media_type}'
        )
        parts.append(_form_part(boundary, disposition, data))
    body = b"".join((*parts, f"--{boundary}--\r\n".encode()))
    return f"multipart/form-data; boundary={boundary}", body


def _is_on(url: str, own_url: str, hosts: Sequence[str]) -> bool:
    given, own = urlsplit(url), urlsplit(own_url)
    if (given.scheme, given.netloc) == (own.scheme, own.netloc):
        return True
    is_known = any(f".{given.netloc}".endswith(f".{host}") for host in hosts)
    return given.scheme == "https" and is_known


def _form_part(boundary: str, disposition: str, data: bytes) -> bytes:
    head = f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"
    return b"".join((head.encode(), data, b"\r\n"))


def _error_object(answer: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(answer, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}

"""Calls services that make pictures: sends JSON or a form, reads JSON, and interprets errors."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.errors import MediaError, MediaErrorKind
from hermes.media.image_generation import SENSE, ReferencePicture
from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure
from hermes.text.translation import LaterWords, translator

t = translator(__name__)

MAX_REPLY_BYTES = 60_000_000
_MAX_DETAIL_CHARACTERS = 300
_REFUSED = (
    "moderation",
    "safety",
    "content policy",
    "content_policy",
    "policy_violation",
)


class ServiceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request: a POST if it has a body, otherwise a GET."""

    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""


class ImageService:
    """One service. `label` names it in messages, `key_hint` says how to set another key."""

    def __init__(
        self,
        label: str,
        *,
        environment: Mapping[str, str],
        timeout_s: float,
        key_hint: str | LaterWords = "",
    ) -> None:
        self.label = label
        self._environment = environment
        self._timeout_s = timeout_s
        self._key_hint = key_hint

    async def post(
        self, url: str, headers: Mapping[str, str], fields: Mapping[str, Any]
    ) -> bytes:
        """Sends JSON and returns the reply. Raises MediaError."""
        body = msgspec.json.encode(fields)
        kind = {"content-type": "application/json"}
        return await self.send(
            ServiceRequest(url=url, headers={**kind, **headers}, body=body)
        )

    async def send(self, request: ServiceRequest) -> bytes:
        """Sends a request and returns the reply. Raises MediaError."""
        http = Http(self._environment)
        timeouts = HttpTimeouts(
            first_byte=self._timeout_s, idle=self._timeout_s, total=self._timeout_s
        )
        method = "POST" if request.body else "GET"
        headers = {
            "user-agent": "hermes",
            "accept": "application/json",
            **request.headers,
        }
        try:
            async with await http.send(
                method, request.url, headers, request.body, timeouts
            ) as reply:
                if reply.status >= 400:
                    raise self._rejected(reply.status, await reply.read_error())
                data = await reply.read_all(MAX_REPLY_BYTES + 1)
        except TransportFailure as failure:
            raise MediaError(
                MediaErrorKind.NETWORK,
                t.later(
                    "{label} can't be reached: {detail}.",
                    label=self.label,
                    detail=failure.detail,
                ),
                sense=SENSE,
                hint=t.later("Nothing was made. Try again later."),
            ) from failure
        finally:
            await http.aclose()
        if len(data) > MAX_REPLY_BYTES:
            raise self.error(MediaErrorKind.TOO_LARGE, t.later("sent too much"))
        return data

    def error(
        self, kind: MediaErrorKind, what: LaterWords, hint: str | LaterWords = ""
    ) -> MediaError:
        """Returns an error of this service: `xAI sent too much.`"""
        text = t.later("{name} {what}.", name=self.label, what=what)
        return MediaError(kind, text, sense=SENSE, hint=hint)

    def _rejected(self, status: int, body: bytes) -> MediaError:
        detail = error_detail(body)
        said = f" ({detail})" if detail else ""
        if status in (401, 403):
            return self.error(
                MediaErrorKind.REFUSED,
                t.later("rejected the API key{said}", said=said),
                hint=self._key_hint,
            )
        if status == 413:
            return self.error(
                MediaErrorKind.TOO_LARGE, t.later("got too much{said}", said=said)
            )
        if status == 404:
            return self.error(
                MediaErrorKind.NOT_SUPPORTED,
                t.later("does not offer this{said}", said=said),
                hint=t.later("The user can name another model in media.images.model."),
            )
        if status == 429 or status >= 500:
            return self.error(
                MediaErrorKind.NETWORK,
                t.later("failed with {status}{said}", status=status, said=said),
                t.later("Try again later."),
            )
        hint: str | LaterWords = ""
        if any(word in detail.lower() for word in _REFUSED):
            hint = t.later(
                "Ask for something else: another try with the same words fails again."
            )
        return self.error(
            MediaErrorKind.REFUSED,
            t.later("refused the request{said}", said=said),
            hint,
        )


def error_detail(body: bytes) -> str:
    """Returns a service's error message, in any of the usual shapes, cut to a sentence or two."""
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    for _ in range(4):
        match found:
            case (
                {"error": inner}
                | {"detail": inner}
                | {"message": inner}
                | {"msg": inner}
            ):
                found = inner
            case [first, *_]:
                found = first
            case _:
                break
    text = " ".join(found.split()) if isinstance(found, str) else ""
    return text[:_MAX_DETAIL_CHARACTERS].rstrip(".")


class FormPart(msgspec.Struct, frozen=True):
    """A file in a form."""

    field: str
    name: str
    picture: ReferencePicture


def encode_form(
    fields: Mapping[str, str], parts: tuple[FormPart, ...]
) -> tuple[bytes, str]:
    """Returns the body of a multipart form, and its content type."""
    boundary = f"hermes-{os.urandom(12).hex()}"
    pieces: list[bytes] = []
    for name, value in fields.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'  # not translated
        pieces += [head.encode(), value.encode(), b"\r\n"]
    for part in parts:
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{part.field}"; filename="{part.name}"\r\n'
            f"Content-Type: {part.picture.media_type}\r\n\r\n"  # not translated
        )
        pieces += [head.encode(), part.picture.data, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    return b"".join(pieces), f"multipart/form-data; boundary={boundary}"

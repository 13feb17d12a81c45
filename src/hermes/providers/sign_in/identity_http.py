"""Requests to identity providers: small, bounded, without redirects, and never with a secret in an address or an error."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from hermes import __version__
from hermes.errors import HermesError, Words
from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure
from hermes.settings.redaction import mask
from hermes.text.translation import translator

t = translator(__name__)

_TIMEOUTS = HttpTimeouts(connect=10.0, first_byte=30.0, idle=15.0, total=45.0)
_MAX_ANSWER_BYTES = 1_000_000
_MAX_WORDS_CHARACTERS = 300


class SignInError(HermesError):
    """Signing in did not work. `is_final`: the same attempt would fail again."""

    def __init__(
        self, message: str | Words, *, hint: str | Words = "", is_final: bool = True
    ) -> None:
        super().__init__(message, hint=hint)
        self.is_final = is_final


class IdentityAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an identity provider answered."""

    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str] = {}

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def error(self) -> str:
        """The code of the error, as RFC 6749 has it or as OpenAI does; empty if there is none."""
        error = self.document.get("error")
        if isinstance(error, Mapping):
            return str(error.get("code") or error.get("type") or "")
        return str(error or self.document.get("code") or "")

    @property
    def words(self) -> str:
        """What the provider says about it, shortened and without anything that looks like a secret."""
        error = self.document.get("error")
        said = self.document.get("error_description")
        if isinstance(error, Mapping):
            said = said or error.get("message")
        details = self.document.get("error_details")
        if isinstance(details, Mapping):
            said = said or details.get("message")
        said = (
            said
            or self.document.get("message")
            or self.error
            or f"status {self.status}"
        )
        words = " ".join(str(said).split())
        return mask("".join(c for c in words if c.isprintable()))[
            :_MAX_WORDS_CHARACTERS
        ]


class IdentityHttp:
    """Asks identity providers. Every address must be HTTPS, or this machine."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def get(self, url: str, headers: Mapping[str, str]) -> IdentityAnswer:
        return await self._send("GET", url, headers, b"")

    async def post_form(self, url: str, fields: Mapping[str, str]) -> IdentityAnswer:
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return await self._send("POST", url, kind, urlencode(fields).encode())

    async def post_json(self, url: str, fields: Mapping[str, str]) -> IdentityAnswer:
        kind = {"content-type": "application/json"}
        return await self._send("POST", url, kind, msgspec.json.encode(fields))

    async def close(self) -> None:
        await self._http.aclose()

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> IdentityAnswer:
        require_safe(url)
        host = urlsplit(url).hostname or ""
        sent = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "user-agent": f"hermes/{__version__}",
            **headers,
        }
        try:
            reply = await self._http.send(method, url, sent, body, _TIMEOUTS)
            async with reply:
                content = await reply.read_all(_MAX_ANSWER_BYTES)
        except TransportFailure as failure:
            raise SignInError(
                t.later(
                    "{host} could not be reached: {detail}",
                    host=host,
                    detail=failure.detail,
                ),
                hint=t.later("Check your network connection and try again."),
                is_final=False,
            ) from failure
        if 300 <= reply.status < 400:
            raise SignInError(
                t.later(
                    "{host} sends the request elsewhere, which is not followed.",
                    host=host,
                )
            )
        return IdentityAnswer(
            status=reply.status, document=_document(content), headers=reply.headers
        )


def _document(content: bytes) -> dict[str, Any]:
    """Returns the answer as JSON; nothing for a page or a broken answer, whose status still counts."""
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def require_safe(url: str) -> None:
    """Raises SignInError for an address that a secret must not be sent to."""
    parts = urlsplit(url)
    is_here = parts.hostname in {"127.0.0.1", "::1", "localhost"}
    is_private = parts.scheme == "https" or (parts.scheme == "http" and is_here)
    if is_private and parts.hostname and "@" not in parts.netloc:
        return
    raise SignInError(
        t.later("{host} is not an address to sign in at.", host=parts.hostname or "?"),
        hint=t.later("It must be https://..., or this machine."),
    )


def is_within(url: str, issuer: str, domain: str = "") -> bool:
    """Whether an address is the issuer's own: its host or one below it, or one in `domain`, by the same kind of connection."""
    address, own = urlsplit(url), urlsplit(issuer)
    host, issuing = (address.hostname or "").lower(), (own.hostname or "").lower()
    if not host or not issuing or address.scheme != own.scheme:
        return False
    if host == issuing:
        return address.port == own.port
    allowed = [one for one in (issuing, domain) if "." in one]
    return any(host == one or host.endswith(f".{one}") for one in allowed)

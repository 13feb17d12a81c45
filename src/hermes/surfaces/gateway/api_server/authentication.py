"""The door of the API: no request gets further without the right Host, without a page of ours behind it, and without a
key that has the scope. Errors look like OpenAI's."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import msgspec

from hermes.errors import HermesError, in_sentences
from hermes.settings import Secrets
from hermes.surfaces.gateway.api_server.api_keys import (
    ApiKey,
    ApiKeys,
    Scope,
    of_environment,
)
from hermes.surfaces.web.host_names import Addresses
from hermes.surfaces.web.login_throttle import Throttle

log = logging.getLogger("hermes.api")

Message: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

KEY = "hermes.key"
"""Where an ASGI scope holds the key of the request."""

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
}
_TYPES |= {429: "rate_limit_error"}
_OPEN = "/health"


class ApiError(Exception):
    """A refusal as a client of OpenAI expects it."""

    def __init__(
        self, status: int, message: str, *, code: str = "", param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code or None
        self.param = param
        self.wait = 0.0

    @property
    def body(self) -> dict[str, Any]:
        """In OpenAI's shape."""
        kind = _TYPES.get(
            self.status, "api_error" if self.status >= 500 else "invalid_request_error"
        )
        if self.code == "insufficient_quota":
            kind = self.code
        return {
            "error": {
                "message": self.message,
                "type": kind,
                "param": self.param,
                "code": self.code,
            }
        }


class Door:
    """Lets a request through with its key in the ASGI scope, or answers itself."""

    def __init__(
        self,
        inner: ASGIApp,
        addresses: Addresses,
        keys: ApiKeys,
        secrets: Secrets,
        throttle: Throttle,
    ) -> None:
        self._inner = inner
        self._addresses = addresses
        self._keys = keys
        self._secrets = secrets
        self._throttle = throttle

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            headers = _headers(scope)
            self._check_source(headers)
            if scope["path"] != _OPEN:
                scope[KEY] = self._identify(headers)
        except ApiError as error:
            await refuse(error, send)
            return
        except HermesError as error:  # such as keys that can't be read
            log.error("a request was refused: %s", in_sentences(error))  # noqa: TRY400 - no more to say
            await refuse(
                ApiError(500, "Something is wrong here; the log of Hermes says what."),
                send,
            )
            return
        await self._inner(scope, receive, send)

    def _check_source(self, headers: dict[str, list[str]]) -> None:
        """Against pages of others in a browser of this machine: by another name, or from another origin."""
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or not self._addresses.knows_host(hosts[0]):
            raise ApiError(
                403,
                "This server does not go by that name. See api.public_urls.",
                code="unknown_host",
            )
        if len(origins) > 1 or (
            origins and not self._addresses.knows_origin(origins[0], hosts[0])
        ):
            raise ApiError(
                403, "A page from elsewhere may not do this.", code="unknown_origin"
            )
        if any(
            site not in ("same-origin", "none")
            for site in headers.get("sec-fetch-site", [])
        ):
            raise ApiError(
                403, "A page from elsewhere may not do this.", code="unknown_origin"
            )

    def _identify(self, headers: dict[str, list[str]]) -> ApiKey:
        values = headers.get("authorization", [])
        kind, _, text = (values[0] if len(values) == 1 else "").partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            raise ApiError(
                401,
                "There is no key. Send it as: Authorization: Bearer ...",
                code="missing_api_key",
            )
        key = self._keys.check(text.strip()) or of_environment(
            self._secrets, text.strip()
        )
        if key is not None:
            return key
        wait = self._throttle.wait("key")
        self._throttle.failed("key")
        if wait or (wait := self._throttle.wait("key")):
            error = ApiError(
                429,
                f"Too many wrong keys. Wait {wait:.0f} s.",
                code="too_many_failures",
            )
            error.wait = wait
            raise error
        raise ApiError(
            401,
            "This key is not valid. Make one with: hermes api key add",
            code="invalid_api_key",
        )


def require(scope: Any, need: Scope) -> ApiKey:
    """The key of a request, if it may do this."""
    key: ApiKey = scope[KEY]
    if need not in key.scopes:
        raise ApiError(
            403,
            f"This key may not do that: it lacks the scope {need!r}.",
            code="missing_scope",
        )
    return key


async def refuse(error: ApiError, send: Send) -> None:
    """Answers with an error."""
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    if error.wait:
        headers.append((b"retry-after", str(max(1, round(error.wait))).encode()))
    await send(
        {"type": "http.response.start", "status": error.status, "headers": headers}
    )
    await send({"type": "http.response.body", "body": msgspec.json.encode(error.body)})


def _headers(scope: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(
            value.decode("latin-1")
        )
    return found

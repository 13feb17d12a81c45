"""Access to the API: keys, and errors in OpenAI's format."""

from typing import Any

from starlette.responses import Response
from starlette.types import Scope

from hermes.app import App
from hermes.errors import HermesError, in_sentences
from hermes.settings import Secrets
from hermes.surfaces.gateway.api_server.api_keys import ApiKey, ApiKeys, environment_key
from hermes.surfaces.web import override
from hermes.surfaces.web.access import (
    AccessControl,
    LoginThrottle,
    RequestHeaders,
    ResponseHeaders,
    Source,
    bearer_token,
)
from hermes.surfaces.web.errors import ErrorFormat, Refusal, json_response
from hermes.surfaces.web.hosts_and_origins import Addresses
from hermes.surfaces.web.request_json import InvalidRequest
from hermes.surfaces.web.server import ListenAddress

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class ApiAccess(AccessControl):
    """Admits requests with a key of this home."""

    def __init__(
        self, source: Source, keys: ApiKeys, secrets: Secrets, throttle: LoginThrottle
    ) -> None:
        self.source = source
        self._keys = keys
        self.secrets = secrets
        self._throttle = throttle

    @override
    def identify(self, scope: Scope, headers: RequestHeaders, method: str) -> ApiKey:
        del scope, method
        text = bearer_token(headers) or _anthropic_key(headers)
        if not text:
            raise Refusal(
                401,
                "The request has no API key.",
                "Send it as: Authorization: Bearer ...",
                code="missing_api_key",
            )
        key = self._keys.check(text) or environment_key(self.secrets, text)
        if key is None:
            self._throttle.refuse(
                "key",
                Refusal(
                    401,
                    "This API key is not valid.",
                    "Make one with: hermes api key add",
                    code="invalid_api_key",
                ),
            )
        return key

    @override
    def response_headers(self, headers: ResponseHeaders) -> ResponseHeaders:
        return [*headers, (b"cache-control", b"no-store")]


def api_access(app: App, secrets: Secrets, address: ListenAddress) -> ApiAccess:
    """The access control of a server at this address that admits API keys."""
    urls, clock = app.settings.api.public_urls, app.clock.now
    return ApiAccess(
        Source(Addresses(*address, urls), "api.public_urls"),
        ApiKeys(app.home, clock),
        secrets,
        LoginThrottle(clock),
    )


def _anthropic_key(headers: RequestHeaders) -> str:
    """The key as Anthropic's clients send it."""
    values = headers.get("x-api-key", [])
    if len(values) == 1:
        return values[0].strip()
    return ""


class OpenAIErrors(ErrorFormat):
    """Reports errors as OpenAI does, and those of `/v1/messages` as Anthropic does, so that both clients understand them."""

    @override
    def invalid(self, error: InvalidRequest) -> Refusal:
        if error.is_json:
            reason = f"The request is not valid: {error}."
            return Refusal(400, reason, code="invalid_value")
        return Refusal(400, f"The body is not JSON: {error}.", code="invalid_json")

    @override
    def failed(self, error: HermesError) -> Refusal:
        return Refusal(500, in_sentences(error), code="hermes_error")

    @override
    def unexpected(self, error: Exception) -> Refusal:
        del error
        return Refusal(500, "Something unexpected went wrong. The log has more.")

    @override
    def not_found(self, scope: Scope, allowed: frozenset[str]) -> Refusal:
        path = scope["path"].rstrip("/")
        if allowed:
            reason = f"{path} does not support {scope['method']}."
            return Refusal(405, reason, code="method_not_allowed")
        return Refusal(404, f"There is nothing at {path}.", code="not_found")

    @override
    def response(self, refusal: Refusal, scope: Scope) -> Response:
        body = error_body(refusal)
        if scope["path"].startswith("/v1/messages"):
            body = anthropic_error(refusal)
        return json_response(body, status=refusal.status, headers=refusal.headers)


def error_body(refusal: Refusal) -> dict[str, Any]:
    """A refusal in OpenAI's shape."""
    default = "api_error" if refusal.status >= 500 else "invalid_request_error"
    kind = _ERROR_TYPES.get(refusal.status, default)
    if refusal.code == "insufficient_quota":
        kind = refusal.code
    return {
        "error": {
            "message": f"{refusal.error} {refusal.hint}".rstrip(),
            "type": kind,
            "param": refusal.param,
            "code": refusal.code or None,
        }
    }


def anthropic_error(refusal: Refusal) -> dict[str, Any]:
    """A refusal in Anthropic's shape."""
    text = f"{refusal.error} {refusal.hint}".rstrip()
    kind = _ERROR_TYPES.get(refusal.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": text}}

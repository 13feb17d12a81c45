"""The one place that decides what a failed model call means: its reason, and what may be done about it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.errors import ModelError
from hermes.providers.http_client import TransportFailure
from hermes.providers.quirks import Quirks
from hermes.schema.model import FailureReason
from hermes.settings.redaction import mask

MAX_WORDS = 500  # characters of a provider's own words

_TOO_LONG = (
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "too many tokens",
    "reduce the length",
    "maximum number of tokens",
    "max_prompt_tokens",
    "input token count",
    "maximum prompt length",
    "too large for model",
    "longer than the model",
)
_BROKE = (
    "insufficient_quota",
    "insufficient balance",
    "credit balance",
    "billing",
    "payment required",
    "out of credits",
)
_BLOCKED = (
    "content_policy",
    "content_filter",
    "content management policy",
    "data_inspection",
    "safety system",
)
_BLOCKED += ("prohibited_content", "responsible_ai", "usage policies", "invalid_prompt")
_NO_PICTURES = (
    "support image",
    "support vision",
    "image input",
    "image_url is not supported",
    "not a multimodal",
)
_NOT_ENTITLED = (
    "entitle",
    "not included in your plan",
    "usage_not_included",
    "not have access",
    "permission denied",
)
_NOT_ENTITLED += (
    "permission_denied",
    "access_denied",
    "active subscription",
    "subscription required",
    "not subscribed",
)
_KEY = ("key", "token", "credential")  # words that say which part was wrong
_STATUS_OF = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "permission_denied": 403,
    "access_denied": 403,
    "usage_not_included": 403,
    "insufficient_permissions": 403,
    "unsupported_country_region_territory": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "server_overloaded": 529,
    "insufficient_system_resource": 529,
}
_REASONS: dict[int, FailureReason] = {
    401: "auth",
    402: "billing",
    403: "forbidden",
    404: "not_found",
    405: "not_found",
    408: "timeout",
    409: "server",
    413: "too_long",
    425: "server",
    429: "rate_limited",
    503: "overloaded",
    529: "overloaded",
}
# reason: (retryable, rotate_key, fall_back)
_ACTIONS: dict[FailureReason, tuple[bool, bool, bool]] = {
    "auth": (False, True, True),
    "billing": (False, True, True),
    "forbidden": (False, False, True),
    "not_found": (False, False, True),
    "rate_limited": (True, True, True),
    "overloaded": (True, False, True),
    "server": (True, False, True),
    "timeout": (True, False, True),
    "connection": (True, False, True),
    "malformed": (True, False, True),
    "too_long": (False, False, False),
    "refused": (False, False, False),
    "bad_request": (False, False, False),
}
_TITLES: dict[FailureReason, str] = {
    "auth": "did not accept the key",
    "billing": "says there is no credit",
    "forbidden": "does not allow this",
    "not_found": "does not know this model or address",
    "rate_limited": "says there were too many requests",
    "overloaded": "is overloaded",
    "server": "failed",
    "timeout": "did not answer in time",
    "connection": "could not be reached",
    "malformed": "sent something that is not a reply",
    "too_long": "says the conversation does not fit the model",
    "refused": "refused the content",
    "bad_request": "did not accept the request",
}


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who was called."""

    provider: str
    model: str
    base_url: str
    quirks: Quirks

    @property
    def address(self) -> str:
        """The address as it may be shown: without a password in it."""
        scheme, _, rest = self.base_url.partition("://")
        host, slash, path = rest.partition("/")
        return mask(
            f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
        )

    @property
    def key_variable(self) -> str:
        return self.quirks.key_variable or "OPENAI_API_KEY"


class _Metadata(msgspec.Struct):
    raw: Any = None
    provider_name: str | None = None


class _Detail(msgspec.Struct):
    message: Any = None
    type: Any = None
    code: Any = None
    metadata: _Metadata | None = None


class _Body(msgspec.Struct):
    error: _Detail | str | None = None
    message: Any = None
    detail: Any = None
    type: Any = None
    code: Any = None


def from_status(
    caller: Caller, status: int, body: bytes, headers: Mapping[str, str], now: float
) -> ModelError:
    """An answer with an error status."""
    words, code = explain(body, headers.get("content-type", ""))
    return _error(
        caller,
        _reason(status, code, words, caller),
        words,
        status=status,
        retry_after=_wait(headers, now),
    )


def from_frame(caller: Caller, body: bytes) -> ModelError:
    """An error that came inside a stream whose status was fine."""
    words, code = explain(body, "application/json")
    status = _status_of(code) or (403 if _is_not_entitled(f"{code} {words}") else None)
    return _error(
        caller, _reason(status or 500, code, words, caller), words, status=status
    )


def from_transport(caller: Caller, failure: TransportFailure) -> ModelError:
    """No complete answer."""
    if failure.phase in {"too_large", "protocol"}:
        return _error(caller, "malformed", failure.detail, retryable=False)
    if failure.timed_out:
        return _error(
            caller, "timeout", failure.detail, retryable=failure.phase != "total"
        )
    detail = (
        failure.detail
        if failure.phase == "connect"
        else f"the connection was cut: {failure.detail}"
    )
    return _error(caller, "connection", detail)


def malformed(caller: Caller, detail: str) -> ModelError:
    """An answer that is not the wire format."""
    return _error(caller, "malformed", detail)


def explain(body: bytes, content_type: str) -> tuple[str, str]:
    """The provider's own words, bounded and without anything that looks like a key, and its codes."""
    text = body.decode("utf-8", "replace").strip()
    if "html" in content_type or text[:15].lower().startswith(("<!doctype", "<html")):
        return _bounded(f"an HTML page{_title(text)}"), ""
    try:
        found = msgspec.json.decode(text, type=_Body | list[_Body])
    except (msgspec.DecodeError, RecursionError):
        return _bounded(text), ""
    parsed = (found[0] if found else _Body()) if isinstance(found, list) else found
    error = parsed.error
    if isinstance(error, _Detail):
        words = [
            _words(error.message),
            _words(error.metadata.raw) if error.metadata else "",
        ]
        codes = (error.code, error.type)
    else:
        words = [error or _words(parsed.message) or _words(parsed.detail)]
        codes = (parsed.code, parsed.type)
    said = ": ".join(word for word in words if word) or text
    return _bounded(said), " ".join(str(code) for code in codes if code is not None)


def _words(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _title(text: str) -> str:
    start = text.lower().find("<title>")
    end = text.lower().find("</title>", start)
    return (
        f" titled “{' '.join(text[start + 7 : end].split())}”"
        if 0 <= start < end
        else ""
    )


def _bounded(words: str) -> str:
    words = mask(
        "".join(c if c.isprintable() else " " for c in " ".join(words.split()))
    )
    return words if len(words) <= MAX_WORDS else words[:MAX_WORDS] + "…"


def _status_of(code: str) -> int | None:
    for part in code.split():
        if part.isdigit() and 400 <= int(part) <= 599:
            return int(part)
        if part.lower() in _STATUS_OF:
            return _STATUS_OF[part.lower()]
    return None


def _reason(status: int, code: str, words: str, caller: Caller) -> FailureReason:
    said = f"{code} {words}".lower()
    if status in {400, 413, 422, 500} and any(phrase in said for phrase in _TOO_LONG):
        return "too_long"
    quota = (
        status == 429
        and "exceeded your current quota" in said
        and caller.quirks.family == "openai"
    )
    if status in {400, 402, 403, 429} and (
        quota or any(phrase in said for phrase in _BROKE)
    ):
        return "billing"
    if status in {400, 403, 422} and any(phrase in said for phrase in _BLOCKED):
        return "refused"
    if status == 400 and (
        "api key not valid" in said
        or "invalid api key" in said
        or "invalid_api_key" in said
    ):
        return "auth"  # some answer a wrong key with 400
    if status in {400, 401, 403} and _is_not_entitled(said):
        return "forbidden"
    if any(phrase in said for phrase in _NO_PICTURES):
        status = 400  # some say 404 or 500; the same request would fail again
    usual: FailureReason = "server" if status >= 500 else "bad_request"
    if status < 400:
        usual = "not_found"  # a redirect: the address is not where the service is
    return _REASONS.get(status, usual)


def _is_not_entitled(said: str) -> bool:
    """Whether the account is not entitled to what it asks for. A retry or another key of that account does not help."""
    return any(phrase in said.lower() for phrase in _NOT_ENTITLED)


def _wait(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that the provider asks us to wait."""
    milliseconds = headers.get("retry-after-ms", "")
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(text)
    except ValueError:
        return _until(text, now) if text else None
    return seconds if 0 <= seconds < 1e9 else None


def _until(text: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except ValueError:  # neither seconds nor a date: as if it had not been sent
        return None


def _error(
    caller: Caller,
    reason: FailureReason,
    words: str,
    *,
    status: int | None = None,
    retry_after: float | None = None,
    retryable: bool | None = None,
) -> ModelError:
    allowed, rotate_key, fall_back = _ACTIONS[reason]
    number = f" ({status})" if status else ""
    return ModelError(
        f"{caller.provider} {_TITLES[reason]}{number}"
        + (f": {words}" if words else "."),
        hint=_hint(caller, reason),
        reason=reason,
        retryable=allowed if retryable is None else retryable,
        compress=reason == "too_long",
        rotate_key=rotate_key,
        rotate_once=reason == "auth"
        and not any(word in words.lower() for word in _KEY),
        fall_back=fall_back,
        retry_after=retry_after,
        status=status,
    )


def _hint(caller: Caller, reason: FailureReason) -> str:
    hints: dict[FailureReason, str] = {
        "auth": f"Check the key: hermes config set {caller.key_variable}",
        "billing": "Add credit at the provider, or choose another with: hermes model",
        "forbidden": f"This key may not use {caller.model}: choose another model with: hermes model",
        "not_found": f"Check model.default ({caller.model}) and the address {caller.address}: most end in /v1.",
        "rate_limited": "Wait a little, add a second key, or set model.fallback.",
        "overloaded": "Try again in a minute, or set model.fallback.",
        "server": "Try again in a minute, or set model.fallback.",
        "timeout": "Try again; for a slow model raise model.first_byte_timeout or model.idle_timeout.",
        "connection": f"Check the network, and that a model server answers at {caller.address}",
        "malformed": f"Check that {caller.address} is the address of a model API, and model.api its kind.",
        "too_long": "Compact the conversation with /compress, or choose a model with a larger window.",
        "refused": "Rephrase, or choose another model with: hermes model",
        "bad_request": "If the model changed, start a new session; if it stays, report it with the words above.",
    }
    return hints[reason]

"""Decides what a failed model call means: its reason, and what can be done about it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.errors import ModelError
from hermes.providers.http_client import TransportFailure
from hermes.providers.provider_table import Quirks, is_local, label_of
from hermes.schema.model import FailureReason
from hermes.settings.redaction import mask
from hermes.text.translation import Later, to_translate, translator

t = translator(__name__)

MAX_QUOTED_CHARACTERS = 500  # of a provider's own message

_TOO_LONG = (
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",  # not translated
    "prompt too long",  # not translated
    "input is too long",  # not translated
    "input too long",  # not translated
    "too many tokens",  # not translated
    "reduce the length",  # not translated
    "maximum number of tokens",  # not translated
    "max_prompt_tokens",
    "input token count",  # not translated
    "maximum prompt length",  # not translated
    "too large for model",  # not translated
    "longer than the model",  # not translated
)
_NO_CREDIT = (
    "insufficient_quota",
    "insufficient balance",
    "credit balance",
    "billing",
    "payment required",
    "out of credits",  # not translated
)
_BLOCKED = (
    "content_policy",
    "content_filter",
    "content management policy",  # not translated
    "data_inspection",
    "safety system",
)
_BLOCKED += ("prohibited_content", "responsible_ai", "usage policies", "invalid_prompt")
_NO_PICTURES = (
    "support image",
    "support vision",
    "image input",
    "image_url is not supported",  # not translated
    "not a multimodal",
)
_NOT_ENTITLED = (
    "entitle",
    "not included in your plan",  # not translated
    "usage_not_included",
    "not have access",  # not translated
    "permission denied",
)
_NOT_ENTITLED += (
    "permission_denied",
    "access_denied",
    "active subscription",
    "subscription required",
    "not subscribed",
)
_WRONG_KEY = (
    "api key not valid",
    "invalid api key",
    "invalid_api_key",
)  # not translated
_QUOTA = "exceeded your current quota"  # not translated
_FRAME_PHRASES = (
    (403, _NOT_ENTITLED),
    (402, ("insufficient_quota", "insufficient balance", "credit balance", _QUOTA)),
    (401, (*_WRONG_KEY, "incorrect api key")),  # not translated
)
# The first row counts whose status and phrase both match.
_BY_PHRASE: tuple[tuple[FailureReason, frozenset[int], tuple[str, ...]], ...] = (
    ("too_long", frozenset((400, 413, 422, 500)), _TOO_LONG),
    ("billing", frozenset((400, 402, 403, 429)), _NO_CREDIT),
    ("refused", frozenset((400, 403, 422)), _BLOCKED),
    ("auth", frozenset((400,)), _WRONG_KEY),
    ("forbidden", frozenset((400, 401, 403)), _NOT_ENTITLED),
)
_KEY_WORDS = ("key", "token", "credential")  # they say which part was wrong
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
    "auth": to_translate("{provider} rejected the API key{said}"),
    "billing": to_translate("{provider} reports that the account has no credit{said}"),
    "forbidden": to_translate("{provider} does not allow this{said}"),
    "not_found": to_translate("{provider} does not know this model or address{said}"),
    "rate_limited": to_translate("{provider} received too many requests{said}"),
    "overloaded": to_translate("{provider} is overloaded now{said}"),
    "server": to_translate("{provider} failed on its side{said}"),
    "timeout": to_translate("{provider} did not answer in time{said}"),
    "connection": to_translate("{provider} could not be reached{said}"),
    "malformed": to_translate(
        "{provider} sent something that is not a model's reply{said}"
    ),
    "too_long": to_translate(
        "{provider} reports that the conversation is too long for the model{said}"
    ),
    "refused": to_translate("{provider} refused the content{said}"),
    "bad_request": to_translate("{provider} rejected the request{said}"),
}
_SIGN_IN_REJECTED = to_translate("{provider} rejected the sign-in{said}")


class CalledService(msgspec.Struct, frozen=True, kw_only=True):
    """The service that was called."""

    provider: str
    model: str
    base_url: str
    quirks: Quirks
    key_variable: str = ""
    sign_in_advice: str = ""
    """What helps against a rejected sign-in; empty if it was called with a key."""

    @property
    def address(self) -> str:
        """The address without a password, to be shown."""
        scheme, _, rest = self.base_url.partition("://")
        host, slash, path = rest.partition("/")
        return mask(
            f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
        )

    @property
    def key_advice(self) -> str | Later:
        """How to correct the key that it was called with."""
        if self.sign_in_advice:
            return self.sign_in_advice
        if self.key_variable:
            command = f"hermes config set {self.key_variable}"
            return t.later("Check the key: {command}", command=command)
        return t.later(
            "It was called without a key. Name the variable of its key: {command}",
            command=f"hermes config set custom_providers.{self.provider}.key_env NAME_API_KEY",  # not translated
        )


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
    caller: CalledService,
    status: int,
    body: bytes,
    headers: Mapping[str, str],
    now: float,
) -> ModelError:
    """Returns the error for an answer with an error status."""
    words, code = explain(body, headers.get("content-type", ""))
    return _error(
        caller,
        _reason(status, code, words, caller),
        words,
        status=status,
        retry_after=_wait(headers, now),
    )


def from_frame(caller: CalledService, body: bytes) -> ModelError:
    """Returns the error for a failure that was reported inside a stream."""
    words, code = explain(body, "application/json")
    status = _frame_status(code, words)
    return _error(
        caller, _reason(status or 500, code, words, caller), words, status=status
    )


def from_transport(caller: CalledService, failure: TransportFailure) -> ModelError:
    """Returns the error for an answer that did not come, or not completely."""
    if failure.phase in {"too_large", "protocol"}:
        return _error(caller, "malformed", failure.detail, retryable=False)
    if failure.timed_out:
        return _error(
            caller, "timeout", failure.detail, retryable=failure.phase != "total"
        )
    detail = (
        failure.detail
        if failure.phase == "connect"
        else t.logged("the connection was cut: {reason}", reason=failure.detail)
    )
    return _error(caller, "connection", detail)


def malformed(caller: CalledService, detail: str) -> ModelError:
    """Returns the error for an answer that is not in the wire format."""
    return _error(caller, "malformed", detail)


def explain(body: bytes, content_type: str) -> tuple[str, str]:
    """Returns the provider's message, shortened and without anything that looks like a key, and its codes."""
    text = body.decode("utf-8", "replace").strip()
    if "html" in content_type or text[:15].lower().startswith(("<!doctype", "<html")):
        return _bounded(f"an HTML page{_title(text)}"), ""  # not translated
    try:
        found = msgspec.json.decode(text, type=_Body | list[_Body])
    except (msgspec.DecodeError, RecursionError):
        return _bounded(text), ""
    parsed = (found[0] if found else _Body()) if isinstance(found, list) else found
    error = parsed.error
    if isinstance(error, _Detail):
        words = [
            _text_of(error.message),
            _text_of(error.metadata.raw) if error.metadata else "",
        ]
        codes = (error.code, error.type)
    else:
        words = [error or _text_of(parsed.message) or _text_of(parsed.detail)]
        codes = (parsed.code, parsed.type)
    said = ": ".join(word for word in words if word) or text
    return _bounded(said), " ".join(str(code) for code in codes if code is not None)


def _text_of(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


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
    if len(words) <= MAX_QUOTED_CHARACTERS:
        return words
    return words[:MAX_QUOTED_CHARACTERS] + "…"


def _status_of(code: str) -> int | None:
    for part in code.split():
        if part.isdigit() and 400 <= int(part) <= 599:
            return int(part)
        if part.lower() in _STATUS_OF:
            return _STATUS_OF[part.lower()]
    return None


def _frame_status(code: str, words: str) -> int | None:
    """The status that an error inside a stream stands for. Proxies report any error as a server error, so words count."""
    status, message = _status_of(code), f"{code} {words}".lower()
    if status is not None and status < 500:
        return status
    for meant, phrases in _FRAME_PHRASES:
        if _has_any(message, phrases):
            return meant
    return status


def _reason(status: int, code: str, words: str, caller: CalledService) -> FailureReason:
    message = f"{code} {words}".lower()
    if status == 429 and caller.quirks.family == "openai" and _QUOTA in message:
        return "billing"
    for reason, statuses, phrases in _BY_PHRASE:
        if status in statuses and _has_any(message, phrases):
            return reason
    if _has_any(message, _NO_PICTURES):
        status = 400  # some say 404 or 500; the same request would fail again
    return _REASONS.get(status) or _usual_reason(status)


def _usual_reason(status: int) -> FailureReason:
    if status < 400:
        return "not_found"  # a redirect: the service is at another address
    return "server" if status >= 500 else "bad_request"


def _has_any(message: str, phrases: tuple[str, ...]) -> bool:
    return any(phrase in message for phrase in phrases)


def _wait(headers: Mapping[str, str], now: float) -> float | None:
    """How many seconds the provider asks us to wait."""
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
    caller: CalledService,
    reason: FailureReason,
    words: str,
    *,
    status: int | None = None,
    retry_after: float | None = None,
    retryable: bool | None = None,
) -> ModelError:
    allowed, rotate_key, fall_back = _ACTIONS[reason]
    number = f" ({status})" if status else ""
    title = _TITLES[reason]
    if reason == "auth" and caller.sign_in_advice:
        title = _SIGN_IN_REJECTED
    said = f"{number}: {words}" if words else f"{number}."
    return ModelError(
        t.marked_later(title, provider=label_of(caller.provider), said=said),
        hint=_hint(caller, reason),
        reason=reason,
        retryable=allowed if retryable is None else retryable,
        compress=reason == "too_long",
        rotate_key=rotate_key,
        rotate_once=reason == "auth" and not _has_any(words.lower(), _KEY_WORDS),
        fall_back=fall_back,
        retry_after=retry_after,
        status=status,
    )


def _connection_advice(caller: CalledService) -> Later:
    if is_local(caller.base_url):
        return t.later(
            "Check that a model server is running at {address}", address=caller.address
        )
    return t.later(
        "Check your network connection and the address {address}",
        address=caller.address,
    )


def _missing_advice(caller: CalledService) -> Later:
    if caller.model:
        return t.later(
            "Check model.default ({model}) and the address {address}: most end in /v1.",
            model=caller.model,
            address=caller.address,
        )
    return t.later(
        "Set a model (hermes config set model.default NAME) and the address {address}: most end in /v1.",
        address=caller.address,
    )


_HINTS: dict[FailureReason, str] = {
    "billing": to_translate(
        "Add credit at the provider, or choose another with: hermes model"
    ),
    "forbidden": to_translate(
        "This key may not use {model}: choose another model with: hermes model"
    ),
    "rate_limited": to_translate(
        "Wait a little, add a second key, or set model.fallback."
    ),
    "overloaded": to_translate("Try again in a minute, or set model.fallback."),
    "server": to_translate("Try again in a minute, or set model.fallback."),
    "timeout": to_translate(
        "Try again; for a slow model raise model.first_byte_timeout or model.idle_timeout."
    ),
    "malformed": to_translate(
        "Check that {address} is the address of a model API, and model.api its kind."
    ),
    "too_long": to_translate(
        "Compact the conversation with /compress, or choose a model with a larger window."
    ),
    "refused": to_translate("Rephrase, or choose another model with: hermes model"),
    "bad_request": to_translate(
        "If the model changed, start a new session; if it stays, report it with the words above."
    ),
}


def _hint(caller: CalledService, reason: FailureReason) -> str | Later:
    match reason:
        case "auth":
            return caller.key_advice
        case "not_found":
            return _missing_advice(caller)
        case "connection":
            return _connection_advice(caller)
        case _:
            values = {"model": caller.model, "address": caller.address}
            return t.marked_later(_HINTS[reason], **values)

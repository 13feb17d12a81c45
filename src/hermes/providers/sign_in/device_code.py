"""Signing in with a code that is typed on a page, on any device: RFC 8628, and OpenAI's own kind of it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hermes.providers.sign_in.accounts import Tokens
from hermes.providers.sign_in.identity_http import (
    IdentityAnswer,
    IdentityHttp,
    SignInError,
    is_within,
    require_safe,
)
from hermes.providers.sign_in.services import SignInService, require_client
from hermes.providers.sign_in.token_grants import (
    Endpoints,
    find_endpoints,
    refusal,
    tokens_in,
)
from hermes.text.translation import translator

t = translator(__name__)

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_USUAL_INTERVAL_S = 5.0
_SLOWER_S = 5.0
_MAX_INTERVAL_S = 60.0
_MAX_LIFE_S = 1800.0
_CHATGPT_LIFE_S = 900.0
_MAX_FAILURES = 5  # of the network in a row

Sleep = Callable[[float], Awaitable[Any]]
Clock = Callable[[], float]


class DeviceCode(msgspec.Struct, frozen=True, kw_only=True):
    """A code that waits for somebody to type it. `link` may have it typed already."""

    user_code: str
    link: str
    device_code: str
    interval_s: float
    life_s: float
    endpoints: Endpoints

    def __repr__(self) -> str:
        return f"DeviceCode({self.user_code})"


async def request_code(http: IdentityHttp, service: SignInService) -> DeviceCode:
    """Asks for a code. Raises SignInError."""
    if service.flow == "chatgpt":
        return await _request_chatgpt_code(http, service)
    endpoints = await find_endpoints(http, service)
    fields = {"client_id": require_client(service)}
    if service.scope:
        fields["scope"] = service.scope
    answer = await http.post_form(endpoints.device, fields)
    if not answer.is_ok or answer.error:
        raise refusal(service, answer)
    document = answer.document
    return DeviceCode(
        user_code=_printable(document.get("user_code")),
        link=_own_link(service, document),
        device_code=str(document.get("device_code") or ""),
        interval_s=_seconds(document.get("interval"), _USUAL_INTERVAL_S),
        life_s=min(_seconds(document.get("expires_in"), _MAX_LIFE_S), _MAX_LIFE_S),
        endpoints=endpoints,
    )


async def _request_chatgpt_code(
    http: IdentityHttp, service: SignInService
) -> DeviceCode:
    base = f"{service.issuer}/api/accounts/deviceauth"
    answer = await http.post_json(
        f"{base}/usercode", {"client_id": require_client(service)}
    )
    if not answer.is_ok:
        raise refusal(service, answer)
    document = answer.document
    return DeviceCode(
        user_code=_printable(document.get("user_code") or document.get("usercode")),
        link=f"{service.issuer}/codex/device",
        device_code=str(document.get("device_auth_id") or ""),
        interval_s=max(3.0, _seconds(document.get("interval"), _USUAL_INTERVAL_S)),
        life_s=_CHATGPT_LIFE_S,
        endpoints=Endpoints(
            device=f"{base}/token", token=service.issuer + service.token_path
        ),
    )


def _own_link(service: SignInService, document: Mapping[str, Any]) -> str:
    """The page to open. One on another host is refused: it would get the person's password."""
    plain = str(
        document.get("verification_uri") or document.get("verification_url") or ""
    )
    link = str(document.get("verification_uri_complete") or plain)
    for url in (plain, link):
        require_safe(url)
        if not is_within(url, service.issuer, service.domain):
            host = urlsplit(url).hostname or "another host"
            raise SignInError(
                t.later(
                    "{label} wants the code typed at {host}, which is not its own. Don't open it.",
                    label=service.label,
                    host=host,
                )
            )
    return link if link.isprintable() and " " not in link else plain


async def wait_for_tokens(
    http: IdentityHttp,
    service: SignInService,
    code: DeviceCode,
    *,
    sleep: Sleep,
    clock: Clock,
) -> tuple[Tokens, Mapping[str, Any]]:
    """Polls until the code is typed. Returns the tokens and the answer they came in. Raises SignInError."""
    poll = _poll_chatgpt if service.flow == "chatgpt" else _poll
    interval, left, failures = code.interval_s, code.life_s, 0
    while left > 0:
        await sleep(interval)
        left -= interval
        try:
            answer = await poll(http, service, code)
        except SignInError as error:
            failures += 1
            if error.is_final or failures >= _MAX_FAILURES:
                raise
            continue
        failures = 0
        if answer.is_ok and not answer.error:
            return tokens_in(answer.document, clock()), answer.document
        interval = _next_interval(service, answer, interval)
    raise SignInError(
        t.later("The code has expired before it was typed."),
        hint=t.later("Get a new one: {command}", command=service.command),
    )


def _next_interval(
    service: SignInService, answer: IdentityAnswer, interval: float
) -> float:
    """How long to wait after an answer without tokens. Raises SignInError if waiting is no use."""
    match answer.error:
        case "authorization_pending":
            return interval
        case "slow_down":
            asked = _seconds(answer.document.get("interval"), 0.0)
            return min(max(interval + _SLOWER_S, asked), _MAX_INTERVAL_S)
        case "access_denied":
            raise SignInError(
                t.later(
                    "Signing in with {label} was denied: {words}",
                    label=service.label,
                    words=answer.words,
                ),
                hint=t.later("To try again: {command}", command=service.command),
            )
        case "expired_token":
            raise SignInError(
                t.later("The code has expired before it was typed."),
                hint=t.later("Get a new one: {command}", command=service.command),
            )
    if answer.status == 429 or answer.status >= 500:
        return min(interval + _SLOWER_S, _MAX_INTERVAL_S)
    raise refusal(service, answer)


async def _poll(
    http: IdentityHttp, service: SignInService, code: DeviceCode
) -> IdentityAnswer:
    fields = {
        "grant_type": _GRANT,
        "device_code": code.device_code,
        "client_id": require_client(service),
    }
    return await http.post_form(code.endpoints.token, fields)


async def _poll_chatgpt(
    http: IdentityHttp, service: SignInService, code: DeviceCode
) -> IdentityAnswer:
    """OpenAI answers 403 or 404 while nobody has typed the code, then with a code to be exchanged."""
    fields = {"device_auth_id": code.device_code, "user_code": code.user_code}
    answer = await http.post_json(code.endpoints.device, fields)
    if answer.status in {403, 404}:
        return IdentityAnswer(status=400, document={"error": "authorization_pending"})
    if not answer.is_ok:
        return answer
    document = answer.document
    exchanged = await http.post_form(
        code.endpoints.token,
        {
            "grant_type": "authorization_code",
            "code": str(document.get("authorization_code") or ""),
            "redirect_uri": f"{service.issuer}/deviceauth/callback",
            "client_id": require_client(service),
            "code_verifier": str(document.get("code_verifier") or ""),
        },
    )
    if not exchanged.is_ok:
        raise refusal(service, exchanged)
    return exchanged


def _seconds(value: object, usual: float) -> float:
    try:
        seconds = float(str(value))
    except ValueError:
        return usual
    return seconds if 0 < seconds < 1e6 else usual


def _printable(value: object) -> str:
    code = str(value or "")
    if not code or len(code) > 64 or not code.isprintable():
        raise SignInError(t.later("The identity provider sent no usable code."))
    return code

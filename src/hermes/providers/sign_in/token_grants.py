"""OAuth's token endpoint: what it grants, and what its refusals mean.

A token's life is counted from when it came, by this machine's clock, so a clock that is wrong does no harm.
"""

import base64
from collections.abc import Mapping
from typing import Any

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
from hermes.text.translation import translator

t = translator(__name__)

_USUAL_LIFE_S = 3600.0
_FINAL = frozenset(
    (
        "invalid_grant",
        "invalid_client",
        "unauthorized_client",
        "access_denied",
        "refresh_token_expired",
        "refresh_token_reused",
        "refresh_token_invalidated",
        "token_expired",
        "app_session_terminated",
    )
)


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Where a service gives codes and tokens."""

    device: str
    token: str


async def find_endpoints(http: IdentityHttp, service: SignInService) -> Endpoints:
    """Returns the endpoints of a service. What discovery names must be the issuer's own. Raises SignInError."""
    if not service.discovers:
        return Endpoints(
            device=service.issuer + service.device_path,
            token=service.issuer + service.token_path,
        )
    answer = await http.get(service.issuer + "/.well-known/openid-configuration", {})
    if not answer.is_ok:
        raise SignInError(
            t.later(
                "{label} does not say where to sign in: {words}",
                label=service.label,
                words=answer.words,
            ),
            is_final=False,
        )
    if answer.document.get("issuer") != service.issuer:
        raise SignInError(
            t.later(
                "{label} names another issuer. Nothing was sent to it.",
                label=service.label,
            )
        )
    found = Endpoints(
        device=str(answer.document.get("device_authorization_endpoint") or ""),
        token=str(answer.document.get("token_endpoint") or ""),
    )
    for url in (found.device, found.token):
        if not is_within(url, service.issuer, service.domain):
            raise SignInError(
                t.later(
                    "{label} asks to sign in at another host. Nothing was sent there.",
                    label=service.label,
                ),
                hint=t.later(
                    "Its endpoints must be on the domain of {issuer}.",
                    issuer=service.issuer,
                ),
            )
        require_safe(url)
    return found


def tokens_in(
    document: Mapping[str, Any], now: float, old: Tokens | None = None
) -> Tokens:
    """Returns the tokens of an answer. A refresh token that is not replaced stays. Raises SignInError if there is none."""
    access = document.get("access_token")
    if not isinstance(access, str) or not access:
        raise SignInError(
            t.later("The answer of the identity provider has no access token.")
        )
    refresh = document.get("refresh_token")
    if not isinstance(refresh, str) or not refresh:
        refresh = old.refresh if old else ""
    return Tokens(
        access=access,
        refresh=refresh,
        expires_at=now + _life_s(document, access),
        received_at=now,
    )


def _life_s(document: Mapping[str, Any], access: str) -> float:
    """How long a token is good for: as the answer says, or as the token itself does."""
    try:
        life = float(document.get("expires_in") or 0)
    except (TypeError, ValueError):
        life = 0.0
    if life <= 0:
        claims = claims_of(access)
        expires, issued = claims.get("exp"), claims.get("iat")
        if isinstance(expires, int | float) and isinstance(issued, int | float):
            life = float(expires - issued)
    return life if life > 0 else _USUAL_LIFE_S


def claims_of(token: str) -> Mapping[str, Any]:
    """Returns what a JWT says about itself; nothing if it is none. It is not verified: only its issuer reads it as proof."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        return msgspec.json.decode(
            base64.urlsafe_b64decode(padded), type=dict[str, Any]
        )
    except (ValueError, msgspec.DecodeError):
        return {}


async def refresh(
    http: IdentityHttp, service: SignInService, tokens: Tokens, now: float
) -> tuple[Tokens, Mapping[str, Any]]:
    """Exchanges a refresh token. Returns the answer, too. Raises SignInError, which is final if the login is dead."""
    fields = {
        "grant_type": "refresh_token",
        "refresh_token": tokens.refresh,
        "client_id": require_client(service),
    }
    if service.flow == "chatgpt":
        answer = await http.post_json(service.issuer + service.token_path, fields)
    else:
        endpoints = await find_endpoints(http, service)
        answer = await http.post_form(endpoints.token, fields)
    if answer.is_ok and not answer.error:
        return tokens_in(answer.document, now, tokens), answer.document
    raise refusal(service, answer)


def refusal(service: SignInService, answer: IdentityAnswer) -> SignInError:
    """What a refusal of the token endpoint means."""
    is_final = answer.error in _FINAL or answer.status in {401, 403}
    return SignInError(
        t.later("{label} refused: {words}", label=service.label, words=answer.words),
        hint=t.later("Sign in again: {command}", command=service.command)
        if is_final
        else t.later("Try again later."),
        is_final=is_final,
    )

"""The login of the codex program, shared with it: read from its `auth.json`, and renewed so that codex stays signed in.

Hermes keeps no copy of these tokens. The file is read anew before every refresh, because codex refreshes too, and is
written only if it still holds the refresh token that was used. Everything else in it stays as it is.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from hermes.primitives.files import replace_file
from hermes.primitives.untyped import object_in
from hermes.providers.sign_in.accounts import Tokens
from hermes.providers.sign_in.identity_http import SignInError
from hermes.providers.sign_in.token_grants import claims_of
from hermes.text.translation import translator

t = translator(__name__)

_AUTH_CLAIM = "https://api.openai.com/auth"


class CodexLogin(msgspec.Struct, frozen=True, kw_only=True):
    """What codex's file holds."""

    tokens: Tokens
    account_id: str
    email: str
    plan: str = ""

    def __repr__(self) -> str:
        return f"CodexLogin({self.email})"


def read_login(path: Path) -> CodexLogin:
    """Reads codex's login. Raises SignInError if there is none."""
    document = _document(path)
    found = document.get("tokens")
    if not isinstance(found, Mapping) or not found.get("access_token"):
        raise SignInError(
            t.later("codex is not signed in with a ChatGPT account."),
            hint=t.later("Sign in with: codex login, or: hermes auth add openai"),
        )
    access = str(found["access_token"])
    about = describe_login(found)
    return CodexLogin(
        tokens=Tokens(
            access=access,
            refresh=str(found.get("refresh_token") or ""),
            expires_at=_expiry(access, document),
            received_at=_last_refresh(document),
        ),
        account_id=str(found.get("account_id") or about.get("account_id", "")),
        email=about.get("email", ""),
        plan=about.get("plan", ""),
    )


def describe_login(document: Mapping[str, Any]) -> dict[str, str]:
    """Returns what the tokens of OpenAI say about their account: its id, plan and e-mail address."""
    about: dict[str, str] = {}
    for name in ("access_token", "id_token"):
        claims = claims_of(str(document.get(name) or ""))
        own = object_in(claims, _AUTH_CLAIM)
        known = {
            "account_id": own.get("chatgpt_account_id"),
            "plan": own.get("chatgpt_plan_type"),
            "email": claims.get("email"),
        }
        about |= {key: str(value) for key, value in known.items() if value}
    return about


def save_login(path: Path, used: str, answer: Mapping[str, Any]) -> bool:
    """Writes renewed tokens for codex and Hermes. Returns False, and writes nothing, if `used` is no longer in the file."""
    target = path.resolve()  # a link to a file elsewhere stays a link
    document = _document(target)
    tokens = document.get("tokens")
    if not isinstance(tokens, Mapping) or tokens.get("refresh_token") != used:
        return False
    names = ("id_token", "access_token", "refresh_token")
    renewed = {name: answer[name] for name in names if answer.get(name)}
    document["tokens"] = {**tokens, **renewed}
    stamp = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    document["last_refresh"] = stamp
    content = msgspec.json.format(msgspec.json.encode(document), indent=2)
    replace_file(target, content, alone=False)
    return True


def _document(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError as error:
        raise SignInError(
            t.later("codex is no longer signed in."),
            hint=t.later("Sign in with: codex login, or: hermes auth add openai"),
        ) from error
    except (OSError, msgspec.DecodeError) as error:
        raise SignInError(
            t.later("codex's login can't be read: {path}", path=path), is_final=False
        ) from error


def _last_refresh(document: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(document.get("last_refresh"))).timestamp()
    except ValueError:
        return 0.0


def _expiry(access: str, document: Mapping[str, Any]) -> float | None:
    """When a token expires by this machine's clock, on which codex noted when it came."""
    claims = claims_of(access)
    expires, issued = claims.get("exp"), claims.get("iat")
    if not isinstance(expires, int | float):
        return None
    came = _last_refresh(document)
    if came and isinstance(issued, int | float):
        return came + float(expires - issued)
    return float(expires)

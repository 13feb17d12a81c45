"""GitHub Copilot: a GitHub token is exchanged for one that is good for half an hour."""

from typing import Any
from urllib.parse import urlsplit

from hermes.primitives.untyped import object_in, text_in
from hermes.providers.sign_in.accounts import Account, Tokens
from hermes.providers.sign_in.identity_http import IdentityHttp, SignInError, is_within
from hermes.providers.sign_in.services import SignInService
from hermes.text.translation import translator

t = translator(__name__)

_HOST = "githubcopilot.com"
_USUAL_LIFE_S = 1500.0


def check_github_token(token: str) -> None:
    """Raises SignInError for a token that Copilot does not take."""
    if token.startswith("ghp_"):
        raise SignInError(
            t.later(
                "GitHub Copilot does not take classic personal access tokens (ghp_...)."
            ),
            hint=t.later(
                "Sign in with: hermes auth add copilot, or use a fine-grained token with the permission Copilot Requests."
            ),
        )
    if not token.startswith(("gho_", "ghu_", "github_pat_")):
        raise SignInError(t.later("That is not a token of GitHub."))


async def exchange(
    http: IdentityHttp, service: SignInService, account: Account, now: float
) -> tuple[Tokens, dict[str, str]]:
    """Returns a new short-lived token, and where it is good. Raises SignInError with GitHub's own words."""
    github = account.tokens.refresh
    headers = {
        "authorization": f"token {github}",
        "editor-version": "hermes/1.0",
    }
    answer = await http.get(_api(service) + "/copilot_internal/v2/token", headers)
    if not answer.is_ok:
        is_final = answer.status in {401, 403, 404}
        raise SignInError(
            t.later("GitHub Copilot refused: {words}", words=answer.words),
            hint=t.later("Sign in again: {command}", command=service.command)
            if is_final
            else t.later("Try again later."),
            is_final=is_final,
        )
    document = answer.document
    token = str(document.get("token") or "")
    if not token:
        raise SignInError(
            t.later("GitHub's answer has no Copilot token."), is_final=False
        )
    tokens = Tokens(
        access=token,
        refresh=github,
        expires_at=now + _life_s(document.get("refresh_in")),
        received_at=now,
    )
    address = text_in(object_in(document, "endpoints"), "api")
    return tokens, _facts(service, address)


def _facts(service: SignInService, address: str) -> dict[str, str]:
    """The address of the account's plan, if it is Copilot's own."""
    if not address:
        return {}
    parts = urlsplit(address)
    host = parts.hostname or ""
    is_copilots = parts.scheme == "https" and (
        host == _HOST or host.endswith(f".{_HOST}")
    )
    if not is_copilots and not is_within(address, service.issuer):
        raise SignInError(
            t.later("GitHub names another host for Copilot. Nothing was sent there.")
        )
    return {"base_url": address.rstrip("/")}


def _life_s(refresh_in: Any) -> float:
    return float(refresh_in) if isinstance(refresh_in, int | float) else _USUAL_LIFE_S


def _api(service: SignInService) -> str:
    """Where the API is that belongs to github.com, or to a company's GitHub."""
    parts = urlsplit(service.issuer)
    if parts.scheme == "http":  # this machine, in tests and behind a tunnel
        return service.issuer
    return f"https://api.{parts.netloc}"

"""The services that somebody can sign in with: addresses, clients and flows.

The client ids are those that the vendors publish in their own open-source programs, or that their documentation gives to
everybody. Each can be replaced in the settings: `sign_ins.NAME.client_id`.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from hermes.errors import UsageError
from hermes.providers.sign_in.identity_http import SignInError, require_safe
from hermes.settings.models import SignInSettings
from hermes.text.intended_word import intended_word
from hermes.text.translation import JoinedWords, translator

t = translator(__name__)

Flow: TypeAlias = Literal["chatgpt", "device", "mint_key", "machine"]
"""`chatgpt`: OpenAI's own kind of device code. `device`: RFC 8628. `mint_key`: PKCE that ends with an API key. `machine`:
the cloud's own library finds who this machine or its user is."""


class SignInService(msgspec.Struct, frozen=True, kw_only=True):
    """One service. `provider` is the model provider that its accounts are good for."""

    name: str
    provider: str
    label: str
    flow: Flow
    issuer: str = ""
    client_id: str = ""
    scope: str = ""
    device_path: str = ""
    token_path: str = ""
    discovers: bool = False
    """Whether its endpoints come from OIDC discovery."""
    domain: str = ""
    """Where its endpoints may be, beside the issuer's own host."""
    refresh_early_s: float = 120.0
    base_url: str = ""
    """Where its accounts are used; empty for the provider's usual address."""
    extra: str = ""
    """The extra of Hermes that it needs."""

    @property
    def command(self) -> str:
        """What signs in (again)."""
        return f"hermes auth add {self.name}"


SERVICES: tuple[SignInService, ...] = (
    SignInService(
        name="openai",
        provider="chatgpt",
        label="OpenAI (ChatGPT account)",
        flow="chatgpt",
        issuer="https://auth.openai.com",
        client_id="app_EMoamEEZ73f0CkXaXp7hrann",  # of the codex program
        token_path="/oauth/token",  # noqa: S106 - a path
    ),
    SignInService(
        name="openrouter",
        provider="openrouter",
        label="OpenRouter",
        flow="mint_key",
        issuer="https://openrouter.ai",
    ),
    SignInService(
        name="copilot",
        provider="copilot",
        label="GitHub Copilot",
        flow="device",
        issuer="https://github.com",
        client_id="Iv1.b507a08c87ecfe98",  # of GitHub's own editor plugins
        scope="read:user",
        device_path="/login/device/code",
        token_path="/login/oauth/access_token",  # noqa: S106 - a path
    ),
    SignInService(
        name="xai",
        provider="xai",
        label="xAI (Grok account)",
        flow="device",
        issuer="https://auth.x.ai",
        client_id="b1a00492-073a-47ea-816f-4c329264a828",  # of the grok program
        scope="openid profile email offline_access grok-cli:access api:access",  # not translated
        discovers=True,
        domain="x.ai",
        refresh_early_s=600.0,
    ),
    SignInService(
        name="nous",
        provider="nous",
        label="Nous Portal",
        flow="device",
        issuer="https://portal.nousresearch.com",
        client_id="hermes-cli",
        scope="inference:invoke",
        device_path="/api/oauth/device/code",
        token_path="/api/oauth/token",  # noqa: S106 - a path
    ),
    SignInService(
        name="azure",
        provider="azure",
        label="Azure (Entra ID)",
        flow="machine",
        scope="https://cognitiveservices.azure.com/.default",
        extra="azure",
    ),
    SignInService(
        name="vertex",
        provider="vertex",
        label="Google Vertex AI",
        flow="machine",
        scope="https://www.googleapis.com/auth/cloud-platform",
        extra="vertex",
    ),
    SignInService(
        name="bedrock",
        provider="bedrock",
        label="AWS Bedrock",
        flow="machine",
        extra="bedrock",
    ),
)
_BY_NAME = {one.name: one for one in SERVICES}
_ALIASES = {
    "chatgpt": "openai",
    "codex": "openai",
    "github": "copilot",
    "grok": "xai",
    "google": "vertex",
    "aws": "bedrock",
}


def find_service(
    name: str, settings: Mapping[str, SignInSettings] | None = None
) -> SignInService:
    """Returns a service, with what the settings say about it. Raises UsageError if there is none of that name."""
    word = name.strip().lower()
    service = _BY_NAME.get(_ALIASES.get(word, word))
    if service is None:
        near = intended_word(word, [*_BY_NAME, *_ALIASES])
        guess = t.later("Did you mean {near}?", near=near) if near else ""
        raise UsageError(
            t.later("Hermes can't sign in with {name!r}.", name=name),
            hint=JoinedWords(
                guess,
                t.later(
                    "Services: {by_name}. For a key: hermes config set NAME_API_KEY",
                    by_name=", ".join(_BY_NAME),
                ),
            ),
        )
    own = (settings or {}).get(service.name)
    if own is None:
        return service
    changes: dict[str, str] = {}
    if own.issuer:
        require_safe(own.issuer)
        changes |= {"issuer": own.issuer.rstrip("/"), "domain": ""}
    if own.base_url:
        require_safe(own.base_url)
        changes["base_url"] = own.base_url.rstrip("/")
    if own.client_id:
        changes["client_id"] = own.client_id
    return msgspec.structs.replace(service, **changes)


def require_client(service: SignInService) -> str:
    """Returns the OAuth client id. Raises SignInError if there is none."""
    if not service.client_id:
        raise SignInError(
            t.later("Hermes has no OAuth client at {label}.", label=service.label),
            hint=t.later(
                "Register one there, then: hermes config set sign_ins.{name}.client_id ID",
                name=service.name,
            ),
        )
    return service.client_id

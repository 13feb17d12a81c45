"""Azure by Entra ID, without a key: `azure-identity` finds who the user or the machine is. Only this module imports it."""

from typing import Any

from hermes.providers.sign_in.identity_http import SignInError
from hermes.providers.sign_in.services import SignInService
from hermes.text.install_words import install_hint
from hermes.text.translation import translator

t = translator(__name__)

_made: dict[str, Any] = {}


def fetch_token(service: SignInService, tenant: str) -> tuple[str, float]:
    """Returns a token and when it expires. The library keeps it until then. Blocks; raises SignInError."""
    try:
        from azure.core.exceptions import ClientAuthenticationError
        from azure.identity import CredentialUnavailableError, DefaultAzureCredential
    except ImportError as error:
        raise SignInError(
            t.later("Signing in with Azure needs azure-identity."),
            hint=install_hint("azure"),
        ) from error
    options: dict[str, Any] = {"additionally_allowed_tenants": ["*"]} if tenant else {}
    credential = _made.get(tenant)
    if credential is None:
        credential = _made[tenant] = DefaultAzureCredential(**options)
    asked: dict[str, Any] = {"tenant_id": tenant} if tenant else {}
    try:
        token = credential.get_token(service.scope, **asked)
    except (ClientAuthenticationError, CredentialUnavailableError) as error:
        first = str(error).strip().splitlines()[0]
        raise SignInError(
            t.later("Azure does not know who you are: {first}", first=first),
            hint=t.later("Sign in with: az login"),
        ) from error
    return token.token, float(token.expires_on)


def address_of(endpoint: str) -> str:
    """Returns the address of a resource's API: `https://NAME.openai.azure.com` has it at /openai/v1."""
    address = endpoint.rstrip("/")
    if address.endswith("/v1"):
        return address
    return f"{address.removesuffix('/openai')}/openai/v1"

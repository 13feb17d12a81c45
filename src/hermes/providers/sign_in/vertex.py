"""Google Vertex AI by the machine's or the user's Google credentials. Only this module imports google-auth."""

from typing import Any

from hermes.providers.sign_in.identity_http import SignInError
from hermes.providers.sign_in.services import SignInService
from hermes.text.install_words import install_hint
from hermes.text.translation import translator

t = translator(__name__)

_made: dict[str, tuple[Any, str]] = {}


def fetch_token(service: SignInService) -> tuple[str, float, str]:
    """Returns a token, when it expires, and the project that the credentials name. Blocks; raises SignInError."""
    try:
        import google.auth
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.urllib3 import Request
    except ImportError as error:
        raise SignInError(
            t.later("Signing in with Google Vertex AI needs google-auth."),
            hint=install_hint("vertex"),
        ) from error
    try:
        if service.scope not in _made:
            found, project = google.auth.default(scopes=[service.scope])
            _made[service.scope] = (found, project or "")
        credentials, project = _made[service.scope]
        if not credentials.valid:
            import urllib3

            with urllib3.PoolManager() as pool:
                credentials.refresh(Request(pool))
    except GoogleAuthError as error:
        first = str(error).strip().splitlines()[0]
        raise SignInError(
            t.later("Google does not know who you are: {first}", first=first),
            hint=t.later("Sign in with: gcloud auth application-default login"),
        ) from error
    from datetime import UTC

    expiry = credentials.expiry
    expires_at = expiry.replace(tzinfo=UTC).timestamp() if expiry else 0.0
    return str(credentials.token), expires_at, project


def address_of(project: str, location: str) -> str:
    """Returns the address of a project's API that speaks OpenAI's format."""
    host = "aiplatform.googleapis.com"
    if location != "global":
        host = f"{location}-{host}"
    return (
        f"https://{host}/v1/projects/{project}/locations/{location}/endpoints/openapi"
    )

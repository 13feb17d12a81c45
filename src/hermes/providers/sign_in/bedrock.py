"""AWS Bedrock by the usual chain of AWS credentials: a short-lived Bedrock key is signed with them, on this machine.

Only this module imports botocore.
"""

import base64
from typing import Any

from hermes.providers.sign_in.identity_http import SignInError
from hermes.text.install_words import install_hint
from hermes.text.translation import translator

t = translator(__name__)

_LIFE_S = 3600
_PREFIX = "bedrock-api-key-"
_HOST = "bedrock.amazonaws.com"
_made: dict[str, Any] = {}


def fetch_token(region: str, profile: str) -> tuple[str, int]:
    """Returns a Bedrock key made of the AWS credentials, and how many seconds it is good for. Blocks; raises SignInError."""
    try:
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session
    except ImportError as error:
        raise SignInError(
            t.later("Signing in with AWS Bedrock needs botocore."),
            hint=install_hint("bedrock"),
        ) from error
    try:
        if profile not in _made:
            _made[profile] = Session(profile=profile or None)
        credentials = _made[profile].get_credentials()
        if credentials is None:
            raise _unknown(t.logged("no credentials were found"))
        request = AWSRequest(
            method="POST",
            url=f"https://{_HOST}/",
            headers={"host": _HOST},
            params={"Action": "CallWithBearerToken"},
        )
        frozen = credentials.get_frozen_credentials()
        SigV4QueryAuth(frozen, "bedrock", region, expires=_LIFE_S).add_auth(request)
    except BotoCoreError as error:
        raise _unknown(str(error)) from error
    address = str(request.url).removeprefix("https://") + "&Version=1"
    return _PREFIX + base64.b64encode(address.encode()).decode(), _LIFE_S


def _unknown(why: str) -> SignInError:
    return SignInError(
        t.later("AWS does not know who you are: {why}", why=why),
        hint=t.later("Sign in with: aws sso login, or set AWS_PROFILE."),
    )


def address_of(region: str) -> str:
    """Returns the address of a region's API that speaks OpenAI's format."""
    return f"https://bedrock-runtime.{region}.amazonaws.com/openai/v1"

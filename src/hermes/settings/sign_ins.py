"""Settings of sign-ins: what differs from the provider's usual addresses and Hermes' usual client."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hermes.settings.section import Section


class SignInSettings(Section, frozen=True):
    """How to sign in with one provider. Everything empty is as usual."""

    client_id: Annotated[
        str,
        Meta(
            max_length=200,
            description="The OAuth client to sign in as, if you have registered one of your own.",
        ),
    ] = ""
    issuer: Annotated[
        str,
        Meta(
            description="Address of the identity provider, such as `https://auth.example.org`."
        ),
    ] = ""
    base_url: Annotated[
        str, Meta(description="Address of the service that the sign-in is good for.")
    ] = ""

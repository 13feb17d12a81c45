"""Events about sign-ins."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hermes.schema.event_base import Event


class LoginExpired(Event, frozen=True, kw_only=True):
    """The login of an account no longer works; somebody has to sign in again. Written once for each login."""

    topic: ClassVar[str] = "agent.login.expired"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)

    provider: Annotated[str, Meta(description="The provider of the account.")]
    account: Annotated[str, Meta(description="The account's id and label.")] = ""
    detail: Annotated[str, Meta(description="What the provider said.")] = ""
    command: Annotated[str, Meta(description="The command that signs in again.")] = ""


SIGN_IN_EVENTS: tuple[type[Event], ...] = (LoginExpired,)

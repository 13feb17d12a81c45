"""What surfaces show of sign-ins: accounts, their limits, and sign-ins that wait. Nothing in here is secret.

It imports nothing else of sign-ins, so that listing the commands costs nothing.
"""

from typing import Literal

import msgspec

from hermes.text.formats import short_duration
from hermes.text.translation import translator

t = translator(__name__)


class AccountLimit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One limit: how much of it is used, and when it starts again."""

    name: str
    used_percent: float | None = None
    remaining: float | None = None
    limit: float | None = None
    resets_at: float | None = None
    seen_at: float = 0.0

    def sentence(self, now: float) -> str:
        """The limit in words: `5-hour window: 12 % used, resets in 3 h`."""
        parts: list[str] = []
        if self.used_percent is not None:
            parts.append(t("{percent:.0f} % used", percent=self.used_percent))
        elif self.remaining is not None and self.limit:
            parts.append(
                t("{left:g} of {limit:g} left", left=self.remaining, limit=self.limit)
            )
        elif self.remaining is not None:
            parts.append(t("{left:g} left", left=self.remaining))
        if self.resets_at is not None and self.resets_at > now:
            parts.append(
                t("resets in {time}", time=short_duration(self.resets_at - now))
            )
        return f"{self.name}: {', '.join(parts)}"


class PendingSignIn(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in that somebody has begun. It is over when `state` is not `waiting`."""

    service: str
    label: str
    link: str
    code: str = ""
    can_paste: bool = False
    expires_at: float = 0.0
    state: Literal["waiting", "done", "failed"] = "waiting"
    sentence: str = ""

    def instructions(self) -> tuple[str, ...]:
        """What the person has to do, line by line."""
        if self.code:
            return (
                t("Open {link}", link=self.link),
                t("and enter the code {code}", code=self.code),
                t(
                    "Only do this if you started the sign-in yourself. Any device will do."
                ),
            )
        return (
            t("Open {link}", link=self.link),
            t(
                "If your browser is on another machine, its last page can't be shown: copy that page's "
                "address and paste it."
            ),
        )


class AccountState(msgspec.Struct, frozen=True, kw_only=True):
    """An account without anything secret."""

    id: str
    service: str
    provider: str
    label: str
    kind: str
    priority: int
    state: Literal["ok", "expired", "shared"]
    expires_at: float | None = None
    problem: str = ""
    command: str = ""
    limits: tuple[AccountLimit, ...] = ()


class SignInOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What some services need beside the person."""

    endpoint: str = ""
    tenant: str = ""
    project: str = ""
    location: str = ""
    region: str = ""
    profile: str = ""
    token: str = ""
    own_login: bool = False
    """A login of its own, although codex has one to share."""

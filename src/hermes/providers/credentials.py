"""The `Credential` port: what a call of a service carries to be let in. An API key is one kind, a sign-in another.

Nothing here is ever shown: a credential has a name, and its secrets stay inside.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

PLACEHOLDER_KEY = "none"  # local servers want a key but don't check it
_MIN_MASKED_CHARACTERS = 6

ObserveHeaders = Callable[[Mapping[str, str]], None]


class Authorization(msgspec.Struct, frozen=True, kw_only=True):
    """What a request carries: its headers, until when they are good, and perhaps the address they are good for."""

    headers: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    """What must not appear in an error, even if the service repeats it."""
    expires_at: float | None = None
    base_url: str = ""
    """The service's address for this account; empty for the usual one."""

    def masked(self, body: bytes) -> bytes:
        """Returns what a service said without the secrets it was called with."""
        for secret in self.secrets:
            if len(secret) >= _MIN_MASKED_CHARACTERS:
                body = body.replace(secret.encode(), b"********")
        return body

    def __repr__(self) -> str:
        return f"Authorization({', '.join(self.headers)})"

    def __reduce__(self) -> str:
        raise TypeError("Headers of a sign-in can't be pickled.")  # not translated


class Credential(Protocol):
    """One way to be let in by one service."""

    @property
    def name(self) -> str:
        """What people call it; never a secret."""
        ...

    @property
    def advice(self) -> str:
        """What to do if the service rejects it; empty for a key, whose variable the route knows."""
        ...

    async def acquire(self) -> Authorization:
        """Returns what the next request carries, renewed if need be. Raises ModelError if there is none."""
        ...

    async def renew(self, rejected: Authorization, *, is_certain: bool = True) -> bool:
        """Takes note that the service rejected this. Returns whether `acquire` may give something better now.

        `is_certain` if the service said that the credential is what is wrong. Raises LoginExpiredError if nothing but
        signing in again helps.
        """
        ...

    def observe(self, headers: Mapping[str, str], status: int) -> None:
        """Takes note of an answer: its headers may tell the account's limits."""
        ...


class ApiKey:
    """A key that is sent as it is; an empty one is for services that want none."""

    __slots__ = ("_key", "_observe", "_wants_own_header", "name")

    advice = ""

    def __init__(
        self,
        key: str = "",
        *,
        api: str = "chat",
        name: str = "",
        observe: ObserveHeaders | None = None,
    ) -> None:
        self.name = name
        self._key = key
        self._wants_own_header = api == "anthropic"
        self._observe = observe

    async def acquire(self) -> Authorization:
        sent = self._key or PLACEHOLDER_KEY
        headers = (
            {"x-api-key": sent}
            if self._wants_own_header
            else {"authorization": f"Bearer {sent}"}
        )
        return Authorization(headers=headers, secrets=(self._key,))

    async def renew(
        self,
        rejected: Authorization,  # noqa: ARG002 - a key stays what it is
        *,
        is_certain: bool = True,  # noqa: ARG002 - of the protocol
    ) -> bool:
        return False

    def observe(self, headers: Mapping[str, str], status: int) -> None:  # noqa: ARG002 - of the protocol
        if self._observe is not None:
            self._observe(headers)

    def __repr__(self) -> str:
        return f"ApiKey({self.name})"

    def __reduce__(self) -> str:
        raise TypeError(
            "Keys can't be pickled: they would end up in a file or a log."
        )  # not translated


NO_KEY = ApiKey()


class CredentialRing:
    """The credentials of one service, in order, and which of them is in use."""

    __slots__ = ("_at", "_credentials")

    def __init__(self, credentials: tuple[Credential, ...] = ()) -> None:
        self._credentials: tuple[Credential, ...] = credentials or (NO_KEY,)
        self._at = 0

    def __len__(self) -> int:
        return len(self._credentials)

    @property
    def current(self) -> Credential:
        """The credential to use now."""
        return self._credentials[self._at]

    def rotate(self) -> None:
        """Goes on with the next one; later calls begin with it."""
        self._at = (self._at + 1) % len(self._credentials)

    def __repr__(self) -> str:
        return f"CredentialRing({len(self._credentials)} credentials)"

"""Checks addresses: each name is resolved once, all its answers are checked, and the caller connects to exactly those."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Collection, Sequence
from typing import Literal, Protocol, TypeAlias
from urllib.parse import unquote

import msgspec

from hermes.errors import ToolFailed
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.secrets import Secrets
from hermes.tools.web.addresses import Address, is_metadata, is_own, why_forbidden
from hermes.tools.web.urls import WebAddress, read_host

_MIN_SEARCHED_SECRET_CHARACTERS = 8  # shorter values occur in any text
PORTS = frozenset((80, 443, 8080, 8443))
"""The ports of web servers. Others belong to databases, mail and control services."""
_LOCAL_NAMES = (
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "home.arpa",
)
_LOOKUP_TIMEOUT_S = 10.0
_ALLOW = (
    "If the user wants this, they can add the host to web.allow_hosts in the settings."
)


class Resolver(Protocol):
    """Finds the IP addresses of a name. Raises OSError if there are none."""

    async def __call__(self, host: str, port: int) -> Sequence[str]: ...


HostRule: TypeAlias = Callable[[str], Literal["", "ask", "forbid"]]
"""Returns the user's rule for a host."""


class Unresolved(ToolFailed):
    """A name that has no address."""


class CheckedAddress(msgspec.Struct, frozen=True):
    """A web address that may be reached, and its IP addresses, all checked."""

    place: WebAddress
    addresses: tuple[Address, ...]


class AllowedHost(msgspec.Struct, frozen=True):
    """A host that the user allows; port 0 stands for any port."""

    host: str
    port: int = 0


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Resolves a name with the system's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(answer[4][0]) for answer in found))


class AddressCheck:
    """Decides which addresses may be reached.

    `allowed` names the only private hosts that may be reached; `rule` says which hosts the user forbids or wants to be
    asked about.
    """

    def __init__(
        self,
        allowed: Sequence[str] = (),
        *,
        resolver: Resolver = system_resolver,
        own: Callable[[Address], bool] = is_own,
        rule: HostRule = lambda _: "",
    ) -> None:
        self._allowed = frozenset(read_allowed(entry) for entry in allowed)
        self._resolver = resolver
        self._own = own
        self._rule = rule

    async def check(
        self, place: WebAddress, approved: Collection[str] = ()
    ) -> CheckedAddress:
        """Checks a web address. Raises ToolFailed if one of its IP addresses is not public, or a rule forbids it.

        `approved` are the hosts that the call named; if a rule says so, the user was asked about them.
        """
        self.check_rule(place, approved)
        vouched = self._vouched(place)
        if not vouched:
            self._check_name(place)
        if place.address is not None:
            if not vouched:
                self._check_address(place, place.address)
            return CheckedAddress(place, (place.address,))
        addresses = await self._resolve(place)
        for address in addresses:
            if not vouched:
                self._check_address(place, address)
            elif is_metadata(address):
                raise _refused(
                    place, f"its name leads to {address}, where clouds keep metadata"
                )
        return CheckedAddress(place, addresses)

    def _vouched(self, place: WebAddress) -> bool:
        return bool(
            {AllowedHost(place.host), AllowedHost(place.host, place.port)}
            & self._allowed
        )

    def check_rule(self, place: WebAddress, approved: Collection[str]) -> None:
        """Raises ToolFailed if the user's rules forbid a host."""
        rule = self._rule(place.host)
        if rule == "forbid":
            raise ToolFailed(f"{place} may not be used: policy.yaml forbids its host.")
        if rule == "ask" and place.host not in approved:
            raise ToolFailed(
                f"{place} may not be used yet: policy.yaml says to ask about its host first.",
                hint="Call the tool with this address itself; then the user is asked.",
            )

    def _check_name(self, place: WebAddress) -> None:
        if place.port not in PORTS:
            raise _refused(place, f"port {place.port} is not a web server's")
        if place.address is not None:
            return
        if "." not in place.host or any(
            place.host == name or place.host.endswith(f".{name}")
            for name in _LOCAL_NAMES
        ):
            raise _refused(place, "its name is one of a private network")

    def _check_address(self, place: WebAddress, address: Address) -> None:
        reason = why_forbidden(address)
        if not reason and self._own(address):
            reason = "this machine"
        if reason:
            through = "" if place.address is not None else f" leads to {address}, which"
            raise _refused(place, f"{place.host}{through} is {reason}")

    async def _resolve(self, place: WebAddress) -> tuple[Address, ...]:
        try:
            async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
                found = await self._resolver(place.host, place.port)
            addresses = tuple(ipaddress.ip_address(text) for text in found)
        except TimeoutError as error:
            raise Unresolved(
                f"The name {place.host} was not resolved within {_LOOKUP_TIMEOUT_S:g} s."
            ) from error
        except (OSError, UnicodeError) as error:
            raise Unresolved(
                f"There is no host {place.host}, or the network is down."
            ) from error
        except ValueError as error:
            raise _refused(
                place, "its name leads to an address that can't be read"
            ) from error
        if not addresses:
            raise Unresolved(f"There is no host {place.host}.")
        return addresses


def read_allowed(entry: str) -> AllowedHost:
    """An entry of `web.allow_hosts`: `wiki.lan`, `10.0.0.7:9000`, `[::1]`, `[::1]:8080`."""
    text = entry.strip()
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        host, port = text, "0"
    return AllowedHost(str(read_host(host)), int(port))


def _refused(place: WebAddress, why: str) -> ToolFailed:
    return ToolFailed(f"{place} was not contacted: {why}.", hint=_ALLOW)


def require_no_secret(text: str, secrets: Secrets) -> None:
    """Raises ToolFailed if a text to be sent contains one of the user's keys, or something shaped like a key.

    A page could persuade a model to fetch an address that contains a key.
    """
    spellings = (text, unquote(text), unquote(unquote(text)))
    values = [secrets.get(name) or "" for name in secrets]
    known = [value for value in values if len(value) >= _MIN_SEARCHED_SECRET_CHARACTERS]
    for spelling in spellings:
        if is_secret_value(spelling) or any(value in spelling for value in known):
            raise ToolFailed(
                "The text to be sent contains something that looks like a key or password. Nothing was sent."
            )

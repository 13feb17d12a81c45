"""A server's address and names: the values that `Host` and `Origin` may have, including port and scheme."""

import ipaddress
from collections.abc import Iterable
from typing import Annotated, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec

from hermes.commands.command import Arg
from hermes.errors import SettingsError, UsageError
from hermes.text.translation import translator

t = translator(__name__)


_LOCAL = ("127.0.0.1", "localhost", "::1")
_USUAL = {"http": 80, "https": 443}


class _Listening(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


_S = TypeVar("_S", bound=_Listening)

Host: TypeAlias = Annotated[
    str | None,
    Arg("the address to listen on; by default that of the settings", metavar="ADDRESS"),
]
Port: TypeAlias = Annotated[
    int | None, Arg("the port to listen on; 0 for any", metavar="NUMBER")
]


def listening_on(section: _S, host: str | None, port: int | None) -> _S:
    """A section of the settings, overridden by command-line options."""
    if port is not None and not 0 <= port <= 65535:
        raise UsageError(
            t("{port} is not a port.", port=port), hint=t("Use 0 to 65535.")
        )
    given = {"host": host, "port": port}
    wanted = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(section, **wanted)  # pyrefly: ignore


class Addresses:
    """The hosts and origins of one server. `host` is the address it listens on."""

    def __init__(
        self, scheme: str, host: str, port: int, public_urls: Iterable[str] = ()
    ) -> None:
        self._scheme = scheme
        names = _LOCAL if is_loopback(host) or is_wildcard(host) else (host,)
        self._own = {
            _authority(name, port, scheme)
            for name in {*names, *([] if is_wildcard(host) else [host])}
        }
        public = [_split(url) for url in public_urls]
        self._public_hosts = {_authority(name, at, kind) for kind, name, at in public}
        self._public_origins = {
            f"{kind}://{_authority(name, at, kind)}" for kind, name, at in public
        }

    def knows_host(self, value: str) -> bool:
        """Whether a `Host` header names this server."""
        host = value.strip().lower()
        return self._plain(host) in self._own or host in self._public_hosts

    def knows_origin(self, origin: str, host: str) -> bool:
        """Whether a page of that origin belongs to this server, for a request to that `Host`.

        A page from another port of this machine does not, nor does one loaded under another of our names.
        """
        name = host.strip().lower()
        is_own = self._plain(name) in self._own and origin == f"{self._scheme}://{name}"
        return is_own or origin in self._public_origins

    def _plain(self, host: str) -> str:
        """The address without its default port."""
        return host.removesuffix(f":{_USUAL[self._scheme]}")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether the address means all interfaces of this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return host == ""


def _authority(name: str, port: int, scheme: str) -> str:
    bare = name.strip("[]").lower()
    host = f"[{bare}]" if ":" in bare else bare
    return host if port == _USUAL[scheme] else f"{host}:{port}"


def _split(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    if (
        parts.scheme not in _USUAL
        or not parts.hostname
        or parts.path.strip("/")
        or parts.query
    ):
        raise SettingsError(
            t("public_urls: {url!r} is not the address of a server.", url=url),
            hint=t("Such as: https://hermes.example.org"),
        )
    return parts.scheme, parts.hostname, parts.port or _USUAL[parts.scheme]

"""Parses an address strictly: anything that two programs could read in two ways is refused.

The result has one canonical spelling, so that whoever checks it and whoever connects to it mean the same place.
"""

import ipaddress
import re
import unicodedata
from urllib.parse import quote, urljoin

import msgspec

from hermes.errors import ToolFailed
from hermes.tools.web.addresses import Address

_SHAPE = r"(?is)(https?)://([^/?#]*)([^#]*)(#.*)?"
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NUMBER = r"(?i)(?:0x[0-9a-f]*|[0-9]+)"
_MAX_URL_CHARACTERS = 4_000
_DOTS = str.maketrans({"\u3002": ".", "\uff0e": ".", "\uff61": "."})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_KEPT_IN_PATH = "/?&=%~!$'()*+,;:@[]-._"


class WebAddress(msgspec.Struct, frozen=True):
    """An http or https address in canonical form. `host` is a lower-case ASCII name or a canonical IP address."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, percent-encoded."""
    address: Address | None = None
    """The IP address, if the host is one."""

    @property
    def authority(self) -> str:
        """Host and port, as in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"
        )

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def read_url(text: str) -> WebAddress:
    """Parses an address that a model or a page wrote. Raises ToolFailed if it is not a plain http or https address."""
    text = text.strip(" \t\r\n")
    if len(text) > _MAX_URL_CHARACTERS:
        raise _refused(text, f"it is longer than {_MAX_URL_CHARACTERS:,} characters")
    if "\\" in text or any(unicodedata.category(sign)[0] in "CZ" for sign in text):
        raise _refused(
            text,
            "it contains a space, a backslash or an invisible character",
            "Encode it with %.",
        )
    shape = re.fullmatch(_SHAPE, text)
    if shape is None:
        raise _refused(text, "only http:// and https:// addresses can be fetched")
    scheme, authority, target = shape[1].lower(), shape[2], shape[3]
    if "@" in authority:
        raise _refused(text, "it contains a user name or password")
    if "%" in authority:
        raise _refused(text, "its host is encoded with %")
    host, port = _split_port(text, authority, scheme)
    address = read_host(host)
    name = str(address) if not isinstance(address, str) else address
    target = quote(target, safe=_KEPT_IN_PATH)
    return WebAddress(
        scheme,
        name,
        port,
        target if target.startswith("/") else f"/{target}",
        None if isinstance(address, str) else address,
    )


def follow(place: WebAddress, location: str) -> WebAddress:
    """The target of a redirect or a link of a page."""
    try:
        return read_url(urljoin(str(place), location.strip(" \t\r\n")))
    except ValueError as error:
        raise _refused(location, "it is not an address") from error


def read_host(host: str) -> str | Address:
    """A host in canonical form: a name or an IP address. Raises ToolFailed for anything ambiguous."""
    if host.startswith("["):
        return _read_v6(host)
    name = _ascii(host)
    name = name.removesuffix(".")
    labels = name.split(".")
    if re.fullmatch(_NUMBER, labels[-1]):
        return _read_v4(host, name)
    if len(name) > 253 or not all(re.fullmatch(_LABEL, label) for label in labels):
        raise _refused(host, "its host is not a valid name")
    return name


def _read_v6(host: str) -> Address:
    if not host.endswith("]"):
        raise _refused(host, "its host is not a valid name")
    try:
        return ipaddress.IPv6Address(host[1:-1])
    except ValueError as error:
        raise _refused(host, "its host is not a valid IPv6 address") from error


def _read_v4(host: str, name: str) -> Address:
    """Parses four decimal numbers. Different programs read octal, hexadecimal and shorter spellings differently."""
    try:
        return ipaddress.IPv4Address(name)
    except ValueError as error:
        raise _refused(host, "a numeric host must be four decimal numbers") from error


def _ascii(host: str) -> str:
    """A name in lower-case ASCII; names in other scripts become `xn--`."""
    name = unicodedata.normalize("NFKC", host.translate(_DOTS)).lower()
    if name.isascii():
        return name
    import idna

    try:
        return idna.encode(name, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError) as error:
        raise _refused(host, "its host is not a valid name") from error


def _split_port(text: str, authority: str, scheme: str) -> tuple[str, int]:
    host, colon, port = authority, "", ""
    if not authority.endswith("]"):
        host, colon, port = authority.rpartition(":")
        if not colon:
            host, port = authority, ""
    if not host:
        raise _refused(text, "it has no host")
    if not port:
        return host, _DEFAULT_PORTS[scheme]
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise _refused(text, "its port is not a number from 1 to 65535")
    return host, int(port)


def _refused(text: str, why: str, hint: str = "") -> ToolFailed:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return ToolFailed(
        f"{shown!r} can't be fetched: {why}.", hint=hint or "Nothing was sent."
    )

"""The addresses where clouds serve a machine's own credentials. No model server is there."""

import ipaddress
import socket
from typing import TypeAlias
from urllib.parse import urlsplit

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA_ADDRESSES = frozenset(
    map(
        ipaddress.ip_address,
        ("169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "100.100.100.200", "168.63.129.16",
         "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"),
    )
)  # fmt: skip
_METADATA_HOSTS = frozenset(("metadata.google.internal", "metadata", "instance-data"))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def meant_address(address: IpAddress) -> IpAddress:
    """The IPv4 address that an IPv6 address stands for, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_hidden_metadata(host: str, peer: str) -> bool:
    """Whether a host name, which says nothing of it, led to one of these addresses."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    return host != peer and meant_address(address) in METADATA_ADDRESSES


def is_hidden_own_network(host: str, peer: str) -> bool:
    """Whether a host name led to an address that `leads_to_own_network` refuses."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    return host != peer and _is_special(meant_address(address))


def leads_to_own_network(url: str) -> bool:
    """Whether an address is a cloud's metadata service or another link-local one.

    A name may lead elsewhere later: the connection itself checks where it arrived (`direct_http`, `mail_servers`).
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower().rstrip(".")
    found = map(meant_address, _resolved(host, parts.port or 443))
    return host in _METADATA_HOSTS or any(map(_is_special, found))


def _is_special(address: IpAddress) -> bool:
    return (
        address.is_link_local or address.is_multicast or address in METADATA_ADDRESSES
    )


def _resolved(host: str, port: int) -> list[IpAddress]:
    """The addresses of a host; none if it is unknown, which the attempt to connect reports."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return []
    texts = (str(one[4][0]).partition("%")[0] for one in found)
    return [ipaddress.ip_address(text) for text in texts]

"""Decides which internet addresses may be reached: only those that are certainly public.

IPv6 has a list of allowed addresses (global unicast), IPv4 a list of forbidden ones. An IPv6 address that contains an
IPv4 address is judged by that.
"""

import ipaddress
import socket
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_FORBIDDEN_V4 = (
    ("0.0.0.0/8", "this machine"),
    ("10.0.0.0/8", "a private network"),
    ("100.64.0.0/10", "a provider's private network"),
    ("127.0.0.0/8", "this machine"),
    ("168.63.129.16/32", "a cloud's metadata service"),
    ("169.254.0.0/16", "the local link, where clouds keep metadata"),
    ("172.16.0.0/12", "a private network"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "reserved for examples"),
    ("192.31.196.0/24", "reserved for name servers"),
    ("192.52.193.0/24", "reserved for relays"),
    ("192.88.99.0/24", "reserved for relays"),
    ("192.168.0.0/16", "a private network"),
    ("192.175.48.0/24", "reserved for name servers"),
    ("198.18.0.0/15", "reserved for measurements"),
    ("198.51.100.0/24", "reserved for examples"),
    ("203.0.113.0/24", "reserved for examples"),
    ("224.0.0.0/4", "a group of machines (multicast)"),
    ("240.0.0.0/4", "reserved"),
)
_PUBLIC_V6 = "2000::/3"
_FORBIDDEN_V6 = (
    ("2001::/23", "reserved for protocols and tunnels"),  # Teredo, ORCHID, benchmarks
    ("2001:db8::/32", "reserved for examples"),
    ("2002::/16", "a tunnel (6to4)"),
    ("2620:4f:8000::/48", "reserved for name servers"),
    ("3fff::/20", "reserved for examples"),
)
_UNNAMED_V6 = (
    ("::1/128", "this machine"),
    ("fc00::/7", "a private network"),
    ("fe80::/10", "the local link"),
    ("fec0::/10", "a private network"),
    ("ff00::/8", "a group of machines (multicast)"),
)
_MAPPED = "::ffff:0:0/96"
_NAT64 = "64:ff9b::/96"
_ISATAP = (0x00005EFE, 0x02005EFE)
_LINK = (
    "169.254.0.0/16",
    "168.63.129.16/32",
    "100.100.100.200/32",
    "fe80::/10",
    "fd00:ec2::254/128",
    "fd20:ce::/64",
)


def why_forbidden(address: Address) -> str:
    """What is wrong with an address, as the end of a sentence that starts with "it is"; empty if it is public."""
    if isinstance(address, IPv4Address):
        return _reason(address, _FORBIDDEN_V4)
    if address.scope_id:
        return "an address of one network card"
    carried = carried_v4(address)
    if carried is not None:
        return why_forbidden(carried)
    if address not in ipaddress.ip_network(_PUBLIC_V6):
        return _reason(address, _UNNAMED_V6) or "not a public address"
    return _reason(address, _FORBIDDEN_V6)


def carried_v4(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address to which an IPv6 one leads: mapped, translated (NAT64) or in an ISATAP interface."""
    number = int(address)
    if address in ipaddress.ip_network(_MAPPED) or address in ipaddress.ip_network(
        _NAT64
    ):
        return IPv4Address(number & 0xFFFFFFFF)
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        carried = IPv4Address(number & 0xFFFFFFFF)
        return carried if _reason(carried, _FORBIDDEN_V4) else None
    return None


def is_metadata(address: Address) -> bool:
    """Whether an address is link-local or a cloud's metadata service; no name may lead to these."""
    if isinstance(address, IPv6Address):
        address = carried_v4(address) or address
    return any(address in ipaddress.ip_network(network) for network in _LINK)


def is_own(address: Address) -> bool:
    """Whether an address belongs to this machine, public or not: no firewall protects those."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(
                (str(address), 0)
            )  # sends nothing; only one's own addresses can be bound
    except OSError:
        return False
    return True


def _reason(address: Address, networks: tuple[tuple[str, str], ...]) -> str:
    return next(
        (
            reason
            for network, reason in networks
            if address in ipaddress.ip_network(network)
        ),
        "",
    )

"""The addresses where clouds serve a machine's own credentials. No model server is there."""

import ipaddress
from typing import TypeAlias

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA_ADDRESSES = frozenset(
    map(
        ipaddress.ip_address,
        ("169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "100.100.100.200", "168.63.129.16",
         "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"),
    )
)  # fmt: skip
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

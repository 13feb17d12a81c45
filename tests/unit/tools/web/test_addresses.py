"""Which addresses are public, and that every way to write a forbidden one is refused."""

import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import ToolFailed
from hermes.tools.web.address_check import AddressCheck, read_allowed
from hermes.tools.web.addresses import is_metadata, why_forbidden
from hermes.tools.web.urls import follow, read_host, read_url

FORBIDDEN_V4 = (
    *(
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
    ),
    *(
        "192.0.2.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    ),
)
PUBLIC = (
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.255.255",
    "100.128.0.0",
)


def inside(networks: Sequence[str]) -> st.SearchStrategy[IPv4Address]:
    """An address of one of the networks."""

    def one(text: str) -> st.SearchStrategy[IPv4Address]:
        network = ipaddress.IPv4Network(text)
        return st.integers(int(network[0]), int(network[-1])).map(IPv4Address)

    return st.sampled_from(networks).flatmap(one)


def spell_part(value: int, base: str) -> str:
    return {
        "decimal": f"{value}",
        "octal": f"0{value:o}",
        "hex": f"0x{value:x}",
        "HEX": f"0X{value:X}",
    }[base]


@st.composite
def spelled(draw: st.DrawFn) -> str:
    """A forbidden IPv4 address in one of the many spellings that some reader accepts."""
    number = int(draw(inside(FORBIDDEN_V4)))
    parts = draw(st.integers(1, 4))
    values = [(number >> (24 - 8 * index)) & 0xFF for index in range(parts - 1)]
    values.append(number & ((1 << (8 * (5 - parts))) - 1))
    bases = st.sampled_from(("decimal", "octal", "hex", "HEX"))
    text = ".".join(spell_part(value, draw(bases)) for value in values)
    if draw(st.booleans()):
        text = "".join(
            chr(ord(sign) + 0xFEE0) if draw(st.booleans()) else sign for sign in text
        )
    return text + draw(st.sampled_from(("", ".", "\u3002")))


@st.composite
def embedding_ipv4(draw: st.DrawFn) -> IPv6Address:
    """An IPv6 address that leads to a forbidden IPv4 one."""
    number = int(draw(inside(FORBIDDEN_V4)))
    form = draw(
        st.sampled_from(("compatible", "mapped", "nat64", "6to4", "teredo", "isatap"))
    )
    high = {
        "compatible": 0,
        "mapped": 0xFFFF << 32,
        "nat64": 0x0064FF9B << 96,
        "6to4": 0,
        "teredo": 0x20010000 << 96,
    }
    if form == "6to4":
        return IPv6Address(
            (0x2002 << 112) | (number << 80) | draw(st.integers(0, 2**80 - 1))
        )
    if form == "teredo":
        return IPv6Address(high[form] | (number ^ 0xFFFFFFFF))
    if form == "isatap":
        return IPv6Address((0x2A00 << 112) | (0x00005EFE << 32) | number)
    return IPv6Address(high[form] | number)


async def public(host: str, port: int) -> Sequence[str]:
    """A resolver that says every name is public: what is refused was refused by its spelling."""
    return ("93.184.216.34",)


async def refused(url: str, gate: AddressCheck | None = None) -> bool:
    try:
        await (gate or AddressCheck(resolver=public, own=lambda address: False)).check(
            read_url(url)
        )
    except ToolFailed:
        return True
    return False


@given(spelled())
async def test_every_spelling_of_a_forbidden_address_is_refused(host: str) -> None:
    assert await refused(f"http://{host}/")


@given(embedding_ipv4())
async def test_an_ipv6_address_that_leads_to_a_forbidden_one_is_refused(
    address: IPv6Address,
) -> None:
    assert why_forbidden(address)
    assert await refused(f"http://[{address.exploded}]/")


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_of_ipv6_only_global_unicast_is_public(address: IPv6Address) -> None:
    if not why_forbidden(address):
        carried = address.ipv4_mapped or IPv4Address(int(address) & 0xFFFFFFFF)
        in_nat64 = address in ipaddress.ip_network("64:ff9b::/96")
        assert int(address) >> 125 == 1 or (
            (address.ipv4_mapped or in_nat64) and not why_forbidden(carried)
        )


@given(inside(FORBIDDEN_V4))
def test_what_is_not_public_says_why(address: IPv4Address) -> None:
    assert why_forbidden(address)


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_nothing_that_python_calls_private_is_taken_for_public(
    address: IPv4Address,
) -> None:
    if not why_forbidden(address):
        assert address.is_global


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_public(text: str) -> None:
    assert why_forbidden(IPv4Address(text)) == ""


@pytest.mark.parametrize(
    "text",
    ["2606:4700:4700::1111", "2a00:1450:4001::1", "64:ff9b::101:101", "::ffff:8.8.8.8"],
)
def test_public_ipv6_addresses_are_public(text: str) -> None:
    assert why_forbidden(IPv6Address(text)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "::",
        "::1",
        "fe80::1",
        "fec0::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
        "64:ff9b:1::1",
        "100::1",
    ],
)
def test_other_ipv6_addresses_are_not(text: str) -> None:
    assert why_forbidden(IPv6Address(text))


@pytest.mark.parametrize(
    "text",
    ["169.254.169.254", "168.63.129.16", "::ffff:169.254.169.254", "fd00:ec2::254"],
)
def test_metadata_services_are_known(text: str) -> None:
    assert is_metadata(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "url",
    [
        *(
            "localhost",
            "LOCALHOST.",
            "ＬＯＣＡＬＨＯＳＴ",
            "a.localhost",
            "x.localdomain",
            "printer.local",
            "router",
        ),
        *(
            "metadata.google.internal",
            "metadata。google。internal",
            "wiki.lan",
            "a.home.arpa",
            "ⓛocalhost",
        ),
        *(
            "user@example.com",
            "user:pw@example.com",
            "example.com%2f@10.0.0.1",
            "127.0.0.1%00.example.com",
        ),
        *(
            "example.com:22",
            "example.com:6379",
            "example.com:0",
            "example.com:99999",
            "example.com:٨٠",
        ),
        *(
            "[::1",
            "[fe80::1%25eth0]",
            "[::1].example.com",
            "exa mple.com",
            "a..b",
            "-a.com",
            ".",
            "",
        ),
        *("1.1.1.1.1", "0x.0x.0x.0x", "256.1.1.1", "1.1.1.0x1", "example.0x7f", "a.08"),
    ],
)
async def test_a_host_that_is_private_or_unclear_is_refused(url: str) -> None:
    assert await refused(f"http://{url}/")


@pytest.mark.parametrize(
    "url",
    [
        *(
            "file:///etc/passwd",
            "ftp://example.com/",
            "gopher://example.com:70/_x",
            "javascript:alert(1)",
            "data:,x",
        ),
        *(
            "//example.com/",
            "example.com",
            "http:/example.com",
            "http:example.com",
            "http:///etc/passwd",
            "jar:http://a",
        ),
        *(
            "http://a.com\\@b.com/",
            "http://a.com/\x00",
            "http://a.com/\n",
            "http://a.com/a b",
            "http://a.com/\u202e",
        ),
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(ToolFailed, match="can't be fetched"):
        read_url(url if url.strip() == url else url + "x")


def test_an_address_has_one_spelling() -> None:
    assert (
        str(read_url(" HTTP://EXAMPLE.com.:80/ä?q=1#part "))
        == "http://example.com/%C3%A4?q=1"
    )
    assert (
        str(read_url("https://bücher.example:8443"))
        == "https://xn--bcher-kva.example:8443/"
    )
    assert str(read_url("http://[2606:4700::0001]/x")) == "http://[2606:4700::1]/x"
    assert str(read_url("http://example.com?q=a%20b")) == "http://example.com/?q=a%20b"


def test_a_redirect_may_be_relative_and_is_read_as_strictly() -> None:
    start = read_url("https://example.com/a/b")
    assert str(follow(start, "../c?x=1")) == "https://example.com/c?x=1"
    assert str(follow(start, "//other.example/")) == "https://other.example/"
    for location in (
        "file:///etc/passwd",
        "http://a@b.com/",
        "http://[::1",
        "http:\\\\10.0.0.1",
    ):
        with pytest.raises(ToolFailed):
            follow(start, location)


@pytest.mark.parametrize(
    ("entry", "host", "port"),
    [
        *(
            ("wiki.lan", "wiki.lan", 0),
            ("Wiki.LAN:8000", "wiki.lan", 8000),
            ("10.0.0.7:9000", "10.0.0.7", 9000),
        ),
        *(
            ("[::1]", "::1", 0),
            ("[::1]:80", "::1", 80),
            ("::1", "::1", 0),
            ("fd00::1:2", "fd00::1:2", 0),
        ),
    ],
)
def test_allowed_hosts_are_read(entry: str, host: str, port: int) -> None:
    allowed = read_allowed(entry)
    assert (allowed.host, allowed.port) == (host, port)


async def test_only_exactly_the_allowed_host_is_allowed() -> None:
    async def private(host: str, port: int) -> Sequence[str]:
        return ("10.1.2.3",)

    gate = AddressCheck(("wiki.lan:9000", "10.0.0.7"), resolver=private)
    assert not await refused("http://wiki.lan:9000/", gate)
    assert not await refused("http://10.0.0.7:1234/", gate)
    for url in (
        "http://wiki.lan/",
        "http://a.wiki.lan:9000/",
        "http://10.0.0.8/",
        "http://10.1.2.3/",
        "http://w.com/",
    ):
        assert await refused(url, gate), url


async def test_an_allowed_name_may_not_lead_to_a_metadata_service() -> None:
    async def metadata(host: str, port: int) -> Sequence[str]:
        return ("10.0.0.1", "169.254.169.254")

    assert await refused(
        "http://wiki.lan/", AddressCheck(("wiki.lan",), resolver=metadata)
    )


@pytest.mark.parametrize(
    "answers",
    [("93.184.216.34", "127.0.0.1"), ("2606:4700::1", "::1"), ("fe80::1%eth0",), ()],
)
async def test_one_forbidden_answer_among_good_ones_refuses_the_name(
    answers: tuple[str, ...],
) -> None:
    async def resolver(host: str, port: int) -> Sequence[str]:
        return answers

    assert await refused(
        "http://example.com/",
        AddressCheck(resolver=resolver, own=lambda address: False),
    )


async def test_an_own_public_address_is_refused() -> None:
    assert await refused(
        "http://8.8.8.8/", AddressCheck(own=lambda address: str(address) == "8.8.8.8")
    )
    assert not await refused("http://8.8.8.8/", AddressCheck(own=lambda address: False))


def test_a_host_is_a_name_or_an_address() -> None:
    assert read_host("Example.COM.") == "example.com"
    assert read_host("127.0.0.1") == IPv4Address("127.0.0.1")

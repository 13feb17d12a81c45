"""The filters, run by a small machine that does what the kernel does with them, for both processors."""

import struct

import pytest

from hermes.schema.events import Reach
from hermes.tools.sandbox.seccomp import (
    SyscallNumbers,
    beside_landlock,
    calls_of,
    inside_namespaces,
    outside_namespaces,
)

ALLOW, NOTIFY, REFUSED = 0x7FFF0000, 0x7FC00000, 0x00050000
UNIX, INET, INET6, NETLINK, PACKET, VSOCK = 1, 2, 10, 16, 17, 40
STREAM, DATAGRAM, RAW, PACKETS, CLOSE_ON_EXEC = 1, 2, 3, 5, 0o2000000
REACHES: list[Reach] = ["workspace", "network"]


def answer(
    program: bytes, calls: SyscallNumbers, number: int, *arguments: int, arch: int = 0
) -> int:
    """What the kernel would do with a call."""
    values = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack(
        "<iIQ6Q",
        number,
        arch or calls.arch,
        0,
        *(value % (1 << 64) for value in values),
    )
    code = [
        struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)
    ]
    held, at = 0, 0
    while True:
        kind, when, otherwise, value = code[at]
        at += 1
        match kind:
            case 0x20:
                (held,) = struct.unpack_from("<I", data, value)
            case 0x54:
                held &= value
            case 0x15:
                at += when if held == value else otherwise
            case 0x35:
                at += when if held >= value else otherwise
            case 0x45:
                at += when if held & value else otherwise
            case 0x06:
                return value if value in (ALLOW, NOTIFY) else value & 0xFFFF0000
            case _:
                pytest.fail(f"an instruction nobody wrote: {kind:#x}")


@pytest.fixture(params=["x86_64", "aarch64"])
def calls(request: pytest.FixtureRequest) -> SyscallNumbers:
    known = calls_of(request.param)
    assert known is not None
    return known


def programs(calls: SyscallNumbers) -> list[bytes]:
    both = [inside_namespaces(calls, reach, supervised=True) for reach in REACHES]
    return both + [
        beside_landlock(calls, reach, attended=True, signals=True) for reach in REACHES
    ]


def test_what_nobody_needs_is_refused_everywhere(calls: SyscallNumbers) -> None:
    for program in programs(calls):
        assert {answer(program, calls, number) for number in calls.denied} == {REFUSED}
        assert answer(program, calls, 435) == REFUSED
        assert answer(program, calls, calls.clone, 0x10000000 | 17) == REFUSED
        assert answer(program, calls, calls.clone, 0x003D0F00) == ALLOW, "a thread"
        assert answer(program, calls, calls.ioctl, 0, 0x5412) == REFUSED
        assert answer(program, calls, calls.ioctl, 0, 0x5401) == ALLOW
        assert answer(program, calls, 0) in (ALLOW, NOTIFY)
        assert answer(program, calls, 63) == ALLOW
        assert answer(program, calls, 0, arch=0x40000003) == REFUSED, (
            "another processor's call"
        )


def test_every_filter_fits_the_kernel(calls: SyscallNumbers) -> None:
    for program in programs(calls):
        assert len(program) % 8 == 0
        assert len(program) // 8 <= 4096


def test_calls_of_the_other_numbering_are_refused() -> None:
    calls = calls_of("x86_64")
    assert calls is not None
    assert (
        answer(
            inside_namespaces(calls, "workspace", supervised=True),
            calls,
            0x40000000 | 41,
            INET,
        )
        == REFUSED
    )


@pytest.mark.parametrize(
    ("reach", "family", "kind", "landlock", "namespaces"),
    [
        ("workspace", UNIX, STREAM | CLOSE_ON_EXEC, True, True),
        ("workspace", UNIX, PACKETS, True, True),
        ("workspace", UNIX, DATAGRAM, False, False),
        ("workspace", UNIX, RAW | CLOSE_ON_EXEC, False, False),
        ("workspace", INET, STREAM, False, True),
        ("workspace", INET6, DATAGRAM, False, True),
        ("workspace", NETLINK, 3, False, True),
        ("workspace", PACKET, 3, False, False),
        ("workspace", VSOCK, STREAM, False, False),
        ("network", UNIX, STREAM, False, False),
        ("network", INET, STREAM, True, True),
        ("network", INET6, DATAGRAM, True, True),
        ("network", NETLINK, 3, True, True),
        ("network", PACKET, 3, False, False),
        ("network", VSOCK, STREAM, False, False),
    ],
)
def test_sockets_follow_the_reach(
    calls: SyscallNumbers,
    reach: Reach,
    family: int,
    kind: int,
    landlock: bool,
    namespaces: bool,
) -> None:
    beside = beside_landlock(calls, reach, attended=True, signals=False)
    assert (answer(beside, calls, calls.socket, family, kind) == ALLOW) is landlock
    inside = inside_namespaces(calls, reach, supervised=True)
    assert (answer(inside, calls, calls.socket, family, kind) == ALLOW) is namespaces


def test_without_somebody_to_ask_a_namespace_has_no_unix_sockets(
    calls: SyscallNumbers,
) -> None:
    program = inside_namespaces(calls, "workspace", supervised=False)
    assert answer(program, calls, calls.socket, UNIX, STREAM) == REFUSED
    assert answer(program, calls, calls.socket, INET, STREAM) == ALLOW


def test_connections_and_the_beginning_of_a_command_are_asked_about(
    calls: SyscallNumbers,
) -> None:
    program = outside_namespaces(calls, "workspace")
    assert answer(program, calls, calls.connect, 3) == NOTIFY
    assert answer(program, calls, calls.prctl, 22) == NOTIFY
    assert answer(program, calls, calls.prctl, 38) == ALLOW
    assert answer(program, calls, calls.socket, UNIX, STREAM) == ALLOW
    shared = outside_namespaces(calls, "network")
    assert answer(shared, calls, calls.connect, 3) == ALLOW
    assert answer(shared, calls, calls.prctl, 22) == NOTIFY


def test_of_netlink_only_routes(calls: SyscallNumbers) -> None:
    program = inside_namespaces(calls, "network", supervised=True)
    assert answer(program, calls, calls.socket, NETLINK, 3, 0) == ALLOW
    assert answer(program, calls, calls.socket, NETLINK, 3, 12) == REFUSED


def test_with_landlock_nothing_is_sent_to_others(calls: SyscallNumbers) -> None:
    program = beside_landlock(calls, "workspace", attended=True, signals=False)
    assert answer(program, calls, calls.connect, 3) == REFUSED
    assert answer(program, calls, calls.sendto, 3, 1, 1, 0, 0) == ALLOW
    assert answer(program, calls, calls.sendto, 3, 1, 1, 0, 1 << 40) == REFUSED
    assert answer(program, calls, calls.sendto, 3, 1, 1, 0, 5) == REFUSED
    assert answer(program, calls, calls.socketpair, UNIX, STREAM) == ALLOW
    assert (
        answer(program, calls, calls.socketpair, UNIX, PACKETS | CLOSE_ON_EXEC) == ALLOW
    )
    assert answer(program, calls, calls.socketpair, UNIX, DATAGRAM) == REFUSED
    assert (
        answer(program, calls, calls.socketpair, UNIX, RAW | CLOSE_ON_EXEC) == REFUSED
    )
    shared = inside_namespaces(calls, "network", supervised=True)
    assert answer(shared, calls, calls.socketpair, UNIX, RAW) == REFUSED
    assert answer(shared, calls, calls.socketpair, UNIX, STREAM) == ALLOW
    assert answer(program, calls, calls.prlimit, 0) == ALLOW
    assert answer(program, calls, calls.prlimit, 4711) == REFUSED
    assert answer(program, calls, calls.ioctl, 3, 0x40086602) == REFUSED, "chattr"
    network = beside_landlock(calls, "network", attended=True, signals=False)
    assert answer(network, calls, calls.connect, 3) == ALLOW


def test_what_landlock_does_not_see_is_asked_about(calls: SyscallNumbers) -> None:
    for signals in (True, False):
        program = beside_landlock(calls, "workspace", attended=True, signals=signals)
        assert {
            answer(program, calls, number) for number in calls.attended.values()
        } == {NOTIFY}
        assert {
            answer(program, calls, number) for number in calls.signals.values()
        } == {NOTIFY if signals else ALLOW}
        assert {answer(program, calls, number) for number in calls.attributes} == {
            REFUSED
        }


def test_other_processors_are_unknown() -> None:
    assert calls_of("riscv64") is None


@pytest.mark.parametrize("attended", [True, False])
def test_without_landlocks_own_guard_no_signal_takes_another_way(
    calls: SyscallNumbers, attended: bool
) -> None:
    for signals, expected in ((True, REFUSED), (False, ALLOW)):
        program = beside_landlock(
            calls, "workspace", attended=attended, signals=signals
        )
        assert answer(program, calls, 424) == expected, "pidfd_send_signal"
        assert {
            answer(program, calls, calls.fcntl, 3, command) for command in (8, 10, 15)
        } == {expected}
        assert {
            answer(program, calls, calls.ioctl, 3, command)
            for command in (0x8901, 0x8902)
        } == {expected}
        assert answer(program, calls, calls.fcntl, 3, 4) == ALLOW


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_no_file_is_made_that_runs_as_its_owner(
    calls: SyscallNumbers, mode: int
) -> None:
    for program in programs(calls):
        assert answer(program, calls, 437) == REFUSED, "openat2"
        for number, index in calls.making.items():
            assert answer(program, calls, number, *(0,) * index, mode) == REFUSED
            assert answer(program, calls, number, *(0,) * index, 0o1777) == ALLOW
        for number, index in calls.opening.items():
            before = (0,) * (index - 1)
            assert answer(program, calls, number, *before, 0o101, mode) == REFUSED
            assert answer(program, calls, number, *before, 0o101, 0o755) == ALLOW
            assert answer(program, calls, number, *before, 0, mode) == ALLOW, (
                "without a new file it has no mode"
            )
    for program in programs(calls)[:2]:
        for name, index in {
            "chmod": 1,
            "fchmod": 1,
            "fchmodat": 2,
            "fchmodat2": 2,
        }.items():
            if name in calls.attended:
                assert (
                    answer(program, calls, calls.attended[name], *(0,) * index, mode)
                    == REFUSED
                )
                assert (
                    answer(program, calls, calls.attended[name], *(0,) * index, 0o755)
                    == ALLOW
                )


def test_the_bounds_of_a_command_are_asked_about(calls: SyscallNumbers) -> None:
    program = beside_landlock(calls, "workspace", attended=True, signals=False)
    for bound, expected in ((6, NOTIFY), (10, NOTIFY), (7, ALLOW)):
        assert answer(program, calls, calls.setrlimit, bound, 1) == expected
        assert answer(program, calls, calls.prlimit, 0, bound, 1) == expected
        assert answer(program, calls, calls.prlimit, 4711, bound, 1) == REFUSED

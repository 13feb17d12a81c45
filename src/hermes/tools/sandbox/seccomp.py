"""Filters of system calls, as programs for the kernel: they refuse what no confined command needs, and what its reach
does not include.

Everything that is not listed is allowed. Written by hand for the two processors that Hermes supports; `calls_of`
returns None for any other.
"""

import struct
from collections.abc import Iterator, Sequence

import msgspec

from hermes.schema.events import Reach

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO, _NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
_EPERM, _ENOSYS, _EAFNOSUPPORT, _EOPNOTSUPP = 1, 38, 97, 95
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in seccomp_data
_X32 = 0x40000000
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _PACKETS = 1, 5  # socket types with a connection
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag
_TERMINAL_INPUT = (
    0x5412,
    0x541C,
)  # TIOCSTI, TIOCLINUX: simulate typing into a terminal
_SET_OWNER = (
    0x8901,
    0x8902,
)  # FIOSETOWN, SIOCSPGRP: who gets a signal when there is something to read
_OWNER_COMMANDS = (
    8,
    10,
    15,
)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: the same, and which signal
_PIDFD_SEND = 424
_OPENAT2 = 437
BOUNDS = (6, 10)
"""RLIMIT_NPROC and RLIMIT_LOCKS: the number of processes, and the mark by which they are found. Once set, they can't be
changed."""
_SET_ID = 0o6000
_CREATES = (
    0x400040  # O_CREAT, O_TMPFILE: an opening call has a mode only with one of these
)
_LOAD_FILTER = 22  # PR_SET_SECCOMP
_FILE_FLAGS = (0x40086602, 0x401C5820)  # FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR: chattr

Instruction = tuple[int, int, int, int]


class SyscallNumbers(msgspec.Struct, frozen=True):
    """The numbers of the system calls on one processor; -1 where it lacks one."""

    arch: int
    denied: tuple[int, ...]
    clone: int
    ioctl: int
    fcntl: int
    socket: int
    socketpair: int
    connect: int
    sendto: int
    prlimit: int
    setrlimit: int
    attributes: tuple[int, ...]
    """Extended attributes: refused if only Landlock confines, which does not cover them."""
    attended: "dict[str, int]"
    """Calls that change the attributes of a file, by name: answered one by one if only Landlock confines."""
    signals: "dict[str, int]"
    opening: "dict[int, int]"
    """Calls that can create a file, with the position of the mode among the arguments; the flags come before it."""
    making: "dict[int, int]"
    """Calls that always create one, with the position of the mode."""
    prctl: int


# Mounting and namespaces, other processes' memory, keys, modules, clocks, disks, and rings that bypass filters.
_SHARED_DENIED = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443)
_CALLS = {
    "x86_64": SyscallNumbers(
        arch=0xC000003E,
        denied=(
            *_SHARED_DENIED,
            *(101, 310, 311, 272, 308, 165, 166, 155, 161, 250, 248, 249, 321, 298, 246, 320, 175, 313, 176, 169, 167),
            *(168, 164, 227, 305, 170, 171, 172, 173, 163, 179, 323, 304, 212, 312, 180, 103, 153, 134, 279, 300, 156),
        ),
        clone=56,
        ioctl=16,
        fcntl=72,
        socket=41,
        socketpair=53,
        connect=42,
        sendto=44,
        prlimit=302,
        setrlimit=160,
        attributes=(188, 189, 190, 197, 198, 199, 463, 466, 469, 132, 235, 261),
        attended={
            "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452,
            "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260, "utimensat": 280,
        },
        signals={
            "kill": 62, "tkill": 200, "tgkill": 234, "pidfd_open": 434, "rt_sigqueueinfo": 129,
            "rt_tgsigqueueinfo": 297,
        },
        opening={2: 2, 257: 3},
        making={85: 1, 133: 1, 259: 2},
        prctl=157,
    ),
    "aarch64": SyscallNumbers(
        arch=0xC00000B7,
        denied=(
            *_SHARED_DENIED,
            *(117, 270, 271, 97, 268, 40, 39, 41, 51, 219, 217, 218, 280, 241, 104, 294, 105, 273, 106, 142, 224, 225),
            *(170, 112, 266, 161, 162, 89, 60, 282, 265, 18, 272, 42, 116, 58, 239, 262),
        ),
        clone=220,
        ioctl=29,
        fcntl=25,
        socket=198,
        socketpair=199,
        connect=203,
        sendto=206,
        prlimit=261,
        setrlimit=164,
        attributes=(5, 6, 7, 14, 15, 16, 463, 466, 469),
        attended={"fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchown": 55, "fchownat": 54, "utimensat": 88},
        signals={
            "kill": 129, "tkill": 130, "tgkill": 131, "pidfd_open": 434, "rt_sigqueueinfo": 138,
            "rt_tgsigqueueinfo": 240,
        },
        opening={56: 3},
        making={33: 2},
        prctl=167,
    ),
}  # fmt: skip
_CLONE3 = 435
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
"""The position of the mode among the arguments."""


def calls_of(machine: str) -> SyscallNumbers | None:
    """The system calls of a processor (as `uname -m` names it), if they are known."""
    return _CALLS.get(machine)


def inside_namespaces(
    calls: SyscallNumbers, reach: Reach, *, supervised: bool
) -> bytes:
    """For a command with its own network and files.

    It has Unix sockets only if Hermes decides about their connections (`supervised`), and none if it shares the
    network.
    """
    has_unix = supervised and reach == "workspace"
    families = (_UNIX, _INET, _INET6) if has_unix else (_INET, _INET6)
    program = [
        *_preamble(calls),
        *_always(calls),
        *_sockets(calls, families),
        *_pairs(calls),
    ]
    for name, index in _MODES.items():
        if name in calls.attended:
            program += _when(calls.attended[name], _no_set_id(index))
    return _encode([*program, _allow()])


def outside_namespaces(calls: SyscallNumbers, reach: Reach) -> bytes:
    """For bubblewrap itself and the command in it.

    Asks before the command begins, when bubblewrap has mounted everything and loads the command's filter, and about
    each connection if the command has Unix sockets.
    """
    program: list[Instruction] = [
        (_LOAD, 0, 0, _NUMBER),
        *_when(calls.prctl, _ask_about(0, (_LOAD_FILTER,))),
    ]
    if reach == "workspace":
        program += _when(calls.connect, [(_RETURN, 0, 0, _NOTIFY)])
    return _encode([*program, _allow()])


def beside_landlock(
    calls: SyscallNumbers, reach: Reach, *, attended: bool, signals: bool
) -> bytes:
    """For a command that only Landlock confines: network only if its reach includes it, and no sockets of other
    programs.

    Asks the supervisor about everything that Landlock does not cover (including `signals` on kernels where it does not
    cover those).
    """
    program = [*_preamble(calls), *_always(calls)]
    families = (_UNIX,) if reach == "workspace" else (_INET, _INET6)
    program += [*_sockets(calls, families), *_pairs(calls)]
    if reach == "workspace":
        program += _deny(calls.connect, _EPERM)
        program += _when(calls.sendto, [*_argument_is_not_zero(4), _errno(_EPERM)])
    program += _when(calls.prlimit, [*_argument_is_not_zero(0), _errno(_EPERM)])
    program += _when(calls.ioctl, _argument_among(1, _FILE_FLAGS, _EPERM))
    for number in calls.attributes:
        program += _deny(number, _EOPNOTSUPP)
    if attended:
        program += _when(calls.setrlimit, _ask_about(0, BOUNDS))
        program += _when(calls.prlimit, _ask_about(1, BOUNDS))
        for number in calls.attended.values():
            program += _when(number, [(_RETURN, 0, 0, _NOTIFY)])
    if signals:
        program += _deny(_PIDFD_SEND, _EPERM)
        program += _when(calls.fcntl, _argument_among(1, _OWNER_COMMANDS, _EPERM))
        program += _when(calls.ioctl, _argument_among(1, _SET_OWNER, _EPERM))
    if attended and signals:
        for number in calls.signals.values():
            program += _when(number, [(_RETURN, 0, 0, _NOTIFY)])
    return _encode([*program, _allow()])


def _preamble(calls: SyscallNumbers) -> Iterator[Instruction]:
    """Loads the call's number; refuses calls in another processor's format."""
    yield (_LOAD, 0, 0, _ARCH)
    yield (_EQUAL, 1, 0, calls.arch)
    yield _errno(_EPERM)
    yield (_LOAD, 0, 0, _NUMBER)
    if calls.arch == _CALLS["x86_64"].arch:
        yield (_AT_LEAST, 0, 1, _X32)
        yield _errno(_EPERM)


def _always(calls: SyscallNumbers) -> Iterator[Instruction]:
    for number in calls.denied:
        yield from _deny(number, _EPERM)
    yield from _deny(
        _CLONE3, _ENOSYS
    )  # its flags are in memory, and libraries fall back to clone
    flags: list[Instruction] = [
        (_LOAD, 0, 0, _ARGUMENTS),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
    ]
    yield from _when(calls.clone, [*flags, _errno(_EPERM)])
    yield from _when(calls.ioctl, _argument_among(1, _TERMINAL_INPUT, _EPERM))
    yield from _deny(_OPENAT2, _ENOSYS)  # its mode is in memory too
    for number, index in calls.opening.items():
        flags = [
            (_LOAD, 0, 0, _ARGUMENTS + 8 * (index - 1)),
            (_ANY_BIT, 0, 3, _CREATES),
        ]
        yield from _when(number, [*flags, *_no_set_id(index)])
    for number, index in calls.making.items():
        yield from _when(number, _no_set_id(index))


def _sockets(calls: SyscallNumbers, families: Sequence[int]) -> Iterator[Instruction]:
    """Allows only sockets of these families: of Unix sockets only those with a connection, and of netlink only the
    routing table, which resolving names needs."""
    body: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS)]
    for family in families:
        if family == _UNIX:
            body += [
                (_EQUAL, 0, 5, _UNIX),
                (_LOAD, 0, 0, _ARGUMENTS + 8),
                (_AND, 0, 0, 0xF),
            ]
            body += [
                (_EQUAL, 1, 0, _STREAM),
                (_EQUAL, 0, 1, _PACKETS),
                _allow(),
                (_LOAD, 0, 0, _ARGUMENTS),
            ]
        else:
            body += [(_EQUAL, 0, 1, family), _allow()]
    if _INET in families:
        body += [
            (_EQUAL, 0, 3, _NETLINK),
            (_LOAD, 0, 0, _ARGUMENTS + 16),
            (_EQUAL, 0, 1, 0),
            _allow(),
        ]
    yield from _when(
        calls.socket,
        [*body, _errno(_EPERM if _INET not in families else _EAFNOSUPPORT)],
    )


def _pairs(calls: SyscallNumbers) -> Iterator[Instruction]:
    """Refuses pairs of sockets without a connection (datagrams, and raw ones alike): they can also write to other
    sockets."""
    check: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS + 8), (_AND, 0, 0, 0xF)]
    check += [(_EQUAL, 2, 0, _STREAM), (_EQUAL, 1, 0, _PACKETS)]
    yield from _when(calls.socketpair, [*check, _errno(_EPERM)])


def _deny(number: int, error: int) -> list[Instruction]:
    return _when(number, [_errno(error)])


def _when(number: int, body: Sequence[Instruction]) -> list[Instruction]:
    """Applies the body to one call; then loads the number again, because the body may have loaded something else."""
    if len(body) == 1:
        return [(_EQUAL, 0, 1, number), *body]
    return [(_EQUAL, 0, len(body) + 1, number), *body, (_LOAD, 0, 0, _NUMBER)]


def _argument_is_not_zero(index: int) -> list[Instruction]:
    """Continues with the next instruction if an argument is not 0, else skips it."""
    low = _ARGUMENTS + 8 * index
    return [
        (_LOAD, 0, 0, low),
        (_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, low + 4),
        (_EQUAL, 1, 0, 0),
    ]


def _no_set_id(index: int) -> list[Instruction]:
    """Refuses a mode that lets others run a file as its owner or group, which would also apply outside the sandbox."""
    return [
        (_LOAD, 0, 0, _ARGUMENTS + 8 * index),
        (_ANY_BIT, 0, 1, _SET_ID),
        _errno(_EPERM),
    ]


def _argument_among(index: int, values: Sequence[int], error: int) -> list[Instruction]:
    body: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS + 8 * index)]
    for value in values:
        body += [(_EQUAL, 0, 1, value), _errno(error)]
    return body


def _ask_about(index: int, values: Sequence[int]) -> list[Instruction]:
    body: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS + 8 * index)]
    for value in values:
        body += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _NOTIFY)]
    return body


def _errno(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | error)


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)


def _encode(program: Sequence[Instruction]) -> bytes:
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)

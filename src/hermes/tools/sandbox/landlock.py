"""Landlock and a filter of system calls, for machines on which bubblewrap can't be used.

Both apply to the thread that requests them and to what it starts. So each command gets a thread that confines itself,
starts the command, and ends. No code of Hermes runs in a process between fork and exec.
"""

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from hermes.text.translation import translator
from hermes.tools.sandbox.confinement import ConfinedLaunch, Fence, Kind, Started
from hermes.tools.sandbox.filtered_thread import check, load_filter, start_in_thread
from hermes.tools.sandbox.protected_paths import hidden, is_workspace
from hermes.tools.sandbox.seccomp import SyscallNumbers, beside_landlock

t = translator(__name__)


_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVILEGES, _DROP_BOUND, _CAPABILITIES = 38, 24, 0x20080522
_KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7)
"""The capabilities that root keeps: for files of any owner (chown, dac_override, fowner, fsetid), for signals, and for
becoming another user."""
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE = 1 << 4 | 1 << 5
_MAKE = (
    1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
)  # folders, files, sockets, pipes, links; no devices
_REFER, _TRUNCATE, _DEVICE = 1 << 13, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_ALL = _READ | _WRITE_FILE | _REMOVE | _MAKE | _REFER | _TRUNCATE
_ONLY_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE
_SCOPES = 0b11  # abstract sockets, signals
_FULL_ABI = 6
_SINCE = ((1, (1 << 13) - 1), (2, _REFER), (3, _TRUNCATE), (5, _DEVICE))
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("folder", ctypes.c_int32))


def landlock_abi() -> int:
    """The version of Landlock that the kernel offers; 0 if it offers none."""
    return max(0, ctypes.CDLL(None).syscall(_CREATE, None, ctypes.c_size_t(0), 1))


class Landlock:
    """Confines with a version of Landlock, and with filters for a known processor."""

    kind: Kind = "landlock"

    def __init__(self, abi: int, calls: SyscallNumbers, why: str) -> None:
        self._abi = abi
        self._calls = calls
        self._rules: dict[Fence, _Rules] = {}
        self.why = f"{why} {_weakness(abi)}".strip()

    def prepare(self, fence: Fence) -> None:
        """Builds the rules, which takes long if many folders must be listed."""
        if fence.reach != "machine":
            self._ruleset(fence)

    def start(self, launch: ConfinedLaunch, fence: Fence) -> Started:
        """Starts a program from a thread that has confined itself."""
        if fence.reach == "machine":
            return Started(launch.start())
        ruleset = self._ruleset(fence)
        return start_in_thread(lambda: self._start_confined(launch, fence, ruleset))

    def _start_confined(
        self, launch: ConfinedLaunch, fence: Fence, ruleset: int
    ) -> Started:
        libc = ctypes.CDLL(None, use_errno=True)
        attended = True
        _drop_capabilities(libc)
        check(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        check(libc.syscall(_RESTRICT, ruleset, 0))
        try:
            notices = self._filter(fence, attended=True)
        except (
            OSError
        ):  # another supervisor outside is already asked, and so confines us
            attended, notices = False, self._filter(fence, attended=False)
        try:
            return Started(launch.start(), notices if attended else -1)
        except BaseException:
            if attended:
                os.close(notices)
            raise

    def _filter(self, fence: Fence, *, attended: bool) -> int:
        code = beside_landlock(
            self._calls, fence.reach, attended=attended, signals=self._abi < _FULL_ABI
        )
        return load_filter(self._calls, code, asks=attended)

    def _ruleset(self, fence: Fence) -> int:
        """The rules for a fence, built again only when a folder has changed that had to be listed for them."""
        known = self._rules.get(fence)
        if known and known.times == _times(known.listed):
            return known.ruleset
        if known:
            os.close(known.ruleset)
        self._rules[fence] = rules = _build(self._abi, fence)
        return rules.ruleset


class _Rules(msgspec.Struct, frozen=True):
    ruleset: int
    listed: tuple[Path, ...]
    times: tuple[int, ...]


def _build(abi: int, fence: Fence) -> _Rules:
    handled = 0
    for since, rights in _SINCE:
        handled |= rights if abi >= since else 0
    attributes = _Attributes(handled, 0, _SCOPES if abi >= _FULL_ABI else 0)
    libc = ctypes.CDLL(None, use_errno=True)
    size = 8 if abi < 4 else 16 if abi < _FULL_ABI else 24
    ruleset = check(
        libc.syscall(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), 0)
    )
    secret = hidden(fence)
    listed: list[Path] = []
    times: list[int] = []
    try:
        for folder in around(Path("/"), secret, listed):
            _allow(libc, ruleset, folder, _READ & handled)
        for path in (*fence.readable, *map(Path, ("/proc", "/sys"))):
            _allow(libc, ruleset, path, _READ & handled)
        for device in _DEVICES:
            _allow(
                libc,
                ruleset,
                Path(device),
                (_READ_FILE | _WRITE_FILE | _TRUNCATE) & handled,
            )
        _allow(libc, ruleset, fence.temporary, _ALL & handled)
        if is_workspace(fence.workspace) and not fence.read_only:
            for path in around(fence.workspace, secret, listed):
                _allow(libc, ruleset, path, _ALL & handled)
        times.extend(_times(listed))
    except BaseException:
        os.close(ruleset)
        raise
    return _Rules(ruleset, tuple(listed), tuple(times))


def around(folder: Path, secret: Sequence[Path], listed: list[Path]) -> Iterator[Path]:
    """The fewest paths that cover a folder without its secrets; adds the folders it searches to `listed`."""
    if folder in secret:
        return
    if not any(path.is_relative_to(folder) for path in secret) and folder != Path("/"):
        yield folder
        return
    listed.append(folder)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if folder == Path("/") and entry.name in ("dev", "proc", "sys"):
                continue
            if not entry.is_symlink():
                yield from around(Path(entry.path), secret, listed)


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, access: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # gone meanwhile, or not readable for us
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            access &= _ONLY_FILES
        if access:
            check(
                libc.syscall(
                    _ADD, ruleset, 1, ctypes.byref(_Beneath(access, handle)), 0
                )
            )
    finally:
        os.close(handle)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drops those capabilities of root that bypass Landlock, above all access to other processes."""
    for capability in range(64):
        if capability not in _KEPT_CAPABILITIES:
            libc.prctl(
                _DROP_BOUND, capability, 0, 0, 0
            )  # fails without capabilities, and for unknown ones
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    sets = (
        ctypes.c_uint32 * 6
    )()  # effective, permitted, inheritable; then their upper halves
    check(libc.capget(header, sets))
    kept = sum(1 << capability for capability in _KEPT_CAPABILITIES)
    held = sets[1] & kept
    check(libc.capset(header, (ctypes.c_uint32 * 6)(held & sets[0], held, 0, 0, 0, 0)))


def _times(folders: Iterable[Path]) -> tuple[int, ...]:
    times: list[int] = []
    for folder in folders:
        try:
            times.append(folder.stat().st_ctime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


def _weakness(abi: int) -> str:
    """What Landlock can't do: it allows whole folders.

    It can't hide a file in a folder where a command works, because then new files beside it would be unreadable too.
    """
    secrets = t.logged("A project's own secret files are not hidden from commands.")
    if abi < 3:
        return t.logged(
            "This kernel's Landlock can't keep a command from emptying files; a newer kernel can. "
            "{secrets}",
            secrets=secrets,
        )
    return secrets

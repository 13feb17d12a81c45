"""Bubblewrap: a view of the machine of the command's own. Everything is read-only but its workspace and temporary
folder; secrets are covered; processes, network and devices are its own.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from hermes.children.own_python import own_code
from hermes.tools.sandbox.confinement import ConfinedLaunch, Fence, Kind, Started
from hermes.tools.sandbox.protected_paths import (
    Hidden,
    find_hidden,
    is_workspace,
    protected,
    sockets,
)
from hermes.tools.sandbox.seccomp import SyscallNumbers, inside_namespaces
from hermes.tools.sandbox.secret_files import Identity

_KEPT_OF_RUN = (
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
)
"""What of /run a program needs to look up names and to be found; the rest are doors to other programs."""
_OF_THE_KERNEL = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/mtrr",
    "/proc/acpi",
    "/proc/scsi",
)
"""The machine's own settings: root could write them, as the kernel asks who owns the file and not for a capability."""
_MEMORY = 256 * 1024**2
"""Bytes that a folder in memory can hold."""
_ADMINISTRATOR = (
    "CAP_DAC_OVERRIDE",
    "CAP_CHOWN",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_SETUID",
    "CAP_SETGID",
    "CAP_KILL",
)
"""What root keeps: to work with files of any owner where writing is possible at all."""


class Bubblewrap:
    """Confines with the program `bwrap`."""

    kind: Kind = "bubblewrap"
    why = ""

    def __init__(
        self,
        program: Path,
        calls: SyscallNumbers | None,
        *,
        administrator: bool,
        sizes: bool = True,
    ) -> None:
        self._program = program
        self._calls = calls
        self._administrator = administrator
        self._sizes = sizes
        self._views: dict[Fence, _View] = {}
        self._secrets: dict[Path, frozenset[Identity]] = {}

    def prepare(self, fence: Fence) -> None:
        """Looks for what is to be hidden, which takes its time in a large workspace."""
        if fence.reach != "machine":
            self._view(fence)

    def start(self, launch: ConfinedLaunch, fence: Fence) -> Started:
        """Starts it in namespaces of its own, which end with it and with Hermes."""
        if fence.reach == "machine":
            return Started(launch.start())
        filter_file = self._filter(fence)
        try:
            seccomp = ("--seccomp", str(filter_file)) if filter_file >= 0 else ()
            prefix = [
                *self.arguments(fence),
                *seccomp,
                "--chdir",
                str(launch.folder),
                "--",
            ]
            return Started(
                launch.start(prefix, (filter_file,) if filter_file >= 0 else ()),
                ends_with_hermes=True,
            )
        finally:
            if filter_file >= 0:
                os.close(filter_file)

    def arguments(self, fence: Fence) -> list[str]:
        """The program and what makes the fence; later mounts cover earlier ones."""
        view = self._view(fence)
        own = [fence.workspace] if is_workspace(fence.workspace) else []
        doors = [path for path in sockets(fence) if not _within(path, view.hidden)]
        inside = [path for path in doors if _within(path, own)]
        gone = [Path("/run"), Path("/tmp")]  # noqa: S108 - others take their place
        return [
            *view.before,
            *_covered(
                path for path in doors if path not in inside and not _within(path, gone)
            ),
            *view.behind,
            *_covered(inside),
            *_each(
                "--ro-bind",
                (path for path in _kept(own) if not _within(Path(path), view.hidden)),
            ),
        ]

    def _view(self, fence: Fence) -> "_View":
        """What stays the same from command to command, made again when there is more or less to hide."""
        known = self._views.get(fence)
        if known is not None and known.found.is_current():
            return known
        secrets = self._secrets.get(fence.workspace, frozenset())
        found = find_hidden(fence, secrets)
        self._secrets[fence.workspace] = secrets | found.secrets
        own = [fence.workspace] if is_workspace(fence.workspace) else []
        outside = [path for path in found.places if not _within(path, own)]
        opened = [
            path
            for path in outside
            if any(path in inner.parents for inner in fence.readable)
        ]
        before = [
            str(self._program),
            *self._namespaces(fence),
            *(
                "--ro-bind",
                "/",
                "/",
                "--dev",
                "/dev",
                *self._memory("/dev/shm", "1777"),  # noqa: S108
                "--proc",
                "/proc",
            ),
            *_each("--ro-bind", filter(os.path.exists, _OF_THE_KERNEL)),
            *self._memory("/run", "0755"),
            *_each("--ro-bind-try", _KEPT_OF_RUN),
            *_covered(path for path in outside if path not in opened),
        ]
        behind = [
            *(
                *self._memory("/var/tmp", "1777"),  # noqa: S108
                "--bind",
                str(fence.temporary),
                "/tmp",  # noqa: S108
            ),
            *(
                word
                for path in opened
                for word in ("--perms", "0111", "--tmpfs", str(path))
            ),
            *_each("--bind", map(str, (fence.temporary, *own))),
            *_each("--ro-bind-try", map(str, fence.readable)),
            *(
                word for path in opened for word in ("--remount-ro", str(path))
            ),  # once what may be seen has its place
            *_covered(path for path in found.places if _within(path, own)),
            *self._closed(),
        ]
        self._views[fence] = _View(found, before, behind)
        return self._views[fence]

    def _memory(self, place: str, mode: str) -> Iterator[str]:
        """A folder in memory that can't take all of it."""
        if self._sizes:
            yield from ("--size", str(_MEMORY))
        yield from ("--perms", mode, "--tmpfs", place)

    def _closed(self) -> Iterator[str]:
        """Folders in memory whose size can't be bounded; where it can, only /dev, which needs no new files."""
        for place in ("/dev",) if self._sizes else ("/dev", "/run", "/var/tmp"):  # noqa: S108
            yield from ("--remount-ro", place)

    def _namespaces(self, fence: Fence) -> Iterator[str]:
        yield from (
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
            "--die-with-parent",
        )
        if fence.reach == "workspace":
            yield "--unshare-net"
        if self._administrator:
            yield from ("--cap-drop", "ALL")
            for capability in _ADMINISTRATOR:
                yield from ("--cap-add", capability)

    def _filter(self, fence: Fence) -> int:
        """A file that holds the filter of system calls, or -1 for an unknown processor."""
        if self._calls is None:
            return -1
        handle = os.memfd_create("hermes-filter")
        os.write(handle, inside_namespaces(self._calls, fence.reach))
        os.lseek(handle, 0, os.SEEK_SET)
        return handle


class _View(msgspec.Struct, frozen=True):
    found: Hidden
    before: list[str]
    behind: list[str]

    @property
    def hidden(self) -> tuple[Path, ...]:
        return self.found.places


def _covered(paths: Iterable[Path]) -> Iterator[str]:
    """Hides folders under empty ones, and files under a device that can't be opened there."""
    for path in paths:
        if path.is_dir():
            yield from (
                "--perms",
                "0000",
                "--tmpfs",
                str(path),
                "--remount-ro",
                str(path),
            )
        else:
            yield from ("--ro-bind", "/dev/null", str(path))


def _kept(own: Iterable[Path]) -> Iterator[str]:
    """What of the workspace stays as it is, this Hermes too where it runs from there. A link is left to where it leads;
    what is not there yet is looked after by `restore`, as covering it would make it."""
    for workspace in own:
        yield from (str(path) for path in own_code() if workspace in path.parents)
        yield from (
            path
            for path in protected(workspace)
            if os.path.exists(path) and not os.path.islink(path)  # noqa: PTH110, PTH114
        )


def _each(option: str, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from (option, path, path)


def _within(path: Path, folders: Iterable[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)

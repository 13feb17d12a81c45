"""Bubblewrap gives a command its own view of the machine: everything is read-only except its workspace and temporary
folder, secrets are covered, and it has its own processes, network and devices."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from hermes.children.own_python import own_code
from hermes.tools.sandbox.confinement import ConfinedLaunch, Fence, Kind, Started
from hermes.tools.sandbox.filtered_thread import load_filter, start_in_thread
from hermes.tools.sandbox.mount_check import ExpectedMounts, expected
from hermes.tools.sandbox.protected_paths import (
    Hidden,
    find_hidden,
    is_workspace,
    protected,
    sockets,
)
from hermes.tools.sandbox.seccomp import (
    SyscallNumbers,
    inside_namespaces,
    outside_namespaces,
)
from hermes.tools.sandbox.secret_files import Identity

_VISIBLE_IN_RUN = (
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
)
"""The parts of /run that programs need to look up names and to be found. The rest are sockets of other programs."""
_KERNEL_SETTINGS = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/mtrr",
    "/proc/acpi",
    "/proc/scsi",
)
"""The machine's settings. Root could write them, because the kernel checks the file's owner instead of a capability."""
_END_WITH_HERMES = "--die-with-parent"
_MEMORY_FOLDER_BYTES = 256 * 1024**2
_ROOT_CAPABILITIES = (
    "CAP_DAC_OVERRIDE",
    "CAP_CHOWN",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_SETUID",
    "CAP_SETGID",
    "CAP_KILL",
)
"""The capabilities that root keeps: to work with files of any owner where writing is possible at all."""


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
        """Finds the paths to hide, which takes a while in a large workspace."""
        if fence.reach != "machine":
            self._view(fence)

    def start(self, launch: ConfinedLaunch, fence: Fence) -> Started:
        """Starts a program in its own namespaces, which end with it and with Hermes."""
        if fence.reach == "machine":
            return Started(launch.start())
        calls = self._calls
        if calls is None or not launch.supervised or self._is_setuid():
            return self._start(launch, fence, supervised=False)
        return start_in_thread(
            lambda: self._start_supervised(launch, fence, calls), stays=True
        )

    def _start_supervised(
        self, launch: ConfinedLaunch, fence: Fence, calls: SyscallNumbers
    ) -> Started:
        """Starts a program about which the kernel asks Hermes: before it begins, and about its connections."""
        try:
            code = outside_namespaces(calls, fence.reach)
            notices = load_filter(calls, code, asks=True)
        except OSError:  # another process around this Hermes is already asked
            return self._start(launch, fence, supervised=False)
        try:
            started = self._start(launch, fence, supervised=True)
        except BaseException:
            os.close(notices)
            raise
        return msgspec.structs.replace(started, notices=notices)

    def _start(
        self, launch: ConfinedLaunch, fence: Fence, *, supervised: bool
    ) -> Started:
        arguments, mounts = self._arguments(fence)
        if launch.is_probe:
            arguments.remove(_END_WITH_HERMES)
        filter_file = self._filter(fence, supervised=supervised)
        has_filter = filter_file >= 0
        try:
            prefix = [
                *arguments,
                *(("--seccomp", str(filter_file)) if has_filter else ()),
                *("--chdir", str(launch.folder), "--"),
            ]
            process = launch.start(prefix, (filter_file,) if has_filter else ())
            return Started(process, mounts=mounts, ends_with_hermes=True)
        finally:
            if has_filter:
                os.close(filter_file)

    def _is_setuid(self) -> bool:
        """Whether bubblewrap needs privileges that an earlier filter would take away."""
        return not self._administrator and bool(
            self._program.stat().st_mode & stat.S_ISUID
        )

    def _arguments(self, fence: Fence) -> tuple[list[str], ExpectedMounts]:
        """Returns the command line up to the program, and the required mounts. Later mounts cover earlier ones."""
        view = self._view(fence)
        own = [fence.workspace] if is_workspace(fence.workspace) else []
        doors = [path for path in sockets(fence) if not _within(path, view.hidden)]
        inside = [path for path in doors if _within(path, own)]
        # If the kernel asks about connections, or there are no Unix sockets, nothing
        # outside needs a cover; mounting one would fail once the socket is gone.
        covers = doors if self._calls is None else []
        outside = [path for path in covers if path not in inside]
        gone = [Path("/run"), Path("/tmp")]  # noqa: S108 - others take their place
        kept = [
            path
            for path in _read_only_paths(own)
            if not _within(Path(path), view.hidden)
        ]
        again = [
            path for path in (*view.hidden, *inside) if _within(path, map(Path, kept))
        ]
        hidden = [path for path in view.hidden if _within(path, own)]
        required = (*map(str, own), *map(str, (*hidden, *inside)), *kept)
        mounts = expected(fence.workspace, dict.fromkeys(required))
        arguments = [
            *view.before,
            *_covered(path for path in outside if not _within(path, gone)),
            *view.behind,
            *_covered(inside),
            *_each("--ro-bind", kept),
            *_covered(again),
        ]
        return arguments, mounts

    def _view(self, fence: Fence) -> "_View":
        """Returns the mounts that all commands share; built again when the paths to hide change."""
        known = self._views.get(fence)
        if known is not None and known.found.is_current():
            return known
        secrets = self._secrets.get(fence.workspace, frozenset())
        found = find_hidden(fence, secrets)
        self._secrets[fence.workspace] = secrets | found.secrets
        own = [fence.workspace] if is_workspace(fence.workspace) else []
        inside = [path for path in found.places if _within(path, own)]
        outside = [path for path in found.places if not _within(path, own)]
        opened = [path for path in outside if _holds_any(path, fence.readable)]
        covered = [path for path in outside if path not in opened]
        view = _View(
            found,
            [str(self._program), *self._base_mounts(fence), *_covered(covered)],
            [*self._own_mounts(fence, own, opened), *_covered(inside), *self._closed()],
        )
        self._views[fence] = view
        return view

    def _base_mounts(self, fence: Fence) -> Iterator[str]:
        """The namespaces, and the machine as a command sees it: read-only."""
        yield from self._namespaces(fence)
        yield from ("--ro-bind", "/", "/", "--dev", "/dev")
        yield from self._memory("/dev/shm", "1777")  # noqa: S108
        yield from ("--proc", "/proc")
        yield from _each("--ro-bind", filter(os.path.exists, _KERNEL_SETTINGS))
        yield from self._memory("/run", "0755")
        yield from _each("--ro-bind-try", _VISIBLE_IN_RUN)

    def _own_mounts(
        self, fence: Fence, own: list[Path], opened: list[Path]
    ) -> Iterator[str]:
        """The paths that the command may write, and those that it may read although they are in a hidden folder
        (`opened`)."""
        yield from self._memory("/var/tmp", "1777")  # noqa: S108
        yield from ("--bind", str(fence.temporary), "/tmp")  # noqa: S108
        for path in opened:
            yield from ("--perms", "0111", "--tmpfs", str(path))
        yield from _each("--bind", (str(fence.temporary),))
        yield from _each("--ro-bind" if fence.read_only else "--bind", map(str, own))
        for workspace in own if not fence.read_only else ():
            yield from _program_mounts(workspace, fence.programs)
        yield from _each("--ro-bind-try", map(str, fence.readable))
        for path in opened:  # read-only after the visible parts are mounted in it
            yield from ("--remount-ro", str(path))

    def _memory(self, place: str, mode: str) -> Iterator[str]:
        """Mounts a folder in memory, with a size limit if this version of bubblewrap can."""
        if self._sizes:
            yield from ("--size", str(_MEMORY_FOLDER_BYTES))
        yield from ("--perms", mode, "--tmpfs", place)

    def _closed(self) -> Iterator[str]:
        """Makes folders in memory read-only: /dev, which needs no new files, and those whose size can't be limited."""
        for place in ("/dev",) if self._sizes else ("/dev", "/run", "/var/tmp"):  # noqa: S108
            yield from ("--remount-ro", place)

    def _namespaces(self, fence: Fence) -> Iterator[str]:
        yield from (
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
            _END_WITH_HERMES,
        )
        if fence.reach == "workspace":
            yield "--unshare-net"
        if self._administrator:
            yield from ("--cap-drop", "ALL")
            for capability in _ROOT_CAPABILITIES:
                yield from ("--cap-add", capability)

    def _filter(self, fence: Fence, *, supervised: bool) -> int:
        """Returns a file with the filter of system calls, or -1 for an unknown processor."""
        if self._calls is None:
            return -1
        handle = os.memfd_create("hermes-filter")
        code = inside_namespaces(self._calls, fence.reach, supervised=supervised)
        os.write(handle, code)
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
    """Covers folders with empty ones, and files with a device that can't be opened."""
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


def _read_only_paths(own: Iterable[Path]) -> Iterator[str]:
    """Yields the paths in the workspace that must stay read-only, including this Hermes if it runs from there.

    Links are left alone, because nothing can be written through a link that leads out of the workspace. `restore`
    handles paths that do not exist yet, because mounting over them would create them.
    """
    for workspace in own:
        yield from (str(path) for path in own_code() if workspace in path.parents)
        for path in protected(workspace):
            if os.path.lexists(path) and not os.path.islink(path):  # noqa: PTH114
                real = os.path.realpath(path)
                if real.startswith(f"{workspace}/") and os.path.exists(real):  # noqa: PTH110
                    yield real


def _program_mounts(workspace: Path, programs: Iterable[str]) -> Iterator[str]:
    """Makes folders read-only. The folders above them become mounts too, because a mount can't be renamed."""
    folders = [Path(each) for each in programs if workspace in Path(each).parents]
    above = {
        parent
        for folder in folders
        for parent in folder.parents
        if workspace in parent.parents
    }
    by_depth = sorted(above, key=lambda path: len(path.parts))
    yield from _each("--bind", map(str, by_depth))
    yield from _each("--ro-bind", map(str, folders))


def _each(option: str, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from (option, path, path)


def _holds_any(folder: Path, paths: Iterable[Path]) -> bool:
    return any(folder in path.parents for path in paths)


def _within(path: Path, folders: Iterable[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)

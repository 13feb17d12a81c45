"""Decides which paths of the machine a confined command may not read, and which paths of its workspace it may not
change.

Secrets are listed by name, because no kernel knows what a secret is. Only existing paths are returned, resolved.
"""

import logging
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

import msgspec

from hermes.settings.profiles import base_of
from hermes.tools.project_rules import project_rules
from hermes.tools.sandbox.confinement import Fence
from hermes.tools.sandbox.git_settings import modules
from hermes.tools.sandbox.listening_sockets import bound_inodes
from hermes.tools.sandbox.repositories import find_repositories
from hermes.tools.sandbox.secret_files import Identity, SecretFiles, workspace_secrets
from hermes.tools.sensitive import LATER_RUN_FILES, LATER_RUN_FOLDERS

log = logging.getLogger("hermes.tools")

_OF_A_HOME = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".netrc", ".npmrc", ".pypirc", ".pgpass",
    ".my.cnf", ".git-credentials", ".vault-token", ".boto", ".s3cfg", ".env", ".envrc", ".rclone.conf", ".terraformrc",
    ".terraform.d", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".composer/auth.json",
    ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".claude/.credentials.json",
    ".claude.json", ".codex/auth.json", ".gemini", ".hermes", ".oci", ".bitcoin", ".electrum", ".ethereum",
    ".mozilla", ".thunderbird", ".pki", ".Xauthority", ".ICEauthority", ".fly", ".heroku", ".databrickscfg",
    ".local/share/keyrings", ".local/share/kwalletd", ".local/share/gnupg", ".local/share/pass", ".local/share/atuin",
    ".snap", "snap/firefox", "snap/chromium", ".var/app", ".histfile", ".lesshst", ".viminfo", ".wget-hsts",
    "Library/Keychains",
)  # fmt: skip
_OF_CONFIG = (
    "gcloud", "gh", "hub", "glab-cli", "op", "sops", "rclone", "google-chrome", "google-chrome-beta", "chromium",
    "BraveSoftware", "microsoft-edge", "vivaldi", "opera", "Signal", "Slack", "discord", "Bitwarden", "1Password",
    "keepassxc", "containers/auth.json", "git/credentials", "doctl", "hcloud", "stripe", "heroku", "github-copilot",
    "configstore", "kwalletrc", "evolution", "goa-1.0", "pulse/cookie", "age", "aerc", "himalaya",
)  # fmt: skip
_ENDINGS = (
    "_history",
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".kdbx",
    ".jks",
    ".keystore",
    ".ppk",
    ".ovpn",
    ".tfstate",
    ".env",
)
_OF_THE_SYSTEM = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
    "/etc/ssl/private", "/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/openvpn",
    "/etc/ipsec.secrets", "/etc/ppp", "/etc/krb5.keytab", "/etc/docker", "/etc/kubernetes", "/etc/rancher",
    "/etc/letsencrypt", "/etc/security/opasswd", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/var/lib/docker",
    "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/sss", "/var/lib/lxd", "/var/snap/lxd", "/var/spool/cron",
    "/var/spool/mail", "/var/mail", "/var/backups", "/var/lib/systemd/coredump", "/var/crash", "/boot/grub/user.cfg",
)  # fmt: skip
_SYSTEM_FOLDERS = frozenset(
    ("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/mnt", "/opt", "/proc", "/run", "/sbin", "/srv",
     "/sys", "/tmp", "/usr", "/usr/local", "/var", "/var/tmp", "/var/lib", "/Users")  # noqa: S108 - names, not used as folders
)  # fmt: skip

PROTECTED = (
    *(".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes"),
    *dict.fromkeys((*LATER_RUN_FILES, *LATER_RUN_FOLDERS)),
)
"""Paths of a workspace that run later, decide what may run, or instruct agents. They are read-only, existing or not."""
OF_A_GIT_FOLDER = ("hooks", "config", "config.worktree", "commondir", "info/attributes")
_MAX_NESTED_PATHS = 300
_MAX_SOCKET_FOLDERS = 5_000
"""How many folders of a workspace are searched for sockets."""
_MAX_SEARCHES = 16
"""For how many workspaces the last search is remembered."""


def hidden(fence: Fence, secrets: Iterable[str] = ()) -> tuple[Path, ...]:
    """Returns the paths to hide, with the workspace's own `secrets`, outermost first; none is inside another."""
    found = dict.fromkeys(_real((*_candidates(fence), *secrets)))
    kept: dict[Path, None] = {}
    for path in sorted(found, key=lambda path: len(path.parts)):
        if not kept.keys() & set(path.parents) and path not in (
            Path("/"),
            fence.user_home,
        ):
            kept[path] = None
    return tuple(kept)


def is_workspace(folder: Path) -> bool:
    """Whether a command may write in a folder at all: not if it is part of the system, or contains all homes."""
    return str(folder) not in _SYSTEM_FOLDERS


def protected(workspace: Path) -> list[str]:
    """Returns the paths that must not change in a workspace, existing or not, and in repositories directly below it."""
    by_project = project_rules(workspace).protected_paths(workspace)
    existing = (path for path in by_project if os.path.exists(path))  # noqa: PTH110 - as text, like the others
    return list(dict.fromkeys((*_protected(workspace, _nearby(workspace)), *existing)))


def _protected(workspace: Path, near: "_Nearby") -> list[str]:
    own = (f"{workspace}/{name}" for name in PROTECTED)
    return list(dict.fromkeys((*own, *near.pointers, *git_of(near.gits))))


def watched(workspace: Path) -> "Watched":
    """Returns the paths that must not change in a workspace, and in repositories at any depth.

    Repositories further down are only watched, not made read-only, because anything that builds and tests create there
    must be easy to delete.
    """
    found = find_repositories(workspace)
    near = _nearby(workspace)
    deep = dict.fromkeys(
        git
        for top in found.gits
        for git in (top, *modules(top))
        if git not in near.gits
    )
    gits = git_of((*near.gits, *deep))
    names = dict.fromkeys((*_protected(workspace, near), *found.pointers, *gits))
    notes = tuple(path for path in found.notes if path not in names)
    return Watched(
        tuple(names),
        gits,
        frozenset(deep),
        notes,
        is_cut=found.is_cut,
        is_product_cut=found.is_product_cut,
    )


class Watched(msgspec.Struct, frozen=True):
    """The result of `watched`, as absolute paths."""

    names: tuple[str, ...]
    gits: dict[str, str]
    """The git folder to which a name belongs."""
    deep: frozenset[str]
    """Git folders that are only watched."""
    notes: tuple[str, ...]
    """Project notes in sub-folders, which a checkout may bring."""
    is_cut: bool
    """Whether there are more folders than the search covers, not counting those made by builds."""
    is_product_cut: bool
    """Whether there are more folders made by builds than the search covers."""


def git_of(gits: Iterable[str]) -> dict[str, str]:
    """Maps the paths that decide what git runs to their git folder."""
    return {f"{git}/{name}": git for git in gits for name in OF_A_GIT_FOLDER}


class _Nearby(NamedTuple):
    """The repositories of a workspace and directly below it."""

    gits: list[str]
    """Git folders: the workspace's own (existing or not), those below, and submodules."""
    pointers: list[str]
    """Files and links called `.git`, which say where the git folder is."""


def _nearby(workspace: Path) -> _Nearby:
    """Lists the workspace once, and looks once at each folder in it."""
    own = f"{workspace}/.git"
    gits, pointers = [own], list[str]()
    for git in (own, *(f"{folder}/.git" for folder in _folders(workspace))):
        try:
            mode = os.lstat(git).st_mode
        except OSError:
            continue
        if not stat.S_ISDIR(mode):
            pointers.append(git)
        if git != own and (stat.S_ISDIR(mode) or _leads_to_folder(git, mode)):
            gits.append(git)
    return _Nearby(
        [*gits, *(module for git in gits for module in modules(git))], pointers
    )


def _leads_to_folder(path: str, mode: int) -> bool:
    return stat.S_ISLNK(mode) and os.path.isdir(path)  # noqa: PTH112


class Hidden(msgspec.Struct, frozen=True):
    """The result of `hidden`, valid until one of the searched folders changes."""

    places: tuple[Path, ...]
    folders: tuple[str, ...]
    times: tuple[int, ...]
    secrets: frozenset[Identity] = frozenset()

    def is_current(self) -> bool:
        """Whether it is still valid."""
        return self.times == _times(self.folders)


def find_hidden(fence: Fence, known: AbstractSet[Identity] = frozenset()) -> Hidden:
    """Returns the paths to hide, and what is needed to check whether they are current. Paths `known` as secret stay
    hidden."""
    own = secrets_of(fence, known)
    folders = tuple(dict.fromkeys(os.path.dirname(path) for path in _candidates(fence)))  # noqa: PTH120 - many, and fast
    folders += own.looked_at
    times = _times(folders)
    return Hidden(hidden(fence, own.files), folders, times, own.identities)


def secrets_of(fence: Fence, known: AbstractSet[Identity] = frozenset()) -> SecretFiles:
    """Returns the workspace's own secret files, if they are to be hidden."""
    confined = (
        fence.hide_secrets
        and fence.reach != "machine"
        and is_workspace(fence.workspace)
    )
    return workspace_secrets(fence.workspace, known) if confined else SecretFiles()


def _times(folders: Iterable[str]) -> tuple[int, ...]:
    """Returns when each folder changed, by the timestamp that a command can't set."""
    times: list[int] = []
    for folder in folders:
        try:
            times.append(os.stat(folder).st_ctime_ns)  # noqa: PTH116
        except OSError:
            times.append(0)
    return tuple(times)


def sockets(fence: Fence, table: Path = Path("/proc/net/unix")) -> tuple[Path, ...]:
    """Returns the sockets on which other programs on this machine listen: a command could make those programs act for
    it.

    A socket may have been renamed or bound through another folder; then every file of the workspace that the kernel
    knows as a socket counts. Sockets of commands without the network are not in the kernel's table, so those commands
    can talk to each other.
    """
    try:
        lines = table.read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    paths = {words[7] for line in lines if len(words := line.split(None, 7)) == 8}
    named = [path for path in paths if path.startswith("/")]
    elsewhere = _bound_elsewhere(named)
    if elsewhere is None or elsewhere:
        special = _special_files(str(fence.workspace))
        named += [
            path for path in special if elsewhere is None or _inode(path) in elsewhere
        ]
    return tuple(
        path
        for path in dict.fromkeys(_real(named))
        if not path.is_relative_to(fence.temporary)
    )


def _bound_elsewhere(named: Iterable[str]) -> set[int] | None:
    """Returns the files that sockets are bound to, except those at the path in the table; None if the kernel can't say."""
    try:
        bound = bound_inodes()
    except OSError:
        return None
    for path in named:
        try:
            info = os.lstat(path)
        except (OSError, ValueError):
            continue
        if info.st_nlink == 1:
            bound.discard(info.st_ino & 0xFFFFFFFF)
    return bound


def _inode(path: str) -> int:
    try:
        return os.lstat(path).st_ino & 0xFFFFFFFF
    except OSError:
        return 0


class _Search(msgspec.Struct, frozen=True):
    """The sockets and other special files below a folder, valid until one of the searched folders changes."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    times: tuple[int, ...]
    is_whole: bool


_searches: dict[str, _Search] = {}


def _special_files(folder: str) -> tuple[str, ...]:
    """Returns the sockets and other special files below a folder; searches again only if something changed."""
    known = _searches.get(folder)
    if known and known.times == tuple(map(_changed_at, known.folders)):
        return known.files
    found = _search(folder)
    if not found.is_whole and (known is None or known.is_whole):
        log.warning(
            "%s has more than %s folders. Sockets of other programs in the rest of them are not hidden from commands.",
            folder,
            f"{_MAX_SOCKET_FOLDERS:,}",
        )
    if len(_searches) >= _MAX_SEARCHES:
        _searches.clear()
    _searches[folder] = found
    return found.files


def _search(folder: str) -> _Search:
    """Searches a folder from the outermost folders inwards."""
    waiting, files, times = deque([folder]), list[str](), dict[str, int]()
    while waiting and len(times) < _MAX_SOCKET_FOLDERS:
        place = waiting.popleft()
        times[place] = _changed_at(place)  # before it is listed, to notice a change
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_symlink() and not entry.is_file():
                        files.append(entry.path)
        except OSError:
            continue
    return _Search(tuple(files), tuple(times), tuple(times.values()), not waiting)


def _changed_at(folder: str) -> int:
    """Returns when a folder changed, by the timestamp that a command can't set."""
    try:
        return os.lstat(folder).st_ctime_ns
    except OSError:
        return 0


def _candidates(fence: Fence) -> Iterator[str]:
    yield str(base_of(fence.hermes_home))
    yield str(fence.hermes_home)
    yield from _OF_THE_SYSTEM
    yield from (path for path in _children("/etc/ssh") if path.endswith("_key"))
    for home in _homes(str(fence.user_home)):
        yield from (f"{home}/{name}" for name in _OF_A_HOME)
        yield from (f"{home}/.config/{name}" for name in _OF_CONFIG)
        yield from (
            path
            for path in _children(home)
            if path.endswith(_ENDINGS) or path.startswith(f"{home}/id_")
        )


def _homes(user_home: str) -> list[str]:
    """Returns all readable homes: for root, everybody's."""
    homes = (user_home, *_children("/home"), "/root")
    return list(
        dict.fromkeys(home for home in homes if os.access(home, os.R_OK | os.X_OK))
    )


def _children(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries]
    except OSError:
        return []


def _folders(workspace: Path) -> list[str]:
    try:
        with os.scandir(workspace) as entries:
            folders = [
                entry.path
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and entry.name != ".git"
            ]
    except OSError:
        return []
    return folders[:_MAX_NESTED_PATHS]


def _real(paths: Iterable[str]) -> Iterator[Path]:
    for path in paths:
        try:
            os.lstat(path)  # most do not exist, and this is the fastest way to find out
            real = os.path.realpath(path, strict=True)
            mode = os.stat(real).st_mode  # noqa: PTH116
        except (OSError, ValueError):
            continue
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode):
            yield Path(real)

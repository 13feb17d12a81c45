"""Which places of a machine a confined command may not read, and which of its workspace it may not change.

A list by name, as no kernel knows what a secret is. Only what exists is returned, by its real path.
"""

import logging
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec

from hermes.tools.sandbox.confinement import Fence
from hermes.tools.sandbox.git_settings import modules
from hermes.tools.sandbox.listening_sockets import bound_inodes
from hermes.tools.sandbox.repositories import find_repositories
from hermes.tools.sandbox.secret_files import Identity, SecretFiles, workspace_secrets
from hermes.tools.sensitive import CARRYING_FILES, CARRYING_FOLDERS

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
    *dict.fromkeys((*CARRYING_FILES, *CARRYING_FOLDERS)),
)
"""What of a workspace runs later, decides what may run, or tells agents what to do: read-only, existing or not."""
OF_A_GIT_FOLDER = ("hooks", "config", "config.worktree", "commondir", "info/attributes")
_MAX_NESTED_PATHS = 300
_MAX_SOCKET_FOLDERS = 5_000
"""Folders of a workspace that are looked into for sockets."""
_MAX_SEARCHES = 16
"""Workspaces of which the last search is kept."""


def hidden(fence: Fence, secrets: Iterable[str] = ()) -> tuple[Path, ...]:
    """Places to hide, with the workspace's own `secrets`, outermost first; none of them lies in another."""
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
    """Whether a folder can be given to a command to write in: not the system itself, nor all homes at once."""
    return str(folder) not in _SYSTEM_FOLDERS


def protected(workspace: Path) -> list[str]:
    """What of a workspace must not change, existing or not, in repositories directly below it too."""
    pointers = [
        f"{folder}/.git"
        for folder in (str(workspace), *_folders(workspace))
        if _is_pointer(f"{folder}/.git")
    ]
    names = [
        *(f"{workspace}/{name}" for name in PROTECTED),
        *pointers,
        *git_of(git_folders(workspace)),
    ]
    return list(dict.fromkeys(names))


def watched(workspace: Path) -> "Watched":
    """What of a workspace must not change, in repositories at any depth. Those further down are only watched, and not
    made read-only: what builds and tests make there must be easy to delete."""
    found = find_repositories(workspace)
    near = git_folders(workspace)
    deep = dict.fromkeys(
        git for top in found.gits for git in (top, *modules(top)) if git not in near
    )
    gits = git_of((*near, *deep))
    names = dict.fromkeys((*protected(workspace), *found.pointers, *gits))
    return Watched(tuple(names), gits, frozenset(deep), is_cut=found.is_cut)


class Watched(msgspec.Struct, frozen=True):
    """What `watched` found, absolute."""

    names: tuple[str, ...]
    gits: dict[str, str]
    """The git folder to which a name belongs."""
    deep: frozenset[str]
    """Git folders that are only watched."""
    is_cut: bool
    """Whether there are more folders than were looked into."""


def git_of(gits: Iterable[str]) -> dict[str, str]:
    """What in each git folder decides what git runs, with the folder."""
    return {f"{git}/{name}": git for git in gits for name in OF_A_GIT_FOLDER}


def git_folders(workspace: Path) -> list[str]:
    """Where repositories keep what is theirs: the workspace's own (existing or not), those below, and submodules."""
    nested = [
        git
        for folder in _folders(workspace)
        if os.path.isdir(git := f"{folder}/.git")  # noqa: PTH112
    ]
    gits = [f"{workspace}/.git", *nested]
    return [*gits, *(module for git in gits for module in modules(git))]


def _is_pointer(git: str) -> bool:
    """Whether it is a file or a link that says where the repository really is."""
    try:
        return not stat.S_ISDIR(os.lstat(git).st_mode)
    except OSError:
        return False


class Hidden(msgspec.Struct, frozen=True):
    """What `hidden` found, good as long as no folder has changed in which it looked."""

    places: tuple[Path, ...]
    folders: tuple[str, ...]
    times: tuple[int, ...]
    secrets: frozenset[Identity] = frozenset()

    def is_current(self) -> bool:
        """Whether it still holds."""
        return self.times == _times(self.folders)


def find_hidden(fence: Fence, known: AbstractSet[Identity] = frozenset()) -> Hidden:
    """The places to hide, with what tells whether they are still the same. What is `known` as secret stays hidden."""
    own = secrets_of(fence, known)
    folders = tuple(dict.fromkeys(os.path.dirname(path) for path in _candidates(fence)))  # noqa: PTH120 - many, and fast
    folders += own.looked_at
    times = _times(folders)
    return Hidden(hidden(fence, own.files), folders, times, own.identities)


def secrets_of(fence: Fence, known: AbstractSet[Identity] = frozenset()) -> SecretFiles:
    """The workspace's own secret files, as far as they are hidden."""
    confined = (
        fence.hide_secrets
        and fence.reach != "machine"
        and is_workspace(fence.workspace)
    )
    return workspace_secrets(fence.workspace, known) if confined else SecretFiles()


def _times(folders: Iterable[str]) -> tuple[int, ...]:
    times: list[int] = []
    for folder in folders:
        try:
            times.append(os.stat(folder).st_mtime_ns)  # noqa: PTH116
        except OSError:
            times.append(0)
    return tuple(times)


def sockets(fence: Fence, table: Path = Path("/proc/net/unix")) -> tuple[Path, ...]:
    """Paths of sockets that other programs on this machine listen on: a command could make them act for it.

    A socket can have got another name since, or have been named from another folder: then those files of the workspace
    count that the kernel knows as one. Sockets of commands without the network are not in the kernel's table, so those
    commands can keep talking to each other.
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
    """The files to which sockets are bound, but those that are only where the table says; None when nobody knows."""
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
    """The sockets and the like below a folder, good as long as no folder has changed in which it looked."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    times: tuple[int, ...]
    is_whole: bool


_searches: dict[str, _Search] = {}


def _special_files(folder: str) -> tuple[str, ...]:
    """Sockets and the like below a folder, searched for again only when something changed there."""
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
    """The outermost folders come first."""
    waiting, files, times = deque([folder]), list[str](), dict[str, int]()
    while waiting and len(times) < _MAX_SOCKET_FOLDERS:
        place = waiting.popleft()
        times[place] = _changed_at(
            place
        )  # before it is listed: a change meanwhile makes the next search
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
    """When a folder changed, by the time that a command can't set back."""
    try:
        return os.lstat(folder).st_ctime_ns
    except OSError:
        return 0


def _candidates(fence: Fence) -> Iterator[str]:
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
    """All homes that can be entered: for the administrator that is everybody's."""
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
            os.lstat(path)  # most are not there, and this is the fastest way to know
            real = os.path.realpath(path, strict=True)
            mode = os.stat(real).st_mode  # noqa: PTH116
        except (OSError, ValueError):
            continue
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode):
            yield Path(real)

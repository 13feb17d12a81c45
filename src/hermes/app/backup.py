"""Backup and restore of a Hermes home. A backup is one file, and can be made while Hermes runs."""

import contextlib
import io
import itertools
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from hermes.app.backup_masking import config_secrets, is_clean_config, masked_content
from hermes.errors import HermesError
from hermes.primitives.files import create_private
from hermes.settings import Home
from hermes.settings.profiles import ACTIVE_FILE, PROFILES_FOLDER
from hermes.settings.redaction import mask
from hermes.settings.secrets import is_address_variable, is_secret_name, parse_env
from hermes.store import open_store
from hermes.store.state_file import DatabaseLock, redact_copy
from hermes.text.translation import translator
from hermes.tools.sandbox.git_settings import is_harmless
from hermes.tools.sensitive import is_secret

t = translator(__name__)


_LIVE = (
    "cache",
    "run",
    "dashboard/running.json",
    "gateway/status.json",
    "gateway/gateway.lock",
    "gateway/profiles.json",
    "gateway/profiles.lock",
    "gateway/restart.json",
    "gateway/restart-all.json",
    "gateway/restart.lock",
    PROFILES_FOLDER,  # homes of their own
    ACTIVE_FILE,
)  # created again, or valid only while a process runs
_DATABASE = "state.db"  # and the files beside it: its log, its lock, older copies
_HISTORY = (
    "sessions",
    "logs",
    "drafts",
    "pictures",
    "media",
    "input_history.jsonl",
    "gateway",
)
"""Beside the session log: what was said, and with whom."""
_LAST = "objects"  # of a git folder: refs are written after the objects they point to
_DRAFT = ".backup-"
_KEPT = t.later("The home was not changed.")
_SECRET_FILES = (
    ".env",
    "auth.json",
    "mcp-logins.json",
    "dashboard",
    "gateway/api_keys.json",
    "gateway/matrix",
    "bridge",
    "webhooks",
)
"""Keys (of the dashboard and its pushes, of Matrix devices), what they sign, and events that wait to be sent with them.
They are never in a backup without secrets."""
_MIN_LIKELY_SECRET_CHARS = 8
_LONG_WORD_CHARS = 16  # a longer word is more likely a secret
_MAX_NAME_CHARS, _MAX_DEPTH = 1_000, 60


class Backup(msgspec.Struct, frozen=True):
    """The result of a backup or a restore."""

    file: Path
    files: int
    size: int
    left_out: tuple[str, ...] = ()
    """Skipped entries. In a backup: links that lead out of the home. In a restore: files that could run programs."""
    withheld: tuple[str, ...] = ()
    """Files that hold secrets, if secrets were to be left out."""
    holds: tuple[tuple[str, int], ...] = ()
    """The files and folders of the home that are in it, with their number of files."""
    masked: int = 0
    """Rows of the session log in which a secret was replaced."""
    masked_files: tuple[str, ...] = ()
    """Files in which something was masked."""
    has_keys: bool = False
    """Whether a file with keys or sign-ins is in it."""
    aside: Path | None = None
    """Where the replaced home is now."""


def back_up(
    home: Home,
    target: Path,
    *,
    secrets: bool = True,
    history: bool = True,
    copy_log: Callable[[Path], None] | None = None,
) -> Backup:
    """Writes a backup that only this user can read. The file appears only when it is complete. Raises HermesError.

    Without `history` it has no sessions. `copy_log` writes the session log to a file; without it, `state.db` is copied.
    """
    if not home.root.is_dir():
        raise HermesError(
            t.later(
                "There is nothing to back up: {root} does not exist.", root=home.root
            )
        )
    if target.exists():
        raise HermesError(
            t.later("{target} already exists.", target=target),
            hint=t.later("Give another name, or remove it first."),
        )
    draft = target.with_name(f".{target.name}.new")
    try:
        with (
            _private(draft) as file,
            tarfile.open(fileobj=file, mode="w:gz") as archive,
        ):
            withheld = None if secrets else secret_values(home)
            copy = copy_log or partial(_copy_state, home)
            filled = _fill(archive, home, withheld, copy if history else None)
        os.link(
            draft, target
        )  # unlike a rename, never replaces a file that came meanwhile
    except OSError as error:
        hint = t.later("Nothing was lost. Choose a writable place with enough space.")
        raise HermesError(
            t.later(
                "The backup can't be written: {target} ({strerror})",
                target=target,
                strerror=error.strerror,
            ),
            hint=hint,
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    return msgspec.structs.replace(filled, file=target, size=target.stat().st_size)


def restore(home: Home, source: Path, *, stamp: str) -> Backup:
    """Replaces the home by a backup. The old home is moved aside and kept. If HermesError is raised, nothing has changed."""
    root = home.root.resolve()
    root.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{root.name}.restoring-", dir=root.parent))
    try:
        files = unpack(source, draft, (_DATABASE,))
        disarmed = disarm_repositories(draft)
        open_store(draft / _DATABASE).close()
        aside = _exchange(root, draft, root.with_name(f"{root.name}.before-{stamp}"))
    except (OSError, tarfile.TarError, EOFError, zlib.error, ValueError) as error:
        raise HermesError(
            t.later("{source} can't be restored: {error}", source=source, error=error),
            hint=_KEPT,
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Backup(source, files, source.stat().st_size, tuple(disarmed), aside=aside)


@contextlib.contextmanager
def _private(path: Path) -> Iterator[io.BufferedWriter]:
    with create_private(path) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def secret_values(home: Home) -> frozenset[str]:
    """The secrets of a home (`.env`, settings, sign-ins, the dashboard's key), to be searched for in other files."""
    found: set[str] = set()
    with contextlib.suppress(FileNotFoundError):
        lines = parse_env(home.env_file.read_text(errors="replace"))
        found |= {
            line.value
            for line in lines
            if line.name and _may_be_secret(line.name, line.value)
        }
    with contextlib.suppress(FileNotFoundError):
        found |= set(
            re.findall(
                r'"([0-9A-Za-z_\-]{32,})"',
                (home.root / "dashboard/keys.json").read_text(errors="replace"),
            )
        )
    with contextlib.suppress(FileNotFoundError):
        found |= set(
            re.findall(
                r'"([0-9A-Za-z_.\-]{20,})"', home.accounts.read_text(errors="replace")
            )
        )
    with contextlib.suppress(FileNotFoundError):
        found |= config_secrets(home.config.read_text(errors="replace"))
    return frozenset(value for value in found if len(value) >= _MIN_LIKELY_SECRET_CHARS)


def _may_be_secret(name: str, value: str) -> bool:
    """Whether a value is a secret: not an address, and not a plain word unless the variable's name says so."""
    is_word = value.isalpha() and len(value) < _LONG_WORD_CHARS
    return not is_address_variable(name) and (is_secret_name(name) or not is_word)


def _copy_state(home: Home, target: Path) -> None:
    with open_store(home.state) as store:
        store.copy(target)


def _add_log(
    archive: tarfile.TarFile,
    home: Home,
    copy_log: Callable[[Path], None],
    spellings: list[str] | None,
) -> int:
    """Adds a copy of the session log, masked unless `spellings` is None. Returns how many rows were masked in it."""
    masked = 0
    with tempfile.TemporaryDirectory(prefix=_DRAFT, dir=home.root) as folder:
        copy = Path(folder, _DATABASE)
        copy_log(copy)
        if spellings is not None:
            masked = redact_copy(copy, spellings, mask)
        archive.add(copy, _DATABASE)
    return masked


def _fill(
    archive: tarfile.TarFile,
    home: Home,
    withheld: frozenset[str] | None,
    copy_log: Callable[[Path], None] | None,
) -> Backup:
    """Fills the archive, leaving out files for which `withheld` is true."""
    spellings = [spelling for value in withheld or () for spelling in _spellings(value)]
    masked, holds, unkept = 0, dict[str, int](), frozenset(_HISTORY)
    if copy_log is not None:
        masked = _add_log(
            archive, home, copy_log, None if withheld is None else spellings
        )
        holds, unkept = {_DATABASE: 1}, frozenset()
    left_out, secret, changed = list[str](), list[str](), list[str]()
    has_keys = False
    for path in sorted(
        _worth_keeping(home), key=lambda path: (_LAST in path.parts, path)
    ):
        name = path.relative_to(home.root)
        if name.parts[0] in unkept:
            continue
        if path.is_symlink() and not path.resolve().is_relative_to(home.root.resolve()):
            left_out.append(str(name))
        elif withheld is not None and _holds_secret(path, name, spellings):
            secret.append(str(name))
        elif _add(
            archive, path, name, None if withheld is None else spellings, changed
        ):
            holds[name.parts[0]] = holds.get(name.parts[0], 0) + 1
            has_keys = has_keys or _is_for_secrets(name)
    return Backup(
        Path(),
        sum(holds.values()),
        0,
        tuple(left_out),
        withheld=tuple(secret),
        holds=tuple(holds.items()),
        masked=masked,
        masked_files=tuple(changed),
        has_keys=has_keys,
    )


def _spellings(value: str) -> set[str]:
    """The spellings of a value: as it is, in JSON, and in JSON inside JSON."""
    once = msgspec.json.encode(value).decode()[1:-1]
    return {value, once, msgspec.json.encode(once).decode()[1:-1]}


def _holds_secret(path: Path, name: Path, spellings: list[str]) -> bool:
    """Whether a file holds a secret, judging by its location, its name or its content."""
    if _is_for_secrets(name):
        return True
    if path.is_symlink() or not path.is_file():
        return False
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return False
    return _is_beyond_masking(name, content, spellings)


def _is_for_secrets(name: Path) -> bool:
    """Whether a file of this name exists to hold secrets."""
    return is_secret(name) or any(name.is_relative_to(place) for place in _SECRET_FILES)


def _is_beyond_masking(name: Path, content: bytes, spellings: list[str]) -> bool:
    """Whether a file holds a secret that `_add` can't mask, or that the file needs."""
    is_masked = False
    if _LAST in name.parts:  # git keeps its objects compressed
        with contextlib.suppress(zlib.error):
            _, _, content = zlib.decompress(content).partition(b"\0")
            is_masked = masked_content(name, content, spellings) != content
    if name == Path("config.yaml"):  # useful without its secrets
        return not is_clean_config(masked_content(name, content, spellings))
    is_pack = (
        name.suffix == ".pack"
    )  # git stores most objects as differences from others
    return (
        is_pack
        or is_masked
        or any(spelling.encode() in content for spelling in spellings)
    )


def _worth_keeping(home: Home) -> Iterator[Path]:
    for folder, folders, files in os.walk(home.root):
        here = Path(folder)
        inside = here.relative_to(home.root)
        folders[:] = [
            name
            for name in folders
            if str(inside / name) not in _LIVE and not name.startswith(_DRAFT)
        ]
        for name in files:
            is_database = inside == Path() and name.startswith(_DATABASE)
            if not is_database and str(inside / name) not in _LIVE:
                yield here / name
        yield from (here / name for name in folders if (here / name).is_symlink())


def _add(
    archive: tarfile.TarFile,
    path: Path,
    name: Path,
    spellings: list[str] | None,
    changed: list[str],
) -> int:
    """Adds one file as it is at this moment, masked if there are secrets to mask. A file that has just gone is left out."""
    try:
        info = archive.gettarinfo(path, str(name))
        if info is None or not (
            info.isreg() or info.issym()
        ):  # a socket is of no use later
            return 0
        content = path.read_bytes() if info.isreg() else b""
    except FileNotFoundError:
        return 0
    if spellings is not None:
        masked = masked_content(name, content, spellings)
        changed += [str(name)] if masked != content else []
        content = masked
    info.size = len(content)
    info.type = tarfile.SYMTYPE if info.issym() else tarfile.REGTYPE
    archive.addfile(info, io.BytesIO(content))
    return 1


def unpack(source: Path, folder: Path, expected: tuple[str, ...]) -> int:
    """Unpacks a backup into a folder. Raises for anything that would leave the folder, and if none of the expected files
    is there."""
    with tarfile.open(source, "r:gz") as archive:
        members = archive.getmembers()
        if not {member.name for member in members} & set(expected):
            raise tarfile.TarError(t.logged("it is not a Hermes backup"))
        _require_space(members, folder)
        _check(members)
        archive.extraction_filter = lambda member, _: (
            member
        )  # there are no filters before Python 3.11.4
        archive.extractall(folder, members)  # noqa: S202 - they were checked
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(
                stat.S_IRWXU
                if path.is_dir()
                else stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXU
            )
    return len(members)


def _require_space(members: list[tarfile.TarInfo], folder: Path) -> None:
    needed, free = sum(one.size for one in members), shutil.disk_usage(folder).free
    if needed > free:
        raise tarfile.TarError(
            t.logged(
                "it needs {needed:,.1f} GB, and {free:,.1f} GB are free",
                needed=needed / 1000000000.0,
                free=free / 1000000000.0,
            )
        )


def _check_name(name: str) -> None:
    if len(name) > _MAX_NAME_CHARS or name.count("/") > _MAX_DEPTH or "\0" in name:
        raise tarfile.TarError(
            t.logged(
                "it contains {name}..., a name longer or deeper than Hermes uses",
                name=repr(name[:60]),
            )
        )


def _check(members: list[tarfile.TarInfo]) -> None:
    """Raises for what a backup never contains: anything but files and links, and paths that lead out."""
    for member in members:
        _check_name(member.name)
    links = {Path(member.name) for member in members if member.issym()}
    for member in members:
        path = Path(member.name)
        if (
            path.is_absolute()
            or ".." in path.parts
            or not links.isdisjoint(path.parents)
        ):
            raise tarfile.TarError(
                t.logged("{name} in it is outside the home", name=repr(member.name))
            )
        if member.issym() and not _stays_inside(path, Path(member.linkname)):
            raise tarfile.TarError(
                t.logged(
                    "{name} in it is a link to the outside", name=repr(member.name)
                )
            )
        if not (member.isreg() or member.isdir() or member.issym()):
            raise tarfile.TarError(
                t.logged(
                    "{name} in it is neither a file nor a link", name=repr(member.name)
                )
            )
        member.uid, member.gid, member.uname, member.gname = (
            os.geteuid(),
            os.getegid(),
            "",
            "",
        )


def disarm_repositories(folder: Path) -> list[str]:
    """Removes what git would run in the repositories below a folder: hooks, settings that name programs, and links to
    other settings. Returns what was removed, without what Hermes creates again by itself."""
    removed: list[Path] = []
    for place, _, names in os.walk(folder):
        here = Path(place)
        removed += [here / ".git"] if ".git" in names else []
        if "HEAD" not in names:
            continue
        removed += [
            path for path in (here / "hooks").glob("*") if path.suffix != ".sample"
        ]
        removed += [
            here / name for name in ("commondir", "config.worktree") if name in names
        ]
        if "config" in names and not is_harmless((here / "config").read_bytes()):
            removed.append(here / "config")
    for path in removed:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return [
        str(path.relative_to(folder))
        for path in removed
        if not (path.parent / "lock").exists()
    ]


def _stays_inside(link: Path, target: Path) -> bool:
    """Whether a link's target stays inside the home. It may go up only at its beginning, as a later part may be a link."""
    ups = len(list(itertools.takewhile(lambda part: part == "..", target.parts)))
    return (
        not target.is_absolute()
        and ups < len(link.parts)
        and ".." not in target.parts[ups:]
    )


def _unused(path: Path) -> Path:
    """The path, with a number appended if it exists already."""
    names = (
        path,
        *(path.with_name(f"{path.name}-{number}") for number in range(2, 1_000)),
    )
    return next((name for name in names if not os.path.lexists(name)), path)


def _exchange(root: Path, draft: Path, aside: Path) -> Path | None:
    if not root.exists():
        draft.rename(root)
        return None
    lock = DatabaseLock(root / _DATABASE)
    try:
        lock.own(timeout=0)  # nobody may write to a home that is moved away
        aside = _unused(aside)
        root.rename(aside)
        draft.rename(root)
        for name in (PROFILES_FOLDER, ACTIVE_FILE):  # a backup never has these
            if (aside / name).exists():
                (aside / name).rename(root / name)
    finally:
        lock.close()
    return aside

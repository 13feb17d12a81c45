"""Profiles as a user handles them: make, copy, rename and remove whole homes. `app/profile_archive.py` moves them between
machines.

Nothing is done to a home that a process uses. A profile appears and disappears in one step, by a rename.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.app.backup import secret_values
from hermes.app.backup_masking import masked_content
from hermes.app.project_notes import IDENTITY_FILE
from hermes.errors import HermesError, NotFound, StoreBusy, UsageError, os_reason
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import make_private_folder, replace_file
from hermes.settings import Home
from hermes.settings.load import load
from hermes.settings.profiles import (
    ACTIVE_FILE,
    DEFAULT_PROFILE,
    PROFILE_FILE,
    PROFILES_FOLDER,
    active_profile,
    checked_name,
    profile_names,
    profile_of,
    profile_root,
)
from hermes.settings.yaml_read import parse_yaml
from hermes.store import open_store
from hermes.store.state_file import DatabaseLock
from hermes.text.translation import translator

t = translator(__name__)


_CLONED_FILES = ("config.yaml", "policy.yaml", IDENTITY_FILE)
_CLONED_FOLDERS = ("agents", "commands", "prompts", "skills", "memories")
_MAX_COUNTED_SESSIONS = 100_000
_DRAFT = ".new-"


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One profile. `default` is the base home."""

    name: str
    path: Path
    description: str = ""
    is_active: bool = False
    """Whether `hermes` uses it without being told."""
    model: str = ""
    problem: str = ""
    """Why its settings can't be read."""

    @property
    def home(self) -> Home:
        return Home(self.path)


class ClonedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What a new profile was made of."""

    profile: Profile
    copied: tuple[str, ...]
    masked: tuple[str, ...]
    """Files in which secrets were masked."""
    notes: tuple[str, ...] = ()


class ProfileContents(msgspec.Struct, frozen=True, kw_only=True):
    """How much a profile holds."""

    files: int
    bytes: int
    sessions: int | None
    """None if they are in a database elsewhere, or can't be read."""


class Profiles:
    """The profiles of a base home."""

    def __init__(self, base: Home) -> None:
        self.base = base

    def all(self) -> list[Profile]:
        """Every profile, the default one first."""
        return [self._read(name) for name in (DEFAULT_PROFILE, *profile_names(self.base.root))]  # fmt: skip

    def find(self, name: str) -> Profile:
        """The profile of that name. Raises NotFound or UsageError."""
        root = profile_root(self.base.root, name)
        if name != DEFAULT_PROFILE and not profile_of(root):
            known = ", ".join((DEFAULT_PROFILE, *profile_names(self.base.root)))
            raise NotFound(
                t.later("There is no profile {name!r}.", name=name),
                hint=t.later("There are: {known}.", known=known),
            )
        return self._read(name)

    def create(self, name: str, description: str = "") -> Profile:
        """Makes an empty profile."""
        with self.drafted(name) as draft:
            write_description(draft, description)
        return self.find(name)

    def clone(
        self, source: str, name: str, *, description: str = "", secrets: bool = False
    ) -> ClonedProfile:
        """Makes a profile of another one's settings, identity, agents, skills and memory: no sessions, and no secrets
        unless they are asked for."""
        origin = self.find(source)
        copier = _Copier(origin.home, secrets=secrets)
        with self.drafted(name) as draft:
            write_description(draft, description or origin.description)
            copier.copy(draft)
        made = self.find(name)
        return ClonedProfile(
            profile=made,
            copied=tuple(copier.copied),
            masked=tuple(copier.masked),
            notes=tuple(_shared(made.home, with_secrets=secrets)),
        )

    def rename(self, name: str, new_name: str) -> Profile:
        """Gives a profile another name."""
        found = self._changeable(name)
        target = self._free(new_name)
        with unused(found.home):
            found.path.rename(target)
        if active_profile(self.base.root) == name:
            self.use(new_name)
        return self.find(new_name)

    def remove(self, name: str) -> Profile:
        """Deletes a profile with everything in it."""
        found = self._changeable(name)
        gone = found.path.with_name(f".removed-{name}-{os.urandom(4).hex()}")
        with unused(found.home):
            found.path.rename(gone)
        if active_profile(self.base.root) == name:
            self.use(DEFAULT_PROFILE)
        shutil.rmtree(gone)
        return found

    def use(self, name: str) -> Profile:
        """Makes a profile the one that `hermes` uses without being told."""
        found = self.find(name)
        marker = self.base.ensure().root / ACTIVE_FILE
        if name == DEFAULT_PROFILE:
            marker.unlink(missing_ok=True)
        else:
            replace_file(marker, f"{name}\n".encode())
        return found

    @contextlib.contextmanager
    def drafted(self, name: str) -> Iterator[Path]:
        """A folder that becomes the profile when the block ends without an error. Raises HermesError."""
        target = self._free(name)
        folder = make_private_folder(self.base.ensure().root / PROFILES_FOLDER)
        draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=folder))
        try:
            yield draft
            draft.rename(target)
        except OSError as error:
            raise HermesError(
                t.later(
                    "The profile {name} can't be made ({error}).",
                    name=name,
                    error=os_reason(error),
                ),
                hint=t.later("Nothing was changed."),
            ) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _free(self, name: str) -> Path:
        """The home of a new profile. Raises UsageError if the name is taken or can't be one."""
        if checked_name(name) == DEFAULT_PROFILE:
            raise UsageError(
                t.later("The profile default always exists."),
                hint=t.later("Choose another name: hermes profile create NAME"),
            )
        target = profile_root(self.base.root, name)
        if os.path.lexists(target):
            raise UsageError(
                t.later(
                    "There is already a profile {name}: {target}",
                    name=name,
                    target=target,
                )
            )
        return target

    def _changeable(self, name: str) -> Profile:
        if name == DEFAULT_PROFILE:
            raise UsageError(
                t.later(
                    "The profile default can't be renamed or removed: it is the Hermes home itself."
                )
            )
        return self.find(name)

    def _read(self, name: str) -> Profile:
        root = profile_root(self.base.root, name)
        active = active_profile(self.base.root) or DEFAULT_PROFILE
        model, problem = "", ""
        try:
            chosen = load({}, home=Home(root)).model
            model = ":".join(filter(None, (chosen.provider, chosen.default)))
        except HermesError as error:
            problem = error.message
        return Profile(
            name=name,
            path=root,
            description=_description(root),
            is_active=name == active,
            model=model,
            problem=problem,
        )


def write_description(root: Path, description: str) -> None:
    """Writes the file that makes a folder a profile."""
    text = msgspec.json.encode(" ".join(description.split())).decode()  # is YAML too
    replace_file(root / PROFILE_FILE, f"description: {text}\n".encode())


def _description(root: Path) -> str:
    try:
        found = parse_yaml((root / PROFILE_FILE).read_text())
    except (OSError, ValueError):
        return ""
    if isinstance(found, dict):
        return str(found.get("description") or "")
    return ""


def contents_of(home: Home) -> ProfileContents:
    """Counts what is in a home, without other profiles."""
    files = size = 0
    for place, folders, names in os.walk(home.root):
        if Path(place) == home.root and PROFILES_FOLDER in folders:
            folders.remove(PROFILES_FOLDER)
        for name in names:
            with contextlib.suppress(OSError):
                size += Path(place, name).lstat().st_size
                files += 1
    return ProfileContents(files=files, bytes=size, sessions=_sessions(home))


def _sessions(home: Home) -> int | None:
    if not home.state.exists():
        return 0
    try:
        with open_store(home.state) as store:
            return len(store.sessions.recent(limit=_MAX_COUNTED_SESSIONS))
    except HermesError:
        return None


@contextlib.contextmanager
def unused(home: Home) -> Iterator[None]:
    """Holds the locks of a home that no process uses. Raises HermesError if one does."""
    gateway = FileLock(home.ensure(home.root / "gateway").root / "gateway/gateway.lock")
    database = DatabaseLock(home.state)
    try:
        if not gateway.try_acquire():
            raise StoreBusy(
                t.later(
                    "The gateway of the profile {profile} is running.",
                    profile=home.profile,
                ),
                hint=t.later(
                    "Nothing was changed. Stop it: hermes --profile {profile} gateway stop",
                    profile=home.profile,
                ),
            )
        database.own(timeout=0)
        yield
    finally:
        database.close()
        gateway.close()


def _shared(home: Home, *, with_secrets: bool) -> Iterator[str]:
    """What a copy still has in common with its origin."""
    with contextlib.suppress(HermesError):
        if load({}, home=home).store.url:
            yield t(
                "Both profiles use the same database (store.url), so they share their sessions."
            )
    if with_secrets:
        yield t(
            "Both profiles have the same keys. Two gateways can't use the same bot: give this one "
            "tokens of its own."
        )


class _Copier:
    """Copies what a profile is made of, without its history."""

    def __init__(self, origin: Home, *, secrets: bool) -> None:
        self._origin = origin
        self._secrets = secrets
        self._hidden = [] if secrets else sorted(secret_values(origin))
        self.copied: list[str] = []
        self.masked: list[str] = []

    def copy(self, target: Path) -> None:
        """Copies files and folders that are there. Links are left out."""
        names = (*_CLONED_FILES, *((".env",) if self._secrets else ()))
        for name in names:
            if (self._origin.root / name).is_file():
                self._copy_file(Path(name), target)
                self.copied.append(name)
        for folder in _CLONED_FOLDERS:
            found = [path for path in (self._origin.root / folder).rglob("*") if _is_plain(path)]  # fmt: skip
            for path in found:
                self._copy_file(path.relative_to(self._origin.root), target)
            self.copied += [f"{folder}/"] if found else []

    def _copy_file(self, name: Path, target: Path) -> None:
        source = self._origin.root / name
        content = source.read_bytes()
        if not self._secrets:
            masked = masked_content(name, content, self._hidden)
            self.masked += [str(name)] if masked != content else []
            content = masked
        make_private_folder((target / name).parent)
        mode = 0o700 if os.access(source, os.X_OK) else 0o600
        replace_file(target / name, content, mode=mode)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()

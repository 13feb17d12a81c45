"""The home folder of one user, and the paths of its parts."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from hermes.errors import HomeError, os_reason
from hermes.primitives.files import make_private_folder
from hermes.settings.profiles import (
    DEFAULT_PROFILE,
    PROFILE_VARIABLE,
    base_of,
    profile_of,
)
from hermes.text.translation import translator

t = translator(__name__)


class Home(Struct, frozen=True):
    """The paths of one HERMES_HOME. Creating a `Home` touches nothing; `ensure` creates the folder."""

    root: Path

    @property
    def profile(self) -> str:
        """The name of the profile that has this home; empty for the default one."""
        return profile_of(self.root)

    @property
    def base(self) -> "Home":
        """The home that holds the profiles: this one, unless it is a profile."""
        return Home(base_of(self.root))

    @property
    def variables(self) -> dict[str, str]:
        """The variables that make another Hermes use exactly this home, whatever profile is active."""
        profile = self.profile or DEFAULT_PROFILE
        return {"HERMES_HOME": str(self.base.root), PROFILE_VARIABLE: profile}

    @property
    def config(self) -> Path:
        """The settings."""
        return self.root / "config.yaml"

    @property
    def env_file(self) -> Path:
        """The secrets."""
        return self.root / ".env"

    @property
    def accounts(self) -> Path:
        """The accounts that the user signed in with."""
        return self.root / "auth.json"

    @property
    def policy(self) -> Path:
        """The policy: what tools may do."""
        return self.root / "policy.yaml"

    @property
    def state(self) -> Path:
        """The session log."""
        return self.root / "state.db"

    @property
    def memories(self) -> Path:
        return self.root / "memories"

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def plugins(self) -> Path:
        return self.root / "plugins"

    @property
    def hooks(self) -> Path:
        return self.root / "hooks"

    @property
    def locales(self) -> Path:
        """The user's own texts, by language, which take precedence over those of Hermes."""
        return self.root / "locales"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def cache(self) -> Path:
        """The cache, the only part not worth a backup."""
        return self.root / "cache"

    @property
    def media(self) -> Path:
        """Generated pictures and sounds, by session."""
        return self.root / "media"

    @property
    def sessions(self) -> Path:
        """JSON snapshots of sessions, if enabled."""
        return self.root / "sessions"

    def ensure(self, *folders: Path) -> "Home":
        """Creates the home, and `folders` in it, for this user only. An existing folder keeps its
        permissions.
        """
        try:
            self.root.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.root, *folders):
                make_private_folder(folder)
        except OSError as error:
            raise self._unusable(error) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise HomeError(
                t.later("The Hermes home can't be written: {root}", root=self.root),
                hint=t.later(
                    "Make it writable (chmod u+rwx '{root}'), or set HERMES_HOME to a folder that is.",
                    root=self.root,
                ),
            )
        return self

    def _unusable(self, error: OSError) -> HomeError:
        elsewhere = t.later("set HERMES_HOME to a folder that you can write.")
        info, link = probe(self.root), probe(self.root, follow=False)
        closed = closed_folder(self.root)
        if closed is not None:
            return HomeError(
                t.later("The Hermes home can't be reached: {root}", root=self.root),
                hint=t.later(
                    "Open the folder {closed} (chmod u+x '{closed}'), or {elsewhere}",
                    closed=closed,
                    elsewhere=elsewhere,
                ),
            )
        if isinstance(info, OSError) and not isinstance(link, OSError):
            return HomeError(
                t.later(
                    "The Hermes home is a broken symbolic link: {root}", root=self.root
                ),
                hint=t.later(
                    "Create {readlink}, remove the link, or {elsewhere}",
                    readlink=self.root.readlink(),
                    elsewhere=elsewhere,
                ),
            )
        if not isinstance(info, OSError) and stat.S_ISREG(info.st_mode):
            return HomeError(
                t.later(
                    "The Hermes home must be a folder, but this is a file: {root}",
                    root=self.root,
                ),
                hint=t.later("Move the file away, or {elsewhere}", elsewhere=elsewhere),
            )
        return HomeError(
            t.later(
                "The Hermes home can't be created: {root} ({error})",
                root=self.root,
                error=os_reason(error),
            ),
            hint=t.later("Create it yourself, or {elsewhere}", elsewhere=elsewhere),
        )


def probe(path: Path, *, follow: bool = True) -> os.stat_result | OSError:
    """Returns what is at `path`, or why that is unknown: nothing there, a closed folder above, a
    name too long.
    """
    try:
        return path.stat(follow_symlinks=follow)
    except OSError as error:
        return error


def closed_folder(path: Path) -> Path | None:
    """Returns the topmost folder on the way to `path` that this user may not enter."""
    for folder in reversed(path.parents):
        info = probe(folder)
        if isinstance(info, OSError):
            return None
        if stat.S_ISDIR(info.st_mode) and not os.access(folder, os.X_OK):
            return folder
    return None


def models_folder(environ: Mapping[str, str], user_home: Path) -> Path:
    """Returns the folder of downloaded models, which all homes share: HERMES_CACHE, or the user's cache folder."""
    if given := environ.get("HERMES_CACHE"):
        return Path(given).expanduser() / "models"
    if base := environ.get("XDG_CACHE_HOME"):
        return Path(base) / "hermes" / "models"
    return user_home / ".cache" / "hermes" / "models"

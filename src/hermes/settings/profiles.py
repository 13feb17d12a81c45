"""Profiles: whole homes beside the default one, in `profiles/NAME` of the base home.

A profile is chosen by `--profile`, by HERMES_PROFILE, or by `hermes profile use` (the file `active_profile`), in this
order. `default` is the base home itself: the one that HERMES_HOME names, or `~/.hermes`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from hermes.errors import HomeError, UsageError
from hermes.text.translation import translator

t = translator(__name__)


PROFILES_FOLDER = "profiles"
PROFILE_FILE = "profile.yaml"
"""Marks a folder in `profiles` as a profile. The file holds the description."""
ACTIVE_FILE = "active_profile"
DEFAULT_PROFILE = "default"
PROFILE_VARIABLE = "HERMES_PROFILE"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")


def profile_of(root: Path) -> str:
    """Returns the name of the profile that has this home; empty for a base home."""
    if root.parent.name != PROFILES_FOLDER or not (root / PROFILE_FILE).is_file():
        return ""
    return root.name


def base_of(root: Path) -> Path:
    """Returns the base home of a home; a base home is its own."""
    return root.parent.parent if profile_of(root) else root


def checked_name(name: str) -> str:
    """Returns the name. Raises UsageError if no profile can have it; it is also the name of a folder."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            t.later("{name!r} can't be the name of a profile.", name=name[:60]),
            hint=t.later("Use up to 48 lower-case letters, digits, - and _."),
        )
    return name


def profile_root(base: Path, name: str) -> Path:
    """Returns the home of a profile, which need not exist. Raises UsageError for an invalid name."""
    name = checked_name(name)
    return base if name == DEFAULT_PROFILE else base / PROFILES_FOLDER / name


def profile_names(base: Path) -> list[str]:
    """Returns the names of all profiles except the default one."""
    try:
        found = [one.name for one in (base / PROFILES_FOLDER).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(
        name
        for name in found
        if _NAME.fullmatch(name) and profile_of(base / PROFILES_FOLDER / name)
    )


def active_profile(base: Path) -> str:
    """Returns the profile that `hermes profile use` set; empty for the default one."""
    try:
        name = (base / ACTIVE_FILE).read_text().strip()
    except (OSError, ValueError):
        return ""
    return "" if name == DEFAULT_PROFILE else name


def chosen_root(root: Path, environ: Mapping[str, str]) -> Path:
    """Returns the home to use, given the one that was named. Raises HomeError if there is no such profile."""
    named = environ.get(PROFILE_VARIABLE, "")
    if not named:
        active = "" if profile_of(root) else active_profile(root)
        return _existing(root, active, chosen=False) if active else root
    return _existing(base_of(root), named, chosen=True)


def _existing(base: Path, name: str, *, chosen: bool) -> Path:
    root = profile_root(base, name)
    if root == base or profile_of(root):
        return root
    known = ", ".join((DEFAULT_PROFILE, *profile_names(base)))
    if chosen:
        raise HomeError(
            t.later(
                "There is no profile {name!r}. There are: {known}.",
                name=name,
                known=known,
            ),
            hint=t.later("Create it: hermes profile create {name}", name=name),
        )
    raise HomeError(
        t.later(
            "There is no profile {name!r}, which `hermes profile use` named. There are: {known}.",
            name=name,
            known=known,
        ),
        hint=t.later("Choose another: hermes profile use default"),
    )

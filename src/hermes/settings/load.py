"""Loads the settings: defaults, then config.yaml, then the environment.

Only this module reads the environment and settings files.
"""

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hermes.errors import FolderGone, HomeError, SettingsError, UsageError, os_reason
from hermes.settings.home import Home, closed_folder
from hermes.settings.parse import (
    SettingProblem,
    SettingProblems,
    overlay,
    parse_config,
    settings_from,
)
from hermes.settings.profiles import (
    PROFILE_VARIABLE,
    base_of,
    checked_name,
    chosen_root,
)
from hermes.settings.secrets import Secrets, parse_env
from hermes.settings.sections import Settings
from hermes.text.translation import Later, translator

t = translator(__name__)

_UNCHANGED = t.later("The file was not changed.")


MAX_CONFIG_BYTES = 1024 * 1024


def environment() -> Mapping[str, str]:
    """Returns the environment of this process."""
    return os.environ


def system_locale(environ: Mapping[str, str] | None = None) -> str:
    """Returns the locale of the system's messages, such as `de_DE.UTF-8`; empty if it has none."""
    environ = environment() if environ is None else environ
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    return next((found for name in names if (found := environ.get(name))), "")


def current_folder() -> Path:
    """Returns the current folder. Raises FolderGone if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise FolderGone(
            t.later("The folder you are in no longer exists."),
            hint=t.later("Change to one that does (cd ~) and run the command again."),
        ) from error


def typed_path(name: str) -> Path:
    """Returns a typed path as an absolute one; nothing needs to be there. Raises UsageError if
    nothing could be.
    """
    try:
        path = Path(name).expanduser().resolve()
        path.exists()
    except (
        OSError,
        ValueError,
        RuntimeError,
    ) as error:  # too long, an invalid character, an unknown ~user
        raise UsageError(
            t.later(
                "{name!r} can't be used as a path: {error}",
                name=name[:200],
                error=error,
            ),
            hint=t.later("Nothing was done."),
        ) from error
    return path


class EventTarget(NamedTuple):
    """The dashboard to which this process sends its events. No URL means none."""

    url: str
    token: str
    channel: str


def event_target(environ: Mapping[str, str] | None = None) -> EventTarget:
    """Reads HERMES_DASHBOARD_EVENT_URL, _TOKEN and _CHANNEL."""
    environ = environment() if environ is None else environ
    url, token, channel = (
        environ.get(f"HERMES_DASHBOARD_EVENT_{name}", "")
        for name in ("URL", "TOKEN", "CHANNEL")
    )
    return EventTarget(url if token else "", token, channel)


def find_home(environ: Mapping[str, str] | None = None) -> Home:
    """Returns the home of the chosen profile, which must exist; by default the base home, which need not."""
    environ = environment() if environ is None else environ
    return Home(chosen_root(_named_root(environ), environ))


def find_base(environ: Mapping[str, str] | None = None) -> Home:
    """Returns the base home, which holds the profiles. It need not exist."""
    environ = environment() if environ is None else environ
    return Home(base_of(_named_root(environ)))


def choose_profile(name: str) -> None:
    """Uses a profile from now on, in this process and in those it starts. Raises UsageError for an invalid name."""
    os.environ[PROFILE_VARIABLE] = checked_name(name)


def _named_root(environ: Mapping[str, str]) -> Path:
    """The folder that HERMES_HOME names, or `~/.hermes`."""
    named = environ.get("HERMES_HOME") or "~/.hermes"
    try:
        user = environ.get("HOME") or str(Path.home())
        root = Path(
            user + named[1:] if named == "~" or named.startswith("~/") else named
        ).expanduser()
    except RuntimeError as error:
        raise HomeError(
            t.later("Your home folder can't be found."),
            hint=t.later("Set HERMES_HOME to the folder where Hermes keeps its files."),
        ) from error
    return root.absolute()


def load(
    environ: Mapping[str, str] | None = None, *, home: Home | None = None
) -> Settings:
    """Loads the settings. The SettingsError lists every problem; no file is changed."""
    environ = environment() if environ is None else environ
    home = home or find_home(environ)
    data, problems = read_config(home)
    if problems:
        raise unusable(home.config, problems)
    overrides, problems = read_overrides(environ)
    if problems:
        raise SettingsError(
            t.later(
                "The environment can't be used:\n{lines}",
                lines=SettingProblems("", problems),
            ),
            hint=t.later("Correct or unset the variable."),
        )
    for path, value in overrides.items():
        data = overlay(data, path, value)
    return settings_from(data)


def load_secrets(
    environ: Mapping[str, str] | None = None, *, home: Home | None = None
) -> Secrets:
    """Loads the secrets from `.env` and the environment, which wins."""
    environ = environment() if environ is None else environ
    home = home or find_home(environ)
    lines = parse_env(read_text(home.env_file) or "")
    for number, line in enumerate(lines, 1):
        if line.problem:
            raise SettingsError(
                f"{home.env_file}:{number}: {line.problem}",
                hint=t.later("Correct that line; the file was not changed."),
            )
    values = {line.name: line.value for line in lines if line.name}
    return Secrets(values, environ, home.accounts)


def read_config(home: Home) -> tuple[dict[str, object], list[SettingProblem]]:
    """Reads the data of config.yaml (empty if there is no file), or its problems."""
    return parse_config(read_text(home.config) or "")


def read_overrides(
    environ: Mapping[str, str],
) -> tuple[dict[tuple[str, ...], object], list[SettingProblem]]:
    """Reads the settings in the environment by path, and the problems of mistyped variables."""
    if not any(
        name.startswith("HERMES_") and name not in {"HERMES_HOME", PROFILE_VARIABLE}
        for name in environ
    ):
        return {}, []
    from hermes.settings.setting_keys import all_keys, parse_value

    values: dict[tuple[str, ...], object] = {}
    problems: list[SettingProblem] = []
    for key in all_keys():
        text = environ.get(key.variable)
        if text is None:
            continue
        try:
            values[key.path] = parse_value(key, text, quote=False)
        except SettingsError as error:
            what, hint = error.message.partition(": ")[2].rstrip("."), error.hint
            problems.append(
                SettingProblem(0, key.variable, what, hint[:1].lower() + hint[1:])
            )
    return values, problems


def read_text(path: Path) -> str | None:
    """Reads a settings file, line endings kept. Returns None if there is none."""
    name = path.name
    try:
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
        )  # a named pipe would block
    except FileNotFoundError as error:
        if path.is_symlink():
            hint = t.later("Create the file it points to, or remove the link.")
            raise SettingsError(
                t.later(
                    "{name} is a broken symbolic link: {path}", name=name, path=path
                ),
                hint=hint,
            ) from error
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        _require_small_file(path, os.fstat(handle))
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(handle)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            t.later(
                "{path}:{line}: {name} is not UTF-8 text.",
                path=path,
                line=line,
                name=name,
            ),
            hint=t.later(
                "Save it as UTF-8, or move it away to start with the defaults. It was not changed."
            ),
        ) from error
    if "\x00" in text:
        raise SettingsError(
            t.later("{name} is a binary file: {path}", name=name, path=path),
            hint=t.later("Move it away. It was not changed."),
        )
    return text


def _require_small_file(path: Path, info: os.stat_result) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise SettingsError(
            t.later("{name} is a folder: {path}", name=path.name, path=path),
            hint=t.later("Move the folder away; Hermes needs a file there."),
        )
    if not stat.S_ISREG(info.st_mode):
        raise SettingsError(
            t.later("{name} is not a regular file: {path}", name=path.name, path=path),
            hint=t.later("Put a plain text file there."),
        )
    if info.st_size > MAX_CONFIG_BYTES:
        raise SettingsError(
            t.later(
                "{name} is too large: {st_size:,.1f} MiB (at most 1 MiB): {path}",
                name=path.name,
                st_size=info.st_size / MAX_CONFIG_BYTES,
                path=path,
            ),
            hint=t.later(
                "Move it away and start again from the keys you need. It was not read."
            ),
        )


def _unreadable(path: Path, error: OSError) -> SettingsError:
    if error.errno in {errno.EACCES, errno.EPERM}:
        closed = closed_folder(path)
        allow = f"chmod u+r '{path}'" if closed is None else f"chmod u+x '{closed}'"
        why = t.later("permission denied")
        if closed is not None:
            why = t.later("you have no access to the folder {folder}", folder=closed)
        return SettingsError(
            t.later(
                "{name} can't be read: {path} ({error})",
                name=path.name,
                path=path,
                error=why,
            ),
            hint=t.later("Allow it with: {allow}", allow=allow),
        )
    return SettingsError(
        t.later(
            "{name} can't be read: {path} ({error})",
            name=path.name,
            path=path,
            error=os_reason(error),
        ),
        hint=t.later("Check the path and HERMES_HOME."),
    )


def unusable(
    path: Path,
    problems: list[SettingProblem],
    kept: Later = _UNCHANGED,
) -> SettingsError:
    """Builds the error that lists every problem of a file."""
    lines = SettingProblems(path.name, problems)
    return SettingsError(
        t.later("{path} can't be used:\n{lines}", path=path, lines=lines),
        hint=t.later("Correct it with: hermes config edit. {kept}", kept=kept),
    )

"""The checks of `hermes doctor`. A check takes the `Site` and returns findings; a new one also goes into CHECKS.

Checks are fast, change nothing, and work when the rest of Hermes can't. The only servers they ask are the PostgreSQL and
the NATS of the settings.
"""

import errno
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

from msgspec import Struct

from hermes.app.profiles import Profiles
from hermes.commands.views import FAIL, OK, WARN
from hermes.errors import HermesError, os_reason, translated
from hermes.installation import reinstall_command
from hermes.settings.home import Home, closed_folder, probe
from hermes.settings.parse import SettingProblem
from hermes.settings.profiles import DEFAULT_PROFILE
from hermes.settings.value_origins import (
    config_problems,
    secret_problems,
    variable_problems,
    variable_warnings,
)
from hermes.text.translation import (
    LANGUAGES,
    current_sentences,
    shown_reason,
    translator,
)

t = translator(__name__)


_SQLITE = (3, 51, 3)  # the first without the WAL-reset bug
_NETWORK_FILESYSTEMS = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "virtiofs",
    "fuse",
    "afs",
    "ceph",
    "gluster",
    "lustre",
)
_POINT = 4  # the field of a mount table that holds the mount point
_LITTLE, _TOO_LITTLE = 1024**3, 50 * 1024**2


class Finding(Struct, frozen=True):
    """One line of the report."""

    check: str
    mark: str
    text: str
    to_do: str = ""


class Site(Struct, frozen=True):
    """What is checked: a home and an environment."""

    home: Home
    environ: Mapping[str, str]

    @property
    def existing(self) -> Path:
        """The home, or the nearest folder above it that exists."""
        folder = self.home.root
        while isinstance(probe(folder), OSError) and folder != folder.parent:
            folder = folder.parent
        return folder


def python_version(site: Site) -> list[Finding]:
    version = platform.python_version()
    if sys.version_info[:2] < (3, 11):  # noqa: UP036 - an installation can be carried to another Python
        return [
            Finding(
                "python",
                FAIL,
                t("Python {version}", version=version),
                t("Hermes needs Python 3.11 or newer."),
            )
        ]
    return [
        Finding("python", OK, t("Python {version}", version=version)),
        *_module_path(site),
    ]


def _module_path(site: Site) -> list[Finding]:
    """Which folder a relative path in PYTHONPATH means depends on where Python is started; code in it runs before ours.

    The `hermes` command ignores PYTHONPATH; `python -m hermes` does not.
    """
    search_path = site.environ.get("PYTHONPATH", "")
    if sys.flags.ignore_environment or not search_path:
        return []
    if all(map(os.path.isabs, search_path.split(os.pathsep))):
        return []
    text = t(
        "PYTHONPATH is {search_path!r}: any folder you start Hermes in can replace parts of it",
        search_path=search_path,
    )
    return [
        Finding("python", WARN, text, t("Start it as `hermes`, or unset PYTHONPATH."))
    ]


def sqlite_version(_site: Site) -> list[Finding]:
    try:
        import apsw
    except ImportError as error:
        return [
            Finding(
                "sqlite",
                FAIL,
                t("apsw can't be imported: {error}", error=error),
                t(
                    "Reinstall it: {reinstall_command}",
                    reinstall_command=reinstall_command("apsw"),
                ),
            )
        ]
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < _SQLITE:
        return [
            Finding(
                "sqlite",
                FAIL,
                t("SQLite {version} can damage a shared database", version=version),
                t(
                    "Replace it: {reinstall_command}",
                    reinstall_command=reinstall_command("apsw"),
                ),
            )
        ]
    return [Finding("sqlite", OK, t("SQLite {version} (apsw)", version=version))]


def home_folder(site: Site) -> list[Finding]:
    root = site.home.root
    elsewhere = t("or set HERMES_HOME to another folder.")
    info = probe(root)
    if isinstance(info, OSError):
        return [_missing_home(site, info, elsewhere)]
    if stat.S_ISDIR(info.st_mode):
        return [_existing_home(root, elsewhere)]
    return [
        Finding(
            "home",
            FAIL,
            t("{root} is not a folder", root=root),
            t("Move it away, {elsewhere}", elsewhere=elsewhere),
        )
    ]


def _missing_home(site: Site, error: OSError, elsewhere: str) -> Finding:
    root = site.home.root
    closed = closed_folder(root)
    if closed is not None:
        text = t(
            "{root} can't be reached: you have no access to the folder {closed}",
            root=root,
            closed=closed,
        )
        return Finding(
            "home",
            FAIL,
            text,
            t(
                "Run: chmod u+x '{closed}', {elsewhere}",
                closed=closed,
                elsewhere=elsewhere,
            ),
        )
    if not isinstance(probe(root, follow=False), OSError):
        return Finding(
            "home",
            FAIL,
            t("{root} is a broken symbolic link", root=root),
            t("Remove the link, {elsewhere}", elsewhere=elsewhere),
        )
    if error.errno not in {errno.ENOENT, errno.ENOTDIR}:
        reason = os_reason(error)
        return Finding(
            "home",
            FAIL,
            t("{root} can't be used ({reason})", root=root, reason=reason),
            t("Set HERMES_HOME to another folder."),
        )
    if site.existing.is_dir() and os.access(site.existing, os.W_OK | os.X_OK):
        return Finding(
            "home", OK, t("{root} (does not exist yet; created when needed)", root=root)
        )
    return Finding(
        "home",
        FAIL,
        t("{root} can't be created", root=root),
        t(
            "Make {existing} writable, {elsewhere}",
            existing=site.existing,
            elsewhere=elsewhere,
        ),
    )


def _existing_home(root: Path, elsewhere: str) -> Finding:
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return Finding(
            "home",
            FAIL,
            t("{root} can't be written", root=root),
            t("Run: chmod u+rwx '{root}', {elsewhere}", root=root, elsewhere=elsewhere),
        )
    mode = stat.S_IMODE(root.stat().st_mode)
    if mode & 0o077:
        return Finding(
            "home",
            WARN,
            t("{root} is open to others (mode {mode:04o})", root=root, mode=mode),
            t("Run: chmod 700 '{root}'", root=root),
        )
    return Finding("home", OK, str(root))


def filesystem(site: Site) -> list[Finding]:
    kind = filesystem_type(site.existing, Path("/proc/self/mountinfo"))
    if kind.startswith(_NETWORK_FILESYSTEMS):
        to_do = t(
            "Set HERMES_HOME to a folder on a local disk if sessions are used by several processes."
        )
        return [
            Finding(
                "filesystem",
                WARN,
                t("{kind}: SQLite's locks may not hold there", kind=kind),
                to_do,
            )
        ]
    return [Finding("filesystem", OK, kind)] if kind else []


def filesystem_type(folder: Path, mountinfo: Path) -> str:
    """The type of the filesystem that holds `folder`; nothing where the system has no mount table."""
    try:
        lines = mountinfo.read_bytes().split(b"\n")
    except OSError:  # not Linux
        return ""
    resolved, best, kind = Path(os.path.realpath(folder)), -1, ""
    for line in lines:
        fields, _, after = line.partition(b" - ")
        if len(fields.split(b" ")) < _POINT + 1 or not after:
            continue
        raw = fields.split(b" ")[_POINT]
        point = Path(
            os.fsdecode(
                re.sub(
                    rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 255]), raw
                )
            )
        )
        if len(point.parts) >= best and resolved.is_relative_to(point):
            best, kind = len(point.parts), os.fsdecode(after.split()[0])
    return kind


def free_space(site: Site) -> list[Finding]:
    free = shutil.disk_usage(site.existing).free
    if free < _TOO_LITTLE:
        return [
            Finding(
                "disk",
                FAIL,
                t("{free:.0f} MiB free", free=free / 1024**2),
                t("Free some space: sessions can't be saved."),
            )
        ]
    if free < _LITTLE:
        return [
            Finding(
                "disk",
                WARN,
                t("{free:.0f} MiB free", free=free / 1024**2),
                t("Free some space soon."),
            )
        ]
    return [Finding("disk", OK, t("{free:,.0f} GiB free", free=free / 1024**3))]


def config_file(site: Site) -> list[Finding]:
    name, exists = (
        site.home.config.name,
        not isinstance(probe(site.home.config), OSError),
    )
    found = _problems("config", FAIL, name, lambda: config_problems(site.home))
    return found or [
        Finding(
            "config", OK, name if exists else t("no {name}: all defaults", name=name)
        )
    ]


def secrets_file(site: Site) -> list[Finding]:
    name, exists = (
        site.home.env_file.name,
        not isinstance(probe(site.home.env_file), OSError),
    )
    found = _problems("secrets", FAIL, name, lambda: secret_problems(site.home))
    return found or [
        Finding("secrets", OK, name if exists else t("no {name}", name=name))
    ]


def variables(site: Site) -> list[Finding]:
    found = _problems("environment", FAIL, "", lambda: variable_problems(site.environ))
    found += _problems("environment", WARN, "", lambda: variable_warnings(site.environ))
    return found or [Finding("environment", OK, t("no unknown HERMES_* variables"))]


def _problems(
    check: str, mark: str, name: str, find: Callable[[], list[SettingProblem]]
) -> list[Finding]:
    try:
        problems = find()
    except HermesError as error:
        return [
            Finding(check, mark, translated(error.words), translated(error.hint_words))
        ]
    otherwise = t("Correct {name}.", name=name) if name else t("Correct or unset it.")
    hints = [translated(problem.hint) for problem in problems]
    hints = [hint[:1].upper() + hint[1:] for hint in hints]
    return [
        Finding(check, mark, problem.shown_where(name), hint or otherwise)
        for problem, hint in zip(problems, hints, strict=True)
    ]


def state_file(site: Site) -> list[Finding]:
    from hermes.commands.state_file_checks import check_state_file
    from hermes.commands.store_checks import check_store

    return check_store(site) or check_state_file(site)


def events(site: Site) -> list[Finding]:
    from hermes.commands.store_checks import check_events

    return check_events(site)


def damaged_files(site: Site) -> list[Finding]:
    kept = (
        sorted(site.home.root.glob("state.db.damaged-*"))
        if os.access(site.home.root, os.R_OK | os.X_OK)
        else []
    )
    to_do = t(
        "Everything readable was recovered. Delete it (and its -wal and -shm) when you are sure that nothing is missing."
    )
    return [
        Finding(
            "sessions", WARN, t("a damaged database was kept: {path}", path=path), to_do
        )
        for path in kept
        if not path.name.endswith(("-wal", "-shm"))
    ]


def sandbox(site: Site) -> list[Finding]:
    """What confines the commands that Hermes runs, found by actually confining one."""
    from hermes.tools.sandbox.detect import find_sandbox  # takes long to load

    found = find_sandbox(
        site.environ.get("PATH", ""), Path(site.environ.get("HOME", "/nonexistent"))
    )
    install = t(
        "Install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)."
    )
    if found.kind == "bubblewrap":
        return [
            Finding(
                "sandbox",
                OK,
                t(
                    "bubblewrap: commands write only in their working directory, without network"
                ),
            )
        ]
    if found.kind == "landlock":
        limits = t(
            "no network of their own, and what runs later (git hooks, ...) is checked after a command"
        )
        return [
            Finding(
                "sandbox",
                WARN,
                t(
                    "Landlock confines commands, but less well: {limits}. {why}",
                    limits=limits,
                    why=shown_reason(found.why),
                ),
                install,
            )
        ]
    to_do = t(
        "{install} Until then Hermes asks before every command that changes something.",
        install=install,
    )
    return [
        Finding(
            "sandbox",
            WARN,
            t("commands are not confined. {why}", why=shown_reason(found.why)),
            to_do,
        )
    ]


def git(site: Site) -> list[Finding]:
    """Undo, and the history of memory and skills, are kept by git."""
    from hermes.children.helper_programs import find_program, skipped_program

    found = find_program("git", site.environ)
    if found:
        return [Finding("git", OK, found)]
    text = t(
        "git is not installed: turns can't be undone, and memory and skills have no history"
    )
    if elsewhere := skipped_program("git", site.environ):
        text = t(
            "{elsewhere} is not used, because a model could have written it. "
            "Git is not installed: turns can't be undone, and memory and skills have no history",
            elsewhere=elsewhere,
        )
    return [
        Finding(
            "git",
            WARN,
            text,
            t(
                "Install git (Debian, Ubuntu: apt install git; Fedora: dnf install git)."
            ),
        )
    ]


def worktrees(site: Site) -> list[Finding]:
    """Worktrees that nobody needs any more, or that hold unmerged work."""
    from hermes.app.worktrees import Worktrees, worktrees_folder

    folder = worktrees_folder(site.environ, Path.home())
    trees = Worktrees(folder, site.environ)
    found: list[Finding] = []
    for one in trees.all():
        state, gone = trees.state(one), not Path(one.source).is_dir()
        if gone:
            text, to_do = (
                t(
                    "{folder}: its repository {source} is gone",
                    folder=one.folder,
                    source=one.source,
                ),
                "",
            )
        elif state.is_clean:
            text = t(
                "{name} of {source} holds nothing that is not merged",
                name=one.name,
                source=one.source,
            )
            to_do = t("Delete it there: hermes worktree drop {name}", name=one.name)
        else:
            text = f"{one.name} of {one.source}: {state}"
            to_do = t("Merge it there: hermes worktree merge {name}", name=one.name)
        found.append(Finding("worktrees", OK if state.is_clean and not gone else WARN, text, to_do))  # fmt: skip
    return found


def model(site: Site) -> list[Finding]:
    from hermes.commands.engine_checks import (
        check_model,  # the doctor also works where models can't be loaded
    )

    return check_model(site)


def codex_engine(site: Site) -> list[Finding]:
    from hermes.commands.engine_checks import check_codex

    return check_codex(site)


def hooks(site: Site) -> list[Finding]:
    from hermes.commands.engine_checks import check_hooks, check_webhooks

    return [*check_hooks(site), *check_webhooks(site)]


def pictures(site: Site) -> list[Finding]:
    from hermes.commands.picture_checks import check_pictures

    return check_pictures(site)


def speech(site: Site) -> list[Finding]:
    from hermes.commands.engine_checks import check_speech

    return check_speech(site)


def gateway(site: Site) -> list[Finding]:
    found = import_module("hermes.surfaces.gateway.doctor_checks").findings(
        site.home, site.environ
    )
    return [Finding("gateway", mark, text, to_do) for mark, text, to_do in found]


def language(site: Site) -> list[Finding]:
    """The language of this process, how much of it is missing, and whether the user's own texts can be used."""
    return [*_spoken_language(), *_own_texts(site)]


def _own_texts(site: Site) -> Iterator[Finding]:
    """What is wrong with the user's own texts, in any language."""
    for code in LANGUAGES:
        path = site.home.locales / f"{code}.po"
        if os.path.lexists(path) and (problem := _overlay_problem(code, path)):
            text = t("Your own texts can't be used: {problem}", problem=problem)
            yield Finding("language", WARN, text, t("Correct the file."))


def _overlay_problem(code: str, path: Path) -> str:
    from hermes.text.catalogue import Catalogue

    return Catalogue(code, path).overlay_problem


def _spoken_language() -> list[Finding]:
    sentences = current_sentences()
    if sentences is None:
        return []
    from hermes.text.catalogue import untranslated

    name = LANGUAGES[sentences.language]
    missing = untranslated(sentences.language)
    if not missing:
        return [Finding("language", OK, name)]
    text = t(
        "{name}; {count:,} sentence is still in English",
        "{name}; {count:,} sentences are still in English",
        name=name,
        count=missing,
    )
    return [Finding("language", OK, text)]


def profiles(site: Site) -> list[Finding]:
    """Which profile this is, and whether the others can be read."""
    base = site.home.base
    found = Profiles(base).all()
    if len(found) == 1:
        return []
    broken = [one for one in found if one.problem and one.path != site.home.root]
    names = ", ".join(one.name for one in found)
    text = f"{site.home.profile or DEFAULT_PROFILE} (of {names})"
    if not broken:
        return [Finding("profiles", OK, text)]
    which = ", ".join(one.name for one in broken)
    to_do = t("Correct them: hermes --profile {name} config edit", name=broken[0].name)
    return [
        Finding(
            "profiles",
            WARN,
            t("{text}; settings that can't be read: {which}", text=text, which=which),
            to_do,
        )
    ]


CHECKS: tuple[Callable[[Site], list[Finding]], ...] = (
    python_version,
    sqlite_version,
    home_folder,
    profiles,
    language,
    filesystem,
    free_space,
    config_file,
    secrets_file,
    variables,
    state_file,
    events,
    damaged_files,
    sandbox,
    git,
    worktrees,
    model,
    codex_engine,
    hooks,
    pictures,
    speech,
    gateway,
)

"""Finds the helper programs that Hermes itself runs (git, rg, bwrap, codex, an editor, ...), as absolute paths outside
every workspace. A model may have written what is in a workspace, and these programs run outside the sandbox.

A folder of PATH is skipped when it is relative, is inside a workspace, or belongs to a project (`node_modules/.bin`, a
virtual environment other than our own).

A workspace that contains the user's home also contains the user's own program folders (`~/.local/bin`, nvm's). If the
sandbox makes those read-only, their programs stay usable as long as they include all their code: a native program, or a
package in the `lib` beside its `bin`. A script that may load code from elsewhere in the home is not used.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path

PLAIN_VARIABLES = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
    ]
)
"""Environment variables that codex and MCP servers get. Others may hold secrets."""
PLAIN_PREFIXES = ("LC_", "XDG_")

_SYSTEM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
_MAX_LINKS = 40
_workspaces: set[str] = set()
_read_only: set[str] = set()
_unconfined: set[str] = set()


def _search_path(environ: Mapping[str, str]) -> str:
    return environ.get("PATH") or os.defpath


def add_workspace(
    folder: Path, read_only: Iterable[str] = (), *, confined: bool = True
) -> None:
    """From now on, takes no helper program from that folder, because a model's commands can write there.

    `read_only`: program folders in it that no command can change (`personal_program_folders`). They don't count once
    commands that are not `confined` by our sandbox run there.
    """
    real = os.path.realpath(folder)
    if not _holds(real, _SYSTEM_FOLDERS):  # the sandbox prevents writes there
        is_new = real not in _workspaces
        _workspaces.add(real)
        _read_only.update(read_only)
        if not confined:
            _unconfined.add(real)
        if (
            is_new
        ):  # a gateway has one for each person: nothing of the earlier ones stays
            for cached in (_with_folder, _trusted, _first):
                cached.cache_clear()


def personal_program_folders(
    workspace: Path, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns the folders of PATH inside a workspace that contains the user's home, and the `lib` beside each `bin`.

    A folder behind a symbolic link is left out: the link could be replaced.
    """
    top, home = os.path.realpath(workspace), environ.get("HOME", "")
    if not os.path.isabs(home) or not _holds(top, (os.path.realpath(home),)):  # noqa: PTH117
        return ()
    found: dict[str, None] = {}
    for folder in _trusted(_search_path(environ), frozenset()):
        place = os.path.normpath(folder)
        beside = f"{os.path.dirname(place)}/lib"  # noqa: PTH120
        for each in (place, beside) if place.endswith("/bin") else (place,):
            if each != top and _is_below(each, top) and os.path.isdir(each):  # noqa: PTH112
                found[each] = None
    return tuple(each for each in found if os.path.realpath(each) == each)


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Returns the path of a helper program: the first on PATH that a model can't have written; None if there is none.

    A `name` with a folder in it was chosen by the user, and is used as given.
    """
    if os.path.dirname(name):  # noqa: PTH120
        chosen = os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111
        return chosen if _is_program(chosen) else None
    search_path, workspaces = _search_path(environ), _current_workspaces()
    kept = _current_read_only()
    try:
        found = _first(name, search_path, workspaces, kept)
        return (
            found
            if _is_program(found)
            else _first.__wrapped__(name, search_path, workspaces, kept)
        )
    except FileNotFoundError:
        return None


def beside_python(name: str) -> str | None:
    """Returns a program installed together with Hermes. Anyone who can replace it can replace Hermes itself."""
    program = os.path.join(os.path.dirname(sys.executable), name)  # noqa: PTH118, PTH120
    return program if _is_program(program) else None


def skipped_program(name: str, environ: Mapping[str, str]) -> str:
    """Returns the path of a program on PATH that is not used, because a model may have written it; otherwise empty."""
    folders = _search_path(environ).split(os.pathsep)
    programs = (os.path.abspath(os.path.join(folder, name)) for folder in folders)  # noqa: PTH100, PTH118
    return (
        "" if find_program(name, environ) else next(filter(_is_program, programs), "")
    )


def trusted_path(environ: Mapping[str, str]) -> str:
    """Returns the PATH for a helper program, so that programs it starts are also from outside every workspace."""
    return os.pathsep.join(
        _trusted(
            _search_path(environ),
            _current_workspaces(),
            _current_read_only(),
        )
    )


@lru_cache(maxsize=64)
def _first(
    name: str, search_path: str, workspaces: frozenset[str], read_only: frozenset[str]
) -> str:
    """Returns the first match, cached. A missing program is looked up again, as the user may have installed it."""
    for folder in search_path.split(os.pathsep):
        program = os.path.join(folder, name)  # noqa: PTH118
        if (
            _is_program(program)  # first: most folders don't have it
            and folder in _trusted(search_path, workspaces, read_only)
            and (
                not is_inside(program, workspaces)
                or _is_unchangeable(program, workspaces, read_only)
            )
        ):
            return program
    raise FileNotFoundError(name)


def _is_unchangeable(
    program: str, workspaces: frozenset[str], read_only: frozenset[str]
) -> bool:
    """Returns whether commands can change neither a program in a workspace, nor links to it, nor what it loads."""
    for _ in range(_MAX_LINKS):
        folder, name = os.path.split(program)
        real = os.path.realpath(folder)
        for place in (folder, real):
            if _is_in_any(place, workspaces) and not _is_in_any(place, read_only):
                return False
        if not os.path.islink(program):  # noqa: PTH114
            packages = {each for each in read_only if each.endswith("/lib")}
            return _is_in_any(f"{real}/{name}", packages) or not _is_script(program)
        target = os.readlink(program)  # noqa: PTH115
        if os.path.normpath(target) != target:  # `..` after what may be a link
            return False
        program = os.path.normpath(os.path.join(real, target))  # noqa: PTH118
    return False


def _is_script(program: str) -> bool:
    with open(program, "rb") as file:  # noqa: PTH123
        return file.read(2) == b"#!"


def is_inside(path: str, folders: AbstractSet[str]) -> bool:
    """Returns whether a path is inside one of these folders, as written or with its links resolved."""
    places = {os.path.normpath(path), os.path.realpath(path)}
    return any(_is_in_any(place, folders) for place in places)


@lru_cache(maxsize=16)
def _trusted(
    search_path: str,
    workspaces: frozenset[str],
    read_only: frozenset[str] = frozenset(),
) -> tuple[str, ...]:
    absolute = [
        folder
        for folder in search_path.split(os.pathsep)
        if os.path.isabs(folder)  # noqa: PTH117
    ]
    return tuple(
        one
        for one in absolute
        if (os.path.normpath(one) in read_only or not is_inside(one, workspaces))
        and not _is_project_folder(one)
    )


def _is_project_folder(folder: str) -> bool:
    """Returns whether a folder is one where projects store their own programs."""
    above = os.path.dirname(os.path.normpath(folder))  # noqa: PTH120
    if os.path.basename(above) == "node_modules":  # noqa: PTH119
        return True
    own = os.path.realpath(above) == os.path.realpath(sys.prefix)
    return not own and os.path.exists(os.path.join(above, "pyvenv.cfg"))  # noqa: PTH110, PTH118


def _current_workspaces() -> frozenset[str]:
    """Returns the registered workspaces and the current folder. The home counts only if a session works in it."""
    try:
        return _with_folder(
            os.getcwd(),  # noqa: PTH109
            os.path.expanduser("~"),  # noqa: PTH111
            len(_workspaces),
        )
    except FileNotFoundError:  # the folder was deleted
        return frozenset(_workspaces)


def _current_read_only() -> frozenset[str]:
    return frozenset(each for each in _read_only if not _is_in_any(each, _unconfined))


@lru_cache(maxsize=4)
def _with_folder(folder: str, user_home: str, number: int) -> frozenset[str]:
    """Returns the registered workspaces and a folder. Their `number` only grows, so what was cached before never counts."""
    del number
    here = os.path.realpath(folder)
    is_own = not _holds(here, (*_SYSTEM_FOLDERS, os.path.realpath(user_home)))
    return frozenset((*_workspaces, here) if is_own else _workspaces)


def _holds(folder: str, others: Iterable[str]) -> bool:
    return any(_is_below(other, folder) for other in others)


def _is_in_any(path: str, folders: AbstractSet[str]) -> bool:
    """Returns whether a path is one of these folders or below one. There may be thousands, so those above it are looked up."""
    while path not in folders:
        above = os.path.dirname(path)  # noqa: PTH120
        if above == path:
            return False
        path = above
    return True


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113

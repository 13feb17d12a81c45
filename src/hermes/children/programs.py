"""Helper programs of our own use (git, rg, bwrap, codex, an editor, ...): found once, by absolute path, outside every
workspace. What lies in a workspace may have been written by a model, and these programs run outside the sandbox.

A folder of PATH is passed over when it is relative, lies in a workspace, or is one that a project brings along
(`node_modules/.bin`, a virtual environment other than our own).
"""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

_SYSTEM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
_workspaces: set[str] = set()


def add_workspace(folder: Path) -> None:
    """From now on no helper program of this process is taken from that folder: commands of a model write there."""
    real = os.path.realpath(folder)
    if not _holds(real, _SYSTEM_FOLDERS):  # the sandbox lets nobody write there
        _workspaces.add(real)


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Where a helper program is: the first on PATH that a model can't have written; None when there is none.

    A `name` with a folder in it was chosen by the user, and is taken as it is.
    """
    if os.path.dirname(name):  # noqa: PTH120
        chosen = os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111
        return chosen if _is_program(chosen) else None
    search_path, workspaces = environ.get("PATH") or os.defpath, _current_workspaces()
    try:
        found = _first(name, search_path, workspaces)
        return found if _is_program(found) else _first.__wrapped__(name, search_path, workspaces)
    except FileNotFoundError:
        return None


def beside_python(name: str) -> str | None:
    """A program that was installed together with Hermes: whoever can replace it can replace Hermes itself."""
    program = os.path.join(os.path.dirname(sys.executable), name)  # noqa: PTH118, PTH120
    return program if _is_program(program) else None


def passed_over(name: str, environ: Mapping[str, str]) -> str:
    """Where a program of that name is on PATH that is not used, because a model may have written it; or nothing."""
    folders = (environ.get("PATH") or os.defpath).split(os.pathsep)
    programs = (os.path.abspath(os.path.join(folder, name)) for folder in folders)  # noqa: PTH100, PTH118
    return "" if find_program(name, environ) else next(filter(_is_program, programs), "")


def trusted_path(environ: Mapping[str, str]) -> str:
    """The PATH for a helper program: what it starts in turn comes from outside every workspace too."""
    return os.pathsep.join(_trusted(environ.get("PATH") or os.defpath, _current_workspaces()))


@lru_cache(maxsize=64)
def _first(name: str, search_path: str, workspaces: frozenset[str]) -> str:
    """Looked for once; what is not found is looked for again, as the user may install it meanwhile."""
    for folder in _trusted(search_path, workspaces):
        program = os.path.join(folder, name)  # noqa: PTH118
        if _is_program(program) and not leads_into(program, workspaces):
            return program
    raise FileNotFoundError(name)


def leads_into(path: str, folders: Iterable[str]) -> bool:
    """Whether a path lies in one of these folders, as it is written or by its links."""
    places = {os.path.normpath(path), os.path.realpath(path)}
    return any(_is_below(place, folder) for place in places for folder in folders)


@lru_cache(maxsize=16)
def _trusted(search_path: str, workspaces: frozenset[str]) -> tuple[str, ...]:
    absolute = [folder for folder in search_path.split(os.pathsep) if os.path.isabs(folder)]  # noqa: PTH117
    return tuple(one for one in absolute if not leads_into(one, workspaces) and not _is_a_projects(one))


def _is_a_projects(folder: str) -> bool:
    """Whether it is where a project keeps programs of its own, whichever project."""
    above = os.path.dirname(os.path.normpath(folder))  # noqa: PTH120
    if os.path.basename(above) == "node_modules":  # noqa: PTH119
        return True
    own = os.path.realpath(above) == os.path.realpath(sys.prefix)
    return not own and os.path.exists(os.path.join(above, "pyvenv.cfg"))  # noqa: PTH110, PTH118


def _current_workspaces() -> frozenset[str]:
    """Those that were named, and the folder this process is in; a home is one only when a session works in it."""
    try:
        return _with_folder(os.getcwd(), os.path.expanduser("~"), frozenset(_workspaces))  # noqa: PTH109, PTH111
    except FileNotFoundError:  # it was deleted
        return frozenset(_workspaces)


@lru_cache(maxsize=16)
def _with_folder(folder: str, user_home: str, workspaces: frozenset[str]) -> frozenset[str]:
    here = os.path.realpath(folder)
    return workspaces if _holds(here, (*_SYSTEM_FOLDERS, os.path.realpath(user_home))) else workspaces | {here}


def _holds(folder: str, others: Iterable[str]) -> bool:
    return any(_is_below(other, folder) for other in others)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113

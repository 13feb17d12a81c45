"""Recognises the parts of a git repository that run programs: its hooks, and all settings that are not known to be
harmless.

A repository that a command made belongs to the command, but whoever works in it later is not confined.
"""

import os
import re
from collections.abc import Set as AbstractSet
from pathlib import Path

_DEEPEST, _MOST = 3, 100
_HARMLESS = r"""(?x) ^(?!.*(hook|command|cmd|program|editor|helper|exec)) (
        core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol
          |safecrlf|worktree|quotepath|abbrev|compression|sparsecheckout(cone)?|untrackedcache|longpaths|sharedrepository)
      | remote\.(url|fetch|push|pushurl|tagopt|promisor|partialclonefilter|mirror|prune|skipfetchall)
      | branch\.\w+ | user\.\w+ | extensions\.\w+ | submodule\.(url|active|branch|path|fetchrecursesubmodules|recurse)
      | (init\.defaultbranch|lfs\.repositoryformatversion|receive\.deny\w+|commit\.gpgsign|maintenance\.(auto|strategy))
      | gc\.(auto\w*|aggressive\w+|\w*expire\w*|packrefs|writecommitgraph|bigpackthreshold|cruftpacks|maxcruftsize)
      | (pull|push|fetch|rebase|advice|color|index|feature|status|log|tag|merge\.ff|rerere|pack|checkout|clone)\.?\w*
    )$"""
_HEADER = r'\[([A-Za-z0-9.-]+)(?:[ \t]+"(?:[^"\\]|\\.)*")?\]'
_SETTING = r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?$"
_UNREADABLE = r"[\x00-\x08\x0b-\x1f\x7f]|\\(\n|$)"
"""Control characters, and a backslash at the end of a line, where git continues a value but not a comment."""


def modules(git: str) -> list[str]:
    """The folders of a repository's submodules within its own."""
    found: list[str] = []
    top = f"{git}/modules"
    for place, folders, names in os.walk(top):
        if "HEAD" in names:
            found.append(place)
            folders[:] = [name for name in folders if name == "modules"]
        elif place[len(top) :].count("/") >= _DEEPEST or len(found) >= _MOST:
            folders.clear()
    return found[:_MOST]


def points_into(pointer: Path, gits: AbstractSet[str]) -> bool:
    """Whether a `.git` file names a git folder that is being watched, or a working tree of one that has no settings of
    its own that run something."""
    try:
        text = pointer.read_text(errors="replace")[:4096]
    except OSError:
        return False
    place = Path(
        os.path.realpath(pointer.parent / text.removeprefix("gitdir:").strip())
    )
    if not text.startswith("gitdir:") or str(place) in gits:
        return text.startswith("gitdir:")
    is_tree = place.parent.name == "worktrees" and str(place.parent.parent) in gits
    return (
        is_tree
        and _read(place / "commondir") == b"../..\n"
        and is_harmless(_read(place / "config.worktree"))
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError:
        return b"?"


def runs_something(path: Path, git: Path, content: bytes | str) -> bool:
    """Whether a file of a new repository makes git run a program, or look for its settings elsewhere."""
    if path.is_relative_to(git / "hooks"):
        return path.suffix != ".sample"
    if path.parent == git and path.name.startswith("config"):
        return not isinstance(content, bytes) or not is_harmless(content)
    return path == git / "commondir"


def is_harmless(content: bytes) -> bool:
    """Whether every setting is known to run nothing. Anything that git might read differently is not harmless."""
    settings = content.decode(errors="replace")
    if re.search(_UNREADABLE, settings):
        return False
    section = ""
    for line in settings.split("\n"):
        rest = line.strip(" \t")
        if header := re.match(_HEADER, rest):
            section, rest = (
                header[1].lower().partition(".")[0],
                rest[header.end() :].strip(" \t"),
            )
        if not rest or rest.startswith(("#", ";")):
            continue
        setting = re.match(_SETTING, rest)
        if setting is None or not re.match(
            _HARMLESS, f"{section}.{setting[1].lower()}"
        ):
            return False
        if re.match(r"[ \t]*(!|ext::)", re.sub(r'["\\]', "", setting[2] or "")):
            return False
    return True

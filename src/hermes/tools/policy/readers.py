"""Commands that are known to change nothing: one plain program, with options and files that are harmless."""

import re
import shlex
from pathlib import Path

from hermes.tools.sensitive import Guard
from hermes.tools.tool import spellings

_PLAIN = re.compile(r"[\w \t./:=@%+,~^'\"-]+", re.ASCII)
_OPTION = r"-{1,2}[A-Za-z0-9][\w=./,:%+-]*"
_READERS: dict[str, str] = {
    "basename": _OPTION,
    "cat": _OPTION,
    "cd": "-P|-L",
    "cmp": r"-[bls]+",
    "cut": r"-[bcdfs].*",
    "date": r"-[uIR]+|-I\w+|-d.*|--date=.*|--iso.*|--utc",
    "df": _OPTION,
    "diff": r"-[abBEiqNuwyZ]+|-U\d+|--brief|--unified(=\d+)?",
    "dirname": _OPTION,
    "du": r"-[abcchkmsxS]+|-d\d*|--max-depth=\d+|--apparent-size",
    "echo": r"-[neE]+|-.*",
    "false": "",
    "file": r"-[bihLz]+|--mime(-type)?|--brief",
    "grep": r"-[abcEFGhHilLnoPqsvwx]+|-[ABCm]\d*|--color=never",
    "head": r"-[nc]?\d*|-q",
    "id": r"-[ugnGr]+",
    "ls": _OPTION,
    "md5sum": "",
    "nproc": "",
    "pwd": "-P|-L",
    "readlink": r"-[femn]+",
    "realpath": r"-[ems]+",
    "sha256sum": "",
    "stat": r"-[cfLt].*|--(format|printf)=.*",
    "tail": r"-[nc]?\+?\d*|-q",
    "true": "",
    "type": "-[atP]+",
    "uname": "-[asnrvmpio]+",
    "uptime": "-[ps]+",
    "wc": r"-[lwcmL]+",
    "which": "-a",
    "whoami": "",
}
"""Programs that only look, with the options that keep it so."""
_GIT: dict[str, str] = {
    "blame": r"-[LlewsM].*",
    "branch": r"-[arv]+|--list|--show-current|--all",
    "diff": r"--(stat|cached|staged|name-only|name-status|shortstat|numstat|no-color|color=never)|-U\d+|-w|-b|--",
    "log": r"-\d+|-n\d*|-p|--(oneline|stat|graph|all|decorate|no-color|name-only|follow)?"
    r"|--(author|since|until|grep|format|pretty)=.*",
    "ls-files": r"-[cdmos]+|--others|--exclude-standard",
    "remote": "-v",
    "rev-parse": r"--(show-toplevel|abbrev-ref|short|git-dir|is-inside-work-tree)",
    "shortlog": r"-[sne]+",
    "show": r"--(stat|name-only|name-status|no-color|oneline|format=.*|pretty=.*)|-p",
    "status": r"-[sbu]+|--(short|branch|porcelain(=v[12])?|untracked-files=.*)|-uno",
}
_GIT_RUNS = re.compile(
    rb"(?i)fsmonitor|external|textconv|pager|\[\s*(alias|include|includeif|filter|diff)\b|sshcommand|hookspath"
)
_NO_OPERANDS = frozenset(("branch", "remote"))


def only_reads(command: str, folder: Path, guard: Guard) -> bool:
    """Whether this is one plain command, known to change nothing, on files that hold no secrets."""
    if not _PLAIN.fullmatch(command.strip()):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    options = _options(words, folder)
    return options is not None and _arguments_fit(words[1:], options, folder, guard)


def _options(words: list[str], folder: Path) -> str | None:
    """The options this program may have; None if it is not known to be harmless."""
    if words[:1] != ["git"]:
        return _READERS.get(words[0]) if words else None
    command = words[1] if len(words) > 1 else ""
    if command in _NO_OPERANDS and any(not word.startswith("-") for word in words[2:]):
        return None
    return _GIT[command] if command in _GIT and _git_is_plain(folder) else None


def _arguments_fit(arguments: list[str], options: str, folder: Path, guard: Guard) -> bool:
    for argument in arguments:
        if argument.startswith("-") and argument != "-" and not re.fullmatch(options, argument):
            return False
        parts = [part for part in re.split("[:=]", argument) if part]
        if any(guard.secret(spellings(part, folder)) for part in (argument, *parts)):
            return False
    return True


def _git_is_plain(folder: Path) -> bool:
    """Whether the repository's own configuration makes git run nothing else."""
    for place in (folder, *folder.parents):
        if (place / ".git").is_dir():
            try:
                return not _GIT_RUNS.search((place / ".git" / "config").read_bytes())
            except OSError:
                return False
        if (place / ".git").exists():
            return False
    return True

"""Commands that are known to change nothing, for when there is no sandbox: plain words, harmless options and files."""

import re
from pathlib import Path

from hermes.tools.policy.fileworks import operands
from hermes.tools.policy.grammar import Command, Unreadable, read_script
from hermes.tools.policy.places import Site, is_stream, secret_reason
from hermes.tools.policy.words import Word

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
_GIT_RUNS = rb"(?i)fsmonitor|external|textconv|pager|\[\s*(alias|include|includeif|filter|diff)\b|sshcommand|hookspath"
_NO_OPERANDS = frozenset(("branch", "remote"))


def only_reads(text: str, site: Site) -> bool:
    """Whether every command in a text is known to change nothing, on files that hold no secrets."""
    try:
        script = read_script(text, {})
    except Unreadable:
        return False
    if script.functions or not script.commands:
        return False
    for command in script.commands:
        if not _reads(command, site):
            return False
        site = _moved(command, site)
    return True


def _reads(command: Command, site: Site) -> bool:
    if (
        command.assignments
        or command.given is not None
        or not all(is_stream(one.target.text) for one in command.redirects)
    ):
        return False
    words = command.words
    if not words or not all(word.plain and word.text.isprintable() for word in words):
        return False
    allowed = _options(words, site.folders)
    return allowed is not None and _arguments_fit(words[1:], allowed, site)


def _options(words: tuple[Word, ...], folders: tuple[Path, ...]) -> str | None:
    """The options this program may have; None if it is not known to be harmless."""
    if words[0].text != "git":
        return _READERS.get(words[0].text)
    command = words[1].text if len(words) > 1 else ""
    if command in _NO_OPERANDS and any(not word.text.startswith("-") for word in words[2:]):
        return None
    return _GIT[command] if command in _GIT and all(_git_is_plain(folder) for folder in folders) else None


def _arguments_fit(arguments: tuple[Word, ...], options: str, site: Site) -> bool:
    for argument in arguments:
        text = argument.text
        if text.startswith("-") and text != "-" and not re.fullmatch(options, text):
            return False
        if secret_reason(site, argument):
            return False
    return True


def _moved(command: Command, site: Site) -> Site:
    if command.words[0].text != "cd":
        return site
    for word in operands(command.words, frozenset()) or [Word(str(site.home))]:
        for path in site.paths(word):
            site = site.moved(path)
    return site


def _git_is_plain(folder: Path) -> bool:
    """Whether the repository's own configuration makes git run nothing else."""
    for place in (folder, *folder.parents):
        if (place / ".git").is_dir():
            try:
                return not re.search(_GIT_RUNS, (place / ".git" / "config").read_bytes())
            except OSError:
                return False
        if (place / ".git").exists():
            return False
    return True

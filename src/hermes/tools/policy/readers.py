"""Commands that are known to change nothing, for when there is no sandbox: plain words, harmless options and files.

Git is not among them: a repository's own configuration can make it run anything, and so can one inside another.
"""

import re

from hermes.tools.policy.file_programs import operands
from hermes.tools.policy.shell_parser import ShellCommand, Unreadable, read_script
from hermes.tools.policy.paths import PathContext, is_stream, secret_reason
from hermes.tools.policy.shell_words import Word

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
PLAIN_NODES = frozenset(
    (
        *(
            "program",
            "list",
            "pipeline",
            "command",
            "command_name",
            "comment",
            "redirected_statement",
        ),
        *("word", "number", "string", "string_content", "raw_string", "concatenation"),
        *("file_redirect", "file_descriptor"),
    )
)
"""Of anything else than plain commands bash may evaluate parts: subscripts, conditions, sums."""


def only_reads(text: str, site: PathContext) -> bool:
    """Whether every command in a text is known to change nothing, on files that hold no secrets."""
    try:
        script = read_script(text, {})
    except Unreadable:
        return False
    if not script.kinds <= PLAIN_NODES or not script.commands:
        return False
    for command in script.commands:
        if not only_looks(command, site):
            return False
        site = _moved(command, site)
    return True


def only_looks(command: ShellCommand, site: PathContext) -> bool:
    """Whether one command is known to change nothing."""
    if (
        command.assignments
        or command.given is not None
        or not all(is_stream(one.target.text) for one in command.redirects)
    ):
        return False
    words = command.words
    if not words or not all(word.plain and word.text.isprintable() for word in words):
        return False
    allowed = _READERS.get(words[0].text)
    return allowed is not None and _arguments_fit(words[1:], allowed, site)


def _arguments_fit(
    arguments: tuple[Word, ...], options: str, site: PathContext
) -> bool:
    for argument in arguments:
        text = argument.text
        if text.startswith("-") and text != "-" and not re.fullmatch(options, text):
            return False
        if secret_reason(site, argument):
            return False
    return True


def _moved(command: ShellCommand, site: PathContext) -> PathContext:
    if command.words[0].text != "cd":
        return site
    for word in operands(command.words, frozenset()) or [Word(str(site.home))]:
        for path in site.paths(word):
            site = site.moved(path)
    return site

"""Which words can only be the name of a package in a registry.
from hermes.tools.policy.shell_words import word_set

A package manager also takes folders, archives, addresses and repositories: none of those is a plain name.
"""

import re
from collections.abc import Sequence

from hermes.tools.policy.program_table import program
from hermes.tools.policy.shell_words import word_set

_NAME = r"[A-Za-z0-9_]([\w.-]*[A-Za-z0-9_])?"
_VERSION = r"[\w.^~-]+"
_FORMS = {
    "name": rf"(?a:(@{_NAME}/)?{_NAME}(@{_VERSION})?)",
    "python": rf"(?a:{_NAME}(\[[\w,-]+\])?([=<>~!]={_VERSION})?)",
    "vendor": rf"(?a:{_NAME}/{_NAME})",
}
"""How packages are named, by the `installs` field of a program."""
_ARCHIVE = r"(?i)\.(tar|tgz|tbz2?|txz|tlz|zip|whl|egg|gz|bz2|xz|zst|lz|lzma|gem|crate|deb|rpm|conda|jar|nupkg|phar)$"
_SCRIPT = (
    r"(?i)\.([cm]?[jt]s|[jt]sx|py|pyz|rb|sh|bash|zsh|fish|ps1|bat|cmd|exe|pl|php|lua)$"
)
_HARMLESS_OPTIONS = word_set(
    "-D --save-dev -S --save -E --save-exact -O --save-optional --dev -y --yes -U --upgrade -q --quiet --verbose --no-audit"
    " --no-fund --silent"
)
"""Options that take no value, and do not change where packages come from or go to."""


def is_package(text: str, form: str = "name") -> bool:
    """Whether a word can only be the name of a package."""
    parts = re.split(r"[@\[=<>~!]", text)
    is_archive = any(re.search(_ARCHIVE, part) for part in parts)
    return bool(re.fullmatch(_FORMS[form], text)) and not is_archive


def install_command(texts: Sequence[str]) -> tuple[str, ...]:
    """The words of a command that installs packages by plain names, without those names; empty for any other."""
    for form, phrases in program(texts[0]).installs.items():
        for phrase in phrases.split():
            verb = (texts[0], *phrase.split("+"))
            rest = texts[len(verb) :]
            if tuple(texts[: len(verb)]) != verb:
                continue
            options = [text for text in rest if text.startswith("-")]
            names = [text for text in rest if not text.startswith("-")]
            if names and _HARMLESS_OPTIONS.issuperset(options):
                return (*verb, *options) if _are_packages(names, form) else ()
    return ()


def _are_packages(names: Sequence[str], form: str) -> bool:
    return all(
        is_package(name, form) and not re.search(_SCRIPT, name) for name in names
    )

"""Variables whose value changes what other programs do."""

import re

from hermes.tools.policy.effects import KINDS, READ, Finding, asks
from hermes.tools.policy.words import Word

_RISKY_VARIABLES = (
    r"LD_(PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_\w+|PROMPT_COMMAND|BASH_ENV|ENV|IFS|GIT_(SSH|SSH_COMMAND|EXTERNAL_DIFF|PROXY_COMMAND"
    r"|EXEC_PATH|CONFIG\w*|EDITOR|SEQUENCE_EDITOR|PAGER|ASKPASS)|PAGER|EDITOR|VISUAL|PYTHONSTARTUP|PERL5(OPT|LIB|DB)|RUBYOPT"
    r"|SHELLOPTS|BASHOPTS|PS4|HIST\w+|SSH_ASKPASS|SUDO_ASKPASS|MANPAGER|LESSOPEN|HERMES_\w+|NPM_CONFIG_\w*|PIP_\w*INDEX\w*"
)
_HARMLESS_VALUES = r"true|:|cat|less|more|vim?|nano|-?1|0?"


def assigned(name: str, word: Word) -> Finding:
    if not re.fullmatch(_RISKY_VARIABLES, name) or (word.known and re.fullmatch(_HARMLESS_VALUES, word.text)):
        return READ if name not in ("HISTFILE", "HISTSIZE", "HISTFILESIZE") else KINDS["history"]
    if name.startswith("HIST"):
        return KINDS["history"]
    if name == "IFS" and word.known and len(word.text) <= 1 and word.text in ("", ",", ":", "\n", "\t", "|", ";"):
        return READ
    return asks(f"it sets {name}, which changes what other programs do")

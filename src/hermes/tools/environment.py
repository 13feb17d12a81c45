"""The environment of a command: the user's, without secrets, and without what would wait for a person."""

import re
from collections.abc import Mapping

_TELLING_NAMES = (
    r"(?i)(^|_)(API)?_?KEYS?($|_)|TOKEN|SECRET|PASSW|PASSPHRASE|PASSCODE|CREDENTIAL|PRIVATE|PASS$"
    r"|(^|_)(PWD|PAT|AUTH|DSN)$|COOKIE"
)
_OWN_NAMES = r"^(HERMES|OPENAI|ANTHROPIC|OPENROUTER|DEEPSEEK|MOONSHOT|GEMINI|MISTRAL|GROQ|XAI)_|^BASH_(ENV|FUNC)|^ENV$"
_TELLING_VALUES = r"://[^/\s:@]*:[^/\s@]+@|^(sk-|ghp_|gho_|github_pat_|glpat-|xox[abpr]-|AKIA|AIza|hf_)|-----BEGIN"
_KEPT = frozenset(("PWD", "OLDPWD"))
_QUIET = {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def command_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a command may see of `environment`."""
    plain = {name: value for name, value in environment.items() if name in _KEPT or not _is_secret(name, value)}
    return plain | _QUIET


def _is_secret(name: str, value: str) -> bool:
    return bool(re.search(_TELLING_NAMES, name) or re.search(_OWN_NAMES, name) or re.search(_TELLING_VALUES, value))

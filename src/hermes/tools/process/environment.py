"""Builds the environment of a command: what programs need, without secrets or anything that waits for a person."""

import re
from collections.abc import Mapping
from pathlib import Path

_TELLING_NAMES = (
    r"(?i)(^|_)(API)?_?KEYS?($|_)|TOKEN|SECRET|PASSW|PASSPHRASE|PASSCODE|CREDENTIAL|PRIVATE|PASS$"
    r"|(^|_)(PWD|PAT|AUTH|DSN)$|COOKIE"
)
_OWN_NAMES = r"^(HERMES|OPENAI|ANTHROPIC|OPENROUTER|DEEPSEEK|MOONSHOT|GEMINI|MISTRAL|GROQ|XAI)_|^BASH_(ENV|FUNC)|^ENV$"
_PASSWORDS_OF_GEMS = r"^BUNDLE_\w+__"
_TELLING_VALUES = r"://[^/\s]+@|^(sk-|ghp_|gho_|github_pat_|glpat-|xox[abpr]-|AKIA|AIza|hf_)|-----BEGIN"
_TELLING_WORDS = r"(?i)passw|secret|token"
_FOLDERS = r"PATH$|_(HOME|DIRS?|ROOT)$|^(HOME|SHELL|VIRTUAL_ENV|LS_COLORS)$"
"""Variables that name folders, in which such a word is only a name."""
_KEPT = frozenset(("PWD", "OLDPWD"))
_QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
_NEEDED = r"""(?x) ^(
        PATH | HOME | USER | LOGNAME | SHELL | LANG | LANGUAGE | LC_\w+ | TZ | TZDIR | PWD | OLDPWD | HOSTNAME | COLUMNS
      | LINES | EDITOR | VISUAL | CI | DEBIAN_FRONTEND | SOURCE_DATE_EPOCH | XDG_(DATA|CONFIG|STATE)_(HOME|DIRS)
      | PYTHON\w* | VIRTUAL_ENV\w* | CONDA_\w+ | PYENV_\w+ | UV_\w+ | PIP_\w+ | POETRY_\w+ | PYTEST_\w+ | DJANGO_\w+
      | NODE_\w+ | NVM_\w+ | NPM_\w+ | npm_\w+ | YARN_\w+ | PNPM_\w+ | BUN_\w+ | DENO_\w+ | VOLTA_\w+ | COREPACK_\w+
      | GO\w* | CGO_\w+ | CARGO\w* | RUST\w* | JAVA_\w+ | JDK_\w+ | MAVEN_\w+ | GRADLE_\w+ | KOTLIN_\w+ | SDKMAN_\w+
      | GEM_\w+ | RBENV_\w+ | RUBY\w* | BUNDLE_\w+ | PERL\w* | PHP\w* | COMPOSER_HOME | DOTNET_\w+ | MIX_\w+ | GHCUP_\w+
      | ANDROID_\w+ | FLUTTER_\w+ | CUDA_\w+ | NVIDIA_\w+ | OMP_\w+ | MKL_\w+ | OPENBLAS_\w+ | HOMEBREW_\w+ | NIX_\w+
      | CC | CXX | CPP | LD | AR | NM | RANLIB | STRIP | CFLAGS | CXXFLAGS | CPPFLAGS | LDFLAGS | LIBS | MAKEFLAGS
      | CMAKE_\w+ | PKG_CONFIG\w* | LD_LIBRARY_PATH | LIBRARY_PATH | CPATH | C_INCLUDE_PATH | CPLUS_INCLUDE_PATH
      | MANPATH | INFOPATH | LESS | LS_COLORS | GIT_(AUTHOR|COMMITTER)_\w+ | SSL_CERT_\w+ | REQUESTS_CA_BUNDLE
      | CURL_CA_BUNDLE | (?i:(https?|no|all|ftp)_proxy)
    )$"""


def command_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a command that may reach the whole machine: everything except secrets."""
    plain = {
        name: value
        for name, value in environment.items()
        if name in _KEPT or not _is_secret(name, value)
    }
    return plain | _QUIET


def confined_environment(
    environment: Mapping[str, str], temporary: Path
) -> dict[str, str]:
    """Returns the environment of a confined command: known variables only, with caches in folders where it can write."""
    needed = {
        name: value
        for name, value in command_environment(environment).items()
        if re.match(_NEEDED, name)
    }
    caches = {
        "XDG_CACHE_HOME": f"{temporary}/cache",
        "npm_config_cache": f"{temporary}/cache/npm",
    }
    return (
        needed
        | _QUIET
        | caches
        | {"TMPDIR": str(temporary), "TAR_OPTIONS": "--no-same-owner"}
    )


def _is_secret(name: str, value: str) -> bool:
    if any(
        re.search(names, name)
        for names in (_TELLING_NAMES, _OWN_NAMES, _PASSWORDS_OF_GEMS)
    ):
        return True
    if re.search(_TELLING_VALUES, value):
        return True
    return bool(re.search(_TELLING_WORDS, value)) and not re.search(_FOLDERS, name)

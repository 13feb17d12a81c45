"""Which words name a package of a registry, and which commands install such packages.

A package manager also takes folders, archives, addresses and repositories: none of those is a plain name.
"""

import re

_PLAIN = r"[A-Za-z0-9_]([\w.-]*[A-Za-z0-9_])?"
_VERSION = r"[\w.^~-]+"
_OF_PYTHON = rf"(?a:{_PLAIN}(\[[\w,-]+\])?([=<>~!]={_VERSION})?)"
_WITH_VENDOR = rf"(?a:{_PLAIN}/{_PLAIN})"
_USUAL = rf"(?a:(@{_PLAIN}/)?{_PLAIN}(@{_VERSION})?)"
_ARCHIVE = r"(?i)\.(tar|tgz|tbz2?|txz|tlz|zip|whl|egg|gz|bz2|xz|zst|lz|lzma|gem|crate|deb|rpm|conda|jar|nupkg|phar)$"
_SCRIPT = (
    r"(?i)\.([cm]?[jt]s|[jt]sx|py|pyz|rb|sh|bash|zsh|fish|ps1|bat|cmd|exe|pl|php|lua)$"
)

_INSTALLS: dict[tuple[str, ...], str] = {
    ("npm", "install"): _USUAL, ("npm", "i"): _USUAL, ("npm", "add"): _USUAL,
    ("pnpm", "add"): _USUAL, ("pnpm", "install"): _USUAL, ("pnpm", "i"): _USUAL,
    ("yarn", "add"): _USUAL, ("bun", "add"): _USUAL, ("bun", "install"): _USUAL, ("bun", "i"): _USUAL,
    ("pip", "install"): _OF_PYTHON, ("pip3", "install"): _OF_PYTHON, ("pip", "download"): _OF_PYTHON,
    ("uv", "add"): _OF_PYTHON, ("uv", "pip", "install"): _OF_PYTHON, ("poetry", "add"): _OF_PYTHON,
    ("pdm", "add"): _OF_PYTHON, ("pipenv", "install"): _OF_PYTHON, ("pipx", "install"): _OF_PYTHON,
    ("cargo", "add"): _USUAL, ("cargo", "install"): _USUAL, ("gem", "install"): _USUAL, ("bundle", "add"): _USUAL,
    ("composer", "require"): _WITH_VENDOR, ("dotnet", "add", "package"): _USUAL, ("brew", "install"): _USUAL,
    ("apt", "install"): _USUAL, ("apt-get", "install"): _USUAL,
}  # fmt: skip
"""The words that install packages from where packages usually come from, with how those are named."""
_FLAGS = frozenset(
    (
        *(
            "-D",
            "--save-dev",
            "-S",
            "--save",
            "-E",
            "--save-exact",
            "-O",
            "--save-optional",
            "--dev",
            "-y",
            "--yes",
        ),
        *(
            "-U",
            "--upgrade",
            "-q",
            "--quiet",
            "--verbose",
            "--no-audit",
            "--no-fund",
            "--silent",
        ),
    )
)
"""Options that take no value, and change nothing of where packages come from or go to."""


def is_package(text: str, pattern: str = _USUAL) -> bool:
    """Whether a word can only be the name of a package."""
    return bool(re.fullmatch(pattern, text)) and not any(
        re.search(_ARCHIVE, part) for part in re.split(r"[@\[=<>~!]", text)
    )


def installing(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a command that installs packages by plain names, without the names; empty for any other command."""
    verb = next((texts[:count] for count in (2, 3) if texts[:count] in _INSTALLS), ())
    options = tuple(text for text in texts[len(verb) :] if text.startswith("-"))
    names = [text for text in texts[len(verb) :] if not text.startswith("-")]
    if not verb or not names or not _FLAGS.issuperset(options):
        return ()
    plain = all(
        is_package(name, _INSTALLS[verb]) and not re.search(_SCRIPT, name)
        for name in names
    )
    return (*verb, *options) if plain else ()

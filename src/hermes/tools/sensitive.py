"""Which paths hold secrets, and which carry persistence or policy: what a file tool must not touch unasked."""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

# Patterns are texts here: `re` compiles them on first use, which starting up does not wait for.
_PRIVATE_NAMES = r"""(?ix) ^(
        \.env(\..+)? | \.envrc | .*\.env
      | id_(rsa|dsa|ecdsa|ed25519)(_sk)? | .*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|ovpn|gpg)
      | \.?(netrc|npmrc|pypirc|pgpass|htpasswd|my\.cnf|git-credentials|vault-token|boto|s3cfg)
      | .*credentials?(\.(json|db|toml|ya?ml|ini|txt))? | (client_)?secrets?(\.(json|toml|ya?ml|ini|txt))?
      | service[-_]account.*\.json | (auth|token)s?\.json | \.?.*_history | (g?shadow|sudoers)-?
      | .*\.tfstate(\.backup)? | environ | cookies(\.sqlite)? | login\ data | logins\.json | key[34]\.db | wallet\.dat
    )$"""
_HARMLESS_NAMES = r"(?i)^\.env\.(example|sample|template|dist|defaults?)$"
_PRIVATE_FOLDERS = frozenset(
    (
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".kube",
        ".docker",
        ".password-store",
        "gcloud",
        "gh",
        "mcp-tokens",
        "keyrings",
    )
)
_NEEDS_CONFIG = frozenset(("gcloud", "gh"))
"""Folders that hold secrets only within `.config`."""

_CARRYING_NAMES = r"""(?ix) ^(
        \.(bash|zsh|k?sh|csh|tcsh)(rc|env|_profile|_login|_logout|_aliases) | \.z(profile|login|logout) | \.profile
      | \.(gitconfig|gitmodules|inputrc|xinitrc|xsession(rc)?|xprofile|pam_environment|vimrc|emacs|tmux\.conf)
      | \.(pythonrc(\.py)?|pythonstartup|direnvrc|mcp\.json|envrc|npmrc|yarnrc(\.yml)?|pnpmfile\.cjs|irbrc|pryrc)
      | \.gdbinit
      | \.(lldbinit|curlrc|wgetrc|screenrc|netrc|Rprofile|ideavimrc|nanorc|exrc|psqlrc|hgrc|forward)
      | crontab | authorized_keys\d? | sitecustomize\.py | usercustomize\.py | .*\.pth | ld\.so\.preload
      | \.lefthook.* | rc\.local
    )$"""
_CARRYING_FOLDERS = frozenset(
    (
        *(".ssh", ".gnupg", "autostart", "LaunchAgents", "LaunchDaemons", "systemd", "fish", ".hermes", ".hooks"),
        *(".vscode", ".idea", ".husky", ".claude", ".codex", ".cursor", ".gemini", ".devcontainer", ".githooks"),
    )
)

_SYSTEM = tuple(
    Path(folder) for folder in ("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/proc", "/sys", "/dev")
)
_BUILD_FOLDERS = r"""(?ix) ^(
        build | dist | out | target | obj | _build | \.?cache | .*_cache | \.next | \.nuxt | \.output | \.turbo
      | \.parcel-cache | node_modules | __pycache__ | \.pytest_cache | \.mypy_cache | \.ruff_cache | \.tox | \.nox
      | \.?venv | \.?v?env\d* | htmlcov | coverage | \.nyc_output | .*\.egg-info | \.eggs | \.gradle | \.dart_tool
      | \.svelte-kit | \.angular | \.terraform | \.hypothesis | \.ipynb_checkpoints | \.sass-cache | \.vite
      | \.docusaurus
      | cmake-build-.* | build[-_].* | dist[-_].* | tmp | temp | \.tmp | \.temp | logs? | _site
      | storybook-static | test-results | playwright-report | Pods | DerivedData | zig-out | zig-cache
      | \.zig-cache | elm-stuff | _deps | \.stack-work | dist-newstyle | bower_components | \.yarn | \.pnpm-store
    )$"""
_BUILD_NAMES = r"""(?ix) ^(
        .*\.(py[cod]|o|obj|a|so|dylib|dll|class|log|tmp|temp|bak|orig|rej|swp|swo|pid|map|tsbuildinfo|gc(da|no|ov))
      | .*\.(aux|bbl|blg|fls|fdb_latexmk|toc|synctex\.gz|egg|whl|profraw|prof|hi|beam|cache) | .*~ | \#.*\#
      | \.?ds_store | thumbs\.db | \.coverage(\..*)? | coverage\.(xml|json|lcov|out) | lcov\.info | a\.out
      | core(\.\d+)?
      | nohup\.out | junit.*\.xml | \.eslintcache | __pycache__ | \.pytest_cache | \.mypy_cache | \.ruff_cache
      | te?mp([-_.].*)? | .*[-_.]te?mp | scratch.* | \*\.te?mp
    )$"""
_OPEN_OF_HOME = frozenset(("cache", "skills", "memories"))
"""What of Hermes' own home may be read unasked; everything else there holds secrets or policy."""


class Guard(msgspec.Struct, frozen=True):
    """Knows what is delicate, given Hermes' own home."""

    home: Path

    def secret(self, paths: Iterable[Path]) -> str:
        """Why reading one of these needs a person; empty when it does not."""
        for path in paths:
            if _is_within(path, self.home):
                part = path.relative_to(self.home).parts[:1]
                if not part or part[0] not in _OPEN_OF_HOME:
                    return f"{path} belongs to Hermes itself"
            if is_secret(path):
                return f"{path} may hold secrets"
            if path.parts[:2] == ("/", "dev") or (path.parts[:2] == ("/", "proc") and path.name in ("mem", "environ")):
                return f"{path} is no ordinary file"
        return ""

    def carrying(self, paths: Iterable[Path], cwd: Path) -> str:
        """Why writing one of these always needs a person; empty when it does not."""
        root = cwd.resolve()
        for path in paths:
            if _is_within(path, self.home):
                return f"{path} belongs to Hermes itself"
            if not _is_within(path, root) and not _is_within(path, cwd):
                return f"{path} is outside the working directory"
            if _is_carrying(path) or is_secret(path):
                return f"{path} can change what runs later, or holds secrets"
            if any(_is_within(path, folder) for folder in _SYSTEM):
                return f"{path} belongs to the system"
        return ""

    def only_private(self, path: Path) -> bool:
        """Whether a path of the workspace is delicate only because it may hold secrets: making it gives none away."""
        return is_secret(path) and not _is_carrying(path) and not _is_within(path, self.home)


def is_secret(path: Path) -> bool:
    """Whether a file of this name and place usually holds secrets."""
    if re.match(_PRIVATE_NAMES, path.name) and not re.match(_HARMLESS_NAMES, path.name):
        return True
    return any(
        folder in _PRIVATE_FOLDERS and (folder not in _NEEDS_CONFIG or ".config" in path.parts) for folder in path.parts
    )


def is_build_product(path: Path) -> bool:
    """Whether a relative path is by its name something that building or running makes again."""
    if path.parts and path.parts[0] == "..":
        return False
    return bool(re.match(_BUILD_NAMES, path.name)) or any(re.match(_BUILD_FOLDERS, part) for part in path.parts)


def _is_carrying(path: Path) -> bool:
    if ".git" in path.parts:  # hooks, configuration, and what git will believe
        return True
    return bool(re.match(_CARRYING_NAMES, path.name)) or any(
        folder in _CARRYING_FOLDERS or folder.startswith("cron.") for folder in path.parts[:-1]
    )


def _is_within(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents

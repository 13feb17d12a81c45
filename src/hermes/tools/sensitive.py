"""Knows which paths hold secrets, run later or carry policy: files that a tool must not touch without asking."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from hermes.settings.profiles import base_of
from hermes.text.translation import translator

t = translator(__name__)

# The patterns are strings: `re` compiles them on first use, so that starting up does not wait for it.
_PRIVATE_NAMES = r"""(?ix) ^(
        \.env(\..+)? | \.envrc | .*\.env
      | id_(rsa|dsa|ecdsa|ed25519)([._-].*)? | .*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|ovpn|gpg|keytab|age|p8)
      | (.*[._-])?(deploy|ssh|private|signing|host|encryption)[._-]?keys?(\.(txt|json|bak|old|enc))?
      | ((.*[._-])?(access|auth|api|refresh|bearer|bot)[._-])?tokens?(\.(txt|json|ya?ml|toml|ini|cfg|conf|enc))?
      | rclone\.conf | wg[\w-]*\.conf | .*\.tfvars(\.json)? | \.flaskenv | \.dockercfg | \.mylogin\.cnf
      | master\.key | appsettings\.(production|staging)\.json
      | \.?(netrc|npmrc|pypirc|pgpass|htpasswd|my\.cnf|git-credentials|vault-token|boto|s3cfg)
      | .*credentials?(\.(json|db|toml|ya?ml|ini|txt|cfg|conf|enc|csv|xml|bak|old|(tfrc|ya?ml)\.(json|enc)))?
      | (client_)?secrets?(\.(json|toml|ya?ml|ini|txt))?
      | service[-_]account.*\.json | (auth|token)s?\.json | \.?.*_history | (g?shadow|sudoers)-?
      | .*\.tfstate(\.backup)? | environ | cookies(\.sqlite)? | login\ data | logins\.json | key[34]\.db | wallet\.dat
    )$"""
_HARMLESS_NAMES = r"(?i)^(\.env\.(example|sample|template|dist|defaults?)|.*\.pub)$"
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
_PRIVATE_PLACES = tuple(
    Path(folder)
    for folder in (
        "/run/secrets",
        "/var/run/secrets",
        "/etc/ssl/private",
        "/etc/wireguard",
        "/etc/sudoers.d",
    )
)
_NEEDS_CONFIG = frozenset(("gcloud", "gh"))
"""Folders that hold secrets only if they are in `.config`."""

LATER_RUN_FILES = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
    ".zprofile", ".zlogin", ".zlogout", ".shrc", ".kshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
    ".gitconfig", ".gitmodules", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".pam_environment", ".vimrc",
    ".nvimrc", ".lvimrc", ".ideavimrc", ".exrc", ".nanorc", ".emacs", ".dir-locals.el", ".tmux.conf", ".screenrc",
    ".pythonrc", ".pythonrc.py", ".pythonstartup", "sitecustomize.py", "usercustomize.py", ".irbrc", ".pryrc",
    ".Rprofile", ".gdbinit", ".lldbinit", ".psqlrc", ".hgrc", ".curlrc", ".wgetrc", ".netrc", ".forward", "crontab",
    "authorized_keys", "authorized_keys2", "ld.so.preload", "rc.local", ".envrc", ".direnvrc", ".tool-versions",
    ".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".bazelrc", ".npmrc", ".yarnrc", ".yarnrc.yml",
    ".pnpmfile.cjs", ".pnpmfile.mjs", ".cargo/config", ".cargo/config.toml",
    *(f"{dot}lefthook{local}.{kind}" for dot in ("", ".") for local in ("", "-local")
      for kind in ("yml", "yaml", "toml", "json")),
    *(f"{name}{part}.md" for name in ("AGENTS", "CLAUDE", "GEMINI", "HERMES") for part in ("", ".local", ".override")),
    ".hermes.md", ".hermes.yaml", ".mcp.json", ".cursorrules", ".windsurfrules", ".clinerules", ".aider.conf.yml",
    ".github/copilot-instructions.md",
)  # fmt: skip
"""Files of a workspace that run later, decide what runs or where it comes from, or instruct agents."""
LATER_RUN_FOLDERS = (
    ".hermes", ".claude", ".codex", ".cursor", ".gemini", ".windsurf", ".continue", ".zed", ".agents", ".clinerules",
    ".opencode", ".vscode", ".idea", ".devcontainer", ".husky", ".hooks", ".githooks", ".lefthook", ".mise", ".ssh", ".gnupg",
    ".config/autostart", ".config/systemd", ".config/fish", ".config/git", ".github/instructions", ".github/prompts",
)  # fmt: skip
"""Folders whose entire content is treated the same way."""
_LATER_RUN_NAMES = frozenset(
    name.lower() for name in LATER_RUN_FILES if "/" not in name
)
_LATER_RUN_ENDS = tuple(f"/{name}" for name in LATER_RUN_FILES if "/" in name)
_LATER_RUN_PARTS = frozenset(name for name in LATER_RUN_FOLDERS if "/" not in name) | {
    *("autostart", "LaunchAgents", "LaunchDaemons", "systemd", "crontabs", "fish")
}
_LATER_RUN_WITHIN = tuple(f"/{name}/" for name in LATER_RUN_FOLDERS if "/" in name)
_LATER_RUN_PATTERN = r"""(?ix) ^(
        \.(bash|zsh|k?sh|csh|tcsh)(rc|env|_profile|_login|_logout|_aliases) | authorized_keys\d | .*\.pth
      | \.?lefthook.* | \.?mise(\..*)?\.toml | \.(hermes|cursorrules|windsurfrules|clinerules)(\.md)?
      | copilot-instructions\.md
    )$"""
"""Further names, as patterns."""
_LATER_RUN_PLACES = (
    r"(^|/)((\.?v?env|\.tox/[^/]+)/s?bin/[^/]+|node_modules/\.bin/[^/]+)$"
)
"""Programs that run in place of the one that was named."""

_SYSTEM = tuple(
    Path(folder)
    for folder in (
        *(
            "/etc",
            "/usr",
            "/bin",
            "/sbin",
            "/lib",
            "/lib32",
            "/lib64",
            "/libx32",
            "/boot",
            "/efi",
            "/proc",
            "/sys",
        ),
        *(
            "/dev",
            "/run",
            "/var/run",
            "/var/spool/cron",
            "/var/spool/at",
            "/var/spool/anacron",
            "/var/spool/incron",
        ),
        *(
            "/var/lib/systemd",
            "/var/lib/cloud",
            "/var/lib/dpkg",
            "/var/lib/rpm",
            "/var/lib/dbus",
            "/var/at",
        ),
    )
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
_OPEN_OF_HOME = frozenset(("cache", "skills", "memories", "media"))
"""What may be read in Hermes' own home without approval; everything else there holds secrets or policy."""
_CODE_OF_USER = r"""(?x) ^(
        \.cargo/(registry|git) | \.rustup/toolchains | \.pyenv/versions | \.nvm/versions | \.rbenv/versions
      | \.local/(lib|share/(uv|pipx|man|mise/installs)) | \.m2/repository | \.gradle/caches
      | \.nuget/packages | \.bun/install | \.cache | \.npm/_cacache | \.gem | \.hex | \.opam
    )(/|$)"""
"""Installed code and caches in dot-folders of a home, which reveal nothing about the user."""


class Guard(msgspec.Struct, frozen=True):
    """Decides which paths need approval, given Hermes' home and, if known, the user's."""

    home: Path
    user: Path | None = None

    @property
    def base(self) -> Path:
        """The home that holds all profiles; the same as `home` outside a profile."""
        return _base(self.home)

    def secret(self, paths: Iterable[Path], cwd: Path | None = None) -> str:
        """Why reading one of these needs approval; empty if it does not."""
        for path in paths:
            if is_within(path, self.home):
                part = path.relative_to(self.home).parts[:1]
                if not part or part[0] not in _OPEN_OF_HOME:
                    return t.logged("{path} belongs to Hermes itself", path=path)
                if not is_secret(path):
                    continue
            elif is_within(path, self.base):
                return t.logged(
                    "{path} belongs to another profile of Hermes", path=path
                )
            if is_secret(path):
                return t.logged("{path} may hold secrets", path=path)
            if path.parts[:2] == ("/", "dev") or (
                path.parts[:2] == ("/", "proc") and path.name in ("mem", "environ")
            ):
                return t.logged("{path} is not a regular file", path=path)
            hidden = self._hidden(path, cwd)
            if hidden and not re.match(_CODE_OF_USER, hidden):
                return t.logged(
                    "{path} is one of your personal settings files", path=path
                )
        return ""

    def write_reason(self, paths: Iterable[Path], cwd: Path) -> str:
        """Why writing one of these needs approval in every mode; empty if it does not."""
        root = cwd.resolve()
        for path in paths:
            if is_within(path, self.base):
                return t.logged("{path} belongs to Hermes itself", path=path)
            if not is_within(path, root) and not is_within(path, cwd):
                return t.logged("{path} is outside the working directory", path=path)
            reason = self.protected_reason((path,), cwd)
            if reason:
                return reason
        return ""

    def protected_reason(self, paths: Iterable[Path], cwd: Path) -> str:
        """Why a remembered answer never covers writing one of these; empty if it may."""
        for path in paths:
            if is_within(path, self.base):
                return t.logged("{path} belongs to Hermes itself", path=path)
            if affects_later_runs(path) or is_secret(path):
                return t.logged(
                    "{path} can change what runs later, or holds secrets", path=path
                )
            if self._hidden(path, cwd) or (
                self.user is not None and is_within(path, self.user / "bin")
            ):
                return t.logged(
                    "{path} is one of your personal settings or programs, and can change what runs later",
                    path=path,
                )
            if any(is_within(path, folder) for folder in _SYSTEM):
                return t.logged("{path} belongs to the system", path=path)
        return ""

    def is_ours(self, path: Path) -> bool:
        """Whether a path belongs to Hermes itself and may not be read by everybody."""
        if not is_within(path, self.home):
            return is_within(path, self.base)
        part = path.relative_to(self.home).parts[:1]
        return part not in {(open_part,) for open_part in _OPEN_OF_HOME}

    def _hidden(self, path: Path, cwd: Path | None) -> str:
        """The path relative to the user's home if it begins with a dot; empty if the work itself is in that folder."""
        if self.user is None or not is_within(path, self.user):
            return ""
        parts = path.relative_to(self.user).parts
        if not parts or not parts[0].startswith("."):
            return ""
        if (
            cwd is not None
            and cwd != self.user
            and is_within(path, cwd)
            and is_within(cwd, self.user / parts[0])
        ):
            return ""
        return "/".join(parts)

    def only_private(self, path: Path) -> bool:
        """Whether a path is protected only because it may hold secrets: creating the file reveals none."""
        return (
            is_secret(path)
            and not affects_later_runs(path)
            and not is_within(path, self.base)
        )


@lru_cache(maxsize=16)
def _base(home: Path) -> Path:
    return base_of(home)


def is_secret(path: Path) -> bool:
    """Whether files with this name and place usually hold secrets."""
    if re.match(_PRIVATE_NAMES, path.name) and not re.match(_HARMLESS_NAMES, path.name):
        return True
    if any(is_within(path, place) for place in _PRIVATE_PLACES):
        return True
    return any(
        folder in _PRIVATE_FOLDERS
        and (folder not in _NEEDS_CONFIG or ".config" in path.parts)
        for folder in path.parts
    )


def is_build_product(path: Path) -> bool:
    """Whether a relative path has a name of something that a build or a run creates again."""
    if path.parts and path.parts[0] == "..":
        return False
    return bool(re.match(_BUILD_NAMES, path.name)) or any(
        re.match(_BUILD_FOLDERS, part) for part in path.parts
    )


def is_build_folder(name: str) -> bool:
    """Whether a folder has a name that builds and package managers use for theirs."""
    return bool(re.match(_BUILD_FOLDERS, name))


def affects_later_runs(path: Path) -> bool:
    """Whether a file with this name and place can change what runs later, or what agents are told."""
    if (
        ".git" in path.parts
    ):  # hooks, configuration, and the objects and refs that git trusts
        return True
    name, text = path.name, f"/{path}"
    if (
        name.lower() in _LATER_RUN_NAMES
        or text.endswith(_LATER_RUN_ENDS)
        or re.match(_LATER_RUN_PATTERN, name)
    ):
        return True
    if re.search(_LATER_RUN_PLACES, text) or any(
        within in text for within in _LATER_RUN_WITHIN
    ):
        return True
    return any(
        folder in _LATER_RUN_PARTS or folder.startswith("cron.")
        for folder in path.parts[:-1]
    )


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path is a folder or below it, by its name. Called many times for every command, so it compares parts."""
    parts = folder.parts
    return path.parts[: len(parts)] == parts

"""Environment variables that change what other programs load, run, trust or connect to."""

import re

from hermes.text.translation import translator
from hermes.tools.policy.effects import EFFECTS, READ, WORK, Effect, asks
from hermes.tools.policy.paths import PathContext
from hermes.tools.policy.shell_words import Word

t = translator(__name__)

_RISKY = r"""(?ix)
    (GLIBC_TUNABLES|GCONV_PATH|LOCPATH|HOSTALIASES|RES_OPTIONS|OPENSSL_\w+|SSL_CERT_\w+|SSLKEYLOGFILE|(LD|DYLD)_\w+)
  | (PATH|HOME|SHELL|ENV|IFS|CDPATH|PWD|OLDPWD|GLOBIGNORE|EXECIGNORE|FPATH|ZDOTDIR|PROMPT_COMMAND|PS[0-4]|TMOUT)
  | (XDG_\w+_(HOME|DIRS)|SHELLOPTS|HIST\w+|BASHOPTS|BASH_\w+|BASH_FUNC\w*)
  | \w*_PROXY | (CURL_HOME|CURL_CA_BUNDLE|WGETRC|SYSTEM_WGETRC|NETRC|REQUESTS_CA_BUNDLE)
  | (NPM|YARN|PNPM|BUN)_CONFIG_\w+ | YARN_\w+ | NODE_(OPTIONS|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|REPL_\w+)
  | PIP_\w*(INDEX|CONFIG|TRUSTED|FIND|PROXY|CERT)\w* | UV_\w*(INDEX|CONFIG|INSECURE|FIND)\w* | POETRY_\w+ | PYPI_\w+
  | PYTHON(STARTUP|HOME|INSPECT|USERBASE|BREAKPOINT|EXECUTABLE|PLATLIBDIR|WARNINGS) | PERL5\w* | RUBY(OPT|LIB)
  | GEM_\w+ | BUNDLE_\w+ | (JAVA_TOOL|_JAVA|JDK_JAVA|MAVEN|GRADLE|SBT)_?\w*OPT\w* | LUA_(INIT|PATH|CPATH)\w* | R_\w+
  | GO(PROXY|FLAGS|NOSUMDB|SUMDB|INSECURE|TOOLCHAIN|ENV)
  | CARGO_(HOME|REGISTR\w+|NET\w*|HTTP\w*|BUILD_RUSTC\w*|TARGET_\w+_(LINKER|RUNNER)) | RUST(C|DOC|UP_\w+)
  | RUSTC_\w*WRAPPER | MAKEFLAGS | MAKEFILES | GNUMAKEFLAGS | TAR_OPTIONS | GREP_OPTIONS | ZIPOPT | UNZIP
  | GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT$|TRACE$|OPTIONAL_LOCKS$|MERGE_AUTOEDIT$)\w+ | GH_\w+ | \w*PAGER
  | LESS(OPEN|CLOSE|KEY\w*)?
  | (\w+_)?(EDITOR|ASKPASS) | VISUAL | BROWSER | (RSYNC|CVS)_RSH | SVN_SSH | SSH_\w+ | DOCKER_\w+
  | KUBECONFIG | AWK(LIB)?PATH
  | RIPGREP_CONFIG_PATH | FZF_\w+ | JQ_LIBRARY_PATH | TERMINFO\w* | HERMES_\w+ | DEBUGINFOD_\w+ | NIX_\w+ | DIRENV_\w+
"""
_HARMLESS_VALUES = r"true|false|:|cat|less|more|vim?|nano|-?\d+|never|"
_ONLY_SIZES = (
    r"(\s|-Xm[xsn]\d+[kmgKMG]?|--max-old-space-size=\d+|--no-(warnings|deprecation)|--experimental-[\w-]+|--trace-[\w-]+"
    r"|--enable-source-maps|-mod=\w+|-j\s?\d*|-count=\d+|-race|-v|--no-print-directory|-s)*"
)
_SETTINGS = r"(?i)NODE_OPTIONS|.*OPTS|.*OPTIONS|GOFLAGS|MAKEFLAGS|PYTHONWARNINGS"
_NEVER_HARMLESS = (
    r"(?i)PATH|HOME|PWD|OLDPWD|(LD|DYLD)_\w+|NODE_TLS_REJECT_UNAUTHORIZED|BASH_\w+"
)
_TRUSTED_FOLDER = r"\$\{?PATH\}?|/usr(/local)?/s?bin|/s?bin|/opt/[\w./+-]+|/snap/bin|/usr/lib/[\w./+-]+"
_OWN_FOLDER = r"(\$PWD/|\$\{PWD\}/|\$\(pwd\)/|\./)?(\.?venv/bin|node_modules/\.bin)"


def variable_effect(name: str, word: Word, context: PathContext) -> Effect:
    """The effect of setting a variable to this value."""
    name = name.partition("[")[0]
    if re.fullmatch(r"HIST(FILE|SIZE|FILESIZE|CONTROL|IGNORE)", name):
        return EFFECTS["history"]
    if not re.fullmatch(_RISKY, name):
        return READ
    if _is_harmless(name, word, context):
        return WORK if name == "PATH" and _has_own_folder(word, context) else READ
    return asks(
        t.logged("it sets {name}, which changes what other programs do", name=name)
    )


def _is_harmless(name: str, word: Word, context: PathContext) -> bool:
    if name == "PATH":
        return all(_is_trusted(folder, context) for folder in word.text.split(":"))
    if not word.known or re.fullmatch(_NEVER_HARMLESS, name):
        return False
    if name == "IFS":
        return word.text in ("", " ", ",", ":", "\n", "\t", "|", ";")
    if re.fullmatch(_SETTINGS, name):
        return bool(re.fullmatch(_ONLY_SIZES, word.text)) or name == "PYTHONWARNINGS"
    return bool(re.fullmatch(_HARMLESS_VALUES, word.text))


def _has_own_folder(word: Word, context: PathContext) -> bool:
    """Whether this PATH includes a folder of the workspace, so that a known program name may run the project's own file."""
    folders = [
        re.sub(rf"^{re.escape(str(context.workspace))}/", "", folder)
        for folder in word.text.split(":")
    ]
    return any(re.fullmatch(_OWN_FOLDER, folder) for folder in folders)


def _is_trusted(folder: str, context: PathContext) -> bool:
    """Whether a folder holds programs that the user or the project installed, rather than ones just written."""
    if re.fullmatch(_TRUSTED_FOLDER, folder) or re.fullmatch(_OWN_FOLDER, folder):
        return True
    paths = context.paths(Word(folder)) if folder.startswith("/") else ()
    own = re.sub(rf"^{re.escape(str(context.workspace))}/", "", folder)
    if own != folder:
        return bool(re.fullmatch(_OWN_FOLDER, own))
    at_home = bool(paths) and all(context.home in path.parents for path in paths)
    return at_home and bool(context.guard.protected_reason(paths, context.workspace))

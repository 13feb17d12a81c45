"""Judges code inside a command by the names it uses, and SQL by its statements.

Python is parsed; code in other languages is searched for names and quoted strings. Code that can run programs, use the
network, delete files or evaluate strings needs approval.
"""

import ast
import re
import warnings
from pathlib import Path

from hermes.text.translation import translator
from hermes.tools.policy.effects import (
    EFFECTS,
    READ,
    WORK,
    Effect,
    Level,
    asks,
    unclear,
    worst,
)
from hermes.tools.policy.shell_words import word_set
from hermes.tools.sensitive import affects_later_runs, is_secret

t = translator(__name__)

_NAMES: tuple[tuple[Effect, str], ...] = (
    (
        unclear("the code it runs is assembled while it runs"),
        (
            "eval exec compile __import__ importlib import_module getattr globals __builtins__ builtins marshal pickle runpy"
            " __subclasses__ codecs Function instance_eval vm b64decode fromhex unhexlify atob base64_decode decode64"
            " load_string setattr vars"  # not translated
        ),
    ),
    (
        asks("the code it runs starts other programs"),
        (
            "system popen Popen subprocess exec execv execve execvp execl execlp spawn spawnv spawnl posix_spawn check_output"
            " check_call getoutput getstatusoutput pty child_process execSync spawnSync execFile execFileSync fork forkpty"
            " shell_exec passthru proc_open pcntl_exec qx startfile ctypes cffi os.exec IO.popen Open3"
            " create_subprocess_shell create_subprocess_exec ProcessBuilder sh pexpect invoke fabric"  # not translated
        ),
    ),
    (
        asks("the code it runs deletes or empties files"),
        (
            "rmtree unlink rmdir removedirs remove_tree rmSync unlinkSync rmdirSync rm_rf rm_r remove_dir_all remove_file"
            " RemoveAll truncate ftruncate delete_file removeSync emptyDir emptyDirSync remove_entry_secure File.delete"
            " FileUtils deleteFile send2trash"  # not translated
        ),
    ),
    (
        asks("the code it runs uses the network", "network"),
        (
            "socket urllib urllib2 urlopen requests httpx aiohttp http https ftplib smtplib telnetlib paramiko xmlrpc fetch"
            " XMLHttpRequest net dgram tls Net TCPSocket TCPServer UDPSocket open_uri IO::Socket LWP fsockopen curl_exec"
            " curl_init axios websocket websockets boto3 asyncssh Socket URI file_get_contents imaplib poplib"  # not translated
        ),
    ),
    (
        asks("the code it runs changes processes, permissions or files"),
        (
            "kill killpg chown setuid setgid chroot reboot mount umount lchown renames utime mknod fchmod putenv getpass"
            " keyring SIGKILL ptrace mmap atexit renameSync chmodSync chownSync"  # not translated
        ),
    ),
)
"""The effects of code by the names it uses, strictest first."""
_WRITES = "open write_text write_bytes writeFileSync writeFile copy copyfile copytree"  # not translated
_FILLS = "write writelines dump writer DictWriter print savefig to_csv save copyfileobj"  # not translated
"""Names that write something to a file opened for writing. Without one of them the file stays empty."""
_HARMLESS_METHODS = "remove compile environ"  # not translated
"""Names that are harmless unless they belong to `os`."""
_OUTSIDE = r"~|/(home|root|etc|usr|var|opt|boot|Users|Library)\b|/dev/(?!null|stdin|stdout|stderr|u?random|zero)"
_SENSITIVE = r"\.ssh|\.aws|/etc/(shadow|sudoers)|\.bashrc|\.zshrc|\.profile|\.hermes|\.git/hooks|crontab|\.gnupg"
_NAMES_BY_PATTERN = {
    "unlink": r"\bFile\.(delete|unlink)|\bDir\.(rmdir|unlink)|\bfs\.(rm|unlink)\b|\bos\.(remove|execute)\b"
    r"|\b(rm|rmdir|remove\w*|delete(File|Dir|_)\w*|unlink\w*|truncate\w*|fork)\s*[(!]|\bunlink\b|\bfork\b",
    "system": r"\bio\.popen\b|\bopen\s*\(?\s*[\"']\s*\||\|\s*[\"']\s*\)|%x[({\[]",
    "eval": r"(?:\A|\])[^\[\]]*+\[[^\]\"']*+[\"'][^\]+]*+\+[^\]]*+\]\s*\("
    r"|\b(process\.(binding|dlopen|mainModule)|constructor)\b",
}
"""Syntax of other languages that means the same as one of the names above."""
_HARMLESS_IN_OTHERS = frozenset(("http", "https", "net"))

_SQL_READS = "select explain with show describe desc values table begin commit end"  # not translated
_SQL_DESTROYS = (
    "drop truncate vacuum reindex replace flushall flushdb"  # not translated
)
_SQL_CHANGES = "delete update insert load_extension writefile"  # not translated
_SHELL_COMMANDS_THAT_READ = (
    r"\.(tables?|schema|indexes|indices|headers?|mode|databases|dbinfo|help|show|width|timer|echo|fullschema|nullvalue"
    r"|separator|stats|quit|exit)\b"
)


def judge_code(language: str, code: str) -> Effect:
    """The effect of inline code."""
    return _python(code) if language == "python" else _other(code)


def _python(code: str) -> Effect:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return unclear("Hermes can't parse the code it runs")
    names = {name for node in nodes for name in _names_of(node)}
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    texts = [value for value in constants if isinstance(value, str)]
    if _removes_by_other_name(nodes):
        names.add("unlink")
    opens_to_write = "open" in names and not {"w", "wb", "w+"}.isdisjoint(texts)
    leaves_empty = opens_to_write and names.isdisjoint(word_set(_FILLS))
    if leaves_empty or any(map(_writes_nothing, nodes)):
        names.add("truncate")
    return _effect_of(names, texts)


def _removes_by_other_name(nodes: list[ast.AST]) -> bool:
    """Whether the code uses an attribute `remove` and gives the module `os` another name."""
    methods = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return "remove" in methods and any(map(_renames_os, nodes))


def _names_of(node: ast.AST) -> set[str]:
    """The names that a node of the syntax tree uses."""
    match node:
        case ast.Name():
            return {node.id}
        case ast.Attribute():
            return _attribute_names(node)
        case ast.Import():
            return {part for alias in node.names for part in alias.name.split(".")}
        case ast.ImportFrom():
            imported = {alias.name for alias in node.names}
            if node.module == "os" and imported & {"remove", "replace", "*"}:
                imported.add("unlink")
            return {*(node.module or "").split("."), *imported}
    return set()


def _attribute_names(node: ast.Attribute) -> set[str]:
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    name = f"{owner}.{node.attr}"
    if name in ("os.remove", "os.replace", "shutil.move"):
        return {"unlink"}
    if name == "platform.system":
        return set()
    if owner != "os" and node.attr in word_set(_HARMLESS_METHODS):
        return set()
    return {node.attr}


def _renames_os(node: ast.AST) -> bool:
    """Whether a statement gives the module `os` another name."""
    if isinstance(node, ast.Import):
        return any(alias.name == "os" and alias.asname for alias in node.names)
    value = node.value if isinstance(node, ast.Assign) else None
    return isinstance(value, ast.Name) and value.id == "os"


def _writes_nothing(node: ast.AST) -> bool:
    """Whether a call writes an empty string to a file."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="write_text" | "write_bytes"),
            args=[ast.Constant(value=value), *_],
        ):
            return not value
    return False


def _other(code: str) -> Effect:
    names = set(re.findall(r"[A-Za-z_]\w*(?:::\w+)?", code)) - _HARMLESS_IN_OTHERS
    quoted = re.findall(r"'([^'\n]*)'|\"([^\"\n]*)\"", code)
    names |= {
        name for name, pattern in _NAMES_BY_PATTERN.items() if re.search(pattern, code)
    }
    is_template = re.search(r"`[^`]*\$\{", code)
    if re.search(r"`[a-z./]+ [^`]*`", code) and not is_template:
        names.add("qx")
    if re.search(r"\bopen\b[^;]*[\"']\s*>(?!>)", code) and "print" not in names:
        names.add("unlink")
    return _effect_of(names, [single or double for single, double in quoted])


def _effect_of(names: set[str], texts: list[str]) -> Effect:
    for effect, listed in _NAMES:
        if names & word_set(listed):
            return effect
    writes = bool(names & word_set(_WRITES))
    found = (_text_effect(text, writes=writes) for text in texts)
    return next((effect for effect in found if effect is not None), WORK)


def _text_effect(text: str, *, writes: bool) -> Effect | None:
    """The effect of a path that occurs in code; None if it is harmless."""
    path = _path_in(text)
    if re.search(_SENSITIVE, text) or (path is not None and is_secret(path)):
        return EFFECTS["secrets"]
    if writes and path is not None and affects_later_runs(path):
        reason = t.logged(
            "the code it runs may write {path}, which can change what runs later",
            path=text,
        )
        return Effect(Level.ASK, reason, once=True)
    if writes and re.match(_OUTSIDE, text):
        return asks("the code it runs changes files outside the workspace", "machine")
    return None


def _path_in(text: str) -> Path | None:
    """The path that a string may be, without the mode that some languages put before it (`>file`); None if it is none."""
    if not 2 < len(text) < 300 or re.search(r"\s", text):
        return None
    if re.search(r"[/.]", text):
        return Path(text.lstrip("<>+"))
    return None


def judge_sql(text: str) -> Effect:
    """The combined effect of all statements in an SQL text."""
    bare = re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    bare = re.sub(r"'(?:[^']|'')*'", "''", bare)
    statements = [one.strip() for one in re.split(r";|\n(?=\.)", bare)]
    return worst(_statement(one) for one in statements if one)


def _statement(text: str) -> Effect:  # noqa: PLR0911 - a line for each kind of statement
    if text.startswith("."):
        return READ if re.match(_SHELL_COMMANDS_THAT_READ, text) else EFFECTS["runs"]
    words = re.findall(r"[a-z_]+", text.lower())
    first = words[0] if words else ""
    if first == "pragma":
        return WORK if "=" in text else READ
    if first in word_set(_SQL_DESTROYS) or "drop" in words[:4]:
        return EFFECTS["destroys"]
    if first in ("delete", "update") and _concerns_every_row(text, words):
        return asks("it deletes or changes every row of a table")
    changes = not word_set(_SQL_CHANGES).isdisjoint(words)
    if first in word_set(_SQL_READS) and not changes:
        return READ
    if "attach" in words or "load_extension" in words:
        return asks("it attaches another database, or runs code")
    return WORK


def _concerns_every_row(text: str, words: list[str]) -> bool:
    always = r"\bwhere\s+(1\s*=\s*1|true|1)\s*($|;)"
    return "where" not in words or bool(re.search(always, text.lower()))

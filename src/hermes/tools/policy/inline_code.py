"""Code given on the command line or as input to an interpreter: what it can do, by the names it uses.

Python is parsed. Of other languages the names and quoted words are looked at: what can run programs, reach the
network, delete files or evaluate text is asked about.
"""

import ast
import re
import warnings
from pathlib import Path

from hermes.tools.policy.effects import EFFECTS, WORK, Effect, Level, asks, unclear
from hermes.tools.sensitive import is_carrying, is_secret

PYTHON = r"(python|pypy)(\d(\.\d+)?)?"
"""The names of python itself."""
INTERPRETERS: dict[str, tuple[str, ...]] = {
    "node": ("-e", "--eval", "-p", "--print", "-pe"), "nodejs": ("-e", "--eval", "-p"), "bun": ("-e", "--eval", "-p"),
    "ruby": ("-e",), "perl": ("-e", "-E"), "php": ("-r",), "lua": ("-e",), "luajit": ("-e",), "Rscript": ("-e",),
    "R": ("-e",), "julia": ("-e", "-E"), "ghc": ("-e",), "elixir": ("-e",), "scala": ("-e",), "groovy": ("-e",),
    "swift": ("-e",), "deno": ("eval",), "racket": ("-e",), "sbcl": ("--eval",), "tclsh": (),
    "ts-node": ("-e",), "tsx": ("-e",),
}  # fmt: skip
"""Other interpreters, with their options for code."""
_DELETES = frozenset(
    (
        *(
            "rmtree",
            "unlink",
            "rmdir",
            "removedirs",
            "remove_tree",
            "rmSync",
            "unlinkSync",
            "rmdirSync",
            "rm_rf",
            "rm_r",
        ),
        *(
            "remove_dir_all",
            "remove_file",
            "RemoveAll",
            "truncate",
            "ftruncate",
            "delete_file",
            "removeSync",
            "emptyDir",
        ),
        *(
            "emptyDirSync",
            "remove_entry_secure",
            "File.delete",
            "FileUtils",
            "deleteFile",
            "send2trash",
        ),
    )
)
_RUNS = frozenset(
    (
        *(
            "system",
            "popen",
            "Popen",
            "subprocess",
            "exec",
            "execv",
            "execve",
            "execvp",
            "execl",
            "execlp",
            "spawn",
        ),
        *(
            "spawnv",
            "spawnl",
            "posix_spawn",
            "check_output",
            "check_call",
            "getoutput",
            "getstatusoutput",
            "pty",
        ),
        *(
            "child_process",
            "execSync",
            "spawnSync",
            "execFile",
            "execFileSync",
            "fork",
            "forkpty",
            "shell_exec",
        ),
        *(
            "passthru",
            "proc_open",
            "pcntl_exec",
            "qx",
            "startfile",
            "ctypes",
            "cffi",
            "os.exec",
            "IO.popen",
            "Open3",
        ),
        *(
            "create_subprocess_shell",
            "create_subprocess_exec",
            "ProcessBuilder",
            "sh",
            "pexpect",
            "invoke",
            "fabric",
        ),
    )
)
_EVALUATES = frozenset(
    (
        *(
            "eval",
            "exec",
            "compile",
            "__import__",
            "importlib",
            "import_module",
            "getattr",
            "globals",
            "__builtins__",
        ),
        *(
            "builtins",
            "marshal",
            "pickle",
            "runpy",
            "__subclasses__",
            "codecs",
            "Function",
            "instance_eval",
            "vm",
        ),
        *(
            "b64decode",
            "fromhex",
            "unhexlify",
            "atob",
            "base64_decode",
            "decode64",
            "load_string",
            "setattr",
            "vars",
        ),
    )
)
_REACHES = frozenset(
    (
        *(
            "socket",
            "urllib",
            "urllib2",
            "urlopen",
            "requests",
            "httpx",
            "aiohttp",
            "http",
            "https",
            "ftplib",
            "smtplib",
        ),
        *(
            "telnetlib",
            "paramiko",
            "xmlrpc",
            "fetch",
            "XMLHttpRequest",
            "net",
            "dgram",
            "tls",
            "Net",
            "TCPSocket",
        ),
        *(
            "TCPServer",
            "UDPSocket",
            "open_uri",
            "IO::Socket",
            "LWP",
            "fsockopen",
            "curl_exec",
            "curl_init",
            "axios",
        ),
        *(
            "websocket",
            "websockets",
            "boto3",
            "asyncssh",
            "Socket",
            "URI",
            "file_get_contents",
            "imaplib",
            "poplib",
        ),
    )
)
_HARMS = frozenset(
    (
        *(
            "kill",
            "killpg",
            "chmod",
            "chown",
            "setuid",
            "setgid",
            "chroot",
            "reboot",
            "mount",
            "umount",
            "lchown",
        ),
        *(
            "symlink",
            "link",
            "rename",
            "renames",
            "move",
            "utime",
            "mknod",
            "fchmod",
            "environ",
            "putenv",
            "getpass",
        ),
        *(
            "keyring",
            "terminate",
            "SIGKILL",
            "ptrace",
            "mmap",
            "atexit",
            "renameSync",
            "chmodSync",
            "chownSync",
        ),
    )
)
_BENIGN_HARMS = frozenset(
    ("environ", "rename", "move", "link", "symlink", "chmod", "terminate")
)
_REASONS = (
    (_EVALUATES, unclear("the code it runs is put together while it runs")),
    (_RUNS, asks("the code it runs starts other programs")),
    (_DELETES, asks("the code it runs deletes or empties files")),
    (_REACHES, asks("the code it runs uses the network", "network")),
    (_HARMS, asks("the code it runs changes processes, rights or files")),
)
_HARMLESS_CALLS = frozenset(("re.compile", "os.environ.get", "sys.exit", "os.getpid"))
_WRITES = frozenset(
    (
        "open",
        "write_text",
        "write_bytes",
        "writeFileSync",
        "writeFile",
        "copy",
        "copyfile",
        "copytree",
    )
)
_FILLS = frozenset(
    (
        "write",
        "writelines",
        "dump",
        "writer",
        "DictWriter",
        "print",
        "savefig",
        "to_csv",
        "save",
        "copyfileobj",
    )
)
"""What puts something into a file that was opened for writing."""
_OUTSIDE = r"~|/(home|root|etc|usr|var|opt|boot|Users|Library)\b|/dev/(?!null|stdin|stdout|stderr|u?random|zero)"


def judge_code(language: str, code: str) -> Effect:
    """What inline code does."""
    return _python(code) if language == "python" else _other(code)


def _python(code: str) -> Effect:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return unclear("the code it runs can't be understood")
    names: set[str] = set()
    for node in ast.walk(tree):
        names |= _names_of(node)
    texts = _texts(tree)
    if _renames_os(tree) and any(
        isinstance(one, ast.Attribute) and one.attr == "remove"
        for one in ast.walk(tree)
    ):
        names.add("unlink")
    if any(_writes_nothing(node) for node in ast.walk(tree)):
        names.add("truncate")
    if "open" in names and {"w", "wb", "w+"} & set(texts) and not names & _FILLS:
        names.add("truncate")
    return _judged(names, texts)


def _names_of(node: ast.AST) -> set[str]:  # noqa: PLR0911 - a line for each kind of node
    if isinstance(node, ast.Import):
        return {part for alias in node.names for part in alias.name.split(".")}
    if isinstance(node, ast.ImportFrom):
        taken = {alias.name for alias in node.names}
        deletes = (
            {"unlink"}
            if node.module == "os" and taken & {"remove", "replace", "*"}
            else set()
        )
        return {*(node.module or "").split("."), *taken, *deletes}
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        whole = f"{owner}.{node.attr}"
        if whole in _HARMLESS_CALLS or (
            node.attr in ("remove", "compile", "system", "environ") and owner != "os"
        ):
            return (
                {"system"} if node.attr == "system" and owner != "platform" else set()
            )
        if whole in ("os.remove", "os.replace", "shutil.move"):
            return {"unlink"}
        return {node.attr}
    if isinstance(node, ast.Name):
        return {node.id}
    return set()


def _renames_os(tree: ast.AST) -> bool:
    """Whether the module of the system goes by another name: then its functions do too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(
            alias.name == "os" and alias.asname for alias in node.names
        ):
            return True
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
        ):
            return True
    return False


def _writes_nothing(node: ast.AST) -> bool:
    """Whether a file's content is set to nothing."""
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or not node.args
    ):
        return False
    given = node.args[0]
    return (
        node.func.attr in ("write_text", "write_bytes")
        and isinstance(given, ast.Constant)
        and not given.value
    )


def _texts(tree: ast.AST) -> list[str]:
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def _other(code: str) -> Effect:
    names = set(re.findall(r"[A-Za-z_]\w*(?:::\w+)?", code))
    texts = [
        first or second
        for first, second in re.findall(r"'([^'\n]*)'|\"([^\"\n]*)\"", code)
    ]
    if (
        "`" in code
        and not re.search(r"`[^`]*\$\{", code)
        and re.search(r"`[a-z./]+ [^`]*`", code)
    ):
        names.add("qx")
    if re.search(
        r"\bFile\.(delete|unlink)|\bDir\.(rmdir|unlink)|\bfs\.(rm|unlink)\b|\bos\.(remove|execute)\b",
        code,
    ):
        names.add("unlink")
    if re.search(
        r"\bio\.popen\b|\bopen\s*\(?\s*[\"']\s*\||\|\s*[\"']\s*\)|%x[({\[]", code
    ):
        names.add("system")
    if re.search(
        r"\b(rm|rmdir|remove\w*|delete(File|Dir|_)\w*|unlink\w*|truncate\w*|fork)\s*[(!]|\bunlink\b|\bfork\b",
        code,
    ):
        names.add("unlink")
    if re.search(
        r"\[[^\]]*[\"'][^\]]*\+[^\]]*\]\s*\(|\b(process\.(binding|dlopen|mainModule)|constructor)\b",
        code,
    ):
        names.add("eval")
    if re.search(r"\bopen\b[^;]*[\"']\s*>(?!>)", code) and "print" not in names:
        names.add("unlink")
    return _judged(names - {"link", "move", "http", "https", "net"}, texts)


def _names_secret(text: str) -> bool:
    """Whether a text in code is the path of a file that holds secrets."""
    return _is_path(text) and is_secret(Path(text.lstrip("<>+")))


def _is_path(text: str) -> bool:
    """Whether a text may be a path; some languages say in front of it whether they read or write."""
    return (
        2 < len(text) < 300
        and not re.search(r"\s", text)
        and bool(re.search(r"[/.]", text))
    )


def _judged(names: set[str], texts: list[str]) -> Effect:
    for table, finding in _REASONS:
        if names & table - _BENIGN_HARMS:
            return finding
    for text in texts:
        if _names_secret(text):
            return EFFECTS["secrets"]
        if re.search(
            r"\.ssh|\.aws|/etc/(shadow|sudoers)|\.bashrc|\.zshrc|\.profile|\.hermes|\.git/hooks|crontab|\.gnupg",
            text,
        ):
            return EFFECTS["secrets"]
        if names & _WRITES and _is_path(text) and is_carrying(Path(text.lstrip("<>+"))):
            return Effect(
                Level.ASK,
                f"the code it runs may write {text}, which can change what runs later",
                once=True,
            )
        if names & _WRITES and re.match(_OUTSIDE, text):
            return asks(
                "the code it runs works on files outside the workspace", "machine"
            )
    return WORK

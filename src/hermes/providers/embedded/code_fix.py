"""Repairs a small code file: the model rewrites the whole file, and code checks the result.

A small model names the wrong line when it must describe a change, but repairs a short file well when it may write all
of it. Only a file that was read completely in this exchange is rewritten, and never a test.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from hermes.providers.embedded.completion import ChatTurn, Completion
from hermes.providers.embedded.conversation import RequestExchange, SeenFile
from hermes.providers.embedded.folder_view import FolderView

_FIX = re.compile(
    r"\b(?:fix|repair|debug|solve|correct|bug|failing|fails|broken|korrigier\w*|repariere?\w*|corrige\w*|behebe?\w*)\b",
    re.IGNORECASE,
)
_CODE_SUFFIXES = frozenset(
    (".py", ".js", ".ts", ".go", ".rb", ".rs", ".c", ".java", ".sh", ".php")
)
_BLOCK = re.compile(r"```[\w+-]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_MAX_LINES = 80
_MAX_CODE_FILES = 4
_MIN_SHARE = 0.5  # share of the old number of lines that a repaired file must have
_SYSTEM = "You repair code. Change only what is wrong, keep everything else exactly as it is. The tests are right."


def wants_fix(request: str) -> bool:
    """Returns whether a request asks to repair something."""
    return _FIX.search(request) is not None


def project_files(view: FolderView) -> list[str]:
    """Returns the code files of a small project, tests last; empty if there are too many to read."""
    code = [path for path in view.files if _suffix(path) in _CODE_SUFFIXES]
    if not view.complete or len(code) > _MAX_CODE_FILES:
        return []
    return sorted(code, key=is_test)


def is_test(path: str) -> bool:
    """Returns whether a file contains tests."""
    stem = PurePosixPath(path).stem.lower()
    return stem.startswith("test") or stem.endswith(("test", "spec"))


def target(exchange: RequestExchange, seen: Mapping[str, SeenFile]) -> str:
    """Returns the one file to repair: read completely, short, and not a test. Empty if there is not exactly one."""
    if not wants_fix(exchange.request) or any(
        step.action is not None and step.action.verb != "read"
        for step in exchange.steps
    ):
        return ""
    candidates = [
        path
        for path, file in seen.items()
        if _suffix(path) in _CODE_SUFFIXES
        and not is_test(path)
        and file.whole
        and 0 < len(file.text.splitlines()) <= _MAX_LINES
    ]
    named = [path for path in candidates if path in exchange.request]
    chosen = named or candidates
    return chosen[0] if len(chosen) == 1 else ""


def prompt(
    exchange: RequestExchange, path: str, seen: Mapping[str, SeenFile]
) -> Completion:
    """Returns the prompt that asks for the whole file again, repaired."""
    tests = [name for name in seen if is_test(name)]
    parts = [f"{name}:\n```\n{seen[name].text.strip()}\n```" for name in (*tests, path)]
    request = "\n\n".join(
        (*parts, exchange.request[:600], f"Write all of {path} again, repaired.")
    )
    return Completion(
        slot="other",
        turns=(ChatTurn("system", _SYSTEM), ChatTurn("user", request)),
        stop=("\n```\n",),
        max_tokens=1_000,
    )


def checked(reply: str, path: str, old: str) -> str:
    """Returns the repaired text if it is complete, can be parsed and has all names of the old one; otherwise empty."""
    found = _BLOCK.search(reply)
    if found is None:
        return ""
    text = found[1].strip("\n") + "\n"
    if text.strip() == old.strip():
        return ""
    if len(text.splitlines()) < _MIN_SHARE * len(old.splitlines()):
        return ""
    if _suffix(path) != ".py":
        return text
    new_names, old_names = _names(text), _names(old)
    if new_names is not None and (old_names or set()) <= new_names:
        return text
    return ""


def _names(text: str) -> set[str] | None:
    """Returns the functions and classes of Python code; None if it can't be parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()

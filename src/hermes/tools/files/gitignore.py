"""`.gitignore` files, closely enough: which names below a folder are ignored."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

_HIDDEN = frozenset((".git", ".hg", ".svn"))
_MAX_BYTES = 256 * 1024
_STAR = "[^/]*"
_WILDCARDS = {
    "/**/": "/(?:.*/)?",
    "**/": "(?:.*/)?",
    "/**": "/.*",
    "**": ".*",
    "*": _STAR,
    "?": "[^/]",
}
_GLOB_TOKEN = re.compile(
    r"/\*\*/?|\*\*/?|\[!?[^/][^\]/]{0,255}+\]|[^/*?\[{},]+|.", re.DOTALL
)
"""Matches a wildcard, a class of characters, plain text, or one sign."""


class IgnoreRule(msgspec.Struct, frozen=True):
    """One line of a .gitignore."""

    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool


class Layer(msgspec.Struct, frozen=True):
    """The rules of one folder, and how a path below the top is spelled from there."""

    rules: tuple[IgnoreRule, ...]
    cut: int = 0
    add: str = ""


class Ignore(msgspec.Struct, frozen=True):
    """The rules in force in a folder: its own and those above, outermost first."""

    layers: tuple[Layer, ...] = ()

    def entering(self, folder: Path, relative: str) -> "Ignore":
        """With the rules of `folder`, whose path below the top is `relative`."""
        rules = _read(folder / ".gitignore")
        if not rules:
            return self
        cut = len(relative) + 1 if relative else 0
        return Ignore((*self.layers, Layer(rules, cut=cut)))

    def hides(self, relative: str, name: str, *, is_folder: bool) -> bool:
        """Whether an entry is ignored: the last rule that fits decides."""
        if name in _HIDDEN:
            return True
        for layer in reversed(self.layers):
            below = layer.add + relative[layer.cut :]
            for rule in reversed(layer.rules):
                if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(
                    below
                ):
                    return not rule.negated
        return False


def repository(top: Path) -> Path | None:
    """The root of the repository a folder is in."""
    return next(
        (folder for folder in (top, *top.parents) if (folder / ".git").exists()), None
    )


def rules_above(top: Path) -> Ignore:
    """The rules of the folders above `top`, up to the root of its repository."""
    root = repository(top)
    above = [
        folder
        for folder in reversed(top.parents)
        if root is not None and (folder == root or root in folder.parents)
    ]
    read = ((folder, _read(folder / ".gitignore")) for folder in above)
    return Ignore(
        tuple(
            Layer(rules, add=f"{top.relative_to(folder)}/")
            for folder, rules in read
            if rules
        )
    )


def parse_rules(text: str) -> tuple[IgnoreRule, ...]:
    """The rules of a .gitignore."""
    return tuple(rule for line in text.splitlines() if (rule := _parse(line)))


def _read(path: Path) -> tuple[IgnoreRule, ...]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return parse_rules(file.read(_MAX_BYTES))
    except OSError:  # none, or not ours to read: then nothing is ignored
        return ()


def _parse(line: str) -> IgnoreRule | None:
    line = line.rstrip()
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    body = line[negated:].removeprefix("\\")
    folders_only = body.endswith("/")
    body = body.rstrip("/")
    if not body:
        return None
    anchored = "/" in body
    try:
        return IgnoreRule(
            re.compile(("" if anchored else "(?:.*/)?") + glob_regex(body.lstrip("/"))),
            negated,
            folders_only,
        )
    except re.error:
        return None


def glob_regex(glob: str) -> str:
    """A glob as a regular expression: `*` and `?` stay within a name, `**` does not, `{a,b}` is either."""
    result: list[str] = []
    depth = 0
    last_brace = glob.rfind("}")
    for found in _GLOB_TOKEN.finditer(glob):
        part = found[0]
        if part in _WILDCARDS:
            result.append(_WILDCARDS[part])
        elif part[0] == "[" and len(part) > 1:
            result.append("[" + part[1:].replace("\\", "\\\\").replace("!", "^", 1))
        elif part == "{" and found.start() < last_brace:
            depth += 1
            result.append("(?:")
        elif part == "}" and depth:
            depth -= 1
            result.append(")")
        else:
            result.append("|" if part == "," and depth else re.escape(part))
    return "".join(_without_retries(result))


def _without_retries(pieces: list[str]) -> Iterator[str]:
    """A star that another star follows in the same name matches as little as possible and is tried once; the other
    star takes the rest. Otherwise a pattern like `*a*a*a*a` would be tried in every way on a long name.
    """
    stars = [at for at, piece in enumerate(pieces) if piece == _STAR]
    closed: set[int] = set()
    for at, after in pairwise(stars):
        between = pieces[at + 1 : after]
        if all(piece[-1:] not in "*/|)" and piece != "(?:" for piece in between):
            pieces[at] = "(?>[^/]*?"
            closed.add(after)
    for at, piece in enumerate(pieces):
        yield f"){piece}" if at in closed else piece

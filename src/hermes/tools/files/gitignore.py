"""Interprets `.gitignore` files, closely enough: which names below a folder are ignored."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

_HIDDEN = frozenset((".git", ".hg", ".svn"))
_MAX_GITIGNORE_BYTES = 256 * 1024
_STAR = "[^/]*"
_ENDS_OF_NAME = ("*", "/", "|", ")", "(?:")
_WILDCARDS = {
    "/**/": "/(?:.*/)?",
    "**/": "(?:.*/)?",
    "/**": "/.*",
    "**": ".*",
    "*": _STAR,
    "?": "[^/]",
}
_SIGNS = {sign: re.escape(sign) for sign in "{},"}
_GLOB_TOKEN = re.compile(r"/\*\*/?|\*\*/?|[^/*?\[{},]+|\[+|.", re.DOTALL)
"""Matches a wildcard, plain text, or one character, outside of character classes."""
_CLASS = re.compile(r"\[!?[^/][^\]/]{0,255}+\]")
_LONGEST_CLASS = 259
_CLASS_END = re.compile(r"[\]/]")


class IgnoreRule(msgspec.Struct, frozen=True):
    """One line of a .gitignore."""

    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool


class Layer(msgspec.Struct, frozen=True):
    """The rules of one folder, and the path from there to the top."""

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
        """Whether an entry is ignored: the last matching rule decides."""
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
            return parse_rules(file.read(_MAX_GITIGNORE_BYTES))
    except OSError:  # missing or unreadable: then nothing is ignored
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
    known = dict(
        _WILDCARDS
    )  # the translation of each part, if it does not depend on others
    depth = at = 0
    last_brace = glob.rfind("}")
    for part, is_class in _glob_parts(glob):
        if part in known:
            result.append(known[part])
        elif is_class:
            signs = part[1:].replace("\\", "\\\\").replace("!", "^", 1)
            result.append(known.setdefault(part, f"[{signs}"))
        elif part == "{" and at < last_brace:
            depth += 1
            result.append("(?:")
        elif part == "}" and depth:
            depth -= 1
            result.append(")")
        elif part == "," and depth:
            result.append("|")
        elif part in _SIGNS:
            result.append(_SIGNS[part])
        else:
            result.append(known.setdefault(part, re.escape(part)))
        at += len(part)
    return "".join(_without_retries(result))


def _glob_parts(glob: str) -> Iterator[tuple[str, bool]]:
    """Yields the parts of a glob, and whether each is a class of characters.

    Where a class could end is looked for once, not from each bracket.
    """
    last = glob.rfind("]")
    at, close, start = 0, 0, glob.find("[")
    while 0 <= start < last:
        if close < start + 2:
            end = _CLASS_END.search(glob, start + 2)
            close = end.start() if end else len(glob)
        is_near = close - start < _LONGEST_CLASS and glob.startswith("]", close)
        found = _CLASS.match(glob, start) if is_near else None
        if found:
            for part in _GLOB_TOKEN.findall(glob, at, start):
                yield part, False
            yield found[0], True
            at = found.end()
        start = glob.find("[", at if found else start + 1)
    for part in _GLOB_TOKEN.findall(glob, at):
        yield part, False


def _without_retries(pieces: list[str]) -> list[str]:
    """Makes a star match as little as possible, without retries, if another star follows in the same name; the other
    star takes the rest.

    Otherwise a pattern like `*a*a*a*a` would be tried in every possible way on a long name.
    """
    if _STAR not in pieces:
        return pieces
    result = list(pieces)
    last = -1  # the previous star, in the same name
    for at, piece in enumerate(pieces):
        if piece == _STAR:
            if last >= 0:
                result[last] = f"{result[last].removesuffix(_STAR)}(?>{_STAR}?"
                result[at] = f"){_STAR}"
            last = at
        elif piece.endswith(_ENDS_OF_NAME):
            last = -1
    return result

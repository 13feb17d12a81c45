"""Builds the grammar (GBNF) of one reply: exactly the lines that are allowed now.

`replace` can only name text that was shown, by whole lines unless they are too long: small models change the right
line, but quote too little of it when they can choose.
"""

import re
from collections import Counter
from collections.abc import Mapping

import msgspec

from hermes.providers.embedded.conversation import SeenFile
from hermes.providers.embedded.line_protocol import VERBS, Verb

_UNIT = re.compile(r"[^\S\n]*(?:\w+|[^\w\s])")
_NAME = re.compile(r"\b[^\W\d]\w{2,}\b")
_MAX_WHOLE_LINE_CHARACTERS = 160  # characters
_MAX_LINES = 200  # lines of one file, and words of one line below; with more, the grammar costs more than it helps
_MAX_UNITS = 200


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """What the next reply may be.

    `replace` may change `files`, and `append` those of them that were read completely. `words` are the words of the
    request: `replace` may name each of them where a file contains it. If `only_path` is set, `write` may use only that
    path. With `look`, `write` only names its file, so that Hermes can check whether it exists; files in `absent` are
    known not to exist and are written at once. If `readable` and `listable` are set, `read` and `list` accept only
    these existing paths.
    """

    verbs: frozenset[Verb]
    files: Mapping[str, SeenFile] = {}
    only_path: str = ""
    words: frozenset[str] = frozenset()
    look: bool = False
    absent: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    listable: tuple[str, ...] = ()


def build(allowed: Allowed) -> str:
    """Returns the grammar as text."""
    rules = {
        "path": r"[^\n: ] [^\n:]{0,119}",
        "inline": r"[^\n ] [^\n]{0,299}",
        "text": r"[^ \n\x00] [^\x00]*",
        "body": r"[^\x00]+",
    }
    lines: dict[Verb, str] = {
        "read": f'"read " {_one_of(allowed.readable)}',
        "list": f'"list " {_one_of(allowed.listable)}',
        "find": '"find " inline',
        "run": '"run " inline',
        "todo": '"todo " inline',
        "say": '"say " text',
        "write": _write(allowed),
    }
    if allowed.files:
        if names := " | ".join(
            quote(path) for path, seen in allowed.files.items() if seen.whole
        ):
            lines["append"] = f'"append " ({names}) ":\\n" body'
        lines |= _replace(allowed, rules)
    chosen = [verb for verb in VERBS if verb in allowed.verbs and verb in lines]
    rules |= {verb: lines[verb] for verb in chosen}
    root = " | ".join(chosen)
    return (
        "\n".join(
            [
                f"root ::= {root}",
                *(f"{name} ::= {rule}" for name, rule in rules.items()),
            ]
        )
        + "\n"
    )


def _one_of(paths: tuple[str, ...]) -> str:
    return f"({' | '.join(map(quote, paths))})" if paths else "path"


def _write(allowed: Allowed) -> str:
    if allowed.only_path:
        return f'"write " {quote(allowed.only_path)} ":\\n" body'
    if not allowed.look:
        return '"write " path ":\\n" body'
    known = " | ".join(quote(path) for path in allowed.absent)
    return '"write " path ":"' + (f' | "write " ({known}) ":\\n" body' if known else "")


def quote(text: str) -> str:
    """Returns text as a GBNF literal."""
    escaped = "".join(_escape(char) for char in text)
    return f'"{escaped}"'


def _escape(char: str) -> str:
    if char in {'"', "\\"}:
        return "\\" + char
    if char == "\n":
        return "\\n"
    if char < " " or char == "\x7f":
        return f"\\x{ord(char):02x}"
    return char


def _replace(allowed: Allowed, rules: dict[str, str]) -> dict[Verb, str]:
    """Adds the rules for the text of each file. Returns the rule for `replace`; empty if there is no text to name."""
    targets = []
    for index, (path, seen) in enumerate(allowed.files.items()):
        starts = _shown_rules(seen.text, f"f{index}", allowed.words, rules)
        if starts:
            rules[f"f{index}"] = " | ".join(starts)
            targets.append(f"{quote(path)} {quote(': ')} f{index}")
    return (
        {"replace": f'"replace " ({" | ".join(targets)}) " => " [^\\n\\x00]*'}
        if targets
        else {}
    )


def _shown_rules(
    shown: str, name: str, words: frozenset[str], rules: dict[str, str]
) -> list[str]:
    """Returns the rules for OLD: a whole line, words of a long line, or a name that is repeated or in the request."""
    starts: dict[str, None] = {}
    for number, line in enumerate(shown.splitlines()[:_MAX_LINES]):
        if len(line.strip()) <= _MAX_WHOLE_LINE_CHARACTERS:
            whole = (
                line.strip().rstrip(",;") or line.strip()
            )  # small models omit the trailing sign
            starts |= {quote(whole): None} if whole else {}
        else:
            starts |= dict.fromkeys(_runs(line, f"{name}x{number}", rules))
    counts = Counter(_NAME.findall(shown))
    names = [
        quote(word) for word, count in counts.items() if count > 1 or word in words
    ]
    return [*starts, *(name for name in names if name not in starts)]


def _runs(line: str, name: str, rules: dict[str, str]) -> list[str]:
    """Adds one rule per word or sign, optionally followed by the next one. Returns where a run may begin."""
    units = _UNIT.findall(line)[:_MAX_UNITS]
    starts: list[str] = []
    for index, unit in enumerate(units):
        more = f" {name}x{index + 1}?" if index + 1 < len(units) else ""
        rules[f"{name}x{index}"] = quote(unit) + more
        starts.append(quote(unit.lstrip()) + more)
    return starts

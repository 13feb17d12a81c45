"""Parses YAML. Rejects deep nesting of blocks, which would crash the fast reader, and aliases that grow without end.

Brackets need no check: the reader itself rejects them.
"""

import re
from collections import Counter

import yaml12

from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.text.translation import translator

t = translator(__name__)


MAX_YAML_DEPTH = 100
TOO_DEEP = t.later("nested too deeply")
_MAX_EXPANDED_CHARS = 1_000_000
_MAX_ALIASES = 1_000

_RUN = r"[ \t]*(?:[-?:][ \t]+)*"
_ANCHOR = lazy_pattern(r"&(?=([^\s,\[\]{}]{1,64}))")
_ALIAS = lazy_pattern(r"\*(?=([^\s,\[\]{}]{1,64}))")


class YamlTooDeep(ValueError):
    """The text nests blocks too deeply."""

    def __init__(self, line: int) -> None:
        super().__init__(str(TOO_DEEP))
        self.line = line


def parse_yaml(text: str, *, max_expanded: int = _MAX_EXPANDED_CHARS) -> object:
    """Parses `text`. Raises ValueError for invalid YAML and YamlTooDeep for unsafe nesting.

    Aliases may make it `max_expanded` characters long.
    """
    line = too_deep(text)
    if line:
        raise YamlTooDeep(line)
    if _grows_too_much(text, max_expanded):
        raise ValueError(t.logged("its aliases (*name) stand for too much text"))
    return yaml12.parse_yaml(text)


def _grows_too_much(text: str, max_expanded: int) -> bool:
    """Whether aliases could make a short text very long: the reader copies what an alias stands for.

    Each alias of a name can repeat at most everything before it, so the uses of all names multiply.
    """
    if "&" not in text or "*" not in text:
        return False
    anchors = Counter(_ANCHOR.findall(text))
    used = Counter(name for name in _ALIAS.findall(text) if name in anchors)
    if used.total() > _MAX_ALIASES:
        return True
    growth = 1
    for name, uses in used.items():
        growth *= uses + 1 if anchors[name] == 1 else 2**uses
    return growth > 1 and growth * len(text) > max_expanded


def too_deep(text: str) -> int:
    """Returns the first line that is nested too deeply; 0 if none is. One pass, whatever the text."""
    if len(text) <= MAX_YAML_DEPTH:
        return 0
    columns: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        run = re.match(_RUN, line)
        end = run.end() if run else 0
        if not line.strip() or line.startswith("#", end):
            continue
        starts = [match.start() for match in re.finditer(r"[-?:](?=[ \t])", line[:end])]
        if end < len(line):
            starts.append(end)
        while columns and starts and columns[-1] >= starts[0]:
            columns.pop()
        columns += starts
        if len(columns) > MAX_YAML_DEPTH:
            return number
    return 0

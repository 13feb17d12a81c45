"""Parses YAML. Rejects deep nesting of blocks, which would crash the fast reader.

Brackets need no check: the reader itself rejects them.
"""

import re

import yaml12

MAX_YAML_DEPTH = 100
TOO_DEEP = "nested too deeply"

_RUN = r"[ \t]*(?:[-?:][ \t]+)*"


class YamlTooDeep(ValueError):
    """The text nests blocks too deeply."""

    def __init__(self, line: int) -> None:
        super().__init__(TOO_DEEP)
        self.line = line


def parse_yaml(text: str) -> object:
    """Parses `text`. Raises ValueError for invalid YAML and YamlTooDeep for unsafe nesting."""
    line = too_deep(text)
    if line:
        raise YamlTooDeep(line)
    return yaml12.parse_yaml(text)


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

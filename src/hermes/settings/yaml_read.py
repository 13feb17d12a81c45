"""YAML text to data. The fast reader has no bound on nested blocks and would take the process down, so one is set here.

Brackets need none: the reader itself refuses them.
"""

import re

import yaml12

MAX_YAML_DEPTH = 100
TOO_DEEP = "nested too deeply"

_RUN = r"[ \t]*(?:[-?:][ \t]+)*"


class YamlTooDeep(ValueError):
    """The text holds more blocks in blocks than Hermes reads."""

    def __init__(self, line: int) -> None:
        super().__init__(TOO_DEEP)
        self.line = line


def parse_yaml(text: str) -> object:
    """The data in `text`. ValueError if it is no YAML, TooDeep if reading it is not safe."""
    line = too_deep(text)
    if line:
        raise YamlTooDeep(line)
    return yaml12.parse_yaml(text)


def too_deep(text: str) -> int:
    """The first line that is nested too deeply, 0 if none is. One pass, whatever the text."""
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

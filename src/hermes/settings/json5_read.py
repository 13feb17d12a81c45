"""Parses JSON as people write it: with comments, trailing commas, bare keys and single quotes (JSON5)."""

import re
from typing import Any

import msgspec

from hermes.settings.yaml_read import parse_yaml, too_deep
from hermes.text.translation import translator

t = translator(__name__)


_STRING = r'("(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


def parse_json5(text: str) -> dict[str, Any]:
    """Parses an object. Raises ValueError with the reason."""
    plain = _COMMENT.sub(lambda found: found[1] or "", text)
    plain = _TRAILING_COMMA.sub(lambda found: found[1] or "", plain)
    try:
        return msgspec.json.decode(plain, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        problem = str(error)
    if too_deep(plain):
        raise ValueError(t.logged("it is nested too deeply"))
    try:  # what is left of JSON5 is YAML in braces
        return msgspec.convert(parse_yaml(plain.replace("\t", " ")), dict[str, Any])
    except (ValueError, msgspec.ValidationError) as error:
        raise ValueError(problem) from error

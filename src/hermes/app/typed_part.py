"""Separates the text that a person typed from the files, skills and output attached to the message."""

import re

from hermes.primitives.lazy_pattern import lazy_pattern

_BLOCK = lazy_pattern(
    r"\n\n<(attached path|skill name|ran command|command name)=\"([^\n]*)\">\n.*?\n</(?:attached|skill|ran|command)>",
    re.DOTALL,
)
_CLOSED = ("attached", "skill", "ran", "command")


def typed_part(text: str) -> str:
    """The part of a message that the person typed, without attachments."""
    end = _end_of_blocks(text)
    return _BLOCK.sub("", text[:end]) + text[end:]


def attached_files(text: str) -> dict[str, str]:
    """The files attached to a message: by their path, the block that the model reads."""
    blocks = _BLOCK.finditer(text[: _end_of_blocks(text)])
    return {block[2]: block[0] for block in blocks if block[1] == "attached path"}


def _end_of_blocks(text: str) -> int:
    end = max(text.rfind(f"\n</{one}>") for one in _CLOSED) + 1
    return text.find(">", end) + 1 if end else 0

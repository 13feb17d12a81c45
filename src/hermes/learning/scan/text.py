"""Whether a text carries instructions that its reader did not ask for."""

from hermes.learning.scan.disguise import hidden, readings
from hermes.learning.scan.phrases import phrases


def scan(text: str) -> str:
    """What in the text looks like an injected instruction; empty when nothing does."""
    if found := hidden(text):
        return found
    for reading in readings(text):
        if found := _judge(reading):
            return found
    return ""


def _judge(reading: str) -> str:
    hints: dict[str, None] = {}
    for phrase in phrases():
        if phrase.kind in hints and not phrase.strong:
            continue
        if phrase.pattern.search(reading):
            if phrase.strong:
                return phrase.kind
            hints[phrase.kind] = None
    return " and ".join(hints) if len(hints) > 1 else ""

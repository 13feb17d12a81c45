"""Changes as a person and a model read them: short unified diffs."""

from hermes.tools.edit import Edit, line_of

_CONTEXT = 3
_HUNKS = 5
_LINES = 80
_WIDTH = 400
_COMPARABLE = 4000
"""Lines up to which two whole texts are compared."""


def edit_diff(edit: Edit) -> str:
    """The hunks of an edit, without comparing the whole text."""
    hunks: list[str] = []
    drift = 0
    for replacement in edit.replacements[:_HUNKS]:
        text = edit.before
        start = text.rfind("\n", 0, replacement.start) + 1
        end = text.find("\n", max(replacement.end - 1, start))
        end = len(text) if end < 0 else end
        old = text[start:end].split("\n")
        new = (text[start : replacement.start] + replacement.new + text[replacement.end : end]).split("\n")
        if replacement.end == end + 1:  # the line end went too, and came back with the new text or not at all
            new = new[:-1] if new and not new[-1] else new
        first = line_of(text, start)
        before = text[:start].split("\n")[:-1][-_CONTEXT:] if start else []
        after = text[end + 1 : end + 4 * _WIDTH].split("\n")[:_CONTEXT] if end < len(text) else []
        hunks += _hunk(first, drift, (before, old, new, after))
        drift += len(new) - len(old)
    if edit.replacements[_HUNKS:]:
        hunks.append(f"... and {len(edit.replacements) - _HUNKS} more places")
    return _capped(hunks)


def _hunk(first: int, drift: int, parts: tuple[list[str], list[str], list[str], list[str]]) -> list[str]:
    before, old, new, after = parts
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    before = [*before, *old[:same]][-_CONTEXT:]
    after = [*old[len(old) - tail :], *after][:_CONTEXT]
    removed, added = old[same : len(old) - tail], new[same : len(new) - tail]
    line = first + same - len(before)
    around = len(before) + len(after)
    head = f"@@ -{line},{around + len(removed)} +{line + drift},{around + len(added)} @@"
    marked = ((" ", before), ("-", removed), ("+", added), (" ", after))
    return [head, *(mark + text.removesuffix("\r") for mark, texts in marked for text in texts)]


def text_diff(before: str, after: str) -> str:
    """The difference of two texts; sizes only, when they are long."""
    from difflib import unified_diff

    old, new = before.split("\n"), after.split("\n")
    if len(old) + len(new) > _COMPARABLE:
        return f"({len(old):,} lines become {len(new):,})"
    return _capped(list(unified_diff(old, new, lineterm="", n=_CONTEXT))[2:])


def _capped(lines: list[str]) -> str:
    shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}..." for line in lines[:_LINES]]
    return "\n".join(shown + ([f"... {len(lines) - _LINES} more lines of diff"] if lines[_LINES:] else []))

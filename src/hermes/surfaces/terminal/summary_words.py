"""The policy's own words in the summary of a request for approval, in the reader's language.

Only for showing: the log and the hash of a request have the summary in English. A command and the content of a file
stay as they are.
"""

import re

from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.surfaces.terminal.codex_summary import shown_codex_request
from hermes.text.translation import current_sentences, translator

t = translator(__name__)

COMMAND_TOOLS = frozenset(("terminal", "exec_command"))
RUN_IN = "Run in "  # not translated: the summary of a command begins with it
REPLACED = "replaced, "  # not translated: the policy writes it above a file's diff
_SIZE = lazy_pattern(
    r"(replaced|new file|replaces a file that can't be compared), ([\d,]+) lines?, ([\d,]+) bytes?:"
)
_WOULD_FAIL = lazy_pattern(r"\(as the files? (?:is|are) now, this would fail: (.*)\)")
_CUT_NOTE = lazy_pattern(
    r"\n\.\.\. ([\d,]+) more characters are not shown here\Z", re.ASCII
)
_CHECKS = "Run in the sandbox after each turn that changes files:"  # not translated: the summary of a project's checks


def shown_summary(name: str, summary: str) -> str:
    """Returns what a tool's call would do, for a person."""
    if current_sentences() is None:
        return summary
    is_hermes = summary.startswith(RUN_IN)
    summary = summary if is_hermes else shown_codex_request(name, summary)
    first, newline, rest = summary.partition("\n")
    if first == _CHECKS:
        first = t("Run in the sandbox after each turn that changes files:")
    elif name in COMMAND_TOOLS and first.startswith(RUN_IN) and newline:
        folder = first.removeprefix(RUN_IN).removesuffix(":")
        first = t("Run in {folder}:", folder=folder)
    return f"{first}{newline}{shown_change(name, rest)}"


def shown_change(name: str, change: str) -> str:
    """Returns the lines below the first one of a summary, for a person."""
    if current_sentences() is None:
        return change
    cut = _CUT_NOTE.search(change)
    if cut:
        note = t("... {count} more characters are not shown here", count=cut[1])
        change = f"{change[: cut.start()]}\n{note}"
    first, newline, rest = change.partition("\n")
    if name == "write_file" and (size := _SIZE.fullmatch(first)):
        first = _size_line(size[1], size[2], size[3])
    elif name in ("edit_file", "apply_patch") and (why := _WOULD_FAIL.fullmatch(first)):
        first = t("(as it is now, this would fail: {error})", error=why[1])
    return f"{first}{newline}{rest}"


def _size_line(what: str, lines: str, size: str) -> str:
    """What happens to a file, and its size."""
    match what:
        case "replaced":
            return t("replaced; lines: {lines}, bytes: {size}", lines=lines, size=size)
        case "new file":
            return t("new file; lines: {lines}, bytes: {size}", lines=lines, size=size)
        case _:
            return t(
                "replaces a file that can't be compared; lines: {lines}, bytes: {size}",
                lines=lines,
                size=size,
            )

"""What codex asks for, in the reader's language: the words that `codex/approvals.py` writes into the summary of a request.

Commands, paths, hosts, permissions and patches stay as they are. A line is translated only where codex's request puts
it, so that nothing in a command is taken for it.
"""

import re

from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.text.translation import translator

t = translator(__name__)

_REQUESTS = frozenset(("exec_command", "network_access", "request_permissions"))
_IN = "in "
_FOR = "for "
_PERMISSIONS = "with these permissions: "  # not translated: read, not written
_BELOW = "and from then on anywhere below "  # not translated
_TYPE = "type into the running command"  # not translated
_MORE = "give codex more permissions: "  # not translated
_REACH = "reach "
_UNNAMED_HOST = "a host that codex does not name"  # not translated
_UNNAMED_PERMISSIONS = "it does not say which"  # not translated
_BLIND_PATCH = "a patch whose content codex did not announce"  # not translated
_NO_COMMAND = "an action that codex describes without a command"  # not translated
_COUNTS = lazy_pattern(r"(\d+ (?:add|update|delete)(?:, \d+ (?:update|delete))*): (.*)")
_NOT_SHOWN = lazy_pattern(
    r"\[\.\.\. ([\d,]+) more characters of the patch not shown here(?:, of (.*))? \.\.\.\]"
)


def shown_codex_request(name: str, summary: str) -> str:
    """Returns the summary of codex's request for a person; that of another tool as it is."""
    lines = summary.split("\n")
    if name in _REQUESTS:
        _translate_end(lines)
        if name == "network_access" and len(lines) > 1:
            lines[1] = _after(_FOR, lines[1])
    elif name == "apply_patch" and len(lines) > 1 and lines[1].startswith(_IN):
        lines[1:3] = [_after(_BELOW, _after(_IN, one)) for one in lines[1:3]]
        lines[-1] = _not_shown(lines[-1])
    else:
        return summary
    return "\n".join((_wish(name, lines[0]), *lines[1:]))


def _translate_end(lines: list[str]) -> None:
    """Translates the last lines: the folder, and the permissions."""
    last = len(lines) - 1
    if last > 1 and lines[last].startswith(_PERMISSIONS):
        lines[last] = _after(_PERMISSIONS, lines[last])
        last -= 1
    if last > 0:
        lines[last] = _after(_IN, lines[last])


def _after(lead: str, line: str) -> str:
    """Returns the line with its lead translated, if it begins with it."""
    if not line.startswith(lead):
        return line
    value = line.removeprefix(lead)
    match lead:
        case "in ":
            return t("in {folder}", folder=value)
        case "for ":
            return t("for {command}", command=value)
        case "and from then on anywhere below ":  # not translated
            return t("and from then on anywhere below {folder}", folder=value)
        case _:
            return t("with these permissions: {permissions}", permissions=value)


def _wish(name: str, wish: str) -> str:
    """Returns what codex wants to do: the first line."""
    match name:
        case "network_access" if wish.startswith(_REACH):
            return _host(wish.removeprefix(_REACH))
        case "request_permissions" if wish.startswith(_MORE):
            return _permissions(wish.removeprefix(_MORE))
        case "apply_patch":
            return _patch(wish)
        case _:
            return _command(wish)


def _host(where: str) -> str:
    if where == _UNNAMED_HOST:
        return t("reach a host that codex does not name")
    return t("reach {where}", where=where)


def _permissions(wanted: str) -> str:
    if wanted == _UNNAMED_PERMISSIONS:
        return t("give codex more permissions; it does not say which")
    return t("give codex more permissions: {wanted}", wanted=wanted)


def _command(wish: str) -> str:
    if wish == _NO_COMMAND:
        return t("an action that codex describes without a command")
    if not wish.startswith(_TYPE):
        return wish
    command = wish.removeprefix(_TYPE).strip()
    return t("type into the running command {command}", command=command).rstrip()


def _patch(wish: str) -> str:
    if wish == _BLIND_PATCH:
        return t("a patch whose content codex did not announce")
    counts = _COUNTS.fullmatch(wish)
    return f"{_counted(counts[1])}: {counts[2]}" if counts else wish


def _counted(counts: str) -> str:
    """Returns how many files a patch adds, changes and deletes."""
    words: list[str] = []
    for number, kind in re.findall(r"(\d+) (\w+)", counts):
        count = int(number)
        match kind:
            case "add":
                one = t("{count} new file", "{count} new files", count=count)
            case "update":
                one = t("{count} changed file", "{count} changed files", count=count)
            case _:
                one = t("{count} deleted file", "{count} deleted files", count=count)
        words.append(one)
    return ", ".join(words)


def _not_shown(line: str) -> str:
    found = _NOT_SHOWN.fullmatch(line)
    if found is None:
        return line
    if not found[2]:
        return t(
            "[... {count} more characters of the patch are not shown here ...]",
            count=found[1],
        )
    return t(
        "[... {count} more characters of the patch are not shown here, of {files} ...]",
        count=found[1],
        files=found[2],
    )

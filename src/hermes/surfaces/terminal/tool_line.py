"""A tool call on one line: what it does, how it went, how long it took."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.core.arguments import BadArguments, parse_arguments
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import clean, cut, one_line, width

_BULKY = {
    "content",
    "old_text",
    "new_text",
    "items",
    "patch",
}  # arguments that say more than a line can show

_PATCHED = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File:|(?:---|\+\+\+) (?:[ab]/)?)\s*(\S.*?)\s*$",
    re.MULTILINE,
)

_NOTES = re.compile(
    r"^(?:\(no output\) )?\[((?:exit code|killed by|stopped:)[^\]\n]*)\]", re.MULTILINE
)
_FAILED_TAIL_LINES = 3  # lines of a command that failed

COMMAND_TOOLS = frozenset(("terminal", "run_python", "exec_command"))
"""Tools whose output is worth a look."""


class Marks(msgspec.Struct, frozen=True):
    """The signs in front of a line."""

    done: str = "✓"
    failed: str = "✗"
    runs: str = "…"
    prompt: str = "› "
    bullet: str = "·"
    bar: str = "│"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


ASCII_MARKS = Marks(
    done="+", failed="x", runs="...", prompt="> ", bullet="-", bar="|", spinner="|/-\\"
)


def marks_for(encoding: str | None) -> Marks:
    """Signs that the encoding of a stream can show."""
    return (
        Marks()
        if (encoding or "").lower().replace("-", "") in {"utf8", "utf16", "utf32"}
        else ASCII_MARKS
    )


class RunningCalls:
    """The calls that run, and since when."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, float]] = {}

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Takes notice of a call's beginning, and of an answer that lets it begin."""
        match event["type"]:
            case "agent.tool.started":
                self._calls[event["call_id"]] = (
                    label_of(event["name"], event["arguments"]),
                    event["ts"],
                )
            case "agent.approval.answered" if event["call_id"] in self._calls:
                self._calls[event["call_id"]] = (
                    self._calls[event["call_id"]][0],
                    event["ts"],
                )
            case _:
                pass

    def running(self) -> str:
        """The call that began last and still runs."""
        return next((label for label, _ in reversed(self._calls.values())), "")

    def finish(
        self, event: Mapping[str, Any], style: Style, marks: Marks, columns: int
    ) -> str:
        """The line of a call that ended; below it the last words of a command that failed."""
        label, since = self._calls.pop(
            event["call_id"], (one_line(event["name"]), event["ts"])
        )
        ok, text = event.get("ok", True), event.get("text", "")
        ended = outcome(text) if event["name"] in COMMAND_TOOLS else ""
        tail = duration(event["ts"] - since)
        if not ok:
            tail += f" {marks.bullet} {ended or one_line(text)}"
        room = max(columns - 3, 16)
        head = cut(
            label, max(0 if ok or ended else room // 2, room - width(tail) - 1, 8)
        )
        rest = cut(tail, room - width(head) - 1)
        mark = style.green(marks.done) if ok else style.red(marks.failed)
        output = (
            last_lines(printed(text), _FAILED_TAIL_LINES) if ended and not ok else ()
        )
        below = [
            f"\n{style.dim(cut(f'  {marks.bar} {line}', columns - 1))}"
            for line in output
        ]
        return f"{mark} {head} {style.dim(rest)}{''.join(below)}"


def outcome(text: str) -> str:
    """`exit code 2`: what a command's result says of its end; empty when it did not run."""
    found = _NOTES.findall(text)
    return found[-1].partition(";")[0] if found else ""


def printed(text: str) -> str:
    """What a command printed, from its result."""
    ends = list(_NOTES.finditer(text))
    return text[: ends[-1].start()] if ends else text


def last_lines(output: str, most: int) -> list[str]:
    """The last lines that are not blank; what a progress bar overwrote is gone."""
    lines = [
        clean(line.rstrip("\r").rpartition("\r")[2]).rstrip()
        for line in output.split("\n")
    ]
    return [line for line in lines if line][-most:]


def duration(seconds: float) -> str:
    """`12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def preparing(event: Mapping[str, Any]) -> str:
    """How far a local model is."""
    done, total = event["done"], max(event["total"], 1)
    return f"preparing the local model, once on this machine: {min(100, done * 100 // total)} %"


def label_of(name: str, arguments: str) -> str:
    """`read_file src/app.py`: the name and the values of the arguments."""
    try:
        values = parse_arguments(arguments)
    except BadArguments:
        return one_line(f"{name} {arguments}")
    named = values.items() if isinstance(values, dict) else [("", values)]
    shown = [_shown(value) for key, value in named if key not in _BULKY]
    if name == "apply_patch":
        shown += patched_files(str(dict(named).get("patch", "")))
    return one_line(" ".join([name, *filter(None, shown)]))


def patched_files(patch: str) -> list[str]:
    """The files that a patch is about, each once."""
    return list(
        dict.fromkeys(name for name in _PATCHED.findall(patch) if name != "/dev/null")
    )


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value.partition("\n")[0] + (" …" if "\n" in value else "")
    return "" if value is None else msgspec.json.encode(value).decode()

"""A tool call on one line: its arguments, its result and its duration."""

import re
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.core.arguments import BadArguments, parse_arguments
from hermes.core.fence import unfenced
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.surfaces.terminal.call_words import call_words, patched_files
from hermes.surfaces.terminal.style import Style, settings_of_this_run
from hermes.surfaces.terminal.text import clean, cut, one_line, width, wrap
from hermes.text.formats import duration
from hermes.text.translation import translator

t = translator(__name__)


_BULKY = {
    "content",
    "old_text",
    "new_text",
    "items",
    "patch",
}  # arguments too long for one line

_NOTES = lazy_pattern(
    r"^(?:\(no output\) )?\[((?:exit code|killed by|stopped:)[^\]\n]*)\]", re.MULTILINE
)
_UNCHANGED = "Nothing was changed."  # not translated: a tool says it, then gives advice
_FAILED_TAIL_LINES = 3  # of a failed command
_MAX_REASON_LINES = 4  # of why a call failed, where it does not fit beside the call

COMMAND_TOOLS = frozenset(("terminal", "run_python", "exec_command"))
"""Tools whose output is shown."""


class Marks(msgspec.Struct, frozen=True):
    """The symbols in front of lines."""

    done: str = "✓"
    failed: str = "✗"
    runs: str = "…"
    prompt: str = "› "
    bullet: str = "·"
    item: str = "·"
    bar: str = "│"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

    @property
    def separator(self) -> str:
        """The separator between two facts on a line."""
        return ", " if self.bullet == "," else f" {self.bullet} "


ASCII_MARKS = Marks(
    done="+",
    failed="x",
    runs="...",
    prompt="> ",
    bullet="-",
    item="-",
    bar="|",
    spinner="|/-\\",
)

LINEAR_MARKS = Marks(
    done="ok",
    failed="failed",
    runs="...",
    prompt="> ",
    bullet=",",
    item="-",
    bar=" ",
    spinner=" ",
)
"""Words and spaces, for screen readers."""


def marks_for(encoding: str | None) -> Marks:
    """Returns symbols that the stream's encoding can represent."""
    return (
        Marks()
        if (encoding or "").lower().replace("-", "") in {"utf8", "utf16", "utf32"}
        else ASCII_MARKS
    )


def marks_of_this_run() -> Marks:
    """Returns the symbols on stdout in this run: words in the linear layout."""
    if settings_of_this_run().display.layout == "linear":
        return LINEAR_MARKS
    return marks_for(sys.stdout.encoding)


class RunningCalls:
    """The running calls and when they started."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, float]] = {}

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Records a call's start, or the approval that lets it start."""
        match event["type"]:
            case "agent.tool.started":
                self._calls[event["call_id"]] = (
                    call_words(event["name"], event["arguments"]).label,
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
        """Returns the label of the running call that started last."""
        return next((label for label, _ in reversed(self._calls.values())), "")

    def finish(
        self, event: Mapping[str, Any], style: Style, marks: Marks, columns: int
    ) -> str:
        """Returns the line of a finished call, followed by the last output of a failed command."""
        label, since = self._calls.pop(
            event["call_id"], (one_line(event["name"]), event["ts"])
        )
        ok, text = event.get("ok", True), unfenced(event.get("text", ""))
        mark = style.green(marks.done) if ok else style.red(marks.failed)
        head, rest, below = _laid_out(
            label,
            duration(event["ts"] - since),
            "" if ok else text,
            is_command=event["name"] in COMMAND_TOOLS,
            marks=marks,
            columns=columns,
        )
        lines = [f"\n{style.dim(f'  {marks.bar} {line}')}" for line in below]
        return f"{mark} {head} {style.dim(rest)}{''.join(lines)}"


def _laid_out(
    label: str, took: str, text: str, *, is_command: bool, marks: Marks, columns: int
) -> tuple[str, str, list[str]]:
    """Returns the label, what follows it, and the lines below. `text` is the result of a failed call.

    A reason that would be cut goes below, wrapped.
    """
    room, inner = max(columns - 3, 16), max(columns - 6, 8)
    ended = outcome(text) if is_command else ""
    reason = ended or failure_reason(text)
    tail = f"{took}{marks.separator}{reason}" if reason else took
    below: list[str] = []
    if ended:
        output = last_lines(printed(text), _FAILED_TAIL_LINES)
        below = [cut(line, inner) for line in output]
    elif reason and width(label) + width(tail) + 1 > room:
        tail, below = took, reason_lines(reason, inner)
    head = cut(label, max(room - width(tail) - 1, 8))
    return head, cut(tail, room - width(head) - 1), below


def failure_reason(text: str) -> str:
    """Returns why a call failed, on one line. The advice to the model after that is left out."""
    reason, unchanged, _ = one_line(text).partition(_UNCHANGED)
    return f"{reason}{unchanged}"


def reason_lines(reason: str, columns: int) -> list[str]:
    """Returns why a call failed, wrapped. Only what is very long is cut."""
    wrapped = list(wrap(reason, columns))
    lines = wrapped[:_MAX_REASON_LINES]
    if len(wrapped) > _MAX_REASON_LINES:
        lines[-1] = cut(f"{lines[-1]} {wrapped[_MAX_REASON_LINES]}", columns)
    return lines


def outcome(text: str) -> str:
    """Returns how a command ended, such as `exit code 2`; empty if it did not run."""
    found = _NOTES.findall(text)
    if found:
        return found[-1].partition(";")[0]
    return ""


def printed(text: str) -> str:
    """Returns a command's output, without the notes in its result."""
    ends = list(_NOTES.finditer(text))
    if ends:
        return text[: ends[-1].start()]
    return text


def last_lines(output: str, most: int) -> list[str]:
    """Returns the last lines that are not blank, without what a progress bar overwrote."""
    lines = [
        clean(line.rstrip("\r").rpartition("\r")[2]).rstrip()
        for line in output.split("\n")
    ]
    return [line for line in lines if line][-most:]


def preparing(event: Mapping[str, Any]) -> str:
    """Returns the progress of preparing a local model."""
    done, total = event["done"], max(event["total"], 1)
    return t(
        "preparing the local model, once on this machine: {percent} %",
        percent=min(100, done * 100 // total),
    )


def label_of(name: str, arguments: str) -> str:
    """Returns the tool's name and the values of its arguments: `read_file src/app.py`."""
    try:
        values = parse_arguments(arguments)
    except BadArguments:
        return one_line(f"{name} {arguments}")
    named = values.items() if isinstance(values, dict) else [("", values)]
    shown = [_shown(value) for key, value in named if key not in _BULKY]
    if name == "present_plan":
        shown = [_shown(dict(named).get("title"))]
    if name == "apply_patch":
        shown += patched_files(str(dict(named).get("patch", "")))
    return one_line(" ".join([name, *filter(None, shown)]))


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value.partition("\n")[0] + (" …" if "\n" in value else "")
    if value is None:
        return ""
    return msgspec.json.encode(value).decode()

"""Plays everyday scenes of a chat on a real pseudo-terminal: with 40, 80 and 200 columns, in colour, without colour, on a
dumb terminal, and for screen readers. Each scene must show the expected text, and no row may be wider than the window.

With `--out FOLDER`, the screen of each scene is written there as text with colour codes.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hermes.surfaces.terminal.text import width
from hermes.testing.installed import InstalledHermes, TerminalProcess
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

COLUMNS = (40, 80, 200)
ROWS = 30
ENTER, ESCAPE, DOWN, CTRL_C, CTRL_O, CTRL_R = "\r", "\x1b", "\x1b[B", "\x03", "\x0f", "\x12"  # fmt: skip
MODES = {
    "colour": {"COLORFGBG": "15;0"},
    "light": {"COLORFGBG": "0;15"},
    "no-color": {"NO_COLOR": "1"},
    "dumb": {"TERM": "dumb"},
    "linear": {"HERMES_DISPLAY_LAYOUT": "linear"},
}
SETTINGS = {"HERMES_LEARNING_MODE": "off"}
"""A review in the background would consume the reply of a scene."""
TURN_END = re.compile(r" (?:ms|s|min) · [\d,]+ tokens")
PRINTS = frozenset(("dumb", "linear"))
"""Modes without a live area: no lists, no keys without Enter."""
PROMPTS = ("›", ">")
PARSER = 'def parse(text):\n    """Reads a number."""\n    return int(text)\n'
TABLE = "| name | what it holds |\n|---|---|\n" + "".join(
    f"| field {number} | a value of some length for row {number} |\n"
    for number in range(6)
)

CODE = "```python\ndef f(x: int) -> str:\n    return f'{x}'\n\nprint(parse('1'))\n```"
QUOTE = "> a quote that goes on for a while so that it wraps\n\n---\n\nafter-rule"
EDIT = {
    "path": "parser.py",
    "old_text": "int(text)",
    "new_text": "int(text.strip())",
}


class Scene(msgspec.Struct, frozen=True):
    """What a person types, what must be seen afterwards, and what the model replies."""

    name: str
    keys: str
    sees: str
    replies: tuple[ScriptedResponse, ...] = ()
    is_live: bool = False
    """Whether it needs a live screen."""
    then: str = ""
    """Keys that end the scene."""
    gone: str = ""
    """What is no longer visible after them."""


def said(text: str) -> tuple[ScriptedResponse, ...]:
    return (ScriptedResponse(text=text, chunk=7),)


def called(name: str, then: str, **arguments: object) -> tuple[ScriptedResponse, ...]:
    call = ServedCall(name, json.dumps(arguments))
    return ScriptedResponse(calls=(call,)), *said(then)


def planned(then: str, *states: str) -> tuple[ScriptedResponse, ...]:
    items = [
        {"text": f"Step {number} of the work", "status": state}
        for number, state in enumerate(states, 1)
    ]
    return called("todo", then, items=items)


READS = tuple(
    ServedCall("read_file", json.dumps({"path": name}))
    for name in ("parser.py", "notes.txt", "long.txt")
)
SCENES = (
    Scene("hello", "hello\r", "Hello there.", said("Hello there.")),
    Scene("wide characters", "你好 wide\r", "日本語です", said("日本語です。 Emoji: 🎉 done-wide")),
    Scene("long words", "long\r", "end-of-long", said("x" * 300 + " end-of-long")),
    Scene("markdown", "md\r", "second-item", said("# Head\n\nSome **bold** and `code`.\n\n- first\n- second-item")),
    Scene("table", "table\r", "row 5", said(TABLE)),
    Scene("code", "code\r", "print(parse", said(CODE)),
    Scene("quote and rule", "quote\r", "after-rule", said(QUOTE)),
    Scene("read one file", "read\r", "It reads-one.", called("read_file", "It reads-one.", path="parser.py")),
    Scene("read three files", "read all\r", "Read 3 files", (ScriptedResponse(calls=READS), *said("All read-three."))),
    Scene("search", "search\r", "Found-it.", called("search_files", "Found-it.", pattern="def ", path=".")),
    Scene("no such file", "missing\r", "It-is-missing.", called("read_file", "It-is-missing.", path="none.py")),
    Scene("edit with a diff", "edit\r", "int(text.strip())", called("edit_file", "Edited-it.", **EDIT)),
    Scene("write a file", "write\r", "Wrote-it.", called("write_file", "Wrote-it.", path="new.txt", content="one\ntwo\n")),
    Scene("short output", "run\r", "Ran-short.", called("terminal", "Ran-short.", command="echo short")),
    Scene("long output is folded", "run long\r", "97 more lines", called("terminal", "Ran-long.", command="seq 1 100")),
    Scene("a command that fails", "fail\r", "exit code 3", called("terminal", "It-failed.", command="echo bad; exit 3")),
    Scene("python", "python\r", "Ran-python.", called("run_python", "Ran-python.", code="print(6 * 7)")),
    Scene("a plan", "plan\r", "Plan 1 of 3", planned("Planned-it.", "done", "in_progress", "pending")),
    Scene("a plan that is done", "done\r", "All-done.", planned("All-done.", "done", "done", "done")),
    Scene("help", "/help\r", "/quit", is_live=True, then="q", gone="/quit"),
    Scene("status", "/status\r", "waiting for you"),
    Scene("usage", "/usage\r", "This session:"),
    Scene("context", "/context\r", "free"),
    Scene("no such command", "/nonsense\r", "There is no command /nonsense"),
    Scene("title", "/title A talk\r", "Title: A talk"),
    Scene("diff of the last turn", "/diff\r", "No files were changed"),
    Scene("history", "/history 2\r", "All-done."),
    Scene("tools", "/tools\r", "read_file"),
    Scene("memory", "/memory\r", "memory"),
    Scene("no goal", "/goal\r", "This session has no goal."),
    Scene("an empty board", "/kanban\r", "No open cards"),
    Scene("no worktrees", "/worktree\r", "There are no worktrees."),
    Scene("agents", "/agents\r", "Nothing is running in the background."),
    Scene("permissions", "/permissions\r", "No rules or permissions"),
    Scene("reasoning", "/reasoning\r", "Reasoning: default."),
    Scene("pins", "/pins\r", "Nothing is pinned."),
    Scene("an own command", "!echo mine\r", "mine"),
    Scene("a note", "#tea is at four\r", "Noted: tea is at four"),
    Scene("keys", "?", "Esc back", is_live=True, then="q", gone="Esc back"),
    Scene("details", CTRL_O, "Outputs, diffs", is_live=True, then="q", gone="Outputs, diffs"),
    Scene("completion", "/commit-ch", "Turn work", is_live=True, then=CTRL_C, gone="Turn work"),
    Scene("earlier messages", CTRL_R, "Earlier messages", is_live=True, then=ESCAPE, gone="Earlier messages"),
    Scene("sessions", "/resume\r", "No other sessions", is_live=True, then=ESCAPE, gone="No other sessions"),
    Scene("rewind", "/rewind\r", "before which message", is_live=True, then=ESCAPE, gone="before which"),
    Scene("an empty input is not sent", ENTER + "still there?\r", "Still-here.", said("Still-here.")),
    Scene("undo", "/undo\r", "Undid the last turn"),
    Scene("redo", CTRL_C + "/redo\r", "Restored the last turn", is_live=True),
    Scene("retry", "/retry\r", "Again-here.", said("Again-here."), is_live=True),
)  # fmt: skip


async def _play(columns: int, mode: str, out: Path | None) -> list[str]:
    """Plays all scenes in one chat. Returns the problems."""
    scenes = [one for one in SCENES if not (one.is_live and mode in PRINTS)]
    replies = [reply for scene in scenes for reply in scene.replies]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer(*replies) as server:
            hermes = InstalledHermes(Path(folder), server.url)
            (hermes.work / "parser.py").write_text(PARSER)
            (hermes.work / "notes.txt").write_text("a note\n")
            (hermes.work / "long.txt").write_text("line\n" * 500)
            arguments = ("--model", "fake-1", "--approvals", "full")
            async with hermes.terminal(
                *arguments, size=(columns, ROWS), **SETTINGS, **MODES[mode]
            ) as terminal:
                await terminal.until(
                    lambda shown: any(f"\n{one}" in shown for one in PROMPTS)
                )
                for number, scene in enumerate(scenes):
                    name = f"{columns}-{mode}-{number:02d}-{scene.name}.txt"
                    file = out / name.replace(" ", "-") if out is not None else None
                    wrong += await _act(terminal, scene, columns, mode, file)
    return wrong


async def _act(
    terminal: TerminalProcess, scene: Scene, columns: int, mode: str, file: Path | None
) -> list[str]:
    """Plays one scene, and writes the screen to the file before the keys that end it. Returns the problems."""
    where = f"{columns} columns, {mode}, {scene.name}"
    keys = scene.keys.replace("\r", "\n") if mode in PRINTS else scene.keys
    sees = _squeezed(scene.sees)
    before = 0 if scene.then else _squeezed(terminal.shown).count(sees)
    turns = len(TURN_END.findall(terminal.shown))
    terminal.type(keys)
    try:
        await terminal.until(lambda shown: _squeezed(shown).count(sees) > before)
        if scene.replies:
            await terminal.until(lambda shown: _is_over(shown, turns, mode))
        wide = [line for line in terminal.shown.split("\n") if width(line) > columns]
        _capture(terminal, file)
        if scene.then:
            terminal.type(scene.then)
            await terminal.until(lambda shown: scene.gone not in shown)
    except AssertionError as error:
        return [f"{where}: {error}"]
    return [f"{where}: too wide: {line}" for line in wide]


def _capture(terminal: TerminalProcess, file: Path | None) -> None:
    if file is not None:
        file.write_text(terminal.coloured)


def _is_over(shown: str, turns: int, mode: str) -> bool:
    """Whether a turn has ended: its time is shown or, on a terminal that only prints, the prompt."""
    if mode in PRINTS:
        return shown.rstrip().endswith(PROMPTS)
    return len(TURN_END.findall(shown)) > turns


def _squeezed(text: str) -> str:
    """Returns a text without spaces and line breaks, which differ by width."""
    return "".join(text.split())


def main(argv: Sequence[str]) -> int:
    """Plays and prints. Returns 1 if a scene went wrong."""
    parser = argparse.ArgumentParser(prog="scenes")
    parser.add_argument("--out", type=Path, help="where captures are written")
    parser.add_argument("--columns", type=int, action="append")
    parser.add_argument("--mode", choices=sorted(MODES), action="append")
    asked = parser.parse_args(argv)
    if asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    for columns in asked.columns or COLUMNS:
        for mode in asked.mode or MODES:
            found = asyncio.run(_play(columns, mode, asked.out))
            print(f"scenes: {columns:3d} columns, {mode:9s} {len(found)} wrong", flush=True)  # fmt: skip
            wrong += found
    for one in wrong:
        print(one, file=sys.stderr)
    return int(bool(wrong))

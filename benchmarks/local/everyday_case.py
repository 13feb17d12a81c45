"""An everyday request and how to see whether it was answered usefully: facts, patterns, running code, file states.

A check returns what is wrong, or nothing. `hermes.providers.embedded.tasks.task` has the plain ones.
"""

import datetime as dt
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.providers.embedded.tasks.task import Check, TaskOutcome

Topic: TypeAlias = Literal[
    "arithmetic",
    "knowledge",
    "small talk",
    "writing",
    "coding",
    "pipes",
    "languages",
    "files",
    "project",
    "honesty",
    "follow-up",
]
TODAY = dt.date.today()  # noqa: DTZ011 - the user's own day
TOMORROW = TODAY + dt.timedelta(days=1)
_FENCE = re.compile(r"```[\w+-]*\n(.*?)```", re.DOTALL)
_CODE_TIMEOUT_S = 20


class EverydayCase(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a folder with `files`; the check sees the last answer. `piped` is appended as stdin is."""

    id: str
    topic: Topic
    requests: tuple[str, ...]
    check: Check
    files: Mapping[str, str] = {}
    piped: str = ""
    about_files: bool = False


def case(
    case_id: str,
    topic: Topic,
    *requests: str,
    check: Check,
    files: Mapping[str, str] | None = None,
    piped: str = "",
) -> EverydayCase:
    """One case. Those of files and projects may speak of missing files, others may not."""
    return EverydayCase(
        id=case_id,
        topic=topic,
        requests=requests,
        check=check,
        files=files or {},
        piped=piped,
        about_files=topic in {"files", "project"} or bool(files),
    )


def words_between(low: int, high: int) -> Check:
    """The answer has a sensible length."""

    def check(outcome: TaskOutcome) -> str:
        count = len(outcome.answer.split())
        return "" if low <= count <= high else f"the answer has {count} words"

    return check


def no_new_files(files: Mapping[str, str] | None = None) -> Check:
    """Nothing was put into the folder that nobody asked for, and nothing was changed."""
    known = files or {}

    def check(outcome: TaskOutcome) -> str:
        found = {
            str(path.relative_to(outcome.folder))
            for path in outcome.folder.rglob("*")
            if path.is_file()
            and not path.relative_to(outcome.folder).parts[0].startswith(".")
        }
        if extra := found - known.keys():
            return f"it made {sorted(extra)}"
        changed = [name for name, text in known.items() if outcome.text(name) != text]
        return f"it changed {changed}" if changed else ""

    return check


def code_passes(*asserts: str) -> Check:
    """The Python code in the answer runs, and what is asserted of it holds."""

    def check(outcome: TaskOutcome) -> str:
        code = "\n\n".join(_FENCE.findall(outcome.answer)) or outcome.answer
        return run_python(code + "\n" + "\n".join(asserts), outcome.folder)

    return check


def file_passes(name: str, *asserts: str) -> Check:
    """The Python file runs, and what is asserted of it holds."""
    return lambda outcome: run_python(
        outcome.text(name) + "\n" + "\n".join(asserts), outcome.folder
    )


def run_python(code: str, folder: Path) -> str:
    """What is wrong when the code runs in the folder; empty when nothing is."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", code],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_CODE_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "the code does not end"
    last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
    return f"the code fails: {last[0]}" if done.returncode else ""

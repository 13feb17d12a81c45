"""`hermes sessions` as a user runs it: undo, redo, diff, branch."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.app import build
from hermes.app.undo import shadows_of
from hermes.core.ports import ToolContext
from hermes.events import Bus
from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.settings import Home, Settings
from hermes.tools.shadow import ShadowKeeper

HERMES = Path(sys.executable).with_name("hermes")


def sessions(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    return subprocess.run(
        [HERMES, "sessions", *arguments],
        env={**kept, "HERMES_HOME": str(home)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A home with one session, whose only turn changed a file and made another."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("before\n")
    with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
        session = app.begin(SessionCreated(surface="test", cwd=str(work))).session
        keeper = ShadowKeeper(shadows_of(app))
        (said,) = app.record(session, UserMessage(text="change the notes"))
        app.record(session, TurnStarted(inputs=(said.seq,)), turn="t")
        asyncio.run(
            keeper.keep(ToolContext("c", session, work, lambda _: None, "t"), ())
        )
        (work / "notes.txt").write_text("after \x1b[31mred\n")
        (work / "made.txt").write_text("new\n")
        asyncio.run(keeper.finish("t", work))
        app.record(
            session, AssistantMessage(text="Done."), TurnEnded(reason="done"), turn="t"
        )
    return work


def test_a_turn_is_shown_taken_back_and_brought_again(
    tmp_path: Path, work: Path
) -> None:
    home = tmp_path / "home"
    shown = sessions(home, "diff", "last").stdout
    assert "-before\n+after \\x1b[31mred\n" in shown
    assert "\x1b[31m" not in shown
    undone = sessions(home, "undo", "last")
    assert undone.stdout.splitlines() == [
        'Undone: 1 turn, from "change the notes" on.',
        "2 files restored:",
        "  made.txt",
        "  notes.txt",
    ]
    assert (work / "notes.txt").read_text() == "before\n"
    assert not (work / "made.txt").exists()
    assert sessions(home, "redo", "last").stdout.startswith(
        "Redone: 1 turn.\n2 files restored:\n"
    )
    assert (work / "made.txt").read_text() == "new\n"


def test_what_was_changed_since_is_left_and_what_to_do_is_said(
    tmp_path: Path, work: Path
) -> None:
    home = tmp_path / "home"
    (work / "notes.txt").write_text("mine\n")
    out = sessions(home, "undo", "last").stdout
    assert (
        "1 file left as it is now:\n  notes.txt (it was changed after the turn)\n"
        in out
    )
    assert "hermes sessions redo last, then undo with --force" in out
    assert (work / "notes.txt").read_text() == "mine\n"
    sessions(home, "redo", "last")
    sessions(home, "undo", "last", "--force")
    assert (work / "notes.txt").read_text() == "before\n"


def test_the_conversation_alone_can_be_taken_back(tmp_path: Path, work: Path) -> None:
    assert (
        "Undone: 1 turn"
        in sessions(tmp_path / "home", "undo", "last", "--keep-files").stdout
    )
    assert (work / "made.txt").exists()


def test_a_branch_is_a_session_of_its_own(tmp_path: Path, work: Path) -> None:
    home = tmp_path / "home"
    said = sessions(home, "branch", "last").stdout
    new = said.split()[-1]
    assert "hermes --resume" in said
    assert "change the notes" in sessions(home, "show", new).stdout
    assert work.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("undo", "last", "--turns", "2"), 2, "There is only 1 turn to undo."),
        (("redo", "last"), 2, "There is nothing to redo."),
        (("branch", "last", "--at", "9999"), 1, "has rows 1 to"),
        (("undo", "nobody"), 1, "there is no session"),
    ],
)
def test_what_can_not_be_done_is_said(
    tmp_path: Path, work: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = sessions(tmp_path / "home", *arguments)
    assert (done.returncode, words in done.stderr) == (code, True)
    assert (work / "made.txt").exists()


@pytest.mark.parametrize("action", ["undo", "redo", "diff", "branch"])
def test_where_there_are_no_sessions_none_is_made(tmp_path: Path, action: str) -> None:
    done = sessions(tmp_path / "home", action, "last")
    assert done.returncode == 1
    assert not (tmp_path / "home").exists()

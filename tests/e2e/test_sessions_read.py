"""`hermes sessions` as a user runs it: list, show, search, check."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.schema.events import SessionCreated, SessionTitled, TurnEnded
from hermes.schema.messages import (
    AssistantMessage,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.store import open_store
from hermes.testing import FakeClock

HERMES = Path(sys.executable).with_name("hermes")
TALK, EMPTY = "20261112-101500-a1b2c3", "20261114-120000-0f0f0f"
EVIL = "\x1b]0;owned\x07"


def sessions(
    home: Path, *arguments: str, **extra: str
) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    return subprocess.run(
        [HERMES, "sessions", *arguments],
        env={**kept, "HERMES_HOME": str(home), **extra},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a talk of two hours ago and a newer, empty session."""
    clock = FakeClock(time.time() - 7210)
    usage = Usage(input_tokens=1000, output_tokens=200, cost_usd=0.25)
    call = ToolCall(id="c1", name="read_file", arguments='{"path": "src/parser.py"}')
    with open_store(tmp_path / "state.db", clock=clock) as store:
        store.log.create(TALK, SessionCreated(surface="cli", cwd="/work"))
        store.log.append(
            TALK,
            UserMessage(text="Why does the parser fail? 解析器"),
            AssistantMessage(
                tool_calls=(call,),
                finish="tool_calls",
                model="m-1",
                provider="p",
                usage=usage,
            ),
            ToolFinished(call_id="c1", name="read_file", text="x = 1\n" * 500),
            AssistantMessage(
                text=f"It reads past the end.{EVIL}", model="m-1", provider="p"
            ),
            TurnEnded(reason="done", usage=usage),
            SessionTitled(title=f"Fix the parser{EVIL}"),
        )
        clock.advance(3600)
        store.log.create(EMPTY, SessionCreated(surface="tui"))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("list",), 0),
        (("search", "word"), 0),
        (("check",), 0),
        (("prune", "--older-than", "1d"), 0),
        (("show", "last"), 1),
        (("export", "last"), 1),
        (("rename", "last", "x"), 1),
        (("delete", "last"), 1),
    ],
)
def test_without_sessions_commands_say_so_and_create_nothing(
    tmp_path: Path, command: tuple[str, ...], code: int
) -> None:
    done = sessions(tmp_path / "home", *command)
    assert done.returncode == code
    assert "sessions yet" in (done.stdout + done.stderr)
    assert "hermes sessions import FILE" in (done.stdout + done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_without_sessions_json_is_still_json(tmp_path: Path) -> None:
    assert json.loads(sessions(tmp_path, "list", "--json").stdout) == {"sessions": []}
    assert json.loads(sessions(tmp_path, "search", "a", "--json").stdout) == {
        "hits": []
    }


def test_the_list_shows_the_newest_first_and_fits_eighty_columns(home: Path) -> None:
    done = sessions(home, "list")
    lines = done.stdout.splitlines()
    assert [line[:22] for line in lines[1:]] == [EMPTY, TALK]
    assert "2 h ago" in lines[2]
    assert "$0.25" in lines[2]
    assert "Fix the parser" in lines[2]
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in done.stdout


def test_the_list_says_when_there_is_more(home: Path) -> None:
    assert "list --all" in sessions(home, "list", "--limit", "1").stdout
    assert "list --all" not in sessions(home, "list", "--all").stdout


def test_the_list_as_json_names_fields_as_events_do(home: Path) -> None:
    newest, talk = json.loads(sessions(home, "list", "--json").stdout)["sessions"]
    assert newest["session_id"] == EMPTY
    assert (talk["session_id"], talk["seq"], talk["title"]) == (
        TALK,
        7,
        f"Fix the parser{EVIL}",
    )
    assert talk["cost_usd"] == 0.25


def test_a_transcript_reads_well_and_hides_nothing_silently(home: Path) -> None:
    done = sessions(home, "show", TALK[:10])
    assert done.returncode == 0, done.stderr
    for expected in (
        "Why does the parser fail? 解析器",
        "→ Read src/parser.py",
        "more characters (--json shows all)",
        r"It reads past the end.\x1b]0;owned\x07",
        "turn ended · 1,000 tokens in, 200 out · $0.25",
    ):
        assert expected in done.stdout
    assert "\x1b" not in done.stdout


def test_every_row_is_listed_when_asked_for(home: Path) -> None:
    lines = sessions(home, "show", TALK, "--events", "--after", "2").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["3", "4", "5", "6", "7"]
    assert "session.titled" in lines[-1]


def test_rows_as_json_are_envelopes_with_nothing_changed(home: Path) -> None:
    rows = [
        json.loads(line)
        for line in sessions(home, "show", TALK, "--json").stdout.splitlines()
    ]
    assert [row["seq"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert {"type", "ts", "src", "session_id", "turn_id", "epoch", "seq"} <= rows[
        0
    ].keys()
    assert rows[4]["text"] == f"It reads past the end.{EVIL}"


def test_json_is_utf_8_whatever_the_terminal_speaks(home: Path) -> None:
    done = sessions(
        home,
        "show",
        TALK,
        "--json",
        LC_ALL="C",
        PYTHONIOENCODING="ascii",
        PYTHONUTF8="0",
    )
    assert json.loads(done.stdout.splitlines()[1])["text"].endswith("解析器")


def test_an_empty_session_says_that_it_is(home: Path) -> None:
    assert "No messages yet" in sessions(home, "show", "last").stdout
    assert "the last one is 1" in sessions(home, "show", "last", "--after", "9").stdout


def test_a_session_is_found_by_its_title(home: Path) -> None:
    assert sessions(home, "show", f"Fix the parser{EVIL}").returncode == 0


def test_names_that_fit_none_or_several_are_errors_that_say_what_to_do(
    home: Path,
) -> None:
    none, several = sessions(home, "show", "nothing"), sessions(home, "show", "2026")
    assert (none.returncode, several.returncode) == (1, 1)
    assert "sessions list" in none.stderr
    assert "Give more of the id" in several.stderr


def test_a_name_that_is_not_text_is_wrong_usage(home: Path) -> None:
    for action in ("show", "search", "export", "delete"):
        done = sessions(home, action, "\udcff")
        assert done.returncode == 2
        assert "not UTF-8 text" in done.stderr


def test_search_finds_words_and_cjk_and_marks_them(home: Path) -> None:
    done = sessions(home, "search", "PARSER", HERMES_DISPLAY_COLOR="always")
    assert "the \x1b[33mparser\x1b[0m fail" in done.stdout
    assert "2 h ago · you · row 2" in done.stdout
    assert TALK in sessions(home, "search", "解析").stdout


def test_search_as_json_gives_the_place_of_each_hit(home: Path) -> None:
    hits = json.loads(
        sessions(home, "search", "parser", "--session", TALK, "--json").stdout
    )["hits"]
    assert {(hit["session_id"], hit["seq"], hit["role"]) for hit in hits} == {
        (TALK, 2, "user"),
        (TALK, 3, "assistant"),
    }
    assert json.loads(
        sessions(home, "search", "parser", "--session", EMPTY, "--json").stdout
    ) == {"hits": []}


def test_a_search_without_hits_or_words_says_what_to_do(home: Path) -> None:
    assert "Nothing was found" in sessions(home, "search", "zebra").stdout
    without = sessions(home, "search", "...")
    assert without.returncode == 1
    assert "at least one word" in without.stderr


def test_a_sound_log_is_counted(home: Path) -> None:
    done = sessions(home, "check")
    assert done.returncode == 0
    assert "2 sessions and 8 rows" in done.stdout


def test_a_damaged_database_is_recovered_and_every_command_would_say_so(
    home: Path,
) -> None:
    data = bytearray((home / "state.db").read_bytes())
    data[:4096] = b"\xff" * 4096
    (home / "state.db").write_bytes(data)
    done = sessions(home, "list")
    assert "was damaged" in done.stderr
    assert "state.db.damaged-" in done.stderr
    assert TALK in done.stdout
    assert sessions(home, "check").returncode == 0


def test_a_check_that_had_to_recover_fails(home: Path) -> None:
    (home / "state.db").write_text("not a database at all")
    done = sessions(home, "check")
    assert done.returncode == 1
    assert "was damaged" in done.stderr

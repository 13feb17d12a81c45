"""`hermes sessions` as a user runs it: export, import, rename, delete, prune."""

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.schema.events import SessionCreated, SessionTitled
from hermes.schema.messages import UserMessage
from hermes.store import open_store
from hermes.testing import FakeClock

HERMES = Path(sys.executable).with_name("hermes")
OLD, NEW = "20260101-000000-aaaaaa", "20261112-101500-bbbbbb"
DAY = 86400.0


def start(home: Path, arguments: tuple[str, ...], stdin: int) -> subprocess.Popen[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    return subprocess.Popen(
        [HERMES, "sessions", *arguments],
        env={**kept, "HERMES_HOME": str(home)},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def sessions(
    home: Path, *arguments: str, given: str = ""
) -> subprocess.CompletedProcess[str]:
    with start(home, arguments, subprocess.PIPE) as process:
        out, err = process.communicate(given, timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def answering(
    home: Path, answer: bytes, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command whose stdin is a terminal on which somebody types `answer`."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        with start(home, arguments, theirs) as process:
            out, err = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def ids(home: Path) -> list[str]:
    return [
        row["session_id"]
        for row in json.loads(sessions(home, "list", "--json").stdout)["sessions"]
    ]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session of a hundred days ago and one of today."""
    root = tmp_path / "home"
    root.mkdir(0o700)
    clock = FakeClock(time.time() - 100 * DAY)
    with open_store(root / "state.db", clock=clock) as store:
        store.log.create(OLD, SessionCreated())
        store.log.append(
            OLD, UserMessage(text="old 中文"), SessionTitled(title="Old talk")
        )
        clock.advance(100 * DAY)
        store.log.create(NEW, SessionCreated())
        store.log.append(NEW, UserMessage(text="new"))
    return root


def test_an_exported_session_comes_back_the_same_elsewhere(
    home: Path, tmp_path: Path
) -> None:
    target, elsewhere = tmp_path / "talk.jsonl", tmp_path / "elsewhere"
    done = sessions(home, "export", "Old talk", "-o", str(target))
    assert done.returncode == 0, done.stderr
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "talk.jsonl"]
    assert target.read_text() == sessions(home, "export", OLD).stdout
    assert OLD in sessions(elsewhere, "import", str(target)).stdout
    assert elsewhere.stat().st_mode & 0o777 == 0o700
    assert "old 中文" in sessions(elsewhere, "show", "Old talk").stdout


def test_an_existing_file_is_only_replaced_by_force(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "talk.jsonl"
    target.write_text("mine")
    refused = sessions(home, "export", OLD, "-o", str(target))
    assert refused.returncode == 3
    assert "--force" in refused.stderr
    assert target.read_text() == "mine"
    assert sessions(home, "export", OLD, "-o", str(target), "--force").returncode == 0
    assert json.loads(target.read_text().splitlines()[0])["session_id"] == OLD


def test_what_is_not_a_file_is_never_replaced(home: Path, tmp_path: Path) -> None:
    assert sessions(home, "export", OLD, "-o", str(tmp_path), "--force").returncode == 1
    missing = sessions(home, "export", OLD, "-o", str(tmp_path / "no" / "x.jsonl"))
    assert missing.returncode == 1
    assert "Nothing was written" in missing.stderr


def test_a_session_whose_id_is_taken_is_imported_under_a_new_one(home: Path) -> None:
    text = sessions(home, "export", OLD).stdout
    done = sessions(home, "import", "-", given=text)
    assert done.returncode == 0, done.stderr
    assert "new one" in done.stdout
    assert len(ids(home)) == 3


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b'{"format": "other"}\n', b"{}\n" * 3]
)
def test_a_file_that_is_no_session_is_rejected_and_changes_nothing(
    home: Path, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_bytes(content)
    done = sessions(home, "import", str(file))
    assert done.returncode == 1
    assert "Nothing was imported" in done.stderr
    assert ids(home) == [NEW, OLD]


def test_a_missing_file_is_named(home: Path, tmp_path: Path) -> None:
    done = sessions(home, "import", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "can't be read (no such file" in done.stderr
    assert sessions(home, "import", str(tmp_path)).returncode == 1
    assert (
        sessions(tmp_path / "fresh", "import", str(tmp_path / "none")).returncode == 1
    )
    assert not (tmp_path / "fresh").exists()


def test_a_session_is_renamed_by_a_row_of_its_log(home: Path) -> None:
    assert sessions(home, "rename", NEW, "A", "new", "title").returncode == 0
    row = json.loads(
        sessions(home, "show", "A new title", "--json").stdout.splitlines()[-1]
    )
    assert (row["type"], row["title"], row["seq"]) == (
        "session.titled",
        "A new title",
        3,
    )
    assert sessions(home, "rename", NEW, "").returncode == 0
    assert sessions(home, "rename", NEW, "x" * 201).returncode == 2


def test_nothing_is_deleted_without_a_yes(home: Path) -> None:
    for command in (("delete", OLD), ("prune", "--older-than", "90d")):
        done = sessions(home, *command)
        assert done.returncode == 3
        assert "--yes" in done.stderr
    assert ids(home) == [NEW, OLD]


def test_on_a_terminal_the_user_is_asked(home: Path) -> None:
    for answer in (b"n\n", b"\n", b"\x04"):
        done = answering(home, answer, "delete", OLD)
        assert "Delete 1 session permanently? [y/N]" in done.stderr
        assert done.returncode == 3
    assert ids(home) == [NEW, OLD]
    done = answering(home, b"y\n", "delete", OLD)
    assert done.returncode == 0, done.stderr
    assert "1 session deleted (3 rows)" in done.stdout
    assert ids(home) == [NEW]


def test_several_sessions_are_deleted_at_once_and_none_if_one_is_unknown(
    home: Path,
) -> None:
    assert sessions(home, "delete", OLD, "nothing", "--yes").returncode == 1
    assert ids(home) == [NEW, OLD]
    assert (
        "2 sessions deleted" in sessions(home, "delete", OLD, NEW, OLD, "--yes").stdout
    )
    assert ids(home) == []
    assert "No sessions yet" in sessions(home, "list").stdout


def test_a_session_that_is_being_run_is_kept_and_the_others_go(home: Path) -> None:
    with open_store(home / "state.db") as store:
        store.leases.acquire(NEW)
        done = sessions(home, "delete", NEW, OLD, "--yes")
    assert done.returncode == 1
    assert "is being run by" in done.stderr
    assert "1 session deleted" in done.stdout
    assert ids(home) == [NEW]


def test_pruning_shows_what_goes_and_takes_only_what_is_old(home: Path) -> None:
    dry = sessions(home, "prune", "--older-than", "90d", "--dry-run")
    assert dry.returncode == 0
    assert "1 session, 3 rows, last used" in dry.stdout
    assert "Old talk" in dry.stdout
    assert ids(home) == [NEW, OLD]
    assert sessions(home, "prune", "--older-than", "12w", "--yes").returncode == 0
    assert ids(home) == [NEW]
    assert (
        "Nothing to delete"
        in sessions(home, "prune", "--older-than", "90d", "--yes").stdout
    )


def test_a_wrong_age_is_wrong_usage(home: Path) -> None:
    done = sessions(home, "prune", "--older-than", "soon", "--yes")
    assert done.returncode == 2
    assert "90d" in done.stderr


def test_the_json_copy_of_a_deleted_session_goes_too(home: Path) -> None:
    copy = home / "sessions" / f"session_{OLD}.json"
    copy.parent.mkdir()
    copy.write_text("{}")
    assert sessions(home, "delete", OLD, "--yes").returncode == 0
    assert not copy.exists()


def test_a_reader_that_goes_away_is_no_error_message(home: Path) -> None:
    with start(home, ("export", OLD), subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=60)
    assert err == ""
    assert process.returncode in {0, 141}

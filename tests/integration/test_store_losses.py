"""What a recovery says of the rows that it could not find: what is known, and never that all is well when it isn't."""

import re
from pathlib import Path

import pytest

from hermes.schema.events import SessionCreated, SessionRecovered
from hermes.schema.messages import UserMessage
from hermes.store import open_store
from hermes.store.sqlite.recovery import Recovery

PAGE = 4096
ROWS = 201
REASSURANCE = "no row is known to be missing"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed database with one session of 201 rows."""
    path = tmp_path_factory.mktemp("sound") / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        for number in range(ROWS - 1):
            store.log.append("s", UserMessage(text=f"{number} " + "x" * 500))
    return path.read_bytes()


def recovered(folder: Path, content: bytes | None, wal: bytes = b"") -> Recovery:
    folder.mkdir(exist_ok=True)
    path = folder / "state.db"
    if content is not None:
        path.write_bytes(content)
    if wal:
        path.with_name("state.db-wal").write_bytes(wal)
    with open_store(path) as store:
        assert store.recovery
        for info in store.sessions.recent():
            notes = [
                row.event
                for row in store.log.every_event(info.id)
                if row.type == SessionRecovered.topic
            ]
            assert [
                note.lost for note in notes if isinstance(note, SessionRecovered)
            ] == [0]
        assert store.check().problems == []
        return store.recovery


def test_a_cut_file_says_where_it_ends_and_how_many_rows_its_list_of_sessions_knew(
    tmp_path: Path, sound: bytes
) -> None:
    pages = len(sound) // PAGE
    for kept in (pages // 2, pages - 1):
        recovery = recovered(tmp_path / str(kept), sound[: kept * PAGE + 100])
        assert f"can't be known: the file ends after page {kept} of {pages}" in str(
            recovery
        )
        assert REASSURANCE not in str(recovery)
        assert recovery.lost == ROWS - recovery.rows > 0
        assert f"at least {recovery.lost} rows are missing" in str(recovery)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_file_of_which_hardly_anything_is_left_is_not_called_whole(
    tmp_path: Path, sound: bytes, kept: int
) -> None:
    recovery = recovered(tmp_path, sound[: kept * PAGE])
    assert re.search(
        rf"can't be known: the file ends after page {kept} of \d+", str(recovery)
    )
    assert REASSURANCE not in str(recovery)


def test_an_emptied_or_headless_file_is_not_called_whole(
    tmp_path: Path, sound: bytes
) -> None:
    for number, (content, told) in enumerate(
        [
            (b"", "the file is empty"),
            (b"hello", "lost its header"),
            (bytes(PAGE) + sound[PAGE:], "lost its header"),
            (
                sound[:24]
                + b"\1\2\3\4"
                + bytes(4)
                + sound[32:60]
                + bytes(4)
                + sound[64:],
                "how long the file was",
            ),
        ]
    ):
        recovery = recovered(tmp_path / str(number), content)
        assert "how many rows are missing can't be known" in str(recovery)
        assert told in str(recovery)
        assert REASSURANCE not in str(recovery)


def test_a_database_that_is_gone_but_for_its_log_is_not_called_whole(
    tmp_path: Path,
) -> None:
    recovery = recovered(tmp_path, None, wal=b"x" * 500)
    assert "can't be known: the file is gone" in str(recovery)
    assert REASSURANCE not in str(recovery)


def test_a_whole_file_with_a_flaw_that_costs_no_row_says_so(
    tmp_path: Path, sound: bytes
) -> None:
    recovery = recovered(tmp_path, sound[:60] + bytes(4) + sound[64:])
    assert (recovery.rows, recovery.lost, recovery.gone) == (ROWS, 0, "")
    assert REASSURANCE in str(recovery)

"""Frames: what the prompts of many sessions have in common is kept once, and nothing can be told from the rows."""

from contextlib import closing
from pathlib import Path

import pytest

from hermes.errors import StoreDamaged
from hermes.schema.events import SessionCreated, SessionPrompted
from hermes.schema.messages import UserMessage
from hermes.schema.tool_spec import ToolSpec
from hermes.store import Store, open_store
from hermes.store.log_row import draft
from hermes.store.sqlite.connection import connect

TOOLS = tuple(
    ToolSpec(name=f"tool{n}", description="does a thing " * 20, parameters={})
    for n in range(20)
)


def prompt(
    number: int, *, stable: str = "be good", tools: tuple[ToolSpec, ...] = TOOLS
) -> SessionPrompted:
    return SessionPrompted(
        system=(stable, f'Notes: "{number}" \\ \0 ä', f"Today. Folder: /home/{number}"),
        tools=tools,
    )


def begin(store: Store, number: int, event: SessionPrompted | None = None) -> str:
    name = f"s{number}"
    store.log.create(name, SessionCreated())
    store.log.append(name, event or prompt(number), UserMessage(text="hello"))
    return name


def ask(path: Path, query: str) -> int:
    with closing(connect(path, busy_timeout=1)) as connection:
        return int(connection.execute(query).get)


def test_prompts_come_back_byte_for_byte_and_cost_a_fraction(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(tmp_path / "empty.db"):
        pass
    empty_bytes = (tmp_path / "empty.db").stat().st_size
    with open_store(path) as store:
        for number in range(200):
            begin(store, number)
        for number in range(200):
            (_, row, _) = store.log.events(f"s{number}")
            assert row.data == draft(prompt(number)).data
            assert row.event == prompt(number)
        assert store.check().problems == []
    assert ask(path, "SELECT count(*) FROM frames") == 1
    added_bytes = path.stat().st_size - empty_bytes
    assert added_bytes < 200 * len(draft(prompt(0)).data) / 8


@pytest.mark.parametrize(
    "event",
    [
        SessionPrompted(system=()),
        SessionPrompted(system=("short",)),
        prompt(1, tools=()),
        prompt(1, stable="\0" * 600, tools=()),
        SessionPrompted(system=("alone " * 200,), tools=TOOLS),
    ],
)
def test_prompts_of_any_shape_come_back(tmp_path: Path, event: SessionPrompted) -> None:
    with open_store(tmp_path / "state.db") as store:
        begin(store, 1, event)
        assert store.log.events("s1")[1].event == event


def test_a_frame_goes_with_the_last_session_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        for number in range(3):
            begin(store, number)
        begin(store, 3, prompt(3, stable="be secret"))
        store.sessions.delete("s3")
        assert (
            ask(path, "SELECT count(*) FROM frames WHERE text LIKE '%be secret%'") == 0
        )
        for number in range(3):
            assert ask(path, "SELECT count(*) FROM frames") == 1
            store.sessions.delete(f"s{number}")
        assert ask(path, "SELECT count(*) FROM frames") == 0


def test_a_branch_and_an_exported_session_have_the_whole_prompt(tmp_path: Path) -> None:
    with open_store(tmp_path / "state.db") as store:
        begin(store, 1)
        store.log.branch("s1", "branch")
        lines = list(store.transfer.export("branch"))
        store.sessions.delete("s1")
        store.sessions.delete("branch")
        store.transfer.import_lines(lines, fresh_id="new")
        assert store.log.events("branch")[1].event == prompt(1)


def test_a_rebuilt_database_has_every_prompt(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        for number in range(50):
            begin(store, number, prompt(number, stable=f"be good {number % 2}"))
    page = ask(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'jobs'")
    content = path.read_bytes()
    path.write_bytes(
        content[: (page - 1) * 4096] + bytes(4096) + content[page * 4096 :]
    )
    with open_store(path) as store:
        assert store.recovery
        assert store.recovery.lost == 0
        assert all(
            store.log.events(f"s{number}")[1].event
            == prompt(number, stable=f"be good {number % 2}")
            for number in range(50)
        )
    assert ask(path, "SELECT count(*) FROM frames") == 2


def test_a_frame_that_has_changed_is_not_served(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        begin(store, 1)
        with closing(connect(path, busy_timeout=1)) as connection:
            connection.execute(
                "UPDATE frames SET text = replace(text, 'be good', 'be evil')"
            )
        with pytest.raises(StoreDamaged, match="checksum"):
            store.log.events("s1")
    with open_store(path) as store:
        assert store.recovery
        assert "be evil" not in str(store.log.events("s1"))

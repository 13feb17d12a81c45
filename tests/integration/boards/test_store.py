"""Boards on each database: what two processes do at once happens once, and nothing is half done."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from tests.fakes.store_engines import OpenStore

from hermes.app.boards import card_rules as rules
from hermes.app.boards.card_rules import RunEnding, RunLimits
from hermes.app.boards.claims import ClaimedCard, claim_ready, settle
from hermes.errors import UsageError
from hermes.schema.boards import (
    Board,
    Card,
    CardAttachment,
    CardCommented,
    CardRun,
    CardStatus,
)
from hermes.schema.events import SessionCreated
from hermes.schema.messages import AssistantMessage, Usage
from hermes.settings.boards import BoardSettings
from hermes.store import Store, open_store
from hermes.store.boards import BoardReader, BoardStore, BoardTransaction
from hermes.store.copying import copy_store
from hermes.testing import FakeClock

LIMITS = RunLimits(retries=3, cooldown_s=60.0)
MANY = BoardSettings(max_running=100)


@pytest.fixture
def store(open_database: OpenStore) -> Iterator[Store]:
    with open_database() as opened:
        yield opened


def put(store: Store, *cards: Card) -> None:
    def write(tx: BoardTransaction) -> None:
        tx.put_board(Board(slug="b", name="B", created=1.0))
        for card in cards:
            tx.insert(card)

    store.boards.change(write)


def card(name: str, status: CardStatus = "ready", **fields: object) -> Card:
    made = {"id": name, "board": "b", "title": name, "created": 1.0} | fields
    return Card(**{"status": status, **made})  # pyrefly: ignore


def claim(store: BoardStore, settings: BoardSettings = MANY) -> list[ClaimedCard]:
    return store.change(lambda tx: claim_ready(tx, settings, store.owner))[0]


def status(store: Store, name: str) -> str:
    found = store.boards.read(lambda reader: reader.card(name))
    assert found is not None
    return found.status


def test_of_two_processes_one_claims_a_card(
    open_database: OpenStore, store: Store
) -> None:
    put(store, *(card(f"t_{number}", priority=number) for number in range(20)))
    with open_database() as other, ThreadPoolExecutor(2) as pool:
        both = list(pool.map(claim, (store.boards, other.boards)))
    claimed = [one.card.id for batch in both for one in batch]
    assert len(claimed) == len(set(claimed)) == 20
    assert len(store.boards.read(lambda reader: reader.open_runs())) == 20
    assert claim(store.boards) == []


def test_the_highest_priority_starts_first_and_limits_hold(store: Store) -> None:
    put(
        store,
        card("t_low"),
        card("t_high", priority=9, assignee="ann"),
        card("t_next", priority=8, assignee="ann"),
        card("t_later", priority=10, due=9e18),
    )
    settings = BoardSettings(max_running=2, max_per_agent=1)
    assert [one.card.id for one in claim(store.boards, settings)] == ["t_high", "t_low"]
    assert claim(store.boards, settings) == [], "the limit is reached"
    assert status(store, "t_next") == status(store, "t_later") == "ready"


def test_a_run_whose_process_is_gone_ends_once_as_its_worker_closed_it(
    store: Store,
) -> None:
    put(store, card("t_1"), card("t_2"), card("t_3"))
    elsewhere = BoardStore(store.database, FakeClock(0.0), owner="elsewhere:1:2")
    claimed = {one.card.id: one.run for one in claim(elsewhere)}
    assert len(claimed) == 3
    done = RunEnding(outcome="completed", summary="all of it")

    def close(tx: BoardTransaction) -> None:
        import msgspec

        run = tx.run(claimed["t_2"].id)
        assert run is not None
        closing = msgspec.json.encode(done).decode()
        tx.put_run(msgspec.structs.replace(run, closing=closing, session="s"))

    store.boards.change(close)
    expire = "UPDATE card_runs SET expires = 1"
    store.database.write(lambda connection: connection.execute(expire).fetchall())

    def sweep() -> list[CardRun]:
        return store.boards.change(lambda tx: settle(tx, store.boards, LIMITS))[0]

    assert {run.card for run in sweep()} == {"t_1", "t_2", "t_3"}
    assert sweep() == []
    assert (status(store, "t_1"), status(store, "t_2")) == ("ready", "done")
    outcomes = dict(store.boards.read(lambda reader: reader.outcomes(0.0)))
    assert outcomes == {"completed": 1, "crashed": 2}


def test_a_refused_change_changes_nothing(store: Store) -> None:
    put(store, card("t_a", "todo"), card("t_b", "todo"))

    def circle(tx: BoardTransaction) -> None:
        a, b = tx.card("t_a"), tx.card("t_b")
        assert a is not None
        assert b is not None
        rules.link(tx, a, b, by="test")
        rules.link(tx, b, a, by="test")

    with pytest.raises(UsageError, match="already waits"):
        store.boards.change(circle)
    assert store.boards.read(lambda reader: reader.links(["t_a", "t_b"])) == []
    assert store.boards.read(lambda reader: reader.history()) == []


def test_workers_that_block_in_turn_for_two_kinds_of_reasons_do_not_go_on_for_ever(
    store: Store,
) -> None:
    put(store, card("t_1"), card("t_2", "done"))
    blocks = 0
    for _ in range(10):
        for kind in ("transient", "dependency"):
            (claimed,) = claim(store.boards) or (None,)
            if claimed is None:
                break
            ending = RunEnding(outcome="blocked", reason="not yet", kind=kind)
            run = claimed.run

            def end(tx: BoardTransaction, run: CardRun = run, ending: RunEnding = ending) -> None:  # fmt: skip
                first, mine = tx.card("t_2"), tx.card("t_1")
                assert first is not None
                assert mine is not None
                first = tx.put(msgspec.structs.replace(first, status="todo"))
                if ending.kind == "dependency" and not tx.parents("t_1"):
                    rules.link(tx, first, mine, by="worker of t_1")
                rules.finish_run(tx, run, ending, RunLimits(retries=3, cooldown_s=0.0))
                rules.complete(tx, first, "done", by="worker of t_2")

            store.boards.change(end)
            blocks += 1
    assert (status(store, "t_1"), blocks) == ("triage", 4)


def test_what_sessions_and_their_children_used_is_added_up(store: Store) -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5)
    for name, parent in (("one", ""), ("child", "one"), ("two", ""), ("other", "")):
        kind = "child" if parent else "root"
        store.log.create(name, SessionCreated(kind=kind, parent=parent, root=parent))
        reply = AssistantMessage(text="x", provider="p", model="m", usage=usage)
        store.log.append(name, reply)
    spent = store.boards.read(lambda reader: reader.spent(["one", "two"]))
    assert spent == (1.5, 45)
    assert store.boards.read(lambda reader: reader.spent([])) == (0.0, 0)
    costs = store.boards.read(lambda reader: reader.costs(["one", "child", "none"]))
    assert costs == {"one": 1.0, "child": 0.5}


def test_what_a_list_of_cards_shows_is_read_for_those_cards(store: Store) -> None:
    put(
        store,
        card("t_1", "done", labels=("docs", "auth")),
        card("t_2", "todo", labels=("auth",)),
        card("t_3", "todo"),
    )

    def more(tx: BoardTransaction) -> None:
        tx.link("t_1", "t_2")
        tx.link("t_2", "t_3")
        tx.attach(CardAttachment("a_1", "t_3", "x.bin", 3, "me", 1.0), b"\0\1\2")
        tx.note(CardCommented(board="b", card="t_2", text="hello"))

    store.boards.change(more)

    def read(reader: BoardReader) -> None:
        assert reader.labels("b") == ["auth", "docs"]
        assert reader.links(["t_1"]) == [("t_1", "t_2", "done")]
        assert [link[:2] for link in reader.links(["t_2"])] == [
            ("t_1", "t_2"),
            ("t_2", "t_3"),
        ]
        assert reader.extras(["t_1", "t_2", "t_3"]) == {"t_2": (1, 0), "t_3": (0, 1)}
        assert reader.extras(["t_1"]) == {}

    store.boards.read(read)


def test_the_history_is_in_order_and_read_from_a_number(store: Store) -> None:
    put(store, card("t_1"))
    (claimed,) = claim(store.boards)
    ending = RunEnding(outcome="blocked", reason="no key", kind="capability")
    store.boards.change(lambda tx: rules.finish_run(tx, claimed.run, ending, LIMITS))
    rows = store.boards.read(lambda reader: reader.history("t_1"))
    assert [row.topic for row in rows] == [
        "kanban.run.started",
        "kanban.card.moved",
        "kanban.run.ended",
        "kanban.card.moved",
    ]
    numbers = [row.id for row in rows]
    assert numbers == sorted(numbers)
    later = store.boards.read(lambda reader: reader.history_after(numbers[1]))
    assert [row.id for row in later] == numbers[2:]


def test_everything_is_copied_into_another_store(store: Store, tmp_path: Path) -> None:
    put(store, card("t_1"), card("t_2", "todo"))
    claim(store.boards)

    def more(tx: BoardTransaction) -> None:
        tx.link("t_1", "t_2")
        tx.attach(CardAttachment("a_1", "t_1", "x.bin", 3, "me", 1.0), b"\0\1\2")

    store.boards.change(more)
    with open_store(tmp_path / "copy.db") as target:
        report = copy_store(store, target)
        assert report.others["cards"] == 2
        assert report.others["card_attachments"] == 1
        assert target.boards.read(lambda r: r.attachment_data("a_1")) == b"\0\1\2"
        assert target.boards.read(lambda r: r.parents("t_2")) == ["t_1"]

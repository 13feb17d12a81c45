"""Schedules, people and claims, on each database: what two processes do at once happens once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec
import pytest
from tests.fakes.store_engines import OpenStore

from hermes.core.history import ConversationHistory
from hermes.errors import AnsweredAlready, NotFound
from hermes.schema.events import MessageWithdrawn, SessionCreated, TurnStarted
from hermes.schema.messages import Usage, UserMessage
from hermes.schema.schedules import Every, Instant, Job
from hermes.store import Store
from hermes.store.people import KnownPerson, PairingRequest
from hermes.store.schedules import WAITING, ScheduleStore
from hermes.store.sessions import FiledAs
from hermes.testing import FakeClock

JOB = Job(
    id="j1",
    name="daily",
    prompt="do it",
    schedule="every 1h",
    rule=Every(seconds=3600.0, since=0.0),
    zone="UTC",
    created=1.0,
)


@pytest.fixture
def store(open_database: OpenStore) -> Iterator[Store]:
    with open_database() as opened:
        yield opened


def planned(due: float) -> Instant:
    return Instant(job="j1", due=due, starts=due, cause="schedule")


def test_one_of_two_processes_runs_an_instant_and_plans_the_next(
    open_database: OpenStore, store: Store
) -> None:
    store.schedules.put(JOB, dropped="", following=planned(10.0))
    with open_database() as other, ThreadPoolExecutor(2) as pool:

        def after(job: Job) -> tuple[Job, Instant | None]:
            return msgspec.structs.replace(job, times=7), planned(20.0)

        def claim(one: Store) -> Instant | None:
            return one.schedules.claim(planned(10.0), after)

        both = pool.map(claim, (store, other))
        taken = [instant for instant in both if instant is not None]
        assert [one.state for one in taken] == ["running"]
        assert [one.due for one in store.schedules.planned()] == [20.0]
        assert other.schedules.find("daily").times == 7
        assert other.schedules.claim(planned(20.0)) is None, "a job runs once at a time"
        assert store.schedules.renew(taken[0])
        store.schedules.belongs_to(taken[0], "s")
        assert store.schedules.end(taken[0], "done", delivery=WAITING)
        assert not other.schedules.end(taken[0], "failed")
    assert [one.session for one in store.schedules.undelivered()] == ["s"]
    assert store.schedules.delivered(taken[0], "telegram")
    assert not store.schedules.delivered(taken[0], "telegram")
    assert [one.state for one in store.schedules.latest()] == ["done"]
    assert [one.due for one in store.schedules.history("j1")] == [10.0]
    assert store.schedules.forget(before=9e18) == 1


def test_a_run_whose_time_is_up_ends_once(store: Store) -> None:
    store.schedules.put(JOB, dropped="", following=planned(10.0))
    elsewhere = ScheduleStore(store.database, FakeClock(0.0), owner="elsewhere:1:2")
    assert elsewhere.claim(planned(10.0))
    expire = "UPDATE instants SET expires = 1"
    store.database.write(lambda connection: connection.execute(expire).fetchall())
    assert [one.state for one in store.schedules.settle()] == ["failed"]
    assert store.schedules.settle() == []
    assert store.schedules.coming(5.0) is None


def test_a_change_replaces_what_was_planned(store: Store) -> None:
    store.schedules.put(JOB, dropped="", following=planned(10.0))
    changed, following = store.schedules.change(
        "j1",
        lambda job: msgspec.structs.replace(job, name="hourly"),
        lambda _: planned(30.0),
        dropped="changed",
    )
    assert (changed.name, following.due) == ("hourly", 30.0)
    assert [one.due for one in store.schedules.planned("j1")] == [30.0]
    assert [one.reason for one in store.schedules.history()] == ["changed"]
    assert store.schedules.due(40.0) == [planned(30.0)]
    with pytest.raises(NotFound):
        store.schedules.change("none", lambda job: job, lambda _: None, dropped="")


def test_people_are_put_found_and_removed(store: Store) -> None:
    anna = KnownPerson("telegram", "1", "Anna", "user", 1.0)
    store.people.put(anna)
    store.people.put(msgspec.structs.replace(anna, role="owner"))
    assert [one.role for one in store.people.every()] == ["owner"]
    assert store.people.find("telegram", "2") is None
    assert store.people.remove("telegram", "1")
    assert not store.people.remove("telegram", "1")


def test_only_so_many_wait_for_admission(store: Store) -> None:
    requests = [PairingRequest("telegram", str(n), "", "d", 5.0) for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        asked = pool.map(partial(store.people.ask, most=2, since=1.0), requests)
        assert sorted(asked) == [False, False, True, True]
    assert len(store.people.requests(since=1.0)) == 2
    assert store.people.requests(since=6.0) == []
    assert [store.people.failed(0.0, note=True) for _ in range(2)] == [1, 2]


def test_a_role_that_was_given_back_is_found_and_forgotten(
    open_database: OpenStore, store: Store
) -> None:
    held = store.roles.take("goal/one")
    assert held is not None
    with open_database() as other:
        other.roles.owner = "gone:1:2:3:4"
        assert other.roles.own("goal/one") is None
        assert other.roles.abandoned("goal/") == []
        other.roles.forget("goal/one")
        assert store.roles.own("goal/one") == held, "somebody has it"
        store.roles.release(held)
        assert [one.name for one in other.roles.abandoned("goal/")] == ["goal/one"]
        other.roles.forget("goal/one")
        assert store.roles.abandoned("goal/") == []


def test_claims_of_others_count_until_they_are_released(
    open_database: OpenStore, store: Store
) -> None:
    for name, parent in (("root", ""), ("child", "root"), ("stranger", "")):
        kind = "child" if parent else "root"
        store.log.create(name, SessionCreated(kind=kind, parent=parent, root="root"))
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5)
    for name in ("child", "stranger"):
        store.claims.make(name, "2026-01-01", usage)
        store.claims.make(name, "2026-01-01", usage)
    with open_database() as other:
        assert other.claims.of_others("root", "2026-01-01") == (30, 1.0)
        assert other.claims.of_others("root", "2026-01-02") == (0, 0.0)
        assert other.claims.of_others("root", "", family="root") == (15, 0.5)
        assert other.claims.of_families("root", ["root"]) == (15, 0.5)
        assert other.claims.of_families("x", ["root", "stranger"]) == (30, 1.0)
        assert other.claims.of_families("x", []) == (0, 0.0)
        store.claims.release("stranger")
        store.claims.make("child", "2026-01-01", Usage(input_tokens=1))
        _settle(store)
        assert other.claims.of_others("root", "2026-01-01") == (1, 0.0)


def _settle(store: Store) -> None:
    """Waits for what was submitted about claims."""
    store.database.submit(lambda _: None, order="claims stranger").result(30)


def test_a_message_is_taken_back_only_while_no_turn_has_read_it(store: Store) -> None:
    store.log.create("s", SessionCreated())
    first, second = store.log.append("s", UserMessage(text="a"), UserMessage(text="b"))
    store.log.append("s", TurnStarted(inputs=(first.seq,)), turn="t")
    store.log.append("s", MessageWithdrawn(message=second.seq))
    for number in (first.seq, second.seq, 1, 99):
        with pytest.raises(AnsweredAlready):
            store.log.append("s", MessageWithdrawn(message=number))
    history = ConversationHistory()
    for row in store.log.every_event("s"):
        history.add(row.seq, row.event, row.turn)
    assert not history.waiting
    assert [one.text for one in history.messages if isinstance(one, UserMessage)] == [
        "a"
    ]


def test_marks_stay_beside_the_log_and_go_with_the_session(store: Store) -> None:
    for name in ("a", "b"):
        store.log.create(name, SessionCreated())
    before = store.sessions.find("a")
    store.marks.pin(["a"], pinned=True)
    store.marks.move(["a", "b"], "Work")
    store.marks.archive(["b"], archived=True)
    store.marks.see("a", 3)
    found = store.sessions.find("a")
    assert (found.folder, found.seen, found.pinned > 0) == ("Work", 3, True)
    assert (found.updated, found.head) == (before.updated, before.head)
    listed = store.sessions.recent(filed=FiledAs())
    assert [one.id for one in listed] == ["a"]
    store.sessions.delete("a")
    store.marks.move(["b"], "")
    assert store.marks.folders() == []

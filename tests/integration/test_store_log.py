"""The log and its projections, against a model in plain Python."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.fakes.store_engines import OpenStore, StoreEngine
from tests.fakes.thoroughness import rounds

from hermes.errors import (
    AnsweredAlready,
    SessionNotFound,
    StoreDamaged,
    StoreError,
    TitledAlready,
)
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
    SessionCreated,
    SessionTitled,
    SessionUndone,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, ToolFinished, Usage, UserMessage
from hermes.store import Store, open_store
from hermes.store.answers import require_open
from hermes.store.log_row import Row, checksum
from hermes.store.sqlite.connection import connect
from hermes.store.sqlite.opener import SqliteStore
from hermes.testing import FakeClock

TEXT = st.text(max_size=30)
TOKENS = st.integers(0, 1000)
PRICES = st.sampled_from([None, 0.25, 2.0])
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(UserMessage, text=TEXT),
    st.builds(ToolFinished, call_id=TEXT, name=TEXT, text=TEXT, ok=st.booleans()),
    st.builds(
        AssistantMessage,
        text=TEXT,
        provider=st.just("p"),
        model=st.sampled_from(["", "m1", "m2"]),
        usage=st.none()
        | st.builds(
            Usage,
            input_tokens=TOKENS,
            output_tokens=TOKENS,
            cost_usd=st.none() | st.sampled_from([0.25, 2.0]),
        ),
    ),
    st.builds(TurnStarted),
    st.builds(TurnEnded, reason=st.just("done")),
)


class Ticking:
    """A clock that never stands still, so that every moment has its order."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        self.time += 1
        return self.time


@dataclass
class Model:
    """What the log should know of a session."""

    events: list[Event] = field(default_factory=list)
    copied: int = 0  # rows that a branch took from its parent

    @property
    def messages(self) -> list[Event]:
        return [event for event in self.events if event.role]

    @property
    def paid(self) -> list[Usage]:
        own = self.events[self.copied :]
        return [
            event.usage
            for event in own
            if isinstance(event, AssistantMessage) and event.usage
        ]


class LogMachine(RuleBasedStateMachine):
    """Random use of a real database; after each step everything the model says must be so."""

    sessions: Bundle[str] = Bundle("sessions")

    engine: StoreEngine

    def __init__(self) -> None:
        super().__init__()
        self.open = ExitStack()
        folder = Path(self.open.enter_context(TemporaryDirectory()))
        open_database = self.open.enter_context(self.engine.database(folder))
        self.store = self.open.enter_context(open_database(Ticking()))
        self.model: dict[str, Model] = {}
        self.made = 0

    def fresh(self) -> str:
        self.made += 1
        return f"session-{self.made}"

    @rule(target=sessions)
    def create(self) -> str:
        name = self.fresh()
        created = SessionCreated(surface="test")
        self.store.log.create(name, created)
        self.model[name] = Model([created])
        return name

    @rule(session=sessions, events=st.lists(EVENTS, min_size=1, max_size=4))
    def append(self, session: str, events: list[Event]) -> None:
        rows = self.store.log.append(session, *events)
        first = len(self.model[session].events) + 1
        assert [row.seq for row in rows] == list(range(first, first + len(events)))
        self.model[session].events += events

    @rule(session=sessions, events=st.lists(EVENTS, min_size=1, max_size=3))
    def a_refused_append_writes_nothing(
        self, session: str, events: list[Event]
    ) -> None:
        with pytest.raises(StoreError):
            self.store.log.append(session, *events, SessionCreated())

    @rule(session=sessions, title=TEXT)
    def title(self, session: str, title: str) -> None:
        event = SessionTitled(title=title)
        self.store.log.append(session, event)
        self.model[session].events.append(event)

    @rule(target=sessions, session=sessions, data=st.data())
    def branch(self, session: str, data: st.DataObject) -> str:
        parent = self.model[session]
        at = data.draw(st.none() | st.integers(1, len(parent.events)))
        last = len(parent.events) if at is None else at
        name = self.fresh()
        first = self.store.log.branch(session, name, at=at)
        assert isinstance(first.event, SessionCreated)
        assert (first.event.parent, first.event.parent_seq) == (session, last)
        self.model[name] = Model([first.event, *parent.events[1:last]], copied=last)
        return name

    @rule(target=sessions, session=sessions)
    def import_a_copy(self, session: str) -> str:
        lines = list(self.store.transfer.export(session))
        name = self.fresh()
        assert self.store.transfer.import_lines(lines, fresh_id=name).session == name
        last = self.store.log.events(name, after=len(self.model[session].events))
        assert [row.type for row in last] == ["session.imported"]
        note = last[0].event
        assert note
        self.model[name] = Model(
            [*self.model[session].events, note], copied=self.model[session].copied
        )
        return name

    @rule(session=consumes(sessions))
    def delete(self, session: str) -> None:
        assert self.store.sessions.delete(session) == len(
            self.model.pop(session).events
        )
        with pytest.raises(SessionNotFound):
            self.store.log.messages(session)

    @invariant()
    def the_log_holds_what_was_written(self) -> None:
        for session, model in self.model.items():
            rows = list(self.store.log.every_event(session))
            assert [row.event for row in rows] == model.events
            assert [row.seq for row in rows] == list(range(1, len(model.events) + 1))
            assert len({row.epoch for row in rows}) == 1
            assert self.store.log.messages(session) == model.messages

    @invariant()
    def the_projections_agree(self) -> None:
        assert {info.id for info in self.store.sessions.recent()} == self.model.keys()
        for session, model in self.model.items():
            info = self.store.sessions.find(session)
            titles = [
                event.title
                for event in model.events
                if isinstance(event, SessionTitled)
            ]
            models = [
                event.model
                for event in model.events
                if isinstance(event, AssistantMessage) and event.model
            ]
            assert info.head == len(model.events)
            assert info.messages == len(model.messages)
            assert info.turns == sum(
                isinstance(event, TurnEnded) for event in model.events
            )
            assert info.title == (titles[-1] if titles else "")
            assert info.model == (models[-1] if models else "")
            assert info.cost_usd == sum(usage.cost_usd or 0 for usage in model.paid)
            assert info.tokens == sum(
                usage.input_tokens + usage.output_tokens for usage in model.paid
            )

    @invariant()
    def money_is_counted_once(self) -> None:
        usages = [usage for model in self.model.values() for usage in model.paid]
        rows = self.store.sessions.usage()
        assert sum(row.calls for row in rows) == len(usages)
        assert sum(row.unpriced_calls for row in rows) == sum(
            usage.cost_usd is None for usage in usages
        )
        assert sum(row.cost_usd for row in rows) == sum(
            usage.cost_usd or 0 for usage in usages
        )

    def teardown(self) -> None:  # pyrefly: ignore[missing-override-decorator]
        problems = self.store.check().problems
        self.open.close()
        assert problems == []


def test_the_log_agrees_with_a_model(engine: StoreEngine) -> None:
    is_local = engine.name == "SQLite"

    class Machine(LogMachine):
        pass

    Machine.engine = engine
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=rounds(8, 25) if is_local else 2,
            stateful_step_count=25 if is_local else 8,
            deadline=None,
        ),
    )


@pytest.fixture
def store(open_database: OpenStore) -> Iterator[Store]:
    with open_database(Ticking()) as opened:
        yield opened


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a\0b", "x" * 201, "new\nline", "\ud800"]
)
def test_a_name_that_could_not_be_typed_is_refused(store: Store, name: str) -> None:
    with pytest.raises(StoreError, match="can't be the id"):
        store.log.create(name, SessionCreated())
    store.log.create("s", SessionCreated())
    with pytest.raises(StoreError, match="can't be the id"):
        store.log.branch("s", name)


def test_what_is_not_there_is_named(store: Store) -> None:
    store.log.create("s", SessionCreated())
    with pytest.raises(SessionNotFound, match="no session nope"):
        store.log.append("nope", UserMessage(text="x"))
    with pytest.raises(StoreError, match="exists already"):
        store.log.create("s", SessionCreated())
    with pytest.raises(StoreError, match="rows 1 to 1, not 2"):
        store.log.branch("s", "t", at=2)
    with pytest.raises(StoreError, match="exists already"):
        store.log.branch("s", "s")


def test_impossible_amounts_break_no_sum(store: Store) -> None:
    store.log.create("s", SessionCreated())
    for tokens, cost in (
        (2**62, float("inf")),
        (2**70, float("nan")),
        (-5, 0.5),
        (7, None),
    ):
        usage = Usage(input_tokens=tokens, output_tokens=tokens, cost_usd=cost)
        store.log.append("s", AssistantMessage(model="m", provider="p", usage=usage))
    (row,) = store.sessions.usage()
    assert (row.calls, row.cost_usd, row.unpriced_calls) == (4, 0.5, 3)
    assert store.sessions.find("s").tokens > 0


def test_a_large_payload_is_kept(store: Store) -> None:
    store.log.create("s", SessionCreated())
    message = UserMessage(text="é" * 1_000_000)
    store.log.append("s", message)
    assert store.log.messages("s") == [message]


def test_names_are_found_by_id_beginning_title_and_age(store: Store) -> None:
    for name in ("alpha-1", "alpha-2", "beta"):
        store.log.create(name, SessionCreated())
    store.log.append("alpha-1", SessionTitled(title="The first"))
    assert store.sessions.find("beta").id == store.sessions.find("be").id == "beta"
    assert (
        store.sessions.find("The first").id
        == store.sessions.find("last").id
        == "alpha-1"
    )
    with pytest.raises(SessionNotFound, match="matches several sessions"):
        store.sessions.find("alpha")
    with pytest.raises(SessionNotFound, match="no session"):
        store.sessions.find("gamma")


def test_the_last_session_is_the_one_used_last_also_when_the_clock_was_set_back(
    open_database: OpenStore,
) -> None:
    clock = FakeClock(1_700_000_000.0)
    with open_database(clock) as store:
        store.log.create("before", SessionCreated())
        clock.advance(-3_600)
        store.log.create("after", SessionCreated())
        store.log.create("child", SessionCreated(kind="child", parent="after"))
        assert store.sessions.find("last").id == "after"


def test_the_end_of_a_turn_whose_process_is_gone_makes_its_session_no_more_recent(
    store: Store,
) -> None:
    for name in ("old", "new"):
        store.log.create(name, SessionCreated())
        store.log.append(name, UserMessage(text="hi"))
    lost = ToolFinished(call_id="c", name="x", text="Outcome unknown.", ok=False)
    store.log.append(
        "old",
        lost,
        AssistantMessage(text="Half of"),
        TurnEnded(reason="crashed"),
        turn="t",
    )
    assert store.sessions.find("last").id == "new"
    store.log.append("old", SessionUndone(since=2, turns=("t",)))
    assert store.sessions.find("last").id == "old"
    store.log.append("new", UserMessage(text="again"))
    assert store.sessions.find("last").id == "new"


def test_an_answer_to_no_question_is_refused_without_a_look_at_every_row(
    tmp_path: Path,
) -> None:
    with open_store(tmp_path / "state.db", clock=Ticking()) as store:
        _answer_without_a_look(store)


def _answer_without_a_look(store: SqliteStore) -> None:
    store.log.create("s", SessionCreated())
    for turn in range(2):
        asked = QuestionAsked(call_id=f"c{turn}", text="which?")
        store.log.append(
            "s", UserMessage(text="hi"), TurnStarted(inputs=(2,)), asked, turn=str(turn)
        )
        results = (
            ToolFinished(call_id=str(number), name="x", text="done")
            for number in range(2_000 * (turn == 0))
        )
        store.log.append("s", *results, turn=str(turn))
    steps: list[None] = []
    store._database._writer.set_progress_handler(lambda: bool(steps.append(None)), 100)
    with pytest.raises(AnsweredAlready):
        store.log.append("s", QuestionAnswered(call_id="unknown", text="this"))
    store.log.append("s", QuestionAnswered(call_id="c1", text="this"))
    store._database._writer.set_progress_handler(None)
    assert len(steps) < 50


def test_a_message_that_only_a_newer_hermes_knows_is_named(store: Store) -> None:
    store.log.create("s", SessionCreated())
    (row,) = store.log.append("s", UserMessage(text="x"))
    crc = checksum(row._replace(type="agent.message.future"))
    change = "UPDATE events SET type = 'agent.message.future', crc = ? WHERE seq = 2"
    store._db.write(lambda connection: connection.execute(change, (crc,)).fetchall())
    with pytest.raises(StoreError, match="newer Hermes"):
        store.log.messages("s")


def test_an_automatic_title_never_replaces_the_users_own(store: Store) -> None:
    store.log.create("s", SessionCreated())
    store.log.append("s", SessionTitled(title="first words", by="hermes"))
    store.log.append("s", SessionTitled(title="Better words", by="model"))
    assert store.sessions.title("s") == "Better words"
    store.log.append("s", SessionTitled(title="Mine"))
    by: Literal["hermes", "model"]
    for by in ("hermes", "model"):
        with pytest.raises(TitledAlready):
            store.log.append(
                "s", UserMessage(text="x"), SessionTitled(title="theirs", by=by)
            )
    assert store.sessions.title("s") == "Mine"
    assert store.log.messages("s") == []
    store.log.append("s", SessionTitled(title=""))
    store.log.append("s", SessionTitled(title="first words", by="hermes"))
    assert store.sessions.title("s") == "first words"


def test_pages_of_events_follow_a_cursor(store: Store) -> None:
    store.log.create("s", SessionCreated())
    store.log.append("s", *(UserMessage(text=str(n)) for n in range(2500)))
    counts: dict[int, int] = defaultdict(int)
    for row in store.log.every_event("s"):
        counts[row.seq] += 1
    assert dict(counts) == dict.fromkeys(range(1, 2502), 1)
    assert [row.seq for row in store.log.events("s", after=10, limit=3)] == [11, 12, 13]
    assert store.log.messages("s", after=2499) == [
        UserMessage(text="2498"),
        UserMessage(text="2499"),
    ]


def test_a_branch_works_for_the_same_person(store: Store) -> None:
    store.log.create("one", SessionCreated(surface="telegram", person="telegram:7"))
    branched = store.log.branch("one", "two").event
    assert isinstance(branched, SessionCreated)
    assert branched.person == "telegram:7"


@pytest.mark.parametrize("call_id", ["call_7", 'a "quoted" \\ é\n', "7"])
def test_only_rows_that_name_the_call_are_decoded_for_an_answer(
    tmp_path: Path, call_id: str
) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        store.log.append(
            "s",
            ApprovalRequested(
                call_id=call_id, name="terminal", arguments="{}", summary="ls"
            ),
        )
        store.log.append(
            "s",
            *(
                ToolFinished(call_id=f"call_{n}", name="t", text=call_id)
                for n in range(100, 400)
            ),
        )
    rows = list[object]()
    with closing(connect(path, busy_timeout=0)) as connection:
        connection.row_trace = lambda _, row: rows.append(row) or row
        require_open(connection, "s", ApprovalAnswered(call_id=call_id, answer="deny"))
        with pytest.raises(AnsweredAlready):
            require_open(
                connection, "s", ApprovalAnswered(call_id="unknown", answer="deny")
            )
    assert len(rows) == 1


def test_a_changed_row_is_noticed_when_it_is_read(store: Store) -> None:
    store.log.create("s", SessionCreated())
    store.log.append("s", UserMessage(text="as it was"))
    change = "UPDATE events SET data = ? WHERE seq = 2"
    values = ('{"text":"otherwise"}',)
    store._db.write(lambda connection: connection.execute(change, values).fetchall())
    with pytest.raises(StoreDamaged, match="does not match its checksum"):
        store.log.messages("s")
    assert any("checksum" in problem for problem in store.check().problems)


def test_a_reader_of_all_sessions_gets_the_rows_of_others_in_their_order(
    open_database: OpenStore, store: Store
) -> None:
    store.log.remember()
    start = store.log.newest()
    store.log.create("mine", SessionCreated())
    with open_database() as other:
        other.log.create("theirs", SessionCreated())
        rows = other.log.append("theirs", *(UserMessage(text=str(n)) for n in range(5)))
        store.log.append("mine", UserMessage(text="x"))
        rows += other.log.append("theirs", UserMessage(text="last"))
    found: list[Row] = []
    tick, deadline = threading.Event(), time.monotonic() + 30
    while len(found) < 7 and time.monotonic() < deadline:
        # a transaction of another test may be under way on the same server
        page = store.log.since(start, limit=3)
        start = page.last
        found += page.rows
        tick.wait(0.01)
    assert not store.log.since(start, limit=3).is_full
    assert [row.seq for row in found] == [1, 2, 3, 4, 5, 6, 7]
    assert found[1:] == list(rows)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7])
def test_pages_leave_no_session_out_whose_time_another_has_too(
    open_database: OpenStore, limit: int
) -> None:
    clock = FakeClock(1_700_000_000.0)
    with open_database(clock) as store:
        for number in range(6):
            store.log.create(f"s{number}", SessionCreated())
            clock.advance(number in {1, 4})
        listed, before, more = list[str](), None, True
        while more:
            page, more = store.sessions.page(limit=limit, updated_before=before)
            listed += [info.id for info in page]
            before = page[-1].updated
        assert listed == ["s5", "s4", "s3", "s2", "s1", "s0"]

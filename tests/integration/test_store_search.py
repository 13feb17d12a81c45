"""Search finds what is there, whatever the script, and no query breaks it."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fakes.store_engines import OpenStore, StoreEngine
from tests.fakes.thoroughness import rounds

from hermes.errors import StoreError
from hermes.schema.events import SessionCreated, ToolStarted
from hermes.schema.messages import AssistantMessage, ToolCall, ToolFinished, UserMessage
from hermes.store import Store, open_store
from hermes.store.search import searchable
from hermes.store.sqlite.connection import connect
from hermes.store.sqlite.message_search import MessageSearch, index_step
from hermes.store.sqlite.opener import SqliteStore
from hermes.store.sqlite.salvage import salvage
from hermes.store.sqlite.unindexed_search import find_unindexed
from hermes.store.tokenizer import (
    ACCENT,
    match_expression,
    matches,
    query_terms,
    split,
)

SPACELESS = st.text(
    st.sampled_from("天气很好今日は良い晴れカタナ한국어날씨สวัสดี"),
    min_size=2,
    max_size=8,
)
QUERIES = st.one_of(
    st.text(max_size=40),
    st.text(
        st.sampled_from("\"'*-+^:(){}[]\0\\,.;%_ anorANDORNOTNEAR🙂天é\ud800"),
        max_size=60,
    ),
    st.sampled_from(
        [
            '"',
            '""',
            "NEAR(",
            "NEAR(a b, 5)",
            "a NOT",
            "AND",
            "* *",
            "words:a",
            "-",
            "--",
            "-a",
            "^a",
            "a*",
            "{a b}:c",
        ]
    ),
)


@pytest.fixture
def store(open_database: OpenStore) -> Iterator[Store]:
    with open_database() as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(
    engine: StoreEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("search")
    with engine.database(folder) as open_database, open_database() as opened:
        opened.log.create("s", SessionCreated())
        yield opened


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    """A store whose index lags behind its log."""
    with open_store(tmp_path_factory.mktemp("lagging") / "state.db") as opened:
        opened.log.create("s", SessionCreated())
        yield opened


def found(store: Store, query: str, **options: str) -> list[int]:
    return sorted(hit.seq for hit in store.search.find(query, limit=10_000, **options))


@settings(max_examples=rounds(40, 150), deadline=None)
@given(text=st.text(max_size=60))
@example(text="𐒰𐓘 𞤀𞤣 ᲐᲑ")  # scripts that are younger than SQLite's tables
@example(text="İI ǅ ﬀ ß ς Σ ΐ")
@example(text="0㋀")
@example(text="㎀A")
@example(text="A\u0349b")  # an accent is within a word
@example(text="天 \ufe7b")  # an accent alone is none
@example(text="0\U00030000\U0002ebe1")
def test_any_text_is_found_by_any_of_its_words(shared: Store, text: str) -> None:
    (row,) = shared.log.append("s", UserMessage(text=text))
    for word in re.findall(rf"(?:[^\W_]|{ACCENT})+", text):
        assert not split(word).words or row.seq in found(shared, f'"{word}"'), word


@settings(max_examples=rounds(25, 80), deadline=None)
@given(
    texts=st.lists(
        st.one_of(
            st.text(max_size=30),
            st.text(st.sampled_from("aAbB1ä天气ｂ -_"), max_size=12),
        ),
        max_size=5,
    ),
    query=st.one_of(QUERIES, st.text(st.sampled_from('aAbB1ä天气 -"'), max_size=8)),
)
@example(texts=["Ｈermes ①", "café ﬁn", "K"], query="cafe")
def test_what_is_not_indexed_yet_is_found_as_the_index_would(
    file: SqliteStore, texts: list[str], query: str
) -> None:
    file.search.catch_up()
    file.log.append(
        "s", *(UserMessage(text=text) for text in texts), UserMessage(text="a b aB")
    )
    expressions = tuple(
        match_expression(query, prefix=prefix) for prefix in (False, True)
    )
    if not expressions[0]:
        return
    head = file.sessions.find("s").head - len(texts) - 1
    with file._database.separate_reader() as connection:
        unindexed = find_unindexed(connection, query, expressions, "", 10_000)
    file.search.catch_up()
    index = MessageSearch(file._database)
    indexed = [index._matching(expression, "", 10_000) for expression in expressions]
    assert unindexed == [[row for row in rows if row.seq > head] for rows in indexed]
    new = file.log.events("s", after=head)[::-1]
    assert unindexed == [
        [row for row in new if matches(terms, split(searchable(row.data)))]
        for terms in (query_terms(query, prefix=prefix) for prefix in (False, True))
    ], "what PostgreSQL finds"


def test_a_search_without_the_index_ends_when_its_time_is_up(
    tmp_path: Path,
) -> None:
    with open_store(tmp_path / "state.db") as store:
        store.log.create("s", SessionCreated())
        store.search.catch_up()
        store.log.append("s", *(UserMessage(text=f"hay {n}") for n in range(2_000)))
        expressions = (match_expression("hay", prefix=False),)
        with store._database.separate_reader() as connection:
            rows = find_unindexed(connection, "hay", expressions, "", 9, timeout_s=0)
        assert rows == [[]]


def test_a_search_does_not_wait_for_a_large_load_to_be_indexed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        store.log.append("s", UserMessage(text="needle of old"))
        store.search.catch_up()
        store.log.append(
            "s", *(UserMessage(text=f"hay {number}") for number in range(2_000))
        )
        store.log.append("s", UserMessage(text="a needle"), UserMessage(text="needles"))
        store._database.write(index_step)  # as much as there was time for
        with store._database.separate_reader() as connection:
            assert connection.execute("SELECT indexed FROM search_progress").get < 1_000
        assert not store.search.catch_up(timeout_s=-1)
        assert [
            row.seq
            for row in MessageSearch(store._database)._rows(
                "needle", ("needle", "needle*"), "", 3
            )
        ] == [2003, 2, 2004]


@settings(max_examples=rounds(25, 100), deadline=None)
@given(
    before=st.sampled_from(["", "abc", "in ", "!"]),
    run=SPACELESS,
    after=st.sampled_from(["", "xyz", " x", "。"]),
)
def test_two_characters_are_enough_in_scripts_without_spaces(
    shared: Store, before: str, run: str, after: str
) -> None:
    (row,) = shared.log.append("s", UserMessage(text=before + run + after))
    for i in range(len(run) - 1):
        assert row.seq in found(shared, run[i : i + 2])
    assert row.seq in found(shared, run)
    assert row.seq in found(shared, run[0])
    assert row.seq in found(shared, f"{run[-2:]}{after}")
    assert row.seq in found(shared, f"{before}{run}")


@settings(max_examples=rounds(80, 400), deadline=None)
@given(query=QUERIES)
def test_no_query_breaks_the_search(shared: Store, query: str) -> None:
    try:
        hits = shared.search.find(query)
    except StoreError as error:
        assert "nothing to search for" in str(error)  # noqa: PT017 - any other error is a failure
    else:
        assert all(len(hit.snippet) <= 162 for hit in hits)


def test_enormous_queries_are_answered_or_refused_in_our_words(shared: Store) -> None:
    for query in ("a " * 500, "-a " * 330 + "b", '"' + "a " * 499 + '"', "x" * 1000):
        shared.search.find(query)
    with pytest.raises(StoreError, match="too long"):
        shared.search.find("x" * 1001)


def test_code_is_found_as_people_type_it(store: Store) -> None:
    store.log.create("s", SessionCreated())
    call = ToolCall(
        id="1",
        name="read_file",
        arguments='{"path": "src/hermes/store/session_log.py"}',
    )
    store.log.append(
        "s",
        UserMessage(text="def getUserById(user_id: int): return HTTPServer(user_id)"),
        AssistantMessage(text="", tool_calls=(call,)),
        ToolFinished(
            call_id="1", name="read_file", text="class fooBar: pass  # bazQux"
        ),
        ToolStarted(call_id="1", name="getUserById", arguments="{}"),
    )
    for query in (
        "getUserById",
        "getuserbyid",
        "getUser",
        "getus",
        "user by id",
        "HTTPServer",
        "httpserver",
        "user_id",
    ):
        assert found(store, query) == [2], query
    for query in (
        "src/hermes/store/session_log.py",
        "store/session_log.py",
        "read_file log",
        "read_file",
    ):
        assert 3 in found(store, query), query
    assert found(store, "fooBar.bazQux") == []
    assert found(store, "fooBar bazQux") == [4]


def test_terms_phrases_exclusions_and_beginnings(store: Store) -> None:
    store.log.create("s", SessionCreated())
    texts = ("red green blue", "green red", "redder greens", "red blue", "Café crème")
    store.log.append("s", *(UserMessage(text=text) for text in texts))
    assert found(store, "red green") == [2, 3, 4]
    assert [hit.seq for hit in store.search.find("red green")][:2] == [3, 2], (
        "whole words first, the newest first"
    )
    assert found(store, '"red green"') == [2]
    assert found(store, '"red" -blue') == [3]
    assert found(store, '"red" -"green blue"') == [3, 5]
    assert found(store, "cafe CREME") == [6]
    assert found(store, "caf") == [6]
    for nothing in ("", "  ", "-red", "🙂", '"'):
        with pytest.raises(StoreError, match="nothing to search for"):
            store.search.find(nothing)


def test_a_search_can_be_narrowed_to_a_session_and_forgets_deleted_ones(
    store: Store,
) -> None:
    for name in ("a", "b"):
        store.log.create(name, SessionCreated())
    for number in range(10):
        store.log.append("ab"[number % 2], UserMessage(text="needle"))
    assert [hit.session for hit in store.search.find("needle", session="b")] == [
        "b"
    ] * 5
    assert store.search.find("needle", session="nowhere") == []
    store.sessions.delete("a")
    store.log.create("a", SessionCreated())
    assert {hit.session for hit in store.search.find("needle")} == {"b"}
    assert store.search.find("needle", session="a") == []


def test_what_another_process_wrote_is_found(
    open_database: OpenStore, store: Store
) -> None:
    with open_database() as other:
        other.log.create("s", SessionCreated())
        other.log.append(
            "s",
            *(UserMessage(text=f"needle {n} " + "long " * 400) for n in range(1200)),
        )
    assert len(found(store, "needle")) == 1200
    assert found(store, "needle", session="s") == found(store, "needle")


def test_the_index_follows_by_itself_when_nobody_writes(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    tick, deadline = threading.Event(), time.monotonic() + 30
    with (
        open_store(path) as store,
        closing(connect(path, busy_timeout=5)) as connection,
    ):
        store.log.create("s", SessionCreated())
        store.log.append("s", *(UserMessage(text=f"word {n}") for n in range(1200)))
        last = store.log.events("s", after=1200)[-1].id
        while connection.execute("SELECT indexed FROM search_progress").get != last:
            assert time.monotonic() < deadline
            tick.wait(0.05)


@settings(max_examples=rounds(6, 15), deadline=None)
@given(
    sizes=st.lists(
        st.one_of(
            st.integers(0, 5000), st.integers(3900, 4200), st.integers(0, 300_000)
        ),
        max_size=12,
    )
)
def test_reading_pages_ourselves_agrees_with_sqlite(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    """Overflow chains of every length, rows in the file and in its write-ahead log."""
    path = tmp_path_factory.mktemp("pages") / "state.db"
    for part in (sizes[: len(sizes) // 2], sizes[len(sizes) // 2 :]):
        with open_store(path) as store:
            if not store.sessions.recent():
                store.log.create("s", SessionCreated())
            for size in part:
                store.log.append("s", UserMessage(text="é" * size), turn="t")
            rows = list(store.log.every_event("s"))
            assert sorted(salvage(path), key=lambda row: row.seq) == rows, (
                "with the log beside it"
            )
        assert sorted(salvage(path), key=lambda row: row.seq) == rows, (
            "after it was closed"
        )

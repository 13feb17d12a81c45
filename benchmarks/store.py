"""Compares the session log with bare SQLite, with the same settings and in the same run.

    python -m benchmarks.store [--messages 1000000]

Prints each figure with its bar. Exits with 1 if one is missed. Where the disk does not matter, CPU time is measured,
because other programs may share the machine.
"""

import argparse
import gc
import gzip
import random
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import accumulate, count
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw
import msgspec

from benchmarks.chat.measure import start_cpu
from benchmarks.chat.programs import long_session
from hermes.app import App, build
from hermes.app.feed import PAGE_ROWS
from hermes.app.session_journal import read_history
from hermes.events import Bus
from hermes.schema.event_base import Event
from hermes.schema.events import SessionCreated
from hermes.schema.messages import (
    AssistantMessage,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.schema.shown_reasons import shown_event
from hermes.settings import Home, Settings
from hermes.store import Store, open_store
from hermes.store.log_row import COLUMNS, STORED, Row, checked, draft
from hermes.store.session_log import new_epoch, write_row
from hermes.store.sqlite.connection import connect
from hermes.store.sqlite.database import insert_row
from hermes.store.sqlite.message_search import index_step
from hermes.store.sqlite.schema import EVENTS

SEED = 20260401
_INSERT = "INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Bars:
    """Prints figures and remembers whether a bar was missed."""

    def __init__(self) -> None:
        self.missed = 0

    def show(self, what: str, measured: str, bar: str, *, met: bool) -> None:
        """Prints one line of the result."""
        self.missed += not met
        print(
            f"  {what:<46} {measured:<40} {bar:<34} {'ok' if met else 'MISSED'}",
            flush=True,
        )


def main(argv: list[str]) -> int:
    """Runs everything. Returns 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks store", description=__doc__)
    parser.add_argument(
        "--messages", type=int, default=1_000_000, help="size of the search data set"
    )
    options = parser.parse_args(argv)
    bars = Bars()
    print(f"session log, SQLite {apsw.sqlite_lib_version()}, WAL, synchronous=FULL")
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        home = Path(folder)
        appends(home, bars)
        opening(home, bars)
        growth(home, bars)
        checking(home, bars)
        searching(home, bars, options.messages)
    return 1 if bars.missed else 0


# Appending


def appends(home: Path, bars: Bars, *, rounds: int = 9, batch: int = 400) -> None:
    """Measures acknowledged, durable appends of single events."""
    message = UserMessage(text=Prose(random.Random(SEED)).text(40))
    with (
        open_store(home / "append.db") as store,
        closing(bare(home / "bare.db")) as connection,
    ):
        store.log.create("s", SessionCreated())
        ours: list[float] = []
        theirs: list[float] = []
        seq = count(1)
        for _ in range(rounds):
            ours.append(
                batch
                / timed(lambda: repeat(lambda: store.log.append("s", message), batch))
            )
            theirs.append(
                batch
                / timed(
                    lambda: repeat(
                        lambda: bare_append(connection, message, next(seq)), batch
                    )
                )
            )
    rate, limit = statistics.median(ours), statistics.median(theirs)
    figure = f"{rate:,.0f}/s (bare {limit:,.0f}/s, {limit / rate:.2f}x)"
    bars.show(
        "durable appends, one process",
        figure,
        ">= 3,000/s or within 2x of bare",
        met=rate >= 3000 or limit <= 2 * rate,
    )


def bare(path: Path) -> apsw.Connection:
    """An empty database with our settings and the one table."""
    path.touch()
    connection = connect(path, busy_timeout=5)
    connection.execute(EVENTS).fetchall()
    return connection


def bare_append(connection: apsw.Connection, event: Event, seq: int) -> None:
    """What any program would have to do to store the same row."""
    entry = draft(event)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        _INSERT, ("s", seq, 1, 0.0, entry.type, entry.role, "", entry.data, 0)
    )
    connection.execute("COMMIT")


# Opening


def opening(
    home: Path, bars: Bars, *, messages: int = 10_000, rounds: int = 41
) -> None:
    """Measures building the message list of a long session."""
    path = home / "open.db"
    prose = Prose(random.Random(SEED))
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        pending = [prose.message(i) for i in range(messages)]
        for start in range(0, messages, 1000):
            store.log.append("s", *pending[start : start + 1000])
        query = f"SELECT {COLUMNS}, crc FROM events WHERE session = 's' AND role IS NOT NULL ORDER BY seq"  # noqa: S608
        with closing(connect(path, busy_timeout=5)) as connection:
            ours: list[float] = []
            theirs: list[float] = []
            for _ in range(rounds):
                theirs.append(
                    cpu(
                        lambda: [
                            zlib.crc32(row[8].encode())
                            for row in connection.execute(query)
                        ]
                    )
                )
                ours.append(cpu(lambda: store.log.messages("s")))
        assert len(store.log.messages("s")) == messages
    one, other = statistics.median(ours), statistics.median(theirs)
    figure = f"{one * 1e3:.1f} ms of CPU (bare {other * 1e3:.1f}, {one / other:.2f}x)"
    bar = "within 2x of SELECT and crc32"
    bars.show(
        f"message list of {messages:,} messages, checked",
        figure,
        bar,
        met=one <= 2 * other,
    )


# Growing


def growth(
    home: Path, bars: Bars, *, length: int = 100_000, rounds: int = 25, batch: int = 40
) -> None:
    """Compares appends to a short and to a long session of one database, alternating so that noise affects both."""
    message = UserMessage(text=Prose(random.Random(SEED)).text(40))
    with open_store(home / "growth.db") as store:
        store.log.create("long", SessionCreated())
        for _ in range(0, length, 1000):
            store.log.append("long", *[message] * 1000)
        short: list[float] = []
        long: list[float] = []
        for i in range(rounds):
            name = f"short{i}"
            store.log.create(name, SessionCreated())
            store.log.append(name, *[message] * 99)
            short.append(
                cpu(
                    lambda name=name: repeat(
                        lambda: store.log.append(name, message), batch
                    )
                )
            )
            long.append(
                cpu(lambda: repeat(lambda: store.log.append("long", message), batch))
            )
    one, other = statistics.median(short) / batch, statistics.median(long) / batch
    figure = f"{one * 1e6:.0f} -> {other * 1e6:.0f} us of CPU ({other / one:.2f}x)"
    bars.show(
        f"append at event 100 and at {length:,}",
        figure,
        "within 1.3x",
        met=other <= 1.3 * one,
    )


# Checking what is read


def checking(home: Path, bars: Bars, *, turns: int = 2_000) -> None:
    """Measures which part of what a person waits for is spent on checking rows against their checksums."""
    with tempfile.TemporaryDirectory(dir=home) as folder:
        launch = long_session(Path(folder), turns)
        last = f"The answer is {turns - 1}.".encode()
        resuming = statistics.median(start_cpu(launch, last) for _ in range(3)) / 1e3
        hermes_home = Home(Path(launch.environ["HERMES_HOME"]))
        with build(Settings(), hermes_home, bus=Bus()) as app:
            wholes = _reading(app, launch.argv[-1])
        with closing(connect(hermes_home.root / "state.db", busy_timeout=5)) as opened:
            query = f"SELECT {STORED} FROM events ORDER BY id"  # noqa: S608
            stored = opened.execute(query).fetchall()
    newest = stored[-PAGE_ROWS:]
    for what, rows, whole, part in (
        (f"{turns:,} turns resumed, until shown", newest, resuming, 0.01),
        ("newest rows, for the page", newest, wholes["page"], 0.15),
        ("search with 20 hits", stored[:20], wholes["search"], 0.1),
        (f"history of {turns:,} turns, for the next", stored, wholes["history"], 0.25),
    ):
        check = check_cpu(rows)
        figure = (
            f"{check * 1e3:.2f} of {whole * 1e3:.1f} ms of CPU ({check / whole:.1%})"
        )
        bar = f"at most {part:.0%}"
        bars.show(f"checks: {what}", figure, bar, met=check <= part * whole)


def _reading(app: App, session: str) -> dict[str, float]:
    """CPU seconds of what reads a session's rows, checks included."""
    log = app.store.log
    (*_, newest) = log.every_event(session)

    def page() -> bytes:
        rows = log.events(session, after=newest.seq - PAGE_ROWS, limit=PAGE_ROWS)
        shown = [shown_event(app.envelope(row)) for row in rows]
        return gzip.compress(msgspec.json.encode(shown), 1)

    def hits() -> object:
        return app.store.search.find("answer", session=session)

    return {
        "page": median(cpu, page, 25),
        "search": median(cpu, hits, 25),
        "history": median(cpu, lambda: read_history(app.store, session), 9),
    }


def check_cpu(stored: list[tuple[Any, ...]], rounds: int = 25) -> float:
    """CPU time of checking rows, without making them."""
    columns = itemgetter(slice(len(Row._fields)))
    both = median(cpu, lambda: checked(stored), rounds)
    return both - median(
        cpu, lambda: list(map(Row._make, map(columns, stored))), rounds
    )


# Searching


def searching(home: Path, bars: Bars, messages: int, *, rounds: int = 5) -> None:
    """Measures full-text queries of every kind over a large log."""
    path = home / "search.db"
    started = time.perf_counter()
    with open_store(path) as store:
        pass
    with closing(connect(path, busy_timeout=5)) as connection:
        fill(connection, messages)
    size = path.stat().st_size / 2**20
    print(
        f"  ({messages:,} messages, {size:,.0f} MiB, written and indexed in {time.perf_counter() - started:.0f} s)"
    )
    with open_store(path) as store:
        for what, query, session in queries():
            search = partial(find, store, query, session)
            one, wall, hits = (
                median(cpu, search, rounds),
                median(timed, search, rounds),
                search(),
            )
            figure = (
                f"{one * 1e3:.1f} ms of CPU, {wall * 1e3:.1f} ms in all, {hits} hits"
            )
            bars.show(f"{what}: {query[:28]}", figure, "under 50 ms", met=one < 0.05)
        never = f'"{" ".join(WORDS[:1] * 3 + WORDS[1:2] * 2)}"'
        worst = median(cpu, partial(find, store, never, ""), rounds)
        print(
            f"  (the worst case, a phrase of the two commonest words that is hardly ever said: {worst * 1e3:.0f} ms)"
        )


def find(store: Store, query: str, session: str) -> int:
    return len(store.search.find(query, session=session))


def queries() -> Iterator[tuple[str, str, str]]:
    """Yields a label, the query, and the session that it is limited to."""
    common, middle, rare = WORDS[0], WORDS[2_000], WORDS[40_000]
    yield "common word", common, ""
    yield "rare word", rare, ""
    yield "absent word", "qqzzxx", ""
    yield "two common words", f"{WORDS[0]} {WORDS[1]}", ""
    yield "four common words", " ".join(WORDS[:4]), ""
    yield "common and rare word", f"{common} {rare}", ""
    yield "two middling words", f"{middle} {WORDS[2_500]}", ""
    yield "two rare words", f"{rare} {WORDS[40_001]}", ""
    yield "common, another excluded", f"{common} -{WORDS[1]}", ""
    yield "phrase of common words", f'"{WORDS[0]} {WORDS[1]} {WORDS[2]}"', ""
    yield "phrase of middling words", f'"{middle} {WORDS[2_500]}"', ""
    yield "phrase with a rare word", f'"{common} {rare}"', ""
    yield "one letter", WORDS[5][0], ""
    yield "prefix of two letters, common", "st", ""
    yield "two such prefixes", "st pl", ""
    yield "prefix of three letters", middle[:3], ""
    yield "rare prefix", rare[:-1], ""
    yield "common prefix and rare word", f"st {rare}", ""
    yield "CJK pair", HAN[3] + HAN[4], ""
    yield "CJK commonest character", HAN[0], ""
    yield "CJK phrase", "".join(HAN[:4]), ""
    yield "CJK sentence never said", "".join(HAN[200:212]), ""
    yield "identifier", f"get{WORDS[300].title()}ById", ""
    yield "identifier in lower case", f"get{WORDS[300]}byid", ""
    yield "path", f"src/{WORDS[300]}/{WORDS[301]}.py", ""
    yield "common word in one session", common, "session-3"
    yield "rare word in one session", rare, "session-3"


def fill(
    connection: apsw.Connection, messages: int, *, session_length: int = 500
) -> None:
    """Writes and indexes the data set in large transactions."""
    prose = Prose(random.Random(SEED))
    now = 1_700_000_000.0
    for start in range(0, messages, session_length):
        if start % 50_000 == 0:
            if start:
                connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
        session = f"session-{start // session_length}"
        entries: list[Event] = [
            SessionCreated(),
            *(prose.message(i) for i in range(min(session_length, messages - start))),
        ]
        for seq, event in enumerate(entries, 1):
            now += 1
            entry = draft(event)
            write_row(
                insert_row,
                connection,
                Row(0, session, seq, new_epoch(now), now, *entry[:2], "", entry.data),
                event,
            )
        if start % 5_000 == 0:
            while index_step(connection):
                pass
    while index_step(connection):
        pass
    connection.execute("COMMIT")


# Words with the frequencies of natural language: the n-th is n times rarer than the first


def _vocabulary() -> list[str]:
    rng = random.Random(SEED)
    syllables = [
        a + b
        for a in (*"bcdfghklmnprstvw", "st", "tr", "pl")
        for b in (*"aeiou", "en", "ar")
    ]
    words: dict[str, None] = {}
    while len(words) < 50_000:
        words["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 3, 4))))] = None
    return sorted(words, key=lambda word: len(word) + rng.random() * 4)


WORDS = _vocabulary()
HAN = [chr(0x4E00 + 7 * i) for i in range(2_000)]


class Prose:
    """Generates messages like those of people, models and tools."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._word_weights = list(accumulate(1 / n for n in range(1, len(WORDS) + 1)))
        self._han_weights = list(accumulate(1 / (n + 3) for n in range(len(HAN))))

    def text(self, words: int) -> str:
        """Words of the language."""
        return " ".join(
            self._rng.choices(WORDS, cum_weights=self._word_weights, k=words)
        )

    def message(self, number: int) -> Event:
        """A message from a person, a model or a tool, in turn; one in twenty is Chinese."""
        if number % 20 == 7:
            return UserMessage(
                text="".join(
                    self._rng.choices(HAN, cum_weights=self._han_weights, k=30)
                )
            )
        if number % 3 == 0:
            return UserMessage(text=self.text(15))
        if number % 3 == 1:
            call = ToolCall(
                id=f"call_{number}",
                name="read_file",
                arguments=f'{{"path": "{self._path()}"}}',
            )
            usage = Usage(input_tokens=1000, output_tokens=60, cost_usd=0.001)
            return AssistantMessage(
                text=self.text(40),
                tool_calls=(call,),
                provider="p",
                model="m",
                usage=usage,
            )
        return ToolFinished(
            call_id=f"call_{number}",
            name="read_file",
            text=f"{self._code()}\n{self.text(30)}",
        )

    def _path(self) -> str:
        return "src/{}/{}.py".format(*self._rng.choices(WORDS[:500], k=2))

    def _code(self) -> str:
        name, other = self._rng.choices(WORDS[:500], k=2)
        return f"def get{name.title()}ById({other}: str) -> None:\n    return {other}_{name}[0]"


# Measuring


def repeat(work: Callable[[], object], times: int) -> None:
    for _ in range(times):
        work()


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median(
    measure: Callable[[Callable[[], object]], float],
    work: Callable[[], object],
    rounds: int,
) -> float:
    return statistics.median(measure(work) for _ in range(rounds))


def cpu(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.thread_time()
    work()
    return time.thread_time() - started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

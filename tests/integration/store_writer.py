"""Writer processes for the tests of the session log: `store_writer.py COMMAND DATABASE [ARGUMENT...]`.

A line on standard output is an acknowledgement: it is written only after the log has said that the row is on disk.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from hermes.errors import StoreError
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.store import Store, open_store
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.postgres_store import open_postgres
from hermes.store.sqlite.connection import connect


def say(line: str) -> None:
    os.write(
        1, line.encode() + b"\n"
    )  # one write, so that lines of several processes don't mix


def heard() -> str:
    return sys.stdin.readline().strip()


def begin(store: Store, session: str) -> None:
    with suppress(StoreError):  # it exists: an earlier round or another writer began it
        store.log.create(session, SessionCreated())


def opened(database: str) -> Store:
    """Opens a file, or the database at an address."""
    if database.startswith("postgresql:"):
        return open_postgres(PostgresOptions(database))
    return open_store(Path(database))


def fork_writers(database: str) -> None:
    """Reads `name` lines; forks a writer for each and says `pid name PID`. Forking saves the imports."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    started = 0
    while name := heard():
        started += 1
        pid = os.fork()
        if pid == 0:
            write_for_ever(database, name, f"{name}-{started}")
        say(f"pid {name} {pid}")


def write_for_ever(database: str, name: str, label: str) -> None:
    with opened(database) as store:
        for session in (name, "shared"):
            begin(store, session)
        number = 0
        while True:
            for session in (name, "shared"):
                number += 1
                texts = [f"{label}.{number}.{i}" for i in range(1 + number % 3)]
                rows = store.log.append(
                    session, *(UserMessage(text=text) for text in texts)
                )
                say(
                    "\n".join(
                        f"ack {name} {session} {row.seq} {text}"
                        for row, text in zip(rows, texts, strict=True)
                    )
                )


def race(database: str, name: str, count: int) -> None:
    """Appends when told to; says how long each took, in seconds."""
    with opened(database) as store:
        begin(store, name)
        say("ready")
        heard()
        for number in range(count):
            session = ("shared", name)[number % 2]
            started = time.perf_counter()
            (row,) = store.log.append(session, UserMessage(text=f"{name} {number}"))
            say(f"ack {session} {row.seq} {time.perf_counter() - started:.6f}")


def hold(path: Path) -> None:
    """Holds the write lock from `held` until a line comes in."""
    connection = connect(path, busy_timeout=5)
    connection.execute("BEGIN IMMEDIATE")
    say("held")
    heard()
    connection.execute("ROLLBACK")
    say("free")


def keep_open(path: Path) -> None:
    """Has the database open, with a lease on `leased`, until a line comes in or it is killed."""
    with open_store(path) as store:
        begin(store, "leased")
        store.leases.acquire("leased", ttl=3600)
        say("open")
        heard()


def open_once(path: Path, name: str) -> None:
    """Opens, writes one row and says so."""
    say("ready")
    heard()
    with open_store(path) as store:
        store.log.create(name, SessionCreated())
        say(f"recovered {store.recovery is not None}")


def create_at_once(*paths: Path) -> None:
    """For each path, two processes that create the database in the same moment; says how they ended."""
    for path in paths:
        path.parent.mkdir(mode=0o700)
        gate, opener = os.pipe()
        children = [os.fork(), 0]
        if children[0]:
            children[1] = os.fork()
        if not all(children):
            os.close(opener)
            os.read(gate, 1)  # until the gate opens
            with open_store(path) as store:
                store.log.create("0" if not children[0] else "1", SessionCreated())
            os._exit(0)
        os.close(gate)
        os.close(opener)
        say(" ".join(str(os.waitpid(child, 0)[1]) for child in children))


def fill_disk(path: Path) -> None:
    """On a tiny disk: appends until it is full, then again after space was made. Says how it went, line by line."""
    ballast = path.with_name("ballast")
    ballast.write_bytes(b"\0" * 256 * 1024)
    acknowledged: list[str] = []
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        for number in range(10_000):
            text = f"{number} " + "x" * 5000
            try:
                store.log.append("s", UserMessage(text=text))
            except StoreError as error:
                say(f"{type(error).__name__}: {error}")
                break
            acknowledged.append(text)
        say(
            f"kept {[m.text for m in store.log.messages('s') if isinstance(m, UserMessage)] == acknowledged}"
        )
        for _ in range(3):
            with suppress(
                StoreError
            ):  # still full: every further try is refused the same way
                store.log.append("s", UserMessage(text="y" * 100_000))
                say("accepted")
        ballast.unlink()
        store.log.append("s", UserMessage(text="after"))
        acknowledged.append("after")
    with open_store(path) as store:
        found = [m.text for m in store.log.messages("s") if isinstance(m, UserMessage)]
        say(
            f"kept {found == acknowledged}, {store.check().problems}, recovered {store.recovery is not None}"
        )


def full_from_the_start(path: Path) -> None:
    """On a disk without any space: opening fails in our words, and works once there is some."""
    ballast = path.with_name("ballast")
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    try:
        with open_store(path) as store:
            store.log.create("s", SessionCreated())
    except StoreError as error:
        say(f"{type(error).__name__}: {error}")
    ballast.unlink()
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        say(f"works, recovered {store.recovery is not None}")


COMMANDS = {
    "hold": hold,
    "keep-open": keep_open,
    "open-once": open_once,
    "fill-disk": fill_disk,
    "full-from-the-start": full_from_the_start,
}

if __name__ == "__main__":
    command, database, *arguments = sys.argv[1:]
    if command == "create-at-once":
        create_at_once(*map(Path, (database, *arguments)))
    elif command == "fork-writers":
        fork_writers(database)
    elif command == "race":
        race(database, arguments[0], int(arguments[1]))
    else:
        COMMANDS[command](Path(database), *arguments)

"""Moves the write-ahead log into the database from a thread of its own, so that no commit waits for it."""

import threading
from contextlib import closing
from pathlib import Path

import apsw

from hermes.store.connection import connect, log

_CHECKPOINT_PAGES = 1_000  # pages of the log after which it is moved
_WRITER_CHECKPOINT_PAGES = (
    16_000  # and after which a writer does it itself: the thread can't keep up
)


class Checkpoints:
    """Begins with `watch`; a process that is killed leaves nothing that SQLite would not do by itself."""

    def __init__(self, path: Path, busy_timeout: float) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._due = threading.Event()
        self._over = False
        self._thread = threading.Thread(
            target=self._run, name="hermes-checkpoints", daemon=True
        )

    def watch(self, writer: apsw.Connection) -> None:
        """From now on what this connection writes is moved here."""
        writer.set_wal_hook(self._noted)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, after what it is at."""
        self._over = True
        self._due.set()
        self._thread.join()

    def _noted(self, writer: apsw.Connection, name: str, pages: int) -> int:
        if pages >= _WRITER_CHECKPOINT_PAGES:
            writer.wal_checkpoint(name)
        elif pages >= _CHECKPOINT_PAGES:
            self._due.set()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        try:
            with closing(
                connect(self._path, busy_timeout=self._busy_timeout, change=False)
            ) as connection:
                connection.execute(
                    "PRAGMA user_version"
                ).fetchall()  # it has to look to know that there is a log
                while self._due.wait() and not self._over:
                    self._due.clear()
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:  # the writer does it from now on
            log.warning(
                "the write-ahead log can't be moved beside the writer: %s", error
            )

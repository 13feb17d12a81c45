"""Checkpoints the write-ahead log in a separate thread, so that no commit waits for it."""

import threading
from contextlib import closing
from pathlib import Path

import apsw

from hermes.store.sqlite.connection import connect, log

_CHECKPOINT_PAGES = 1_000  # size of the log at which the thread checkpoints it
_WRITER_CHECKPOINT_PAGES = (
    16_000  # size at which a writer does so itself, because the thread is too slow
)


class Checkpoints:
    """The checkpoint thread. `watch` starts it; a killed process leaves nothing that SQLite would
    not handle itself.
    """

    def __init__(self, path: Path, busy_timeout: float) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._due = threading.Event()
        self._over = False
        self._thread = threading.Thread(
            target=self._run, name="hermes-checkpoints", daemon=True
        )

    def watch(self, writer: apsw.Connection) -> None:
        """Checkpoints what this connection writes from now on."""
        writer.set_wal_hook(self._noted)
        self._thread.start()

    def close(self) -> None:
        """Stops the thread after its current checkpoint."""
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
                ).fetchall()  # a read is needed to notice the log
                while self._due.wait() and not self._over:
                    self._due.clear()
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:  # the writer checkpoints from now on
            log.warning(
                "the write-ahead log can't be moved beside the writer: %s", error
            )

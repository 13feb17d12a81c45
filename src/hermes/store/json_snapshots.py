"""Optional JSON copies of sessions, for people and scripts that read files. The database stays the truth."""

import os
from pathlib import Path

import msgspec

from hermes.errors import StoreError
from hermes.store.private import open_private
from hermes.store.store import Store


def write_snapshot(store: Store, session: str, folder: Path) -> Path:
    """Writes `session_<id>.json` in one step: readers see the old or the new file, never a half."""
    if "/" in session:
        raise StoreError(
            f"session {session!r} can't have a file of its own",
            hint="Its id is not a file name.",
        )
    info = store.sessions.find(session)
    events = [row.envelope() for row in store.log.every_event(session)]
    content = msgspec.json.encode({"session": info, "events": events})
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"session_{session}.json"
    draft = folder / f".session_{session}.json.{os.getpid()}"
    fd = open_private(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    with os.fdopen(fd, "wb") as file:
        file.write(msgspec.json.format(content, indent=2))
        file.flush()
        os.fsync(file.fileno())
    draft.rename(target)
    return target

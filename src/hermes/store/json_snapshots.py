"""Optional JSON copies of sessions, for people and scripts that read files. The database stays
authoritative.
"""

from pathlib import Path

import msgspec

from hermes.errors import StoreError
from hermes.primitives.files import (
    PRIVATE_FILE,
    make_private_folder,
    replace_file,
)
from hermes.store.store import Store


def write_snapshot(store: Store, session: str, folder: Path) -> Path:
    """Writes `session_<id>.json` atomically."""
    if "/" in session:
        raise StoreError(
            f"session {session!r} can't have a file of its own",
            hint="Its id is not a file name.",
        )
    info = store.sessions.find(session)
    events = [row.envelope() for row in store.log.every_event(session)]
    content = msgspec.json.encode({"session": info, "events": events})
    target = make_private_folder(folder) / f"session_{session}.json"
    replace_file(
        target, msgspec.json.format(content, indent=2), mode=PRIVATE_FILE, alone=False
    )
    return target

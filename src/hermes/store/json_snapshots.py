"""Optional JSON copies of sessions, for people and scripts that read files. The database stays
authoritative.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from hermes.errors import StoreError
from hermes.primitives.files import (
    PRIVATE_FILE,
    make_private_folder,
    replace_file,
)
from hermes.store.store import Store
from hermes.text.translation import translator

t = translator(__name__)


def event_document(store: Store, session: str) -> Any:
    """A session as its events."""
    info = store.sessions.find(session)
    events = [row.envelope() for row in store.log.every_event(session)]
    return {"session": info, "events": events}


def write_snapshot(
    store: Store,
    session: str,
    folder: Path,
    document_of: Callable[[Store, str], Any] = event_document,
) -> Path:
    """Writes `session_<id>.json` atomically."""
    if "/" in session:
        raise StoreError(
            t.later(
                "session {session!r} can't have a file of its own", session=session
            ),
            hint=t.later("Its id is not a file name."),
        )
    content = msgspec.json.encode(document_of(store, session))
    target = make_private_folder(folder) / f"session_{session}.json"
    replace_file(
        target, msgspec.json.format(content, indent=2), mode=PRIVATE_FILE, alone=False
    )
    return target

"""Where an adapter continues to read a platform's stream of events, in a file.

An adapter stores a position once everything before it is on disk. A crash then repeats
messages, whose ids are known, and loses none.
"""

from pathlib import Path

import msgspec

from hermes.primitives.files import make_private_folder, replace_file


class StreamPosition:
    """The position in one stream. `stream` names it: in another one, a position means nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, stream: str) -> str:
        """The position; empty if none is known."""
        try:
            found = msgspec.json.decode(
                self._path.read_bytes(), type=dict[str, str | int]
            )
        except (OSError, msgspec.MsgspecError):
            return ""
        return str(found.get(stream, ""))

    def write(self, stream: str, position: str) -> None:
        """Stores the position, and forgets that of any other stream."""
        make_private_folder(self._path.parent)
        replace_file(self._path, msgspec.json.encode({stream: position}))

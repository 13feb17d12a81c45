"""What an adapter remembers: the threads in which Hermes takes part, and since when messages may have been missed."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from hermes.app import App
from hermes.primitives.files import make_private_folder, replace_file
from hermes.surfaces.gateway.adapter import Chat, Person
from hermes.surfaces.gateway.session_rules import key_of

_OVERLAP_S = 60.0
"""This time is read again; messages that were handled are known by their id."""
_MAX_AGE_S = 24 * 3600.0
"""Older messages are not answered."""
_MAX_CHATS = 50

MAX_MISSED_MESSAGES = 100
"""How many missed messages of one chat are read after an absence."""


class Absence(NamedTuple):
    """The time since which, and the chats in which, messages may have been missed."""

    since: float
    chats: tuple[Chat, ...]


class PlatformMemory:
    """The past of one platform."""

    def __init__(self, app: App, platform: str) -> None:
        self._app = app
        self._platform = platform

    def takes_part(self, chat: Chat, person: Person) -> bool:
        """Whether Hermes takes part in a thread: then every message in it is for Hermes."""
        key = key_of(chat, person, self._app.settings.gateway.sessions)
        return bool(chat.thread) and self._app.store.chats.find(key) is not None

    def absence(self) -> Absence:
        """What to read after a connect, for platforms that don't resend missed messages."""
        ledger, now = self._app.store.chats, self._app.clock.now()
        last_received = ledger.last_received(self._platform)
        if not last_received:
            return Absence(now, ())
        chats: dict[tuple[str, str], Chat] = {}
        for binding in ledger.recent(_MAX_CHATS):
            chat = msgspec.json.decode(binding.chat, type=Chat)
            if chat.platform == self._platform:
                chats[chat.id, chat.thread] = chat
                chats.setdefault(
                    (chat.id, ""), msgspec.structs.replace(chat, thread="")
                )
        return Absence(
            max(last_received - _OVERLAP_S, now - _MAX_AGE_S),
            tuple(chats.values())[:_MAX_CHATS],
        )


class StreamPosition:
    """Where an adapter continues to read a platform's stream of events, in a file. `stream` names the stream.

    An adapter stores a position once everything before it is on disk. After a crash, messages may come again, which
    is noticed by their ids, but none is lost.
    """

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

"""What an adapter may know of the past: in which threads Hermes takes part, and where it may have missed something."""

from typing import NamedTuple

import msgspec

from hermes.app import App
from hermes.surfaces.gateway.adapter import Chat, Person
from hermes.surfaces.gateway.session_rules import key_of

_OVERLAP = (
    60.0  # seconds that are looked at once more; what was taken in is known by its id
)
_LONGEST = 24 * 3600.0  # seconds: what is older is not answered any more
_CHATS = 50  # that are looked into


class Absence(NamedTuple):
    """Since when, and in which chats, messages may have come that nobody has taken in."""

    since: float
    chats: tuple[Chat, ...]


class PlatformMemory:
    """Of one platform."""

    def __init__(self, app: App, platform: str) -> None:
        self._app = app
        self._platform = platform

    def takes_part(self, chat: Chat, person: Person) -> bool:
        """Whether it is a thread in which Hermes was spoken to: then all of it is meant for Hermes."""
        key = key_of(chat, person, self._app.settings.gateway.sessions)
        return bool(chat.thread) and self._app.store.chats.find(key) is not None

    def absence(self) -> Absence:
        """What to look through after a connect, for platforms that don't keep messages for us."""
        ledger, now = self._app.store.chats, self._app.clock.now()
        heard = ledger.heard(self._platform)
        if not heard:
            return Absence(now, ())
        chats: dict[tuple[str, str], Chat] = {}
        for binding in ledger.recent(_CHATS):
            chat = msgspec.json.decode(binding.chat, type=Chat)
            if chat.platform == self._platform:
                chats[chat.id, chat.thread] = chat
                chats.setdefault(
                    (chat.id, ""), msgspec.structs.replace(chat, thread="")
                )
        return Absence(
            max(heard - _OVERLAP, now - _LONGEST), tuple(chats.values())[:_CHATS]
        )

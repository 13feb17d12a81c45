"""The rules that decide which messages share a session: by chat, thread or person.

Rules from the settings come first.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, TypeAlias

from hermes.surfaces.gateway.adapter import Chat, Person

Scope: TypeAlias = Literal["chat", "thread", "person"]


class SessionRule(NamedTuple):
    """`place` is `platform.kind`, with `*` for any; the kind is direct, group, channel or thread."""

    place: str
    scope: Scope


RULES: tuple[SessionRule, ...] = (
    SessionRule("*.direct", "chat"),  # two people talking
    SessionRule("*.thread", "thread"),  # one conversation, whoever takes part
    SessionRule("*.group", "person"),  # so that nobody reads another's session
    SessionRule("*.channel", "person"),
)


def scope_of(chat: Chat, chosen: Mapping[str, Scope]) -> Scope:
    """The scope of the first rule that matches."""
    place = f"{chat.platform}.{'thread' if chat.thread else chat.kind}"
    rules = (*(SessionRule(*row) for row in chosen.items()), *RULES)
    return next(
        (rule.scope for rule in rules if fnmatchcase(place, rule.place)), "person"
    )


def key_of(chat: Chat, person: Person, chosen: Mapping[str, Scope]) -> str:
    """The key of a conversation: the same for all messages that share a session."""
    where = _where(chat)
    match scope_of(chat, chosen):
        case "chat":
            return where
        case "thread":
            return f"{where}/{_plain(chat.thread)}" if chat.thread else where
        case "person":
            return f"{where}/{_plain(chat.thread)}/@{_plain(person.id)}"


def is_at(key: str, chat: Chat) -> bool:
    """Whether a key belongs to this chat."""
    return key == _where(chat) or key.startswith(f"{_where(chat)}/")


def is_shared(chat: Chat, chosen: Mapping[str, Scope]) -> bool:
    """Whether several people share a session in a chat."""
    return chat.kind != "direct" and scope_of(chat, chosen) != "person"


def _where(chat: Chat) -> str:
    return f"{chat.platform}/{_plain(chat.id)}"


def _plain(name: str) -> str:
    """An id that can be a part of a key."""
    return name.replace("%", "%25").replace("/", "%2F")

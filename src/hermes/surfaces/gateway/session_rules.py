"""Which chat, thread or person has a session of its own: one table, to which the settings add rows in front."""

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
    SessionRule(
        "*.thread", "thread"
    ),  # a thread is one conversation, whoever takes part
    SessionRule(
        "*.group", "person"
    ),  # in a group each keeps their own, so that nobody reads along in another's
    SessionRule("*.channel", "person"),
)


def scope_of(chat: Chat, chosen: Mapping[str, Scope]) -> Scope:
    """The first rule that fits."""
    place = f"{chat.platform}.{'thread' if chat.thread else chat.kind}"
    rules = (*(SessionRule(*row) for row in chosen.items()), *RULES)
    return next(
        (rule.scope for rule in rules if fnmatchcase(place, rule.place)), "person"
    )


def key_of(chat: Chat, person: Person, chosen: Mapping[str, Scope]) -> str:
    """What names the session's place: the same for everything that belongs to one conversation."""
    where = _where(chat)
    match scope_of(chat, chosen):
        case "chat":
            return where
        case "thread":
            return f"{where}/{_plain(chat.thread)}" if chat.thread else where
        case "person":
            return f"{where}/{_plain(chat.thread)}/@{_plain(person.id)}"


def is_at(key: str, chat: Chat) -> bool:
    """Whether a key is that of a place in this chat."""
    return key == _where(chat) or key.startswith(f"{_where(chat)}/")


def is_shared(chat: Chat, chosen: Mapping[str, Scope]) -> bool:
    """Whether several people take part in one session there."""
    return chat.kind != "direct" and scope_of(chat, chosen) != "person"


def _where(chat: Chat) -> str:
    return f"{chat.platform}/{_plain(chat.id)}"


def _plain(name: str) -> str:
    """A name in which nothing looks like a place of its own."""
    return name.replace("%", "%25").replace("/", "%2F")

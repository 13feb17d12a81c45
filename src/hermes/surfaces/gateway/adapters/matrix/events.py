"""Events of Matrix as messages of the gateway."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import nio

from hermes.primitives.untyped import list_in, number_of, object_in
from hermes.surfaces.gateway.adapter import (
    Attachment,
    Chat,
    FileKind,
    Inbound,
    Person,
    file_kind,
)
from hermes.surfaces.gateway.commands import from_exclamation_mark

_VOICE_MARKS = ("org.matrix.msc3245.voice", "m.voice")
_REPLY_FALLBACK = re.compile(r"\A(?:>[^\n]*\n)+\n?")
"""How older clients repeat the message that a reply answers."""
_FILE_KINDS: dict[str, FileKind] = {
    "m.image": "image",
    "m.audio": "audio",
    "m.video": "video",
}


class MatrixFile(msgspec.Struct, frozen=True):
    """Where a file lies, and what decrypts it; `key` is empty for one that is not encrypted."""

    url: str
    key: str = ""
    hash: str = ""
    iv: str = ""


class OwnNames:
    """The names by which people address the bot."""

    def __init__(self, user_id: str, display_name: str = "") -> None:
        self.user_id = user_id
        local = user_id.removeprefix("@").partition(":")[0]
        names = "|".join(
            re.escape(name) for name in (user_id, local, display_name) if name
        )
        self._mention = re.compile(
            rf"(?<![\w@])@?(?:{names})(?![\w])(?:[:,])?", re.IGNORECASE
        )
        self._address = re.compile(rf"\A\s*@?(?:{names})[:,]\s*", re.IGNORECASE)

    def read(self, text: str, mentioned: list[str]) -> tuple[str, bool]:
        """A text without the bot's name, and whether it is addressed to the bot."""
        if self.user_id in mentioned:
            return self._mention.sub("", text, count=1).strip(), True
        if self.user_id in text or self._address.match(text):
            return self._mention.sub("", text, count=1).strip(), True
        return text.strip(), False


def inbound_message(
    event: nio.RoomMessage,
    room: nio.MatrixRoom,
    names: OwnNames,
    is_for_us: Callable[[Chat, Person, str], bool],
) -> Inbound | None:
    """A message; None for an edit and for what bots say.

    `is_for_us` decides about one that does not name the bot: by its chat, its sender and
    the id of the message that it answers.
    """
    content: dict[str, Any] = object_in(event.source, "content")
    relation = object_in(content, "m.relates_to")
    if relation.get("rel_type") == "m.replace" or content.get("msgtype") == "m.notice":
        return None
    thread = ""
    if relation.get("rel_type") == "m.thread":
        thread = str(relation.get("event_id", ""))
    chat = room_chat(room, thread)
    person = Person(event.sender, room.user_name(event.sender) or "")
    replied_to = str(object_in(relation, "m.in_reply_to").get("event_id", ""))
    attachment = _attachment(content)
    text = _text(content, has_file=attachment is not None, is_reply=bool(replied_to))
    mentioned = list_in(object_in(content, "m.mentions"), "user_ids")
    text, is_named = names.read(text, mentioned)
    addressed = chat.kind == "direct" or is_named or is_for_us(chat, person, replied_to)
    return Inbound(
        id=event.event_id,
        chat=chat,
        person=person,
        text=from_exclamation_mark(text),
        attachments=(attachment,) if attachment else (),
        addressed=addressed,
        message=event.event_id,
    )


def room_chat(room: nio.MatrixRoom, thread: str = "") -> Chat:
    """The chat that a room is: a direct one if nobody else can read it."""
    kind = "direct" if room.member_count <= 2 else "group"
    title = room.name or room.canonical_alias or ""
    return Chat("matrix", room.room_id, kind, thread, title)


def since_invitation(
    events: list[nio.Event], user_id: str
) -> tuple[list[nio.Event], bool]:
    """The events since the bot was invited or has joined, and whether it joined among them.

    What was said before, in a room that it can now read, was not said to it.
    """
    changes = [
        (number, event.membership)
        for number, event in enumerate(events)
        if isinstance(event, nio.RoomMemberEvent) and event.state_key == user_id
    ]
    joined = [number for number, membership in changes if membership == "join"]
    if not joined:
        return events, False
    invited = [number for number, membership in changes if membership == "invite"]
    return events[min([*invited, joined[-1]]) :], True


def unanswered(
    events: list[nio.Event], user_id: str, not_before_ms: float
) -> list[nio.Event]:
    """The events since a moment that came after the account's own last message."""
    own = [
        number
        for number, event in enumerate(events)
        if event.sender == user_id and isinstance(event, nio.RoomMessage)
    ]
    later = events[own[-1] + 1 :] if own else events
    return [event for event in later if event.server_timestamp >= not_before_ms]


def _text(content: dict[str, Any], *, has_file: bool, is_reply: bool) -> str:
    body = str(content.get("body", ""))
    if (
        has_file
    ):  # a file's body is its name, unless there is a name too: then it is a caption
        name = content.get("filename")
        return body if name and body != name else ""
    if content.get("msgtype") == "m.location":
        return f"[place: {content.get('geo_uri', body)}]"
    return _REPLY_FALLBACK.sub("", body) if is_reply else body


def _attachment(content: dict[str, Any]) -> Attachment | None:
    encrypted = object_in(content, "file")
    url = str(encrypted.get("url") or content.get("url") or "")
    if not url:
        return None
    info = object_in(content, "info")
    media = str(info.get("mimetype", "")).partition(";")[0]
    kind = _FILE_KINDS.get(str(content.get("msgtype")), file_kind(media))
    if any(mark in content for mark in _VOICE_MARKS):
        kind = "voice"
    file = MatrixFile(
        url,
        str(object_in(encrypted, "key").get("k", "")),
        str(object_in(encrypted, "hashes").get("sha256", "")),
        str(encrypted.get("iv", "")),
    )
    name = str(content.get("filename") or content.get("body") or "")
    ref = msgspec.json.encode(file).decode()
    size = number_of(info.get("size"))
    return Attachment(kind, ref, name, media, size)

"""The port between the gateway and a chat platform.

An adapter is a subclass of `ChatAdapter` with a function `build(deps: AdapterDeps)` that
makes it. It connects in `run`, reports that with `await inlet.connected(...)`, then passes
on each message with `await inlet.receive(...)`. When that returns, the message is on disk
and may be acknowledged to the platform. An adapter knows nothing of sessions, of people's
roles or of retries.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from hermes.app.people_access import Person
from hermes.errors import HermesError
from hermes.media.audio import AudioFormat
from hermes.surfaces.web import override  # noqa: F401 - adapters take it from here
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.app.agent import Agent
    from hermes.settings import Secrets, Settings
    from hermes.surfaces.gateway.listener import HttpListener

ChatKind: TypeAlias = Literal["direct", "group", "channel"]
Receipt: TypeAlias = Literal["taken", "repeated", "refused"]
"""A message was accepted, was accepted before, or is not for Hermes: it is from a stranger or for others."""
FileKind: TypeAlias = Literal["image", "voice", "audio", "video", "file"]

STREAMING_CURSOR = " ▌"
"""Stands at the end of a message that is still being written."""
_KINDS: dict[str, FileKind] = {"image": "image", "audio": "audio", "video": "video"}


class Chat(msgspec.Struct, frozen=True, omit_defaults=True):
    """A chat. `thread` is a topic or thread inside it, if the platform has those."""

    platform: str
    id: str
    kind: ChatKind = "direct"
    thread: str = ""
    title: str = ""


class Attachment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that came with a message. `ref` is what the adapter needs to download it."""

    kind: FileKind
    ref: str
    name: str = ""
    media_type: str = ""
    size: int = 0


class Inbound(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message, or the press of a button. `id` is permanent, so that a message is handled once."""

    id: str
    chat: Chat
    person: Person
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    addressed: bool = True
    """In a group: Hermes was mentioned, replied to, or given a command."""
    pressed: str = ""
    """The `data` of the button."""
    message: str = ""
    """The id of the message in its chat; for a press, of the message with the button."""
    ref: str = ""
    """What the adapter needs to confirm a press (`told`)."""


class Button(msgspec.Struct, frozen=True):
    """A button. Its `data` has at most 48 ASCII characters and comes back in `Inbound.pressed`."""

    label: str
    data: str


class OutgoingFile(msgspec.Struct, frozen=True):
    """A file to send. It exists, may be shown and is small enough."""

    path: Path
    name: str
    media_type: str
    kind: FileKind = "file"


class Outbound(msgspec.Struct, frozen=True):
    """A message to send.

    `text` is Markdown and fits into `PlatformLimits.text`; the adapter converts it.
    """

    text: str
    buttons: tuple[tuple[Button, ...], ...] = ()
    """Rows of buttons."""
    files: tuple[OutgoingFile, ...] = ()
    reply_to: str = ""
    """The id of the message that it answers."""
    key: str = ""
    """The same for each attempt at the same message, for platforms that drop duplicates."""
    answers: tuple[str, ...] = ()
    """Where a turn is one message: the ids of the messages that it answers."""
    unfinished: bool = False
    """More will follow by `edit`."""
    request: str = ""
    """The number of the request for approval that it is; empty for any other message."""
    is_question: bool = False
    """Work waits for an answer, so platforms with priorities show it at once."""


def file_kind(media_type: str) -> FileKind:
    """The kind of a file, by its media type."""
    return _KINDS.get(media_type.partition("/")[0], "file")


def utf16(text: str) -> int:
    """The length of a text as Telegram and others count it."""
    return len(text.encode("utf-16-le")) // 2


class PlatformLimits(msgspec.Struct, frozen=True):
    """What a platform supports."""

    text: int = 4000
    """The longest message, counted by `size`."""
    size: Callable[[str], int] = len
    edit: bool = True
    """Sent messages can be edited."""
    edit_every: float = 1.0
    """Seconds between two edits of a message."""
    buttons: bool = True
    command_mark: str = "/"
    """What commands begin with, where the platform keeps the slash to itself: `!`."""
    file_bytes: int = 20_000_000
    """The largest file, in either direction; 0 for none."""
    typing: float = 5.0
    """Seconds that "typing" stays visible; 0 where there is no such thing."""
    whole: bool = False
    """A turn is one message, as in e-mail."""
    voice: AudioFormat = "mp3"
    """The format of spoken replies; `ogg` (Opus) where that is a voice message."""
    attached: bool = False
    """A text and its files are one message, which arrives whole or not at all."""


class AdapterError(HermesError):
    """A platform failed."""


class Unreachable(AdapterError):
    """The platform did not answer, or not properly. Another attempt may succeed."""


class TooFast(AdapterError):
    """The platform asks Hermes to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            t.logged("the platform asks to wait {seconds} s", seconds=f"{seconds:g}")
        )
        self.seconds = seconds


class DeliveryRefused(AdapterError):
    """A message can't be delivered: the chat is gone, Hermes is blocked, or the content is not accepted."""


class Unauthorized(AdapterError):
    """The token or password is wrong. Another attempt would fail too."""


class Inlet(Protocol):
    """Where an adapter passes on what it receives."""

    async def connected(self, identity: str) -> None:
        """Reports that it is connected as `identity`. Returns once older replies are delivered; only then receive."""
        ...

    async def receive(self, inbound: Inbound) -> Receipt:
        """Accepts a message or a press. When this returns, it is on disk and may be acknowledged."""
        ...

    def disturbed(self, why: str) -> None:
        """Shows a problem in the status while the adapter itself tries again; empty when it is solved."""
        ...


class GatewayPart:
    """A part of the gateway: an adapter, or a server such as the API."""

    name: str = ""
    answers_requests: bool = False
    """Somebody waits for its answers, so it runs until it has drained."""

    async def run(self, inlet: Inlet) -> None:
        """Connects and works until it is cancelled. Raises AdapterError when it can't go on."""
        raise NotImplementedError

    async def drain(self, timeout_s: float) -> None:
        """Accepts nothing more while it runs; returns once it has answered the rest, or that has taken too long."""

    def can_renew(self, settings: "Settings") -> bool:
        """Whether it can continue with these settings as it is, instead of being made again."""
        del settings
        return False

    async def renew(self, secrets: "Secrets") -> None:
        """Continues with new settings, which the app has already."""

    async def close(self) -> None:
        """Closes its connections. It may be called more than once."""


class ChatAdapter(GatewayPart):
    """One chat platform. Its methods raise AdapterError; the gateway waits and tries again."""

    limits = PlatformLimits()

    async def send(self, chat: Chat, out: Outbound) -> str:
        """Sends a message; returns the id of the last message that it became."""
        raise NotImplementedError

    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        """Edits a message that was sent. Without `out.buttons`, its buttons are removed.

        An edit that changes nothing is not an error.
        """
        raise NotImplementedError

    async def typing(self, chat: Chat) -> None:
        """Shows that Hermes is writing."""

    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        """The content of an attachment. Raises DeliveryRefused when it has more than `most` bytes."""
        raise DeliveryRefused(
            t.logged(
                "files of {size} bytes can't be received here",
                size=attachment.size or most,
            )
        )

    async def told(self, inbound: Inbound, note: str) -> None:
        """Confirms a press: shows `note` to whoever pressed, where the platform can do that."""

    async def finished(self, chat: Chat, answers: tuple[str, ...]) -> None:
        """A turn has ended and all of it was sent; `answers` are the ids of the messages that it answered."""


class AdapterDeps(NamedTuple):
    """What a part of the gateway is built from."""

    app: "App"
    secrets: "Secrets"
    agent: "Agent"
    listener: "HttpListener"

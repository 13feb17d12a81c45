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

from hermes.errors import HermesError
from hermes.surfaces.web import override  # noqa: F401 - adapters take it from here

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.app.agent_pool import Staff
    from hermes.settings import Secrets
    from hermes.surfaces.gateway.listener import HttpListener

ChatKind: TypeAlias = Literal["direct", "group", "channel"]
Receipt: TypeAlias = Literal["taken", "repeated", "refused"]
"""A message was taken in, was taken in before, or is not for Hermes: from a stranger, or not meant for it."""
FileKind: TypeAlias = Literal["image", "voice", "audio", "video", "file"]


class Chat(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place to write to. `thread` is a topic or thread inside it, if the platform has those."""

    platform: str
    id: str
    kind: ChatKind = "direct"
    thread: str = ""
    title: str = ""


class Person(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who wrote, by the platform's own stable id, never by a name that people can choose.

    `verified` is False when the platform does not vouch for the id; such a person is nobody.
    """

    id: str
    name: str = ""
    verified: bool = True


class Attachment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that came with a message. `ref` is what the adapter needs to fetch it."""

    kind: FileKind
    ref: str
    name: str = ""
    media_type: str = ""
    size: int = 0


class Inbound(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message, or the press of a button. `id` names it for good: the same one is never acted on twice."""

    id: str
    chat: Chat
    person: Person
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    addressed: bool = (
        True  # in a group: Hermes was mentioned, replied to, or given a command
    )
    pressed: str = ""  # `data` of the button
    message: str = (
        ""  # id of the message in its chat; for a press, of the message with the button
    )
    ref: str = ""  # what the adapter needs to answer a press (`told`)


class Button(msgspec.Struct, frozen=True):
    """`data` comes back in `Inbound.pressed`; it has at most 48 ASCII characters."""

    label: str
    data: str


class OutgoingFile(msgspec.Struct, frozen=True):
    """A file to send. It was checked: it exists, may be shown, and is small enough."""

    path: Path
    name: str
    media_type: str
    kind: FileKind = "file"


class Outbound(msgspec.Struct, frozen=True):
    """Something to send. `text` is Markdown and fits into `PlatformLimits.text`; the adapter puts it into its own format."""

    text: str
    buttons: tuple[tuple[Button, ...], ...] = ()  # rows
    files: tuple[OutgoingFile, ...] = ()
    reply_to: str = ""  # id of the message it answers
    key: str = ""  # the same for each attempt at the same message; for platforms that drop repeats
    answers: tuple[
        str, ...
    ] = ()  # ids of what came in and is answered by it, where a turn is one message
    unfinished: bool = False  # more will follow by `edit`


def utf16(text: str) -> int:
    """The length as Telegram and others count it."""
    return len(text.encode("utf-16-le")) // 2


class PlatformLimits(msgspec.Struct, frozen=True):
    """What a platform can take."""

    text: int = 4000  # the longest message
    size: Callable[[str], int] = len  # how that is counted
    edit: bool = True  # sent messages can be changed
    edit_every: float = 1.0  # seconds between two changes of a message
    buttons: bool = True
    file_bytes: int = 20_000_000  # the largest file, either way; 0 for none
    typing: float = (
        5.0  # seconds that "typing" stays visible; 0 when there is no such thing
    )
    whole: bool = False  # one message for a whole turn: e-mail, a webhook


class AdapterError(HermesError):
    """Something about a platform went wrong."""


class Unreachable(AdapterError):
    """The platform did not answer, or not properly: worth another try."""


class TooFast(AdapterError):
    """The platform wants us to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the platform asks to wait {seconds:g} seconds")
        self.seconds = seconds


class DeliveryRefused(AdapterError):
    """This message can't be delivered: the chat is gone, Hermes was blocked, the text is not accepted."""


class Unauthorized(AdapterError):
    """The token or password is wrong. Trying again changes nothing."""


class Inlet(Protocol):
    """Where an adapter hands things in."""

    async def connected(self, identity: str) -> None:
        """It is connected, as `identity`. Returns once older replies are delivered: only then receive."""
        ...

    async def receive(self, inbound: Inbound) -> Receipt:
        """Takes a message or a press; when this returns it is on disk and may be acknowledged."""
        ...

    def disturbed(self, why: str) -> None:
        """Something went wrong and the adapter itself tries again; shown in the status. Empty: it is well again."""
        ...


class GatewayPart:
    """Something that runs inside the gateway: an adapter, or a server such as the API."""

    name: str = ""

    async def run(self, inlet: Inlet) -> None:
        """Connects, works until it is cancelled, raises an AdapterError when it can't go on."""
        raise NotImplementedError

    async def close(self) -> None:
        """Lets go of connections. Idempotent."""


class ChatAdapter(GatewayPart):
    """One chat platform. `send` and the others raise AdapterErrors; waiting and trying again is not their business."""

    limits = PlatformLimits()

    async def send(self, chat: Chat, out: Outbound) -> str:
        """Sends; returns the id of the (last) message that came of it."""
        raise NotImplementedError

    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        """Changes a message that was sent; without `out.buttons` its buttons go away. A change to what it says
        already is no error."""
        raise NotImplementedError

    async def typing(self, chat: Chat) -> None:
        """Shows that Hermes is at it."""

    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        """The content of a file that came in; Refused when it has more than `most` bytes."""
        raise DeliveryRefused(
            f"files of {attachment.size or most} bytes can't be received here"
        )

    async def told(self, inbound: Inbound, note: str) -> None:
        """A press was dealt with; `note` is shown to the one who pressed, where the platform can do that."""

    async def finished(self, chat: Chat, answers: tuple[str, ...]) -> None:
        """A turn has ended in this chat, and all of it was sent; `answers` are the ids of what it answered."""


class AdapterDeps(NamedTuple):
    """What a part is built from."""

    app: "App"
    secrets: "Secrets"
    staff: "Staff"
    listener: "HttpListener"

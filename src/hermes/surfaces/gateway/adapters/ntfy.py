"""ntfy: push notifications out, messages in, through its HTTP API.

One topic serves both ways. Hermes' own messages carry a tag that distinguishes them from those of people, even after
a crash.

A message of ntfy does not say who sent it. So everybody who can write to the topic is one person, `ntfy:TOPIC`, and
counts as verified only if the server refuses writers without a token. The adapter checks this at each connect. For
the same reason there are no buttons: an `http` action would need a credential in the message, where every reader of
the topic could copy it. Questions are answered by writing, which only writers can do.
"""

import asyncio
import email.header
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hermes.providers.http_client import (
    Http,
    HttpReply,
    HttpTimeouts,
    TransportFailure,
)
from hermes.settings.chat_platforms import NtfySettings
from hermes.settings.load import environment
from hermes.surfaces.gateway import files
from hermes.surfaces.gateway.adapter import (
    AdapterDeps,
    AdapterError,
    Attachment,
    Chat,
    ChatAdapter,
    DeliveryRefused,
    Inbound,
    Inlet,
    Outbound,
    OutgoingFile,
    Person,
    PlatformLimits,
    TooFast,
    Unauthorized,
    Unreachable,
    file_kind,
    override,
)
from hermes.surfaces.gateway.missed_messages import StreamPosition
from hermes.text.translation import to_translate, translator

t = translator(__name__)


_TAG = "hermes"
"""On each message of ours."""
_TITLE, _QUESTION_TITLE = "Hermes", to_translate("Hermes asks")
_HIGH_PRIORITY = 4
_TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
_NO_SUCH_PRIORITY = "9"
_OVERLAP_S = 60
"""This much is read again after a connect, as messages of the past may come after newer ones; the ledger knows their ids."""
_DEFAULT_RETRY_AFTER_S = 5.0
_CALL_TIMEOUT_S = 30.0
_SILENCE_TIMEOUT_S = 150.0
"""Without a keepalive, which comes every 45 s unless the server is set up otherwise."""
_MIN_STREAM_S = 5.0
"""A stream that ends sooner is a failure, and the gateway waits before the next."""
_MAX_LINE_BYTES = 1_000_000
_MAX_ANSWER_BYTES = 1_000_000
_CALL_TIMEOUTS = HttpTimeouts(
    connect=_CALL_TIMEOUT_S, first_byte=_CALL_TIMEOUT_S, idle=_CALL_TIMEOUT_S
)
_STREAM_TIMEOUTS = HttpTimeouts(
    connect=_CALL_TIMEOUT_S,
    first_byte=_CALL_TIMEOUT_S,
    idle=_SILENCE_TIMEOUT_S,
    total=float("inf"),
)
_HEADERS = {"user-agent": "hermes", "accept": "*/*", "accept-encoding": "identity"}


_NO_MESSAGE = "You received a file: "
"""What ntfy writes if nothing was written with a file."""


class NtfyAttachment(msgspec.Struct, frozen=True):
    """A file of a message."""

    url: str
    name: str = ""
    type: str = ""
    size: int = 0


class NtfyEvent(msgspec.Struct, frozen=True):
    """A line of the stream: `open`, `keepalive`, `message`, or a kind that newer servers have."""

    event: str
    id: str = ""
    time: int = 0
    topic: str = ""
    title: str = ""
    message: str = ""
    encoding: str = ""
    tags: tuple[str, ...] = ()
    attachment: NtfyAttachment | None = None


def build(deps: AdapterDeps) -> "NtfyAdapter":
    """Builds the adapter from the settings."""
    settings = deps.app.settings.gateway.ntfy
    folder = deps.app.home.root / "gateway"
    last_received = int(deps.app.store.chats.last_received("ntfy"))
    place = TopicCursor(
        folder / "ntfy.json", f"{settings.url}/{settings.topic}", last_received
    )
    return NtfyAdapter(deps.secrets.get("NTFY_TOKEN") or "", settings, place)


class TopicCursor:
    """Since when messages may be new, kept in a file. `last_received` is when one last came, for where there is no file."""

    def __init__(self, path: Path, name: str, last_received: int = 0) -> None:
        self._position = StreamPosition(path)
        self._name = name
        stored = self._position.read(name)
        self._since = (
            int(stored) if stored.isdecimal() else max(0, last_received - _OVERLAP_S)
        )

    @property
    def since(self) -> int:
        """A time, in seconds; 0 before the first connect."""
        return self._since

    def start(self, now: int) -> None:
        """The first connect: what was said before is not for us."""
        if not self._since:
            self._write(now)

    def passed(self, time: int) -> None:
        """A message of that time was dealt with."""
        if time - _OVERLAP_S > self._since:
            self._write(time - _OVERLAP_S)

    def _write(self, since: int) -> None:
        self._since = since
        self._position.write(self._name, str(since))


class NtfyAdapter(ChatAdapter):
    """One topic to read, and any topic to write to that the token allows."""

    name = "ntfy"
    limits = PlatformLimits(
        text=4000,
        size=lambda text: len(text.encode("utf-8", "replace")),
        edit=False,
        buttons=False,
        file_bytes=15_000_000,
        typing=0.0,
        whole=True,
    )

    def __init__(self, token: str, settings: NtfySettings, place: TopicCursor) -> None:
        self._settings = settings
        self._url = settings.url.rstrip("/")
        self._auth = {"authorization": f"Bearer {token}"} if token else {}
        self._place = place
        self._http = Http(environment())
        self._is_verified = False
        self._is_connected = False

    @override
    async def run(self, inlet: Inlet) -> None:
        self._is_connected = False
        self._is_verified = bool(self._auth) and await self._is_protected()
        time = asyncio.get_running_loop().time
        while True:
            began = time()
            try:
                await self._stream(inlet)
            except TransportFailure as failure:
                why = t.logged(
                    "the connection to {platform} was lost ({reason})",
                    platform="ntfy",
                    reason=failure.phase,
                )
                if not self._is_connected or time() - began < _MIN_STREAM_S:
                    raise Unreachable(why) from None
                continue
            if time() - began < _MIN_STREAM_S:
                raise Unreachable(
                    t.logged("{platform} ended the connection", platform="ntfy")
                )

    @override
    async def close(self) -> None:
        await self._http.aclose()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        sent = ""
        if out.text.strip():
            body = msgspec.json.encode(self._message(chat, out))
            sent = await self._publish("POST", f"{self._url}/", {}, body, chat.id)
        for file in out.files:
            sent = await self._upload(chat, file)
        return sent

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        if _origin(attachment.ref) != _origin(self._url):
            raise DeliveryRefused(
                t.logged("It is on another server, not on the platform's.")
            )
        return await files.download(self._http, attachment.ref, most)

    def _message(self, chat: Chat, out: Outbound) -> dict[str, Any]:
        settings = self._settings
        message: dict[str, Any] = {
            "topic": _topic(chat.id),
            "message": out.text,
            "title": t.marked(_QUESTION_TITLE) if out.is_question else _TITLE,
            "tags": [_TAG],
            "markdown": True,
            "priority": self._priority(is_question=out.is_question),
        }
        if settings.click_url:
            message["click"] = settings.click_url
            view = {"action": "view", "label": "Open", "url": settings.click_url}
            message["actions"] = [view] if out.is_question else []
        return message

    def _priority(self, *, is_question: bool) -> int:
        least = _HIGH_PRIORITY if is_question else 1
        return max(self._settings.priority, least)

    async def _upload(self, chat: Chat, file: OutgoingFile) -> str:
        data = await asyncio.to_thread(file.path.read_bytes)
        headers = {
            "filename": _header(file.name),
            "title": _TITLE,
            "tags": _TAG,
            "priority": str(self._settings.priority),
        }
        address = f"{self._url}/{_topic(chat.id)}"
        return await self._publish("PUT", address, headers, data, chat.id)

    async def _publish(
        self,
        method: str,
        address: str,
        headers: Mapping[str, str],
        body: bytes,
        topic: str,
    ) -> str:
        """Publishes a message; returns its id."""
        try:
            async with await self._http.send(
                method,
                address,
                {**_HEADERS, **self._auth, **headers},
                body,
                _CALL_TIMEOUTS,
            ) as reply:
                answer = await reply.read_all(_MAX_ANSWER_BYTES)
                if reply.status != 200:
                    raise _failure(reply, answer, topic)
        except TransportFailure as failure:
            raise Unreachable(
                t.logged(
                    "{platform} did not answer ({reason})",
                    platform="ntfy",
                    reason=failure.phase,
                )
            ) from None
        try:
            return msgspec.json.decode(answer, type=NtfyEvent).id
        except msgspec.MsgspecError:
            raise Unreachable(
                t.logged("the answer is not one of {platform}", platform="ntfy")
            ) from None

    async def _is_protected(self) -> bool:
        """Whether the server refuses writers without a token.

        It is asked with a message that it can't accept, so that nothing is published: it
        looks at the right to write first, then at the priority.
        """
        address = f"{self._url}/{self._settings.topic}"
        headers = {**_HEADERS, "priority": _NO_SUCH_PRIORITY}
        try:
            async with await self._http.send(
                "PUT", address, headers, b"?", _CALL_TIMEOUTS
            ) as reply:
                await reply.read_error()
                return reply.status in {401, 403}
        except TransportFailure as failure:
            raise Unreachable(
                t.logged(
                    "{platform} did not answer ({reason})",
                    platform="ntfy",
                    reason=failure.phase,
                )
            ) from None

    async def _stream(self, inlet: Inlet) -> None:
        """Receives until the stream ends."""
        since = f"?since={self._place.since}" if self._place.since else ""
        address = f"{self._url}/{self._settings.topic}/json{since}"
        async with await self._http.send(
            "GET", address, {**_HEADERS, **self._auth}, b"", _STREAM_TIMEOUTS
        ) as reply:
            if reply.status != 200:
                answer = await reply.read_error()
                raise _connect_failure(reply, answer, self._settings.topic)
            async for event in _events(reply):
                await self._take(event, inlet)

    async def _take(self, event: NtfyEvent, inlet: Inlet) -> None:
        if event.event == "open" and not self._is_connected:
            self._is_connected = True
            await asyncio.to_thread(self._place.start, event.time)
            await inlet.connected(self._identity)
        if event.event != "message":
            return
        if _TAG not in event.tags and event.encoding != "base64":
            await inlet.receive(self._inbound(event))
        await asyncio.to_thread(self._place.passed, event.time)

    @property
    def _identity(self) -> str:
        name = f"{urlsplit(self._url).netloc}/{self._settings.topic}"
        if self._is_verified:
            return name
        if self._auth:
            return t.logged("{topic}, only to send: anyone can write to it", topic=name)
        return t.logged("{topic}, only to send: there is no access token", topic=name)

    def _inbound(self, event: NtfyEvent) -> Inbound:
        topic = self._settings.topic
        found = event.attachment
        attachments: tuple[Attachment, ...] = ()
        if found is not None:
            kind = file_kind(found.type)
            is_alone = event.message.startswith(_NO_MESSAGE) and not event.title
            if kind == "audio" and is_alone:  # ntfy does not mark voice notes
                kind = "voice"
            attachments = (
                Attachment(kind, found.url, found.name, found.type, found.size),
            )
        return Inbound(
            id=event.id,
            chat=Chat("ntfy", topic),
            person=Person(topic, topic, self._is_verified),
            text="\n\n".join(filter(None, (event.title, event.message))),
            attachments=attachments,
            message=event.id,
        )


async def _events(reply: HttpReply) -> AsyncIterator[NtfyEvent]:
    """The events of a stream. A line that is none is passed over."""
    rest = b""
    while piece := await reply.read():
        *lines, rest = (rest + piece).split(b"\n")
        for line in filter(None, lines):
            try:
                yield msgspec.json.decode(line, type=NtfyEvent)
            except msgspec.MsgspecError:
                continue
        if len(rest) > _MAX_LINE_BYTES:
            raise Unreachable(t.logged("ntfy sent a line without an end"))


def _topic(name: str) -> str:
    if not _TOPIC.fullmatch(name):
        raise DeliveryRefused(
            t.logged("{name} can't be a topic of ntfy.", name=repr(name))
        )
    return name


def _header(text: str) -> str:
    """A text as a header; ntfy decodes what mail programs use for other letters."""
    plain = " ".join(text.split())
    if plain.isascii() and plain.isprintable():
        return plain
    return email.header.Header(plain, "utf-8", maxlinelen=10_000).encode()


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc


def _connect_failure(reply: HttpReply, answer: bytes, topic: str) -> AdapterError:
    if reply.status in {401, 403}:
        hint = t.logged(
            "Make one with `ntfy token add`, then: {command}",
            command="hermes config set NTFY_TOKEN",
        )
        return Unauthorized(
            t.logged(
                "ntfy does not let this token read the topic {topic}.", topic=topic
            ),
            hint=hint,
        )
    found = _failure(reply, answer, topic)
    return Unreachable(found.message) if isinstance(found, DeliveryRefused) else found


def _failure(reply: HttpReply, answer: bytes, topic: str) -> AdapterError:
    status = reply.status
    why = _reason(answer) or f"status {status}"
    if status == 429:
        wait = reply.headers.get("retry-after", "")
        return TooFast(float(wait) if wait.isdecimal() else _DEFAULT_RETRY_AFTER_S)
    if status == 401:
        return Unauthorized(t.logged("{platform} rejected the token.", platform="ntfy"))
    if status == 403:
        return DeliveryRefused(
            t.logged("ntfy does not let this token write to {topic}.", topic=topic)
        )
    if status >= 500:
        return Unreachable(
            t.logged(
                "the request to {platform} failed: {reason}",
                platform="ntfy",
                reason=why,
            )
        )
    return DeliveryRefused(
        t.logged(
            "{platform} refused the request: {reason}",
            platform="ntfy",
            reason=why,
        )
    )


def _reason(answer: bytes) -> str:
    try:
        return str(msgspec.json.decode(answer, type=dict[str, Any]).get("error", ""))
    except msgspec.MsgspecError:
        return ""

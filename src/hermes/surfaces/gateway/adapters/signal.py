"""Signal, through the JSON-RPC daemon of signal-cli over HTTP: its event stream receives, its calls send.

The daemon keeps the account and the keys. Started with `--receive-mode=on-connection`, it leaves messages on Signal's
server until Hermes listens. A daemon whose events have ids repeats those after the last one that Hermes has stored,
so a crash loses none. Signal allows few edits of a message and has no buttons: a reply appears once it is complete,
and a request for approval is answered by its number or by a reaction (👍, 👎).
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import msgspec

from hermes.primitives.recent import RecentDict
from hermes.providers.http_client import HttpReply, TransportFailure
from hermes.providers.sse import BrokenEvents, EventParser
from hermes.settings.chat_platforms import SignalSettings
from hermes.surfaces.gateway.adapter import (
    AdapterDeps,
    AdapterError,
    Attachment,
    Chat,
    ChatAdapter,
    DeliveryRefused,
    FileKind,
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
from hermes.surfaces.gateway.adapters.text_formats import styled_ranges
from hermes.surfaces.gateway.missed_messages import StreamPosition
from hermes.surfaces.gateway.questions import QuestionReactions
from hermes.surfaces.gateway.rest_client import FailedCall, RestClient
from hermes.text.translation import translator

t = translator(__name__)

_GROUP = "group."
"""How the id of a group's chat begins; the rest is the group's id in the URL-safe alphabet."""
_SILENCE_TIMEOUT_S = 60.0
"""The daemon sends a sign of life every 15 s."""
_DEFAULT_RETRY_AFTER_S = 60.0
_MAX_REMEMBERED_TEXTS = 500
_MAX_QUOTE_CHARACTERS = 300
_MENTION = "\ufffc"
"""Stands in a text for a mention."""
_STYLES = {"b": "BOLD", "i": "ITALIC", "s": "STRIKETHROUGH", "pre": "MONOSPACE", "code": "MONOSPACE"}  # fmt: skip
_USER_ERROR, _IO_ERROR, _UNTRUSTED_KEY, _RATE_LIMIT = -1, -3, -4, -5
_INVALID_PARAMS = -32602
_ACCOUNT_HINT = t.logged(
    "Register it with signal-cli, then: {command}",
    command="hermes config set gateway.signal.account +4915112345678",
)


class SignalAddress(msgspec.Struct, frozen=True, rename="camel"):
    """Somebody who is mentioned. Either id may be missing."""

    number: str | None = None
    uuid: str | None = None
    start: int = 0
    length: int = 1


class SignalQuote(msgspec.Struct, frozen=True, rename="camel"):
    """The message that another one answers."""

    id: int = 0
    author_number: str | None = None
    author_uuid: str | None = None
    text: str | None = None


class SignalReaction(msgspec.Struct, frozen=True, rename="camel"):
    """An emoji on a message."""

    emoji: str
    target_sent_timestamp: int
    is_remove: bool = False


class SignalFile(msgspec.Struct, frozen=True, rename="camel"):
    """An attachment, which the daemon has downloaded."""

    id: str | None = None
    content_type: str | None = None
    filename: str | None = None
    size: int | None = None


class SignalGroup(msgspec.Struct, frozen=True, rename="camel"):
    """The group in which something was said."""

    group_id: str
    group_name: str | None = None
    type: str = "DELIVER"


class SignalMessage(msgspec.Struct, frozen=True, rename="camel"):
    """What somebody sent."""

    timestamp: int
    message: str | None = None
    reaction: SignalReaction | None = None
    quote: SignalQuote | None = None
    mentions: tuple[SignalAddress, ...] = ()
    attachments: tuple[SignalFile, ...] = ()
    group_info: SignalGroup | None = None


class SignalEnvelope(msgspec.Struct, frozen=True, rename="camel"):
    """An event of the daemon: a message, or something that is not for us."""

    source_number: str | None = None
    source_uuid: str | None = None
    source_name: str | None = None
    data_message: SignalMessage | None = None


class SignalEvent(msgspec.Struct, frozen=True):
    """The data of one event of the stream."""

    envelope: SignalEnvelope
    account: str = ""


def build(deps: AdapterDeps) -> "SignalAdapter":
    """Builds the adapter from the settings."""
    position = StreamPosition(deps.app.home.root / "gateway" / "signal.json")
    return SignalAdapter(deps.app.settings.gateway.signal, position)


class SignalAdapter(ChatAdapter):
    """One account of signal-cli."""

    name = "signal"
    limits = PlatformLimits(
        text=2000,
        size=lambda text: len(text.encode("utf-8", "replace")),
        edit=False,
        buttons=False,
        file_bytes=100_000_000,
        typing=15.0,
        attached=True,
    )

    def __init__(self, settings: SignalSettings, position: StreamPosition) -> None:
        self._account = settings.account
        self._position = position
        self._stream = f"{settings.url} {settings.account}"
        self._api = RestClient(
            "signal-cli", settings.url, {}, reason=lambda _: "", explain=_explain
        )
        self._reactions = QuestionReactions()
        self._texts: RecentDict[str, str] = RecentDict(_MAX_REMEMBERED_TEXTS)
        """Texts of messages, which a quote of one repeats."""

    @override
    async def run(self, inlet: Inlet) -> None:
        await self._require_account()
        path = f"/api/v1/events?account={quote(self._account, safe='')}"
        try:
            last = self._position.read(self._stream)
            async with await self._api.stream(path, _SILENCE_TIMEOUT_S, last) as reply:
                if reply.status != 200:
                    raise self._api.failure(reply, await reply.read_error())
                await inlet.connected(self._account)
                async for event_id, event in _events(reply):
                    if (inbound := self._inbound(event)) is not None:
                        await inlet.receive(inbound)
                        if event_id:  # it is stored now
                            await asyncio.to_thread(
                                self._position.write, self._stream, event_id
                            )
        except (TransportFailure, BrokenEvents) as failure:
            why = getattr(failure, "phase", "no events")
            raise Unreachable(
                t.logged(
                    "the connection to {platform} was lost ({reason})",
                    platform="signal-cli",
                    reason=why,
                )
            ) from None
        raise Unreachable(
            t.logged("{platform} ended the connection", platform="signal-cli")
        )

    @override
    async def close(self) -> None:
        await self._api.close()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        text, ranges = styled_ranges(out.text)
        message: dict[str, Any] = {"message": text}
        if ranges:
            message["textStyle"] = [
                f"{one.start}:{one.length}:{_STYLES[one.tag]}" for one in ranges
            ]
        if out.files:
            uris = [await asyncio.to_thread(_data_uri, file) for file in out.files]
            message["attachments"] = uris
        if chat.kind == "group":
            message |= self._quoted(out.reply_to)
        answer = await self._call("send", _recipient(chat) | message)
        _require_delivery(answer)
        sent = str(answer["timestamp"])
        self._reactions.sent(sent, chat, out)
        return sent

    @override
    async def typing(self, chat: Chat) -> None:
        await self._call("sendTyping", _recipient(chat))

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        name, _, place = attachment.ref.partition(" ")
        answer = await self._call("getAttachment", {"id": name} | _recipient_of(place))
        try:
            data = base64.b64decode(answer["data"])
        except (KeyError, binascii.Error):
            raise DeliveryRefused(t.logged("signal-cli no longer has it.")) from None
        if len(data) > most:
            raise DeliveryRefused(
                t.logged("It has more than {size} bytes.", size=f"{most:,}")
            )
        return data

    async def _require_account(self) -> None:
        """Raises Unauthorized when signal-cli does not have the account. One that was given with `-a` is not listed."""
        try:
            found = await self._call("listAccounts", {})
        except DeliveryRefused:  # a daemon of one account does not know the method
            return
        numbers = [one.get("number") for one in found]
        if numbers and self._account not in numbers:
            raise Unauthorized(
                t.logged("signal-cli has no account {account}.", account=self._account),
                hint=_ACCOUNT_HINT,
            )

    async def _call(self, method: str, params: dict[str, Any]) -> Any:
        request = {
            "jsonrpc": "2.0",
            "id": "1",
            "method": method,
            "params": {"account": self._account, **params},
        }
        answer = await self._api.call("POST", "/api/v1/rpc", request)
        if not isinstance(answer, dict):
            raise Unreachable(
                t.logged("the answer is not one of {platform}", platform="signal-cli")
            )
        if error := answer.get("error"):
            raise _failure(error)
        return answer.get("result") or {}

    def _quoted(self, message: str) -> dict[str, Any]:
        timestamp, _, author = message.partition(" ")
        if not author or message not in self._texts:
            return {}
        return {
            "quoteTimestamp": int(timestamp),
            "quoteAuthor": author,
            "quoteMessage": self._texts[message],
        }

    # --- receiving

    def _inbound(self, event: SignalEvent) -> Inbound | None:
        envelope = event.envelope
        message = envelope.data_message
        sender = envelope.source_uuid or envelope.source_number or ""
        if message is None or not sender or self._is_me(envelope.source_number):
            return None
        person = Person(sender, envelope.source_name or envelope.source_number or "")
        name = f"{sender}:{message.timestamp}"
        group = message.group_info
        chat = _chat(sender, group)
        if message.reaction is not None:
            return self._reaction(name, person, chat, message.reaction)
        if group is not None and group.type != "DELIVER":
            return None
        text, is_mentioned = self._text(message)
        if not text and not message.attachments:
            return None
        message_id = f"{message.timestamp} {sender}"
        self._texts[message_id] = text[:_MAX_QUOTE_CHARACTERS]
        is_for_us = group is None or is_mentioned or self._is_answer(message)
        return Inbound(
            id=name,
            chat=chat,
            person=person,
            text=_with_quote(text, message.quote),
            attachments=tuple(
                _attachment(one, chat) for one in message.attachments if one.id
            ),
            addressed=is_for_us,
            message=message_id,
        )

    def _is_answer(self, message: SignalMessage) -> bool:
        """Returns whether a message quotes one of ours."""
        quoted = message.quote
        return quoted is not None and self._is_me(
            quoted.author_number, quoted.author_uuid
        )

    def _is_me(self, *ids: str | None) -> bool:
        return self._account in ids

    def _reaction(
        self, name: str, person: Person, place: Chat, reaction: SignalReaction
    ) -> Inbound | None:
        """A reaction as an answer. Its message is named by its time, so it must be in the same chat."""
        target = str(reaction.target_sent_timestamp)
        answer = self._reactions.answer(target, reaction.emoji)
        if answer is None or reaction.is_remove or answer[0].id != place.id:
            return None
        chat, command = answer
        return Inbound(id=name, chat=chat, person=person, text=command)

    def _text(self, message: SignalMessage) -> tuple[str, bool]:
        """The text with names for mentions, and whether we are mentioned."""
        encoded = (message.message or "").encode("utf-16-le")
        is_mentioned = False
        for one in sorted(message.mentions, key=lambda one: one.start, reverse=True):
            is_me = self._is_me(one.number, one.uuid)
            is_mentioned = is_mentioned or is_me
            name = "" if is_me else f"@{one.number or one.uuid or '?'}"
            end = (one.start + one.length) * 2
            encoded = encoded[: one.start * 2] + name.encode("utf-16-le") + encoded[end:]  # fmt: skip
        text = encoded.decode("utf-16-le", "replace").replace(_MENTION, "")
        return text.strip(), is_mentioned


async def _events(reply: HttpReply) -> AsyncIterator[tuple[str, SignalEvent]]:
    """The events of a stream, with their ids. One that is not understood is passed over."""
    parser = EventParser()
    while piece := await reply.read():
        for event in parser.feed(piece):
            try:
                yield event.id, msgspec.json.decode(event.data, type=SignalEvent)
            except msgspec.MsgspecError:
                continue


def _chat(sender: str, group: SignalGroup | None) -> Chat:
    if group is None:
        return Chat("signal", sender)
    name = group.group_id.translate(str.maketrans("+/", "-_")).rstrip("=")
    return Chat("signal", _GROUP + name, "group", title=group.group_name or "")


def _recipient(chat: Chat) -> dict[str, Any]:
    return _recipient_of(chat.id)


def _recipient_of(place: str) -> dict[str, Any]:
    if not place.startswith(_GROUP):
        return {"recipient": [place]}
    name = place.removeprefix(_GROUP).translate(str.maketrans("-_", "+/"))
    return {"groupId": name + "=" * (-len(name) % 4)}


def _with_quote(text: str, quoted: SignalQuote | None) -> str:
    """A text with the beginning of what it answers. A command stays one."""
    if quoted is None or not quoted.text or text.startswith("/"):
        return text
    beginning = " ".join(quoted.text.split())[:_MAX_QUOTE_CHARACTERS]
    return f"> {beginning}\n\n{text}"


def _attachment(file: SignalFile, chat: Chat) -> Attachment:
    media = (file.content_type or "").partition(";")[0]
    kind: FileKind = file_kind(media)
    if kind == "audio" and not file.filename:  # recorded in the app
        kind = "voice"
    ref = f"{file.id} {chat.id}"
    return Attachment(kind, ref, file.filename or "", media, file.size or 0)


def _data_uri(file: OutgoingFile) -> str:
    name = quote(file.name)
    data = base64.b64encode(file.path.read_bytes()).decode()
    return f"data:{file.media_type};filename={name};base64,{data}"


def _require_delivery(answer: dict[str, Any]) -> None:
    """Raises the failure of a message that reached nobody."""
    results = answer.get("results") or []
    kinds = [one.get("type") for one in results]
    if not kinds or "SUCCESS" in kinds:
        return
    if "RATE_LIMIT_FAILURE" in kinds:
        waits = [one.get("retryAfterSeconds") or 0 for one in results]
        raise TooFast(float(max(waits) or _DEFAULT_RETRY_AFTER_S))
    if "NETWORK_FAILURE" in kinds:
        raise Unreachable(t.logged("signal-cli could not reach Signal"))
    if "IDENTITY_FAILURE" in kinds:
        raise DeliveryRefused(
            t.logged(
                "The person's safety number has changed; accept it with: {command}",
                command="signal-cli trust -a NUMBER",
            )
        )
    raise DeliveryRefused(t.logged("This person is no longer on Signal."))


def _failure(error: dict[str, Any]) -> AdapterError:
    """The error of a JSON-RPC call."""
    code, why = (
        error.get("code"),
        str(error.get("message") or t.logged("no reason given")),
    )
    response = (error.get("data") or {}).get("response") or {}
    try:
        _require_delivery(response)
    except AdapterError as found:
        return found
    if code == _RATE_LIMIT:
        return TooFast(_DEFAULT_RETRY_AFTER_S)
    if code == _INVALID_PARAMS and "account" in why.lower():
        return Unauthorized(f"signal-cli: {why}.", hint=_ACCOUNT_HINT)
    if code in {_USER_ERROR, _UNTRUSTED_KEY, _INVALID_PARAMS, -32600, -32601}:
        return DeliveryRefused(
            t.logged(
                "{platform} refused the request: {reason}",
                platform="signal-cli",
                reason=why,
            )
        )
    return Unreachable(
        t.logged(
            "the request to {platform} failed: {reason}",
            platform="signal-cli",
            reason=why,
        )
    )


def _explain(failed: FailedCall) -> AdapterError | None:
    if failed.status == 400:  # what the event stream says of an unknown account
        return Unauthorized(
            t.logged("signal-cli does not know the account."), hint=_ACCOUNT_HINT
        )
    return None

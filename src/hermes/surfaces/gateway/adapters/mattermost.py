"""Mattermost, through its REST API (v4) and its WebSocket: messages, threads, edits, files and reactions.

Buttons of Mattermost call an address that its server must reach, so questions are answered by number or by a reaction
(👍, 👎) instead. The WebSocket does not repeat messages that were sent while nobody listened, so these are read after
each connect.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from hermes.primitives.recent import RecentDict
from hermes.primitives.untyped import object_in
from hermes.settings.chat_platforms import MattermostSettings
from hermes.surfaces.gateway.adapter import (
    STREAMING_CURSOR,
    AdapterDeps,
    AdapterError,
    Attachment,
    Chat,
    ChatAdapter,
    ChatKind,
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
from hermes.surfaces.gateway.commands import from_exclamation_mark
from hermes.surfaces.gateway.connection import redacted_logger
from hermes.surfaces.gateway.missed_messages import PlatformMemory
from hermes.surfaces.gateway.questions import QuestionReactions
from hermes.surfaces.gateway.rest_client import FailedCall, RestClient
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

_API = "/api/v4"
_CONNECT_TIMEOUT_S = 20.0
_PING_INTERVAL_S = 20.0
_MAX_EVENT_BYTES = 4_000_000
_MAX_MISSED_CHANNELS = 50
_MAX_REMEMBERED = 1000
_CHAT_KINDS: dict[str, ChatKind] = {"D": "direct", "G": "group"}
_EVERYBODY = re.compile(r"@(?=(?:all|channel|here)\b)", re.IGNORECASE)
_ZERO_WIDTH_SPACE = "\u200b"
_TOKEN_HINT = t.logged(
    "Make one under Integrations, Bot Accounts; then: {command}",
    command="hermes config set MATTERMOST_TOKEN",
)


class MattermostFile(msgspec.Struct, frozen=True):
    """A file of a post."""

    id: str
    name: str = ""
    mime_type: str = ""
    size: int = 0


class MattermostMetadata(msgspec.Struct, frozen=True):
    """What the server adds to a post."""

    files: tuple[MattermostFile, ...] | None = None


class MattermostPost(msgspec.Struct, frozen=True):
    """A message. `type` is empty for what people and bots write."""

    id: str
    user_id: str
    channel_id: str
    root_id: str = ""
    message: str = ""
    type: str = ""
    create_at: int = 0
    delete_at: int = 0
    props: dict[str, Any] | None = None
    metadata: MattermostMetadata | None = None


class MattermostEvent(msgspec.Struct, frozen=True):
    """What the WebSocket sends: an event with its data, or the status of a request."""

    event: str = ""
    data: dict[str, Any] | None = None
    status: str = ""
    seq_reply: int = 0


class MattermostReaction(msgspec.Struct, frozen=True):
    """An emoji on a post."""

    user_id: str
    post_id: str
    emoji_name: str
    create_at: int = 0


def build(deps: AdapterDeps) -> "MattermostAdapter":
    """Builds the adapter from the settings."""
    settings = deps.app.settings.gateway.mattermost
    token = deps.secrets.require("MATTERMOST_TOKEN")
    return MattermostAdapter(token, settings, PlatformMemory(deps.app, "mattermost"))


class MattermostAdapter(ChatAdapter):
    """One bot account."""

    name = "mattermost"
    limits = PlatformLimits(
        text=16_000,
        edit_every=1.5,
        buttons=False,
        command_mark="!",
        file_bytes=100_000_000,
        typing=4.0,
        attached=True,
    )

    def __init__(
        self, token: str, settings: MattermostSettings, memory: PlatformMemory
    ) -> None:
        self._token = token
        self._url = settings.url.rstrip("/")
        self._channels = frozenset(settings.channels)
        self._memory = memory
        self._api = RestClient(
            "Mattermost",
            self._url + _API,
            {"authorization": f"Bearer {token}"},
            reason=lambda error: str(error.get("message", "")),
            explain=_explain,
        )
        self._me: dict[str, Any] = {}
        self._kinds: RecentDict[str, ChatKind] = RecentDict(_MAX_REMEMBERED)
        self._names: RecentDict[str, str] = RecentDict(_MAX_REMEMBERED)
        self._reactions = QuestionReactions()
        self._refused: RecentDict[str, bool] = RecentDict(_MAX_REMEMBERED)

    @override
    async def run(self, inlet: Inlet) -> None:
        self._me = await self._api.call("GET", "/users/me")
        scheme = "wss" if self._url.startswith("https:") else "ws"
        address = f"{scheme}{self._url[self._url.index(':') :]}{_API}/websocket"
        try:
            async with connect(
                address,
                logger=redacted_logger("hermes.gateway.mattermost.socket"),
                open_timeout=_CONNECT_TIMEOUT_S,
                ping_interval=_PING_INTERVAL_S,
                max_size=_MAX_EVENT_BYTES,
            ) as socket:
                await self._authenticate(socket)
                await inlet.connected(self._identity)
                await self._catch_up(inlet)
                async for event in _events(socket):
                    await self._receive(inlet, await self._inbound(event))
        except (WebSocketException, OSError, TimeoutError) as error:
            raise Unreachable(
                t.logged(
                    "the connection to {platform} was lost ({reason})",
                    platform="Mattermost",
                    reason=type(error).__name__,
                )
            ) from None
        raise Unreachable(
            t.logged("{platform} ended the connection", platform="Mattermost")
        )

    @override
    async def close(self) -> None:
        await self._api.close()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        channel = await self._channel(chat.id)
        file_ids = [await self._upload(channel, file) for file in out.files]
        post = {
            "channel_id": channel,
            "root_id": chat.thread,
            "message": _message(out),
            "file_ids": file_ids,
        }
        if out.key:  # the server drops a second post with it
            post["pending_post_id"] = f"{self._me.get('id', '')}:{out.key}"
        sent = str((await self._api.call("POST", "/posts", post))["id"])
        self._reactions.sent(sent, chat, out)
        return sent

    @override
    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        del chat
        body = {"message": _message(out)}
        await self._api.call("PUT", f"/posts/{message}/patch", body)

    @override
    async def typing(self, chat: Chat) -> None:
        body = {"channel_id": chat.id, "parent_id": chat.thread}
        await self._api.call("POST", "/users/me/typing", body)

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        return await self._api.download(f"/files/{attachment.ref}", most)

    @property
    def _identity(self) -> str:
        return f"@{self._me.get('username', '?')} on {urlsplit(self._url).netloc}"

    async def _channel(self, name: str) -> str:
        """The id of a channel; of the direct channel with a person for `@name`."""
        if not name.startswith("@"):
            return name
        user = await self._api.call("GET", f"/users/username/{name[1:]}")
        pair = [self._me.get("id", ""), user["id"]]
        return str((await self._api.call("POST", "/channels/direct", pair))["id"])

    async def _upload(self, channel: str, file: OutgoingFile) -> str:
        fields = {"channel_id": channel}
        found = await self._api.upload("/files", fields, "files", file)
        return str(found["file_infos"][0]["id"])

    # --- receiving

    async def _authenticate(self, socket: ClientConnection) -> None:
        challenge = {
            "seq": 1,
            "action": "authentication_challenge",
            "data": {"token": self._token},
        }
        await socket.send(msgspec.json.encode(challenge).decode())
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            async for event in _events(socket):
                if event.seq_reply == 1 and event.status == "OK":
                    return
                if event.status == "FAIL":
                    break
        raise Unauthorized(
            t.logged("{platform} rejected the token.", platform="Mattermost"),
            hint=_TOKEN_HINT,
        )

    async def _catch_up(self, inlet: Inlet) -> None:
        """Reads what was said while nobody listened, in every channel of the bot."""
        since = (await asyncio.to_thread(self._memory.absence)).since
        since_ms = int(since * 1000)
        channels = await self._api.call("GET", "/users/me/channels")
        missed = [one for one in channels if one.get("last_post_at", 0) >= since_ms]
        for channel in missed[:_MAX_MISSED_CHANNELS]:
            self._kinds[channel["id"]] = _kind(channel.get("type"))
            path = f"/channels/{channel['id']}/posts?since={since_ms}"
            try:
                found = await self._api.call("GET", path)
            except DeliveryRefused as error:
                log.info("mattermost: a channel can't be read: %s", error)
                continue
            posts = msgspec.convert(
                list(object_in(found, "posts").values()), list[MattermostPost]
            )
            for post in sorted(posts, key=lambda one: one.create_at):
                if post.create_at < since_ms:  # older, and edited since
                    continue
                await self._receive(inlet, await self._message(post))

    async def _receive(self, inlet: Inlet, inbound: Inbound | None) -> None:
        """Passes on a message. One that was refused is not kept, so it is known here when it is read again."""
        if inbound is None or inbound.id in self._refused:
            return
        if await inlet.receive(inbound) == "refused":
            self._refused[inbound.id] = True

    async def _inbound(self, event: MattermostEvent) -> Inbound | None:
        data = event.data or {}
        if event.event == "posted":
            post = msgspec.json.decode(data["post"], type=MattermostPost)
            self._kinds[post.channel_id] = _kind(data.get("channel_type"))
            self._names[post.user_id] = str(data.get("sender_name", "")).lstrip("@")
            return await self._message(post)
        if event.event == "reaction_added":
            found = msgspec.json.decode(data["reaction"], type=MattermostReaction)
            return await self._reaction(found)
        return None

    async def _message(self, post: MattermostPost) -> Inbound | None:
        if post.user_id == self._me["id"] or not _is_from_person(post):
            return None
        kind = self._kinds.get(post.channel_id, "channel")
        # An answer in a channel starts a thread, as is the custom on Mattermost.
        thread = post.root_id or ("" if kind == "direct" else post.id)
        chat = Chat("mattermost", post.channel_id, kind, thread)
        text, is_mentioned = self._text(post.message)
        addressed = (
            kind == "direct" or is_mentioned or post.channel_id in self._channels
        )
        if not addressed and post.root_id:
            addressed = self._memory.takes_part(chat, Person(post.user_id))
        files = post.metadata.files if post.metadata and post.metadata.files else ()
        person = Person(post.user_id)
        if addressed:
            person = await self._person(post.user_id)
        return Inbound(
            id=post.id,
            chat=chat,
            person=person,
            text=text,
            attachments=tuple(_attachment(one, alone=not text) for one in files),
            addressed=addressed,
            message=post.id,
        )

    async def _reaction(self, reaction: MattermostReaction) -> Inbound | None:
        answer = self._reactions.answer(reaction.post_id, reaction.emoji_name)
        if answer is None or reaction.user_id == self._me["id"]:
            return None
        chat, command = answer
        name = f"{reaction.post_id}:{reaction.user_id}:{reaction.create_at}"
        person = await self._person(reaction.user_id)
        return Inbound(id=name, chat=chat, person=person, text=command)

    def _text(self, message: str) -> tuple[str, bool]:
        """The text without the bot's name, and whether it contains that."""
        name = re.escape(str(self._me.get("username", "")))
        mention = re.compile(rf"(?<![\w.])@{name}\b(?![-.]\w)", re.IGNORECASE)
        text = mention.sub("", message).strip()
        return from_exclamation_mark(text), mention.search(message) is not None

    async def _person(self, user: str) -> Person:
        """A person with their name, which is empty when it can't be read."""
        if user not in self._names:
            try:
                found = await self._api.call("GET", f"/users/{user}")
            except AdapterError:
                return Person(user)
            self._names[user] = str(found.get("username", ""))
        return Person(user, self._names[user])


def _is_from_person(post: MattermostPost) -> bool:
    """Returns whether a person wrote it, and it is still there."""
    props = post.props or {}
    marks = ("from_bot", "from_webhook", "from_plugin")
    is_from_program = any(str(props.get(mark)) == "true" for mark in marks)
    return not (is_from_program or post.type or post.delete_at)


async def _events(socket: ClientConnection) -> AsyncIterator[MattermostEvent]:
    """The events of the WebSocket. One that is not understood is passed over."""
    async for line in socket:
        try:
            yield msgspec.json.decode(line, type=MattermostEvent)
        except msgspec.MsgspecError:
            continue


def _kind(letter: object) -> ChatKind:
    return _CHAT_KINDS.get(str(letter), "channel")


def _attachment(file: MattermostFile, *, alone: bool) -> Attachment:
    """A file of a post. Mattermost does not mark voice notes: a recording without a word beside it is one."""
    media = file.mime_type.partition(";")[0]
    kind = file_kind(media)
    if kind == "audio" and alone:
        kind = "voice"
    return Attachment(kind, file.id, file.name, media, file.size)


def _message(out: Outbound) -> str:
    """The text of a post, which notifies no whole channel."""
    cursor = STREAMING_CURSOR if out.unfinished else ""
    return _EVERYBODY.sub(f"@{_ZERO_WIDTH_SPACE}", out.text) + cursor


def _explain(failed: FailedCall) -> AdapterError | None:
    if failed.status == 401:
        return Unauthorized(
            t.logged("{platform} rejected the token.", platform="Mattermost"),
            hint=_TOKEN_HINT,
        )
    if failed.status == 429 and "retry-after" not in failed.headers:
        reset = failed.headers.get("x-ratelimit-reset", "")
        return TooFast(float(reset)) if reset.isdecimal() else None
    return None

"""Matrix, through matrix-nio: rooms, encrypted ones too, threads, edits, files, voice messages and reactions.

The position in the stream of events is stored only after the messages before it, so a crash repeats messages rather
than losing them; repeated messages are recognised by their ids. The keys of encrypted rooms are kept in the gateway's
folder.
"""

import asyncio
import io
import logging
import re
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
import nio
from nio.crypto import ENCRYPTION_ENABLED
from nio.crypto.attachments import decrypt_attachment

from hermes.primitives.files import make_private_folder
from hermes.primitives.recent import RecentDict
from hermes.settings.chat_platforms import MatrixSettings
from hermes.surfaces.gateway.adapter import (
    STREAMING_CURSOR,
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
    override,
)
from hermes.surfaces.gateway.adapters.matrix.events import (
    MatrixFile,
    OwnNames,
    inbound_message,
    since_invitation,
    unanswered,
)
from hermes.surfaces.gateway.adapters.text_formats import matrix_html
from hermes.surfaces.gateway.connection import redacted_logger
from hermes.surfaces.gateway.missed_messages import PlatformMemory, StreamPosition
from hermes.surfaces.gateway.questions import QuestionReactions
from hermes.text.translation import to_translate, translator

t = translator(__name__)


log = logging.getLogger("hermes.gateway")

_LONG_POLL_MS = 30_000
_CALL_TIMEOUT_S = 30.0
_TYPING_MS = 20_000
_DOWNLOADS = "/_matrix/client/v1/media/download"
_MEDIA = re.compile(r"mxc://((?!\.+/)[A-Za-z0-9.:\[\]-]+/[A-Za-z0-9_-]+)")
"""The server and the id of a file."""
_MAX_REMEMBERED = 1000
_TIMELINE = {"room": {"timeline": {"limit": 100}}}
"""How much of a room's past is read after a pause."""
_FIRST_SYNC_AGE_S = 600
"""Older messages are not answered at the first connection of an account: they were not said to Hermes."""
_DEFAULT_RETRY_AFTER_MS = 5000
_LIBRARY_ERRORS = (
    nio.ProtocolError,
    nio.EncryptionError,
    nio.GroupEncryptionError,
    nio.OlmTrustError,
)
_TOKEN_ERRORS = frozenset(("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"))
_TOKEN_HINT = t.logged(
    "Log in once as the bot to get one, then: {command}",
    command="hermes config set MATRIX_ACCESS_TOKEN",
)
_UNREADABLE = to_translate(
    "I could not decrypt this message. Your app has not shared its key with this device of mine;"
    " please write it again, or check in the app that unverified devices get keys."
)
_NO_ENCRYPTION = to_translate(
    "This room is encrypted, and I can't read encrypted messages here."
    " Please write to me in a room without encryption."
)
_FILE_TYPES = {
    "image": "m.image",
    "video": "m.video",
    "audio": "m.audio",
    "voice": "m.audio",
}


def build(deps: AdapterDeps) -> "MatrixAdapter":
    """Builds the adapter from the settings."""
    return MatrixAdapter(
        deps.secrets.require("MATRIX_ACCESS_TOKEN"),
        deps.app.settings.gateway.matrix,
        PlatformMemory(deps.app, "matrix"),
        deps.app.home.root / "gateway" / "matrix",
    )


class MatrixAdapter(ChatAdapter):
    """One account, with the device that its access token belongs to."""

    name = "matrix"
    limits = PlatformLimits(
        text=12_000,
        size=lambda text: len(text.encode("utf-8", "replace")),
        edit_every=2.0,
        buttons=False,
        command_mark="!",
        file_bytes=50_000_000,
        typing=_TYPING_MS / 1000,
    )

    def __init__(
        self, token: str, settings: MatrixSettings, memory: PlatformMemory, folder: Path
    ) -> None:
        redacted_logger("nio")
        self._token = token
        self._settings = settings
        self._memory = memory
        self._folder = make_private_folder(folder)
        self._position = StreamPosition(folder / "position.json")
        config = nio.AsyncClientConfig(
            max_limit_exceeded=0,
            max_timeouts=0,
            request_timeout=_CALL_TIMEOUT_S,
            encryption_enabled=ENCRYPTION_ENABLED,
        )
        # Its methods have decorators that hide their types.
        self._client: Any = nio.AsyncClient(
            settings.url.rstrip("/"),
            store_path=str(folder),
            config=config,
            proxy=_proxy(settings.url),
        )
        self._names = OwnNames("")
        self._reactions = QuestionReactions()
        self._sent: RecentDict[str, bool] = RecentDict(_MAX_REMEMBERED)
        self._told: RecentDict[str, bool] = RecentDict(_MAX_REMEMBERED)
        """Rooms in which we said that we can't read a message."""

    @override
    async def run(self, inlet: Inlet) -> None:
        await self._log_in()
        client = self._client
        account = f"{client.user_id} {client.homeserver}"
        since = await asyncio.to_thread(self._position.read, account)
        client.next_batch, is_first = "", True
        while True:
            response = await _called(
                client.sync(
                    0 if is_first else _LONG_POLL_MS,
                    _TIMELINE,
                    since or None,
                    full_state=is_first,
                )
            )
            await self._keep_keys()
            if is_first:
                await inlet.connected(client.user_id)
            not_before_ms = 0 if since else (time.time() - _FIRST_SYNC_AGE_S) * 1000
            await self._take(response, inlet, not_before_ms)
            await self._answer_invitations(response)
            since, is_first = response.next_batch, False
            await asyncio.to_thread(self._position.write, account, since)

    @override
    async def close(self) -> None:
        await self._client.close()
        if self._client.store:
            self._client.store.database.close()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        room = await self._room_id(chat.id)
        relation = _thread(chat)
        sent = ""
        if out.text.strip():
            sent = await self._post(room, _content(out) | relation, out.key)
            self._reactions.sent(sent, chat, out)
        for number, file in enumerate(out.files):
            content = await self._upload(room, file)
            key = f"{out.key}-{number}" if out.key else ""
            sent = await self._post(room, content | relation, key)
        return sent

    @override
    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        new = _content(out)
        relation = {"rel_type": "m.replace", "event_id": message}
        content = new | {"m.new_content": new, "m.relates_to": relation}
        await self._post(chat.id, content | {"body": f"* {new['body']}"}, "")

    @override
    async def typing(self, chat: Chat) -> None:
        await _called(self._client.room_typing(chat.id, True, _TYPING_MS))

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        file = msgspec.json.decode(attachment.ref, type=MatrixFile)
        data = await self._download(file.url, most)
        if not file.key:
            return data
        try:
            return await asyncio.to_thread(
                decrypt_attachment, data, file.key, file.hash, file.iv
            )
        except nio.EncryptionError:
            raise DeliveryRefused(t.logged("It can't be decrypted.")) from None

    async def _download(self, address: str, most: int) -> bytes:
        """A file of the homeserver; the library would read one of any size."""
        place = _MEDIA.fullmatch(address)
        if place is None:  # our token goes with the request
            raise DeliveryRefused(t.logged("It has no address of a file on Matrix."))
        url = f"{self._client.homeserver}{_DOWNLOADS}/{place[1]}"
        headers = {"Authorization": f"Bearer {self._token}"}
        data = bytearray()
        with _adapter_errors():
            async with self._client.client_session.get(url, headers=headers) as answer:
                if answer.status != 200:
                    raise DeliveryRefused(
                        t.logged(
                            "The platform refused the download ({status}).",
                            status=answer.status,
                        )
                    )
                async for piece in answer.content.iter_any():
                    data += piece
                    if len(data) > most:
                        raise DeliveryRefused(
                            t.logged("It has more than {size} bytes.", size=f"{most:,}")
                        )
        return bytes(data)

    # --- the account

    async def _log_in(self) -> None:
        client = self._client
        client.access_token = self._token
        about = await _called(client.whoami())
        if client.olm is None and ENCRYPTION_ENABLED and about.device_id:
            client.restore_login(about.user_id, about.device_id, self._token)
        client.user_id = about.user_id
        client.device_id = about.device_id or ""
        try:
            found = await _called(client.get_displayname(about.user_id))
            display_name = found.displayname or ""
        except DeliveryRefused:
            display_name = ""
        self._names = OwnNames(about.user_id, display_name)

    async def _keep_keys(self) -> None:
        """Uploads our keys, and learns those of others, as encrypted rooms need it."""
        client = self._client
        if client.olm is None:
            return
        if client.should_upload_keys:
            await _called(client.keys_upload())
        if client.should_query_keys:
            await _called(client.keys_query())
        if client.should_claim_keys:
            await _called(client.keys_claim(client.get_users_for_key_claiming()))
        with _adapter_errors():
            await client.send_to_device_messages()

    # --- sending

    async def _room_id(self, name: str) -> str:
        """The room that a target means: its id, its alias, or the direct room with a person."""
        client = self._client
        if name.startswith("#"):
            return str((await _called(client.room_resolve_alias(name))).room_id)
        if not name.startswith("@"):
            return name
        for room in client.rooms.values():
            if room.member_count <= 2 and name in room.users:
                return str(room.room_id)
        created = await _called(client.room_create(is_direct=True, invite=[name]))
        return str(created.room_id)

    async def _post(self, room: str, content: dict[str, Any], key: str) -> str:
        """Sends an event. The server drops a second one with the same key."""
        client = self._client
        if client.olm is None and room in client.rooms and client.rooms[room].encrypted:
            raise DeliveryRefused(
                t.logged("the room is encrypted, and this device can't encrypt")
            )
        if client.olm is not None and room not in client.rooms:
            await _called(client.join(room))
            raise Unreachable(t.logged("the room is not known yet"))
        return await self._send_event(room, content, key)

    async def _send_event(self, room: str, content: dict[str, Any], key: str) -> str:
        sent = await _called(
            self._client.room_send(
                room,
                "m.room.message",
                content,
                tx_id=key or None,
                ignore_unverified_devices=True,
            )
        )
        self._sent[sent.event_id] = True
        return str(sent.event_id)

    async def _upload(self, room: str, file: OutgoingFile) -> dict[str, Any]:
        data = await asyncio.to_thread(file.path.read_bytes)
        known = self._client.rooms.get(room)
        with _adapter_errors():
            found, keys = await self._client.upload(
                io.BytesIO(data),
                content_type=file.media_type,
                filename=file.name,
                encrypt=bool(known and known.encrypted),
                filesize=len(data),
            )
        if isinstance(found, nio.ErrorResponse):
            raise _failure(found)
        content: dict[str, Any] = {
            "msgtype": _FILE_TYPES.get(file.kind, "m.file"),
            "body": file.name,
            "filename": file.name,
            "info": {"mimetype": file.media_type, "size": len(data)},
        }
        if keys:
            return content | {"file": keys | {"url": found.content_uri}}
        return content | {"url": found.content_uri}

    # --- receiving

    async def _answer_invitations(self, response: nio.SyncResponse) -> None:
        for room in response.rooms.invite:
            if not self._settings.join_rooms:
                log.info("matrix: an invitation to %s is not accepted", room)
                continue
            try:
                await _called(self._client.join(room))
            except DeliveryRefused as error:
                log.warning("matrix: a room can't be joined: %s", error)

    async def _take(
        self, response: nio.SyncResponse, inlet: Inlet, not_before_ms: float
    ) -> None:
        """Passes on the messages of a sync; of the first one, those that are new and that nobody has answered."""
        for name, info in response.rooms.join.items():
            room = self._client.rooms[name]
            events, has_joined = since_invitation(
                info.timeline.events, self._client.user_id
            )
            if info.timeline.limited and not has_joined and not not_before_ms:
                log.warning("matrix: more was said in %s than can be read", name)
            if not_before_ms:
                events = unanswered(events, self._client.user_id, not_before_ms)
            for event in events:
                if event.sender == self._client.user_id:
                    continue
                inbound = await self._inbound(event, room)
                if inbound is not None:
                    await inlet.receive(inbound)

    async def _inbound(self, event: nio.Event, room: nio.MatrixRoom) -> Inbound | None:
        if isinstance(event, nio.MegolmEvent):
            await self._tell_unreadable(event, room)
            return None
        if isinstance(event, nio.ReactionEvent):
            answer = self._reactions.answer(event.reacts_to, event.key)
            if answer is None or answer[0].id != room.room_id:
                return None
            chat, command = answer
            person = Person(event.sender, room.user_name(event.sender) or "")
            return Inbound(id=event.event_id, chat=chat, person=person, text=command)
        if isinstance(event, nio.RoomMessage):
            return inbound_message(event, room, self._names, self._is_for_us)
        return None

    def _is_for_us(self, chat: Chat, person: Person, replied_to: str) -> bool:
        is_known = chat.id in self._settings.rooms or replied_to in self._sent
        return is_known or self._memory.takes_part(chat, person)

    async def _tell_unreadable(
        self, event: nio.MegolmEvent, room: nio.MatrixRoom
    ) -> None:
        """Says once in a room that a message in it can't be read, and asks for its key."""
        can_decrypt = self._client.olm is not None
        mark = str(event.session_id) if can_decrypt else room.room_id
        if mark in self._told:
            return
        self._told[mark] = True
        log.warning("matrix: a message in %s can't be decrypted", room.room_id)
        text = t.marked(_UNREADABLE if can_decrypt else _NO_ENCRYPTION)
        with suppress(AdapterError):
            if can_decrypt:
                await _called(self._client.request_room_key(event))
        with suppress(DeliveryRefused):
            content = _content(Outbound(text))
            await self._send_event(room.room_id, content, "")


def _thread(chat: Chat) -> dict[str, Any]:
    if not chat.thread:
        return {}
    return {
        "m.relates_to": {
            "rel_type": "m.thread",
            "event_id": chat.thread,
            "is_falling_back": True,
            "m.in_reply_to": {"event_id": chat.thread},
        }
    }


def _content(out: Outbound) -> dict[str, Any]:
    """A message, which notifies nobody by a name in it."""
    cursor = STREAMING_CURSOR if out.unfinished else ""
    return {
        "msgtype": "m.text",
        "body": out.text + cursor,
        "format": "org.matrix.custom.html",
        "formatted_body": matrix_html(out.text) + cursor,
        "m.mentions": {},
    }


def _proxy(url: str) -> str | None:
    """The proxy of the environment, if the address needs one."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or "") or parts.hostname in {"127.0.0.1", "localhost"}:  # fmt: skip
        return None
    return getproxies().get(parts.scheme)


async def _called(call: Awaitable[Any]) -> Any:
    """The answer of the homeserver. Raises AdapterError for one that says no."""
    with _adapter_errors():
        answer = await call
    if isinstance(answer, nio.ErrorResponse):
        raise _failure(answer)
    return answer


@contextmanager
def _adapter_errors() -> Iterator[None]:
    """Raises errors of the library as AdapterErrors."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unreachable(
            t.logged(
                "the request to {platform} failed: {reason}",
                platform="Matrix",
                reason=type(error).__name__,
            )
        ) from None
    except _LIBRARY_ERRORS as error:
        raise Unreachable(
            t.logged(
                "the request to {platform} failed: {reason}",
                platform="Matrix",
                reason=error,
            )
        ) from None


def _failure(answer: nio.ErrorResponse) -> AdapterError:
    code = answer.status_code or ""
    status = getattr(answer.transport_response, "status", 0)
    if code == "M_LIMIT_EXCEEDED" or status == 429:
        return TooFast((answer.retry_after_ms or _DEFAULT_RETRY_AFTER_MS) / 1000)
    if code in _TOKEN_ERRORS:
        return Unauthorized(
            t.logged("{platform} rejected the token.", platform="Matrix"),
            hint=_TOKEN_HINT,
        )
    if not code or status >= 500:
        return Unreachable(
            t.logged(
                "the request to {platform} failed: {reason}",
                platform="Matrix",
                reason=answer.message or status,
            )
        )
    return DeliveryRefused(
        t.logged(
            "{platform} refused the request: {reason}",
            platform="Matrix",
            reason=f"{answer.message} ({code})",
        )
    )

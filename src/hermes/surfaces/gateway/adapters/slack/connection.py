"""The connection to Slack: receives messages, presses and commands.

An envelope is acknowledged once its message is on disk; Slack sends envelopes again that were not acknowledged.
Missed messages are read after each connect.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from operator import itemgetter
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from hermes.errors import HermesError
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import run_until_first
from hermes.primitives.untyped import object_in
from hermes.settings.gateway import SlackSettings
from hermes.surfaces.gateway.adapter import (
    Attachment,
    Chat,
    ChatKind,
    Inbound,
    Inlet,
    Person,
    file_kind,
)
from hermes.surfaces.gateway.adapters.text_formats import slack_plain_text
from hermes.surfaces.gateway.commands import from_exclamation_mark
from hermes.surfaces.gateway.connection import redacted_logger, watch
from hermes.surfaces.gateway.missed_messages import MAX_MISSED_MESSAGES, PlatformMemory

log = logging.getLogger("hermes.gateway")

"""Of each chat."""
_PING_INTERVAL_S = 5.0
_NAME_TIMEOUT_S = 3.0
"""How long a message waits for the name of its sender."""
_MAX_REMEMBERED_NAMES = 1000
_PERSONAL_SUBTYPES = frozenset(("", "file_share", "thread_broadcast", "me_message"))
"""Kinds of messages that people write."""


class SlackConnection:
    """Connects again and again until it is cancelled."""

    def __init__(
        self,
        web: AsyncWebClient,
        settings: SlackSettings,
        memory: PlatformMemory,
        inlet: Inlet,
    ) -> None:
        self._web = web
        self._channels = frozenset(settings.channels)
        self._memory = memory
        self._inlet = inlet
        self._me = ""
        self._identity = ""
        self._open = asyncio.Event()
        self._is_stopped = False
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._names: RecentDict[str, str] = RecentDict(_MAX_REMEMBERED_NAMES)

    async def run(self, app_token: str, reconnect_timeout_s: float) -> None:
        """Connects and receives."""
        about: Any = await self._web.auth_test()
        self._me, self._identity = (
            str(about["user_id"]),
            f"@{about['user']} in {about['team']}",
        )
        opened: Any = await self._web.apps_connections_open(app_token=app_token)
        client = SocketModeClient(
            app_token,
            web_client=self._web,
            logger=redacted_logger("slack_sdk.socket_mode"),
            ping_interval=_PING_INTERVAL_S,
        )
        client.wss_uri = str(opened["url"])
        client.message_listeners.append(self._on_message)
        client.socket_mode_request_listeners.append(self._on_request)
        try:
            await client.connect()
            await run_until_first(
                self._failure(),
                watch(client.is_connected, self._inlet, reconnect_timeout_s),
                insist=True,
            )
        finally:
            self._is_stopped = True
            self._open.set()
            await client.close()

    async def _failure(self) -> None:
        await self._failed

    async def _on_message(
        self,
        _: AsyncBaseSocketModeClient,
        message: dict[str, Any],
        __: str | None = None,
    ) -> None:
        if message.get("type") == "hello":
            self._open.clear()
            try:
                await self._guarded(self._catch_up())
            finally:
                self._open.set()

    async def _catch_up(self) -> None:
        await self._inlet.connected(self._identity)
        absence = await asyncio.to_thread(self._memory.absence)
        for chat in absence.chats:
            try:
                for message in await self._read(chat, absence.since):
                    inbound = await self._message(
                        message | {"channel": chat.id}, chat.kind
                    )
                    if inbound is not None:
                        await self._inlet.receive(inbound)
            except SlackApiError as error:
                why = error.response.get("error")
                log.warning(
                    "slack: missed messages of chat %s can't be read: %s", chat.id, why
                )
                if why == "ratelimited":  # new messages must not wait for old ones
                    return

    async def _read(self, chat: Chat, since: float) -> list[dict[str, Any]]:
        """The messages of a chat, the oldest first."""
        asked = {
            "channel": chat.id,
            "oldest": f"{since:.6f}",
            "limit": MAX_MISSED_MESSAGES,
        }
        if chat.thread:
            found = await self._web.conversations_replies(ts=chat.thread, **asked)
        else:
            found = await self._web.conversations_history(**asked)
        return sorted(found.get("messages") or [], key=itemgetter("ts"))

    async def _on_request(
        self, client: AsyncBaseSocketModeClient, request: SocketModeRequest
    ) -> None:
        await self._open.wait()
        if not self._is_stopped:
            await self._guarded(self._handle(client, request))

    async def _handle(
        self, client: AsyncBaseSocketModeClient, request: SocketModeRequest
    ) -> None:
        inbound = await self._inbound(request.type, request.payload)
        if inbound is not None:
            await self._inlet.receive(inbound)
        # If this fails, Slack sends the message again, and its id is known.
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            await client.send_socket_mode_response(
                SocketModeResponse(request.envelope_id)
            )

    async def _guarded(self, work: Awaitable[None]) -> None:
        """The boundary of a request: connects again if that can help, otherwise logs the error."""
        try:
            await work
        except (HermesError, aiohttp.ClientError, OSError) as error:
            if not self._failed.done():
                self._failed.set_exception(error)
        except Exception:
            log.exception("slack: an event could not be handled")

    # --- as messages of the gateway

    async def _inbound(self, kind: str, payload: dict[str, Any]) -> Inbound | None:
        match kind:
            case "events_api":
                event = object_in(payload, "event")
                return (
                    await self._message(event)
                    if event.get("type") in {"message", "app_mention"}
                    else None
                )
            case "interactive":
                return (
                    await self._press(payload)
                    if payload.get("type") == "block_actions"
                    else None
                )
            case "slash_commands":
                chat = Chat(
                    "slack", payload["channel_id"], _kind(payload["channel_id"])
                )
                person = Person(payload["user_id"], str(payload.get("user_name", "")))
                words = str(payload.get("text", ""))
                return Inbound(
                    str(payload["trigger_id"]),
                    chat,
                    person,
                    from_exclamation_mark(f"!{words}").removeprefix("!"),
                )
            case _:
                return None

    async def _message(
        self, event: dict[str, Any], kind: ChatKind | None = None
    ) -> Inbound | None:
        user = str(event.get("user", ""))
        if (
            not user
            or user == self._me
            or event.get("bot_id")
            or event.get("subtype", "") not in _PERSONAL_SUBTYPES
        ):
            return None
        channel, ts = str(event["channel"]), str(event["ts"])
        kind = kind or _kind(channel, str(event.get("channel_type", "")))
        # An answer in a channel starts a thread, as is the custom on Slack.
        thread = str(event.get("thread_ts") or ("" if kind == "direct" else ts))
        chat, raw = Chat("slack", channel, kind, thread), str(event.get("text", ""))
        person = Person(user)
        addressed = (
            kind == "direct" or f"<@{self._me}" in raw or channel in self._channels
        )
        addressed = addressed or (
            event.get("thread_ts") is not None and self._memory.takes_part(chat, person)
        )
        return Inbound(
            id=f"{channel}:{ts}",
            chat=chat,
            person=Person(user, await self._name(user)) if addressed else person,
            text=from_exclamation_mark(slack_plain_text(raw, self._me)),
            attachments=tuple(_attachment(one) for one in event.get("files") or ()),
            addressed=addressed,
            message=ts,
        )

    async def _press(self, payload: dict[str, Any]) -> Inbound | None:
        action = (payload.get("actions") or [{}])[0]
        place = object_in(payload, "container")
        if "value" not in action or "channel_id" not in place:
            return None
        channel, user = str(place["channel_id"]), str(payload["user"]["id"])
        return Inbound(
            id=f"{channel}:{place.get('message_ts')}:{user}:{action.get('action_ts')}",
            chat=Chat(
                "slack", channel, _kind(channel), str(place.get("thread_ts") or "")
            ),
            person=Person(user, await self._name(user)),
            pressed=str(action["value"]),
            message=str(place.get("message_ts", "")),
        )

    async def _name(self, user: str) -> str:
        """The name of a person; empty when it can't be read."""
        if user not in self._names:
            try:
                async with asyncio.timeout(_NAME_TIMEOUT_S):
                    found: Any = await self._web.users_info(user=user)
            except (SlackApiError, aiohttp.ClientError, OSError) as error:
                log.info(
                    "slack: the name of a person can't be read (%s)",
                    type(error).__name__,
                )
                return ""
            profile = object_in(found["user"], "profile")
            self._names[user] = str(
                profile.get("display_name") or found["user"].get("real_name") or ""
            )
        return self._names[user]


def _kind(channel: str, named: str = "") -> ChatKind:
    if named == "im" or channel.startswith("D"):
        return "direct"
    return "group" if named == "mpim" else "channel"


def _attachment(one: dict[str, Any]) -> Attachment:
    media = str(one.get("mimetype", ""))
    is_voice = one.get("subtype") == "slack_audio"
    kind = "voice" if is_voice else file_kind(media)
    address = str(one.get("url_private_download") or one.get("url_private") or "")
    return Attachment(
        kind, address, str(one.get("name") or ""), media, int(one.get("size") or 0)
    )

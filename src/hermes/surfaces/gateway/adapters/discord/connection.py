"""The connection to Discord: receives messages and presses.

After each new connection, it reads the messages that were missed; a resumed connection
gets them from Discord.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp
import discord
import msgspec
from discord.gateway import DiscordWebSocket
from yarl import URL

from hermes.errors import HermesError
from hermes.settings.gateway import DiscordSettings
from hermes.surfaces.gateway.adapter import (
    Attachment,
    Chat,
    Inbound,
    Inlet,
    Person,
    TooFast,
    file_kind,
    override,
)
from hermes.surfaces.gateway.commands import chat_app_commands
from hermes.surfaces.gateway.missed_messages import MAX_MISSED_MESSAGES, PlatformMemory

log = logging.getLogger("hermes.gateway")

"""Of each chat."""
_MAX_LIBRARY_WAIT_S = 30.0
"""How long the library waits by itself when Discord asks for it."""
_MAX_COMMAND_SUMMARY_CHARACTERS = 100
_MESSAGE_TYPES = (discord.MessageType.default, discord.MessageType.reply)
_INTENTS = discord.Intents(
    guilds=True, guild_messages=True, dm_messages=True, message_content=True
)


class DiscordConnection(discord.Client):
    """One connection with its HTTP client. It caches neither messages nor members."""

    def __init__(
        self, settings: DiscordSettings, memory: PlatformMemory, inlet: Inlet
    ) -> None:
        # There are no voice calls, so their missing libraries are no problem.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        super().__init__(
            intents=_INTENTS,
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            max_ratelimit_timeout=_MAX_LIBRARY_WAIT_S,
            allowed_mentions=discord.AllowedMentions.none(),
        )
        self._channels = frozenset(settings.channels)
        self._memory = memory
        self._inlet = inlet
        self._open = asyncio.Event()
        self._is_stopped = False
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._up = True

    async def prepare(self, token: str) -> None:
        """Signs in, asks where to connect, and registers the commands."""
        await self.login(token)
        _, address, starts = await self.http.get_bot_gateway()
        if starts["remaining"] < 1:  # with one more, Discord would void the token
            raise TooFast(starts["reset_after"] / 1000)
        DiscordWebSocket.DEFAULT_GATEWAY = URL(address)
        wanted = [
            _command(one.slash, one.slash_value, one.summary)
            for one in chat_app_commands()
        ]
        registered = await self.http.get_global_commands(self.application_id or 0)
        if _summaries(registered) != _summaries(wanted):
            await self.http.bulk_upsert_global_commands(
                self.application_id or 0, wanted
            )

    async def is_up(self) -> bool:
        """Whether it is connected, as far as it knows."""
        return self._up

    async def failure(self) -> None:
        """Waits for an error in receiving, and raises it."""
        await self._failed

    async def stop_receiving(self) -> None:
        """Receives nothing more; sending goes on until `close`."""
        self._is_stopped = True
        self._open.set()
        if self.ws is not None and self.ws.open:
            await self.ws.close(code=1000)

    # --- called by the library

    async def on_connect(self) -> None:
        self._open.clear()
        self._up = True
        try:
            await self._inlet.connected(f"@{self.user.name if self.user else '?'}")
            await self._catch_up()
        finally:
            self._open.set()

    async def on_resumed(self) -> None:
        self._up = True

    async def on_disconnect(self) -> None:
        self._up = False

    async def on_message(self, message: discord.Message) -> None:
        channel: discord.abc.Snowflake = message.channel
        if _is_from_person(message):
            if isinstance(channel, discord.PartialMessageable):  # an unknown thread
                with contextlib.suppress(discord.Forbidden, discord.NotFound):
                    channel = await self.fetch_channel(channel.id)
            await self._receive(self._inbound(message, _chat(channel)))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        kind = interaction.type
        data: dict[str, Any] = dict(interaction.data or {})
        if interaction.channel is None or interaction.user.bot:
            return
        inbound = Inbound(
            id=str(interaction.id),
            chat=_chat(interaction.channel),
            person=_person(interaction.user, str(interaction.locale)),
            ref=interaction.token,
        )
        values: dict[str, Any] = {}
        if kind is discord.InteractionType.component:
            await _acknowledge(interaction, "")
            values = {"pressed": str(data.get("custom_id", ""))}
            values["message"] = (
                str(interaction.message.id) if interaction.message else ""
            )
        elif kind is discord.InteractionType.application_command:
            words = " ".join(
                str(one.get("value", "")) for one in data.get("options") or ()
            )
            values = {"text": f"/{data.get('name', '')} {words}".rstrip()}
            await _acknowledge(interaction, values["text"])
        if values:
            await self._receive(msgspec.structs.replace(inbound, **values))

    @override
    async def on_error(
        self,
        event_method: str,  # noqa: ARG002
        /,
        *args: object,  # noqa: ARG002
        **kwargs: object,  # noqa: ARG002
    ) -> None:
        """Handles the error of a handler: connects again if that can help, otherwise logs it."""
        error = sys.exc_info()[1]
        if not isinstance(
            error,
            HermesError | discord.DiscordException | aiohttp.ClientError | OSError,
        ):
            log.error("discord: an event could not be handled", exc_info=error)
        elif not self._failed.done():
            self._failed.set_exception(error)

    # --- as messages of the gateway

    async def _receive(self, inbound: Inbound) -> None:
        await self._open.wait()
        if not self._is_stopped:
            await self._inlet.receive(inbound)

    async def _catch_up(self) -> None:
        absence = await asyncio.to_thread(self._memory.absence)
        after = datetime.fromtimestamp(absence.since, UTC)
        for chat in absence.chats:
            place = self.get_partial_messageable(int(chat.thread or chat.id))
            try:
                async for message in place.history(
                    after=after, limit=MAX_MISSED_MESSAGES, oldest_first=True
                ):
                    if _is_from_person(message):
                        await self._inlet.receive(self._inbound(message, chat))
            except (discord.Forbidden, discord.NotFound):
                log.info("discord: chat %s can no longer be read", chat.id)

    def _inbound(self, message: discord.Message, chat: Chat) -> Inbound:
        person = _person(message.author)
        own_mentions = (
            {f"<@{self.user.id}>", f"<@!{self.user.id}>"} if self.user else set()
        )
        if message.guild is not None and (role := message.guild.self_role) is not None:
            own_mentions.add(role.mention)
        text = message.content
        addressed = (
            chat.kind == "direct"
            or self._is_for_us(message, chat, person)
            or any(mention in text for mention in own_mentions)
        )
        for mention in own_mentions:
            text = text.replace(mention, "")
        for other in message.mentions:
            for mention in (f"<@{other.id}>", f"<@!{other.id}>"):
                text = text.replace(mention, f"@{other.display_name}")
        return Inbound(
            id=str(message.id),
            chat=chat,
            person=person,
            text=text.strip(),
            attachments=tuple(_attachment(one) for one in message.attachments),
            addressed=addressed,
            message=str(message.id),
        )

    def _is_for_us(self, message: discord.Message, chat: Chat, person: Person) -> bool:
        if self._channels & {chat.id, chat.thread}:
            return True
        replied = message.reference.resolved if message.reference else None
        if (
            isinstance(replied, discord.Message)
            and self.user
            and replied.author.id == self.user.id
        ):
            return True
        return self._memory.takes_part(chat, person)


def _is_from_person(message: discord.Message) -> bool:
    return (
        not message.author.bot
        and message.webhook_id is None
        and message.type in _MESSAGE_TYPES
    )


def _chat(channel: discord.abc.Snowflake) -> Chat:
    """The chat of a channel. A thread, or a post in a forum, belongs to its channel."""
    title = str(getattr(channel, "name", None) or "")
    if isinstance(channel, discord.Thread):
        return Chat(
            "discord", str(channel.parent_id), "channel", str(channel.id), title
        )
    kind = "direct" if isinstance(channel, discord.DMChannel) else "channel"
    return Chat(
        "discord",
        str(channel.id),
        "group" if isinstance(channel, discord.GroupChannel) else kind,
        "",
        title,
    )


def _person(user: discord.abc.User, language: str = "") -> Person:
    return Person(str(user.id), user.display_name, language=language)


def _attachment(one: discord.Attachment) -> Attachment:
    media = (one.content_type or "").partition(";")[0]
    kind = "voice" if one.is_voice_message() else file_kind(media)
    return Attachment(kind, one.url, one.filename, media, one.size)


def _summaries(commands: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    return {(one["name"], one["description"]) for one in commands}


def _command(name: str, value: str, summary: str) -> dict[str, Any]:
    option = {
        "type": 3,
        "name": "words",
        "description": value or "more",
        "required": False,
    }
    return {
        "name": name,
        "type": 1,
        "description": summary[:_MAX_COMMAND_SUMMARY_CHARACTERS],
        "options": [option] if value else [],
    }


async def _acknowledge(interaction: discord.Interaction, text: str) -> None:
    """Confirms an interaction within the three seconds that Discord allows; a command is shown in the chat."""
    try:
        if text:
            await interaction.response.send_message(text)
        else:
            await interaction.response.defer()
    except (discord.HTTPException, discord.InteractionResponded):
        log.info("discord: a press or command could not be confirmed in time")

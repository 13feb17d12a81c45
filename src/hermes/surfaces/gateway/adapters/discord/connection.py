"""The connection to Discord: what people say and press, in the port's words. What came while nobody listened is read
after each new connection; a resumed one gets it from Discord."""

import asyncio
import contextlib
import logging
import sys
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
    FileKind,
    Inbound,
    Inlet,
    Person,
    TooFast,
    override,
)
from hermes.surfaces.gateway.commands import chat_app_commands
from hermes.surfaces.gateway.missed_messages import PlatformMemory

log = logging.getLogger("hermes.gateway")

_PAGE = 100  # messages of a chat that are read after an absence
_RATE_WAIT = 30.0  # seconds that the library waits by itself when Discord asks it to
_WORDS = (discord.MessageType.default, discord.MessageType.reply)
_INTENTS = discord.Intents(
    guilds=True, guild_messages=True, dm_messages=True, message_content=True
)


class DiscordConnection(discord.Client):
    """One connection and its HTTP client. It holds no messages and no members."""

    def __init__(
        self, settings: DiscordSettings, known: PlatformMemory, inlet: Inlet
    ) -> None:
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = (
            False  # nobody talks here
        )
        super().__init__(
            intents=_INTENTS,
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            max_ratelimit_timeout=_RATE_WAIT,
            allowed_mentions=discord.AllowedMentions.none(),
        )
        self._channels = frozenset(settings.channels)
        self._known = known
        self._inlet = inlet
        self._open = asyncio.Event()
        self._over = False
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._up = True

    async def prepare(self, token: str) -> None:
        """Signs in, asks where to connect, and makes the commands known."""
        await self.login(token)
        _, address, starts = await self.http.get_bot_gateway()
        if starts["remaining"] < 1:  # beyond this Discord takes the token away
            raise TooFast(starts["reset_after"] / 1000)
        DiscordWebSocket.DEFAULT_GATEWAY = URL(address)
        wanted = [
            _command(one.slash, one.slash_value, one.summary)
            for one in chat_app_commands()
        ]
        there = await self.http.get_global_commands(self.application_id or 0)
        if {(one["name"], one["description"]) for one in there} != {
            (one["name"], one["description"]) for one in wanted
        }:
            await self.http.bulk_upsert_global_commands(
                self.application_id or 0, wanted
            )

    async def is_up(self) -> bool:
        """Whether it is connected, as far as is known."""
        return self._up

    async def failure(self) -> None:
        """Raises what went wrong while something was taken in."""
        await self._failed

    async def hang_up(self) -> None:
        """Receives nothing more; sending goes on until `close`."""
        self._over = True
        self._open.set()
        if self.ws is not None and self.ws.open:
            await self.ws.close(code=1000)

    # --- what the library calls

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
        if _is_of_a_person(message):
            if isinstance(
                channel, discord.PartialMessageable
            ):  # a thread that the library has not heard of
                with contextlib.suppress(discord.Forbidden, discord.NotFound):
                    channel = await self.fetch_channel(channel.id)
            await self._take(self._inbound(message, _chat(channel)))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        kind = interaction.type
        data: dict[str, Any] = dict(interaction.data or {})
        if interaction.channel is None or interaction.user.bot:
            return
        inbound = Inbound(
            id=str(interaction.id),
            chat=_chat(interaction.channel),
            person=_person(interaction.user),
            ref=interaction.token,
        )
        values: dict[str, Any] = {}
        if kind is discord.InteractionType.component:
            await _answer(interaction, "")
            values = {"pressed": str(data.get("custom_id", ""))}
            values["message"] = (
                str(interaction.message.id) if interaction.message else ""
            )
        elif kind is discord.InteractionType.application_command:
            words = " ".join(
                str(one.get("value", "")) for one in data.get("options") or ()
            )
            values = {"text": f"/{data.get('name', '')} {words}".rstrip()}
            await _answer(interaction, values["text"])
        if values:
            await self._take(msgspec.structs.replace(inbound, **values))

    @override
    async def on_error(
        self,
        event_method: str,  # noqa: ARG002
        /,
        *args: object,  # noqa: ARG002
        **kwargs: object,  # noqa: ARG002
    ) -> None:
        """A handler failed. What can work the next time is read again after the next connect; the rest is logged."""
        error = sys.exc_info()[1]
        if not isinstance(
            error,
            HermesError | discord.DiscordException | aiohttp.ClientError | OSError,
        ):
            log.error(
                "discord: something that came in was not understood", exc_info=error
            )
        elif not self._failed.done():
            self._failed.set_exception(error)

    # --- in the port's words

    async def _take(self, inbound: Inbound) -> None:
        await self._open.wait()
        if not self._over:
            await self._inlet.receive(inbound)

    async def _catch_up(self) -> None:
        absence = await asyncio.to_thread(self._known.absence)
        after = datetime.fromtimestamp(absence.since, UTC)
        for chat in absence.chats:
            place = self.get_partial_messageable(int(chat.thread or chat.id))
            try:
                async for message in place.history(
                    after=after, limit=_PAGE, oldest_first=True
                ):
                    if _is_of_a_person(message):
                        await self._inlet.receive(self._inbound(message, chat))
            except (discord.Forbidden, discord.NotFound):
                log.info("discord: chat %s can't be read any more", chat.id)

    def _inbound(self, message: discord.Message, chat: Chat) -> Inbound:
        person = _person(message.author)
        mine = {f"<@{self.user.id}>", f"<@!{self.user.id}>"} if self.user else set()
        if message.guild is not None and (role := message.guild.self_role) is not None:
            mine.add(role.mention)
        text = message.content
        addressed = (
            chat.kind == "direct"
            or self._is_meant(message, chat, person)
            or any(one in text for one in mine)
        )
        for one in mine:
            text = text.replace(one, "")
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

    def _is_meant(self, message: discord.Message, chat: Chat, person: Person) -> bool:
        if self._channels & {chat.id, chat.thread}:
            return True
        replied = message.reference.resolved if message.reference else None
        if (
            isinstance(replied, discord.Message)
            and self.user
            and replied.author.id == self.user.id
        ):
            return True
        return self._known.takes_part(chat, person)


def _is_of_a_person(message: discord.Message) -> bool:
    return (
        not message.author.bot and message.webhook_id is None and message.type in _WORDS
    )


def _chat(channel: discord.abc.Snowflake) -> Chat:
    """A thread is a place in its channel, a post in a forum likewise."""
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


def _person(user: discord.abc.User) -> Person:
    return Person(str(user.id), user.display_name)


def _attachment(one: discord.Attachment) -> Attachment:
    media = (one.content_type or "").partition(";")[0]
    kinds: dict[str, FileKind] = {"image": "image", "audio": "audio", "video": "video"}
    kind: FileKind = (
        "voice"
        if one.is_voice_message()
        else kinds.get(media.partition("/")[0], "file")
    )
    return Attachment(kind, one.url, one.filename, media, one.size)


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
        "description": summary[:100],
        "options": [option] if value else [],
    }


async def _answer(interaction: discord.Interaction, text: str) -> None:
    """Discord wants an answer within three seconds; a command is shown, as what follows is the answer to it."""
    try:
        if text:
            await interaction.response.send_message(text)
        else:
            await interaction.response.defer()
    except (discord.HTTPException, discord.InteractionResponded):
        log.info("discord: a press or command was not confirmed in time")

"""Discord, by discord.py: messages, changes, buttons, files and "typing". `connection` receives."""

import asyncio
import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import aiohttp
import discord
import httpx2
from discord.http import Route

from hermes.settings.gateway import DiscordSettings
from hermes.surfaces.gateway.adapter import (
    AdapterDeps,
    Attachment,
    Chat,
    ChatAdapter,
    DeliveryRefused,
    Inbound,
    Inlet,
    Outbound,
    OutgoingFile,
    PlatformLimits,
    TooFast,
    Unauthorized,
    Unreachable,
    override,
    utf16,
)
from hermes.surfaces.gateway.adapters.discord.connection import DiscordConnection
from hermes.surfaces.gateway.adapters.discord.text import discord_text
from hermes.surfaces.gateway.connection import plain_log, together, watch
from hermes.surfaces.gateway.file_download import download
from hermes.surfaces.gateway.missed_messages import PlatformMemory

_PATIENCE = 60.0  # seconds for one call; the library waits and tries again within them
_CURSOR = " ▌"
_MOST = 2000  # characters
_ROW = 5  # buttons of a row, and rows of a message
_BAD_TOKEN = 4004  # a code with which Discord closes a connection
_TOKEN_HINT = "Discord's developer portal, Bot, Reset Token; then: hermes config set DISCORD_BOT_TOKEN"  # noqa: S105
_INTENT_HINT = (
    "In Discord's developer portal, under Bot, switch on Message Content Intent."
)


def build(deps: AdapterDeps) -> "DiscordAdapter":
    """From the settings."""
    settings = deps.app.settings.gateway
    known = PlatformMemory(deps.app, "discord")
    return DiscordAdapter(
        deps.secrets.require("DISCORD_BOT_TOKEN"),
        settings.discord,
        known,
        settings.connect_timeout,
    )


class DiscordAdapter(ChatAdapter):
    """One bot."""

    name = "discord"
    limits = PlatformLimits(
        text=_MOST - len(_CURSOR),
        size=utf16,
        edit_every=1.2,
        file_bytes=10_000_000,
        typing=9.0,
    )

    def __init__(
        self,
        token: str,
        settings: DiscordSettings,
        known: PlatformMemory,
        patience: float,
    ) -> None:
        self._token = token
        self._settings = settings
        self._known = known
        self._patience = patience
        self._line: DiscordConnection | None = None
        self._client = httpx2.AsyncClient(timeout=_PATIENCE)
        Route.BASE = settings.api_url.rstrip(
            "/"
        )  # the library has it once for all clients
        plain_log("discord")

    @override
    async def run(self, inlet: Inlet) -> None:
        """Receives until it is cancelled."""
        if self._line is not None:
            await self._line.close()
        line = self._line = DiscordConnection(self._settings, self._known, inlet)
        try:
            with _our_words():
                await line.prepare(self._token)
                await together(
                    line.connect(),
                    line.failure(),
                    watch(line.is_up, inlet, self._patience),
                )
        finally:
            await line.hang_up()

    @override
    async def close(self) -> None:
        if self._line is not None:
            await self._line.close()
        await self._client.aclose()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        sent = ""
        with _our_words():
            async with asyncio.timeout(_PATIENCE):
                place = self._place(chat)
                if out.text.strip():
                    answered, view = _answered(place, out), _view(out)
                    message = await place.send(
                        _text(out),
                        nonce=_nonce(out.key),
                        suppress_embeds=True,
                        reference=answered,
                        view=view,
                    )
                    sent = str(message.id)
                for number, file in enumerate(out.files):
                    content = await asyncio.to_thread(_opened, file)
                    sent = str(
                        (
                            await place.send(
                                file=content, nonce=_nonce(f"{out.key}/{number}")
                            )
                        ).id
                    )
        return sent

    @override
    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        with _our_words():
            async with asyncio.timeout(_PATIENCE):
                found = self._place(chat).get_partial_message(int(message))
                await found.edit(content=_text(out), view=_view(out))

    @override
    async def typing(self, chat: Chat) -> None:
        with _our_words():
            await self._place(chat).typing()

    @override
    async def told(self, inbound: Inbound, note: str) -> None:
        with _our_words():
            line = self._connected()
            webhook = discord.Webhook.partial(
                line.application_id or 0, inbound.ref, client=line
            )
            webhook.type = (
                discord.WebhookType.application
            )  # only with these one person alone can be told
            try:
                await webhook.send(note, ephemeral=True)
            except discord.NotFound:
                return  # pressed too long ago: nobody waits for the note any more

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        if attachment.size > most:
            raise DeliveryRefused(
                f"It has {attachment.size:,} bytes; {most:,} are possible."
            )
        return await download(self._client, attachment.ref, most)

    def _connected(self) -> DiscordConnection:
        line = self._line
        if line is None or line.is_closed() or line.application_id is None:
            raise Unreachable("Discord is not connected yet")
        return line

    def _place(self, chat: Chat) -> discord.PartialMessageable:
        return self._connected().get_partial_messageable(int(chat.thread or chat.id))


@contextmanager
def _our_words() -> Iterator[None]:
    """What went wrong, as the port says it."""
    try:
        yield
    except discord.LoginFailure:
        raise Unauthorized(
            "Discord does not know this bot's token.", hint=_TOKEN_HINT
        ) from None
    except discord.PrivilegedIntentsRequired:
        raise Unauthorized(
            "Discord does not let this bot read messages.", hint=_INTENT_HINT
        ) from None
    except discord.RateLimited as error:
        raise TooFast(error.retry_after) from None
    except discord.HTTPException as error:
        raise _failure(error) from None
    except discord.ConnectionClosed as error:
        if error.code == _BAD_TOKEN:
            raise Unauthorized(
                "Discord does not know this bot's token.", hint=_TOKEN_HINT
            ) from None
        raise Unreachable(f"Discord closed the connection ({error.code})") from None
    except ValueError as error:
        raise DeliveryRefused(
            f"that is no chat or message of Discord ({error})"
        ) from None
    except (
        aiohttp.ClientError,
        discord.GatewayNotFound,
        OSError,
        RuntimeError,
    ) as error:
        # a RuntimeError is what the library has for a client that was closed meanwhile
        raise Unreachable(
            f"Discord did not answer properly ({type(error).__name__})"
        ) from None


def _failure(error: discord.HTTPException) -> Exception:
    if error.status == 429:
        return TooFast(float(error.response.headers.get("Retry-After") or 5))
    if error.status == 401 or error.status >= 500:
        return Unreachable(f"Discord failed: {error.status} {error.text}".rstrip())
    return DeliveryRefused(
        f"{error.text or 'no reason given'} ({error.status}/{error.code})"
    )


def _text(out: Outbound) -> str:
    ending = _CURSOR if out.unfinished else ""
    text = discord_text(out.text) + ending
    return text if utf16(text) <= _MOST else out.text + ending


def _nonce(key: str) -> str:
    """Discord sends a message with the same one only once, for some minutes."""
    return hashlib.sha256((key or uuid4().hex).encode()).hexdigest()[:25]


def _answered(place: discord.PartialMessageable, out: Outbound) -> Any:
    if not out.reply_to.isdigit():
        return None
    return discord.MessageReference(
        message_id=int(out.reply_to), channel_id=place.id, fail_if_not_exists=False
    )


def _view(out: Outbound) -> Any:
    """The buttons; None for none. Who pressed is looked up in our own ledger, so the library need not hold them."""
    if not out.buttons:
        return None
    view = discord.ui.View(timeout=None)
    flat = [button for row in out.buttons for button in row]
    rows = (
        out.buttons
        if len(out.buttons) <= _ROW
        else [flat[n : n + _ROW] for n in range(0, len(flat), _ROW)]
    )
    for number, row in enumerate(rows):
        for button in row:
            style = (
                discord.ButtonStyle.danger
                if button.data.endswith(":deny")
                else discord.ButtonStyle.secondary
            )
            view.add_item(
                discord.ui.Button(
                    label=button.label[:80],
                    custom_id=button.data,
                    row=number,
                    style=style,
                )
            )
    view.stop()
    return view


def _opened(file: OutgoingFile) -> discord.File:
    return discord.File(io.BytesIO(file.path.read_bytes()), filename=file.name)

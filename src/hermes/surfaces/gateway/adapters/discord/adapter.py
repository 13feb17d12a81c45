"""Discord, through discord.py: messages, edits, buttons, files and "typing". `connection` receives."""

import asyncio
import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import aiohttp
import discord
from discord.http import Route

from hermes.primitives.tasks import run_until_first
from hermes.providers.http_client import Http
from hermes.settings.gateway import DiscordSettings
from hermes.settings.load import environment
from hermes.surfaces.gateway.adapter import (
    STREAMING_CURSOR,
    AdapterDeps,
    Attachment,
    Button,
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
from hermes.surfaces.gateway.adapters.text_formats import discord_markdown
from hermes.surfaces.gateway.connection import redacted_logger, watch
from hermes.surfaces.gateway.files import download
from hermes.surfaces.gateway.missed_messages import PlatformMemory
from hermes.text.translation import translator

t = translator(__name__)

_DISCORD_CALL_TIMEOUT_S = 60.0
"""Within it, the library waits and tries again by itself."""
_MAX_TEXT_CHARACTERS = 2000
_MAX_LABEL_CHARACTERS = 80
_MAX_ROWS = 5
"""Rows of buttons in a message, and buttons in a row."""
_NO_REASON = t.logged("no reason given")
_CLOSE_CODE_BAD_TOKEN = 4004
_DEFAULT_RETRY_AFTER_S = 5
_BAD_TOKEN = t.logged("{platform} rejected the token.", platform="Discord")
_TOKEN_HINT = t.logged(
    "Discord's developer portal, Bot, Reset Token; then: {command}",
    command="hermes config set DISCORD_BOT_TOKEN",
)
_INTENT_HINT = t.logged(
    "In Discord's developer portal, under Bot, switch on Message Content Intent."
)


def build(deps: AdapterDeps) -> "DiscordAdapter":
    """Builds the adapter from the settings."""
    settings = deps.app.settings.gateway
    return DiscordAdapter(
        deps.secrets.require("DISCORD_BOT_TOKEN"),
        settings.discord,
        PlatformMemory(deps.app, "discord"),
        settings.connect_timeout,
    )


class DiscordAdapter(ChatAdapter):
    """One bot."""

    name = "discord"
    limits = PlatformLimits(
        text=_MAX_TEXT_CHARACTERS - len(STREAMING_CURSOR),
        size=utf16,
        edit_every=1.2,
        file_bytes=10_000_000,
        typing=9.0,
    )

    def __init__(
        self,
        token: str,
        settings: DiscordSettings,
        memory: PlatformMemory,
        reconnect_timeout_s: float,
    ) -> None:
        self._token = token
        self._settings = settings
        self._memory = memory
        self._reconnect_timeout_s = reconnect_timeout_s
        self._connection: DiscordConnection | None = None
        self._http = Http(environment())
        # The library has one address for all clients.
        Route.BASE = settings.api_url.rstrip("/")
        redacted_logger("discord")

    @override
    async def run(self, inlet: Inlet) -> None:
        if self._connection is not None:
            await self._connection.close()
        connection = DiscordConnection(self._settings, self._memory, inlet)
        self._connection = connection
        try:
            with _adapter_errors():
                await connection.prepare(self._token)
                await run_until_first(
                    connection.connect(),
                    connection.failure(),
                    watch(connection.is_up, inlet, self._reconnect_timeout_s),
                    insist=True,
                )
        finally:
            await connection.stop_receiving()

    @override
    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        await self._http.aclose()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        sent = ""
        with _adapter_errors():
            async with asyncio.timeout(_DISCORD_CALL_TIMEOUT_S):
                channel = self._channel(chat)
                if out.text.strip():
                    message = await channel.send(
                        _text(out),
                        nonce=_nonce(out.key),
                        suppress_embeds=True,
                        reference=_reference(channel, out),
                        view=_view(out),
                    )
                    sent = str(message.id)
                for number, file in enumerate(out.files):
                    content = await asyncio.to_thread(_read_file, file)
                    nonce = _nonce(f"{out.key}/{number}")
                    sent = str((await channel.send(file=content, nonce=nonce)).id)
        return sent

    @override
    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        with _adapter_errors():
            async with asyncio.timeout(_DISCORD_CALL_TIMEOUT_S):
                found = self._channel(chat).get_partial_message(int(message))
                await found.edit(content=_text(out), view=_view(out))

    @override
    async def typing(self, chat: Chat) -> None:
        with _adapter_errors():
            await self._channel(chat).typing()

    @override
    async def told(self, inbound: Inbound, note: str) -> None:
        with _adapter_errors():
            connection = self._connected()
            webhook = discord.Webhook.partial(
                connection.application_id or 0, inbound.ref, client=connection
            )
            # Only an application's webhook can write to one person alone.
            webhook.type = discord.WebhookType.application
            try:
                await webhook.send(note, ephemeral=True)
            except discord.NotFound:
                return  # pressed too long ago: nobody waits for the note any more

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        return await download(self._http, attachment.ref, most)

    def _connected(self) -> DiscordConnection:
        connection = self._connection
        if (
            connection is None
            or connection.is_closed()
            or connection.application_id is None
        ):
            raise Unreachable(
                t.logged("{platform} is not connected yet", platform="Discord")
            )
        return connection

    def _channel(self, chat: Chat) -> discord.PartialMessageable:
        return self._connected().get_partial_messageable(int(chat.thread or chat.id))


@contextmanager
def _adapter_errors() -> Iterator[None]:
    """Raises errors of the library as AdapterErrors."""
    try:
        yield
    except discord.LoginFailure:
        raise Unauthorized(_BAD_TOKEN, hint=_TOKEN_HINT) from None
    except discord.PrivilegedIntentsRequired:
        raise Unauthorized(
            t.logged("Discord does not let this bot read messages."), hint=_INTENT_HINT
        ) from None
    except discord.RateLimited as error:
        raise TooFast(error.retry_after) from None
    except discord.HTTPException as error:
        raise _failure(error) from None
    except discord.ConnectionClosed as error:
        if error.code == _CLOSE_CODE_BAD_TOKEN:
            raise Unauthorized(_BAD_TOKEN, hint=_TOKEN_HINT) from None
        raise Unreachable(
            t.logged(
                "the connection to {platform} was lost ({reason})",
                platform="Discord",
                reason=error.code,
            )
        ) from None
    except ValueError as error:
        raise DeliveryRefused(
            t.logged("Discord has no such chat or message ({error})", error=error)
        ) from None
    except (
        aiohttp.ClientError,
        discord.GatewayNotFound,
        OSError,
        RuntimeError,  # what the library raises for a client that was closed
    ) as error:
        raise Unreachable(
            t.logged(
                "the request to {platform} failed: {reason}",
                platform="Discord",
                reason=type(error).__name__,
            )
        ) from None


def _failure(error: discord.HTTPException) -> Exception:
    if error.status == 429:
        retry_after = error.response.headers.get("Retry-After")
        return TooFast(float(retry_after or _DEFAULT_RETRY_AFTER_S))
    if error.status == 401 or error.status >= 500:
        return Unreachable(
            t.logged(
                "the request to {platform} failed: {reason}",
                platform="Discord",
                reason=f"{error.status} {error.text}".rstrip(),
            )
        )
    return DeliveryRefused(f"{error.text or _NO_REASON} ({error.status}/{error.code})")


def _text(out: Outbound) -> str:
    cursor = STREAMING_CURSOR if out.unfinished else ""
    text = discord_markdown(out.text) + cursor
    return text if utf16(text) <= _MAX_TEXT_CHARACTERS else out.text + cursor


def _nonce(key: str) -> str:
    """For some minutes, Discord sends only one message with the same nonce."""
    return hashlib.sha256((key or uuid4().hex).encode()).hexdigest()[:25]


def _reference(channel: discord.PartialMessageable, out: Outbound) -> Any:
    if not out.reply_to.isdigit():
        return None
    return discord.MessageReference(
        message_id=int(out.reply_to), channel_id=channel.id, fail_if_not_exists=False
    )


def _view(out: Outbound) -> Any:
    """The buttons; None for none. Our own ledger knows what a press means, so the library need not keep them."""
    if not out.buttons:
        return None
    view = discord.ui.View(timeout=None)
    for number, row in enumerate(_button_rows(out)):
        for button in row:
            is_denial = button.data.endswith(":deny")
            style = discord.ButtonStyle
            view.add_item(
                discord.ui.Button(
                    label=button.label[:_MAX_LABEL_CHARACTERS],
                    custom_id=button.data,
                    row=number,
                    style=style.danger if is_denial else style.secondary,
                )
            )
    view.stop()
    return view


def _button_rows(out: Outbound) -> list[list[Button]]:
    """The rows of buttons, filled up if there are more than Discord allows."""
    if len(out.buttons) <= _MAX_ROWS:
        return [list(row) for row in out.buttons]
    buttons = [button for row in out.buttons for button in row]
    starts = range(0, len(buttons), _MAX_ROWS)
    return [buttons[start : start + _MAX_ROWS] for start in starts]


def _read_file(file: OutgoingFile) -> discord.File:
    return discord.File(io.BytesIO(file.path.read_bytes()), filename=file.name)

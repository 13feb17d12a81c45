"""Slack, by slack_sdk and Socket Mode: messages, changes, buttons and files. `connection` receives."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from hermes.settings.gateway import SlackSettings
from hermes.surfaces.gateway.adapter import (
    AdapterDeps,
    Attachment,
    Chat,
    ChatAdapter,
    DeliveryRefused,
    Inbound,
    Inlet,
    Outbound,
    PlatformLimits,
    TooFast,
    Unauthorized,
    Unreachable,
    override,
)
from hermes.surfaces.gateway.adapters.slack.connection import SlackConnection
from hermes.surfaces.gateway.adapters.slack.text import mrkdwn, size
from hermes.surfaces.gateway.connection import plain_log
from hermes.surfaces.gateway.file_download import download
from hermes.surfaces.gateway.message_split import split
from hermes.surfaces.gateway.missed_messages import PlatformMemory

_PATIENCE = 30  # seconds
_CURSOR = " ▌"
_SECTION = 2800  # characters of a block of text
_ROW = 25  # buttons of a block
_SIGNED_OUT = frozenset(
    ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired")
)
_PASSING = frozenset(
    (
        "internal_error",
        "fatal_error",
        "service_unavailable",
        "request_timeout",
        "team_added_to_org",
    )
)
_HINT = "Take both from api.slack.com/apps; then: hermes config set SLACK_BOT_TOKEN, hermes config set SLACK_APP_TOKEN"


def build(deps: AdapterDeps) -> "SlackAdapter":
    """From the settings."""
    settings = deps.app.settings.gateway
    tokens = (
        deps.secrets.require("SLACK_BOT_TOKEN"),
        deps.secrets.require("SLACK_APP_TOKEN"),
    )
    return SlackAdapter(
        tokens,
        settings.slack,
        PlatformMemory(deps.app, "slack"),
        settings.connect_timeout,
    )


class SlackAdapter(ChatAdapter):
    """One app in one workspace."""

    name = "slack"
    limits = PlatformLimits(
        text=3900, size=size, edit_every=2.0, file_bytes=100_000_000, typing=0.0
    )

    def __init__(
        self,
        tokens: tuple[str, str],
        settings: SlackSettings,
        known: PlatformMemory,
        patience: float,
    ) -> None:
        self._token, self._app_token = tokens
        self._settings = settings
        self._known = known
        self._patience = patience
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_PATIENCE)
        )
        self._web = AsyncWebClient(
            self._token,
            base_url=settings.api_url,
            timeout=_PATIENCE,
            session=self._session,
            logger=plain_log("slack_sdk"),
            retry_handlers=[],
        )
        self._client = httpx2.AsyncClient(timeout=_PATIENCE)

    @override
    async def run(self, inlet: Inlet) -> None:
        """Receives until it is cancelled."""
        line = SlackConnection(self._web, self._settings, self._known, inlet)
        try:
            await line.run(self._app_token, self._patience)
        except SlackApiError as error:
            raise _failure(error, connecting=True) from None
        except (aiohttp.ClientError, SlackClientError, TimeoutError, OSError) as error:
            raise Unreachable(
                f"Slack did not answer properly ({type(error).__name__})"
            ) from None

    @override
    async def close(self) -> None:
        await self._session.close()
        await self._client.aclose()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        sent = ""
        if out.text.strip():
            body = _text(out) | {"unfurl_links": False, "unfurl_media": False}
            if not body["blocks"]:
                del body["blocks"]
            answered = await _called(self._web.chat_postMessage(**_place(chat), **body))
            sent = str(answered["ts"])
        if out.files:
            files = [await asyncio.to_thread(one.path.read_bytes) for one in out.files]
            uploads = [
                {"file": data, "filename": one.name}
                for data, one in zip(files, out.files, strict=True)
            ]
            answered = await _called(
                self._web.files_upload_v2(**_place(chat), file_uploads=uploads)
            )
            sent = str(answered["files"][-1]["id"])
        return sent

    @override
    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        await _called(self._web.chat_update(channel=chat.id, ts=message, **_text(out)))

    @override
    async def told(self, inbound: Inbound, note: str) -> None:
        try:
            await _called(
                self._web.chat_postEphemeral(
                    **_place(inbound.chat), user=inbound.person.id, text=note
                )
            )
        except DeliveryRefused:
            return  # they have left meanwhile

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        if attachment.size > most:
            raise DeliveryRefused(
                f"It has {attachment.size:,} bytes; {most:,} are possible."
            )
        if not self._is_of_slack(attachment.ref):
            raise DeliveryRefused("It lies outside of Slack.")
        data = await download(
            self._client,
            attachment.ref,
            most,
            {"Authorization": f"Bearer {self._token}"},
        )
        if attachment.media_type != "text/html" and data[:15].lower().startswith(
            b"<!doctype html"
        ):
            raise DeliveryRefused(
                "Slack does not give it out: the app lacks the scope files:read."
            )
        return data

    def _is_of_slack(self, address: str) -> bool:
        """Our token goes nowhere else, whatever address a message holds."""
        given, own = urlsplit(address), urlsplit(self._settings.api_url)
        return given.scheme == own.scheme and f".{given.netloc}".endswith(
            f".{own.netloc}"
        )


async def _called(call: Awaitable[Any]) -> Any:
    """The answer, or what went wrong as the port says it."""
    try:
        return await call
    except SlackApiError as error:
        raise _failure(error) from None
    except (
        aiohttp.ClientError,
        SlackClientError,
        TimeoutError,
        OSError,
        RuntimeError,
    ) as error:
        # a RuntimeError is what the library has for a session that was closed meanwhile
        raise Unreachable(
            f"Slack did not answer properly ({type(error).__name__})"
        ) from None


def _failure(error: SlackApiError, *, connecting: bool = False) -> Exception:
    response: Any = error.response
    status, data = (
        getattr(response, "status_code", 0),
        getattr(response, "data", response),
    )
    why = str(data.get("error") or "") if isinstance(data, dict) else ""
    if status == 429 or why == "ratelimited":
        return TooFast(float(getattr(response, "headers", {}).get("Retry-After") or 30))
    if why == "missing_scope":
        why = f"the app lacks the scope {data.get('needed', '?')}: add it and install the app again"
        return (
            Unauthorized(f"Slack refused: {why}.")
            if connecting
            else DeliveryRefused(why)
        )
    if why in _SIGNED_OUT and connecting:
        return Unauthorized("Slack does not know this app's tokens.", hint=_HINT)
    if status >= 500 or not why or why in _PASSING or why in _SIGNED_OUT or connecting:
        return Unreachable(f"Slack failed: {why or status}")
    return DeliveryRefused(why)


def _place(chat: Chat) -> dict[str, Any]:
    return {"channel": chat.id} | ({"thread_ts": chat.thread} if chat.thread else {})


def _text(out: Outbound) -> dict[str, Any]:
    """Empty blocks take buttons away that were there."""
    text = mrkdwn(out.text) + (_CURSOR if out.unfinished else "")
    if not out.buttons:
        return {"text": text, "blocks": []}
    parts = [
        {"type": "mrkdwn", "text": mrkdwn(part)}
        for part in split(out.text, _SECTION, size)
    ]
    rows = [_buttons(number, row) for number, row in enumerate(out.buttons)]
    return {
        "text": text,
        "blocks": [*({"type": "section", "text": part} for part in parts), *rows],
    }


def _buttons(number: int, row: Iterable[Any]) -> dict[str, Any]:
    elements: list[dict[str, Any]] = []
    for place, button in enumerate(row):
        label = {"type": "plain_text", "text": button.label[:75]}
        style = {"style": "danger"} if button.data.endswith(":deny") else {}
        about = {
            "type": "button",
            "text": label,
            "action_id": f"hermes-{number}-{place}",
            "value": button.data,
        }
        elements.append(about | style)
    return {"type": "actions", "elements": elements[:_ROW]}

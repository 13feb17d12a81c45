"""Slack, through slack_sdk and Socket Mode: messages, edits, buttons and files. `connection` receives."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from hermes.primitives.untyped import text_in
from hermes.providers.http_client import Http
from hermes.settings.gateway import SlackSettings
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
    PlatformLimits,
    TooFast,
    Unauthorized,
    Unreachable,
    override,
)
from hermes.surfaces.gateway.adapters.slack.connection import SlackConnection
from hermes.surfaces.gateway.adapters.text_formats import slack_length, slack_mrkdwn
from hermes.surfaces.gateway.connection import redacted_logger
from hermes.surfaces.gateway.files import download
from hermes.surfaces.gateway.message_split import split
from hermes.surfaces.gateway.missed_messages import PlatformMemory
from hermes.text.translation import translator

t = translator(__name__)

_WEB_API_TIMEOUT_S = 30
_MAX_SECTION_CHARACTERS = 2800
_MAX_BUTTONS_PER_ROW = 25
_MAX_LABEL_CHARACTERS = 75
_DEFAULT_RETRY_AFTER_S = 30
_TOKEN_ERRORS = frozenset(
    ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired")
)
_TEMPORARY_ERRORS = frozenset(
    (
        "internal_error",
        "fatal_error",
        "service_unavailable",
        "request_timeout",
        "team_added_to_org",
    )
)
_TOKEN_HINT = t.logged(
    "Take both from api.slack.com/apps; then: {command}",
    command="hermes config set SLACK_BOT_TOKEN, hermes config set SLACK_APP_TOKEN",
)


def build(deps: AdapterDeps) -> "SlackAdapter":
    """Builds the adapter from the settings."""
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
        text=3900, size=slack_length, edit_every=2.0, file_bytes=100_000_000, typing=0.0
    )

    def __init__(
        self,
        tokens: tuple[str, str],
        settings: SlackSettings,
        memory: PlatformMemory,
        reconnect_timeout_s: float,
    ) -> None:
        self._token, self._app_token = tokens
        self._settings = settings
        self._memory = memory
        self._reconnect_timeout_s = reconnect_timeout_s
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_WEB_API_TIMEOUT_S)
        )
        self._web = AsyncWebClient(
            self._token,
            base_url=settings.api_url,
            timeout=_WEB_API_TIMEOUT_S,
            session=self._session,
            logger=redacted_logger("slack_sdk"),
            retry_handlers=[],
        )
        self._http = Http(environment())

    @override
    async def run(self, inlet: Inlet) -> None:
        connection = SlackConnection(self._web, self._settings, self._memory, inlet)
        with _adapter_errors(connecting=True):
            await connection.run(self._app_token, self._reconnect_timeout_s)

    @override
    async def close(self) -> None:
        await self._session.close()
        await self._http.aclose()

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        sent = ""
        with _adapter_errors():
            if out.text.strip():
                content = _content(out)
                if not content["blocks"]:
                    del content["blocks"]
                message: Any = await self._web.chat_postMessage(
                    **_target(chat), **content, unfurl_links=False, unfurl_media=False
                )
                sent = str(message["ts"])
            if out.files:
                uploads = [
                    {
                        "file": await asyncio.to_thread(one.path.read_bytes),
                        "filename": one.name,
                    }
                    for one in out.files
                ]
                answer: Any = await self._web.files_upload_v2(
                    **_target(chat), file_uploads=uploads
                )
                sent = str(answer["files"][-1]["id"])
        return sent

    @override
    async def edit(self, chat: Chat, message: str, out: Outbound) -> None:
        with _adapter_errors():
            await self._web.chat_update(channel=chat.id, ts=message, **_content(out))

    @override
    async def told(self, inbound: Inbound, note: str) -> None:
        try:
            with _adapter_errors():
                await self._web.chat_postEphemeral(
                    **_target(inbound.chat), user=inbound.person.id, text=note
                )
        except DeliveryRefused:
            return  # the person has left the chat

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        if not self._is_on_slack(attachment.ref):
            raise DeliveryRefused(
                t.logged("It is on another server, not on the platform's.")
            )
        headers = {"Authorization": f"Bearer {self._token}"}
        data = await download(self._http, attachment.ref, most, headers)
        is_page = data[:15].lower().startswith(b"<!doctype html")
        if is_page and attachment.media_type != "text/html":
            raise DeliveryRefused(
                t.logged(
                    "the app lacks the scope {scope}: add it and install the app again",
                    scope="files:read",
                )
            )
        return data

    def _is_on_slack(self, address: str) -> bool:
        """Our token goes nowhere else, whatever address a message contains."""
        given, own = urlsplit(address), urlsplit(self._settings.api_url)
        is_own_host = f".{given.netloc}".endswith(f".{own.netloc}")
        return given.scheme == own.scheme and is_own_host


@contextmanager
def _adapter_errors(*, connecting: bool = False) -> Iterator[None]:
    """Raises errors of the library as AdapterErrors."""
    try:
        yield
    except SlackApiError as error:
        raise _failure(error, connecting=connecting) from None
    except (
        aiohttp.ClientError,
        SlackClientError,
        TimeoutError,
        OSError,
        RuntimeError,  # what the library raises for a session that was closed
    ) as error:
        raise Unreachable(
            t.logged(
                "the request to {platform} failed: {reason}",
                platform="Slack",
                reason=type(error).__name__,
            )
        ) from None


def _failure(error: SlackApiError, *, connecting: bool) -> Exception:
    response: Any = error.response
    status = getattr(response, "status_code", 0)
    data = getattr(response, "data", response)
    code = text_in(data, "error")
    if status == 429 or code == "ratelimited":
        retry_after = getattr(response, "headers", {}).get("Retry-After")
        return TooFast(float(retry_after or _DEFAULT_RETRY_AFTER_S))
    if code == "missing_scope":
        why = t.logged(
            "the app lacks the scope {scope}: add it and install the app again",
            scope=data.get("needed", "?"),
        )
        if connecting:
            return Unauthorized(
                t.logged(
                    "{platform} refused the request: {reason}",
                    platform="Slack",
                    reason=why,
                )
            )
        return DeliveryRefused(why)
    if connecting and code in _TOKEN_ERRORS:
        return Unauthorized(
            t.logged("{platform} rejected the token.", platform="Slack"),
            hint=_TOKEN_HINT,
        )
    if connecting or _is_temporary(code, status):
        return Unreachable(
            t.logged(
                "the request to {platform} failed: {reason}",
                platform="Slack",
                reason=code or status,
            )
        )
    return DeliveryRefused(code)


def _is_temporary(code: str, status: int) -> bool:
    """Whether another attempt may succeed, at the latest with a new connection."""
    if not code or status >= 500:
        return True
    return code in _TEMPORARY_ERRORS or code in _TOKEN_ERRORS


def _target(chat: Chat) -> dict[str, Any]:
    return {"channel": chat.id} | ({"thread_ts": chat.thread} if chat.thread else {})


def _content(out: Outbound) -> dict[str, Any]:
    """The text and blocks of a message. Empty blocks remove buttons that were there."""
    text = slack_mrkdwn(out.text) + (STREAMING_CURSOR if out.unfinished else "")
    if not out.buttons:
        return {"text": text, "blocks": []}
    parts = split(out.text, _MAX_SECTION_CHARACTERS, slack_length)
    sections = [
        {"type": "section", "text": {"type": "mrkdwn", "text": slack_mrkdwn(part)}}
        for part in parts
    ]
    rows = [_button_row(number, row) for number, row in enumerate(out.buttons)]
    return {"text": text, "blocks": [*sections, *rows]}


def _button_row(number: int, row: Iterable[Button]) -> dict[str, Any]:
    elements: list[dict[str, Any]] = []
    for column, button in enumerate(row):
        label = button.label[:_MAX_LABEL_CHARACTERS]
        element = {
            "type": "button",
            "text": {"type": "plain_text", "text": label},
            "action_id": f"hermes-{number}-{column}",
            "value": button.data,
        }
        if button.data.endswith(":deny"):
            element["style"] = "danger"
        elements.append(element)
    return {"type": "actions", "elements": elements[:_MAX_BUTTONS_PER_ROW]}

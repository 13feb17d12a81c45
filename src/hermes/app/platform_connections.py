"""Connecting chat platforms: the settings that each needs, and trying it before it is saved. The gateway serves
them."""

import asyncio
import imaplib
import smtplib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from hermes.app.mail_servers import (
    OwnNetworkAddress,
    WrongMailPassword,
    exposes_password,
    open_imap,
    open_smtp,
)
from hermes.errors import HermesError, UsageError
from hermes.primitives.untyped import object_of
from hermes.providers.metadata_addresses import leads_to_own_network
from hermes.settings import Home, Secrets, Settings
from hermes.settings.edit import set_secret, set_value, unset_value
from hermes.settings.gateway import (
    CHAT_PLATFORMS,
    MIN_WEBHOOK_SECRET_CHARACTERS,
    EmailSettings,
)
from hermes.settings.load import environment
from hermes.settings.secrets import is_secret_variable
from hermes.settings.setting_keys import find_key, parse_value
from hermes.text.hidden_text import without_hidden
from hermes.text.translation import to_translate, translator

t = translator(__name__)


_CONNECTION_TEST_TIMEOUT_S = 15.0
_MAX_ANSWER_BYTES = 64 * 1024
_MAX_SAID_CHARACTERS = 100  # of the service's own words
_UNCHANGED = t.later("Nothing was changed.")


class PlatformField(msgspec.Struct, frozen=True):
    """One thing that a platform needs: a secret by its variable, or a setting by its key."""

    name: str
    label: str
    help: str = ""
    is_optional: bool = False
    is_chosen: bool = False
    """A secret that the person makes up and gives to the other side."""

    @property
    def is_secret(self) -> bool:
        return is_secret_variable(self.name)


class _Probe(msgspec.Struct, frozen=True):
    """A request that works only with the right token. `who` finds the account's name in the answer."""

    address: Callable[[Mapping[str, str]], str]
    token: str = ""
    scheme: str = "Bearer"
    who: tuple[str, ...] = ()
    flag: str = ""
    """A field of the answer that must be true."""


_Attempt: TypeAlias = Callable[[Settings, Mapping[str, str]], Awaitable[str]]
"""Tries what was given. Returns the account's name, or raises HermesError."""


class ChatPlatform(msgspec.Struct, frozen=True):
    """A platform that a person can connect: its fields, and how a token is tried (None if it can't be)."""

    name: str
    label: str
    how: str
    fields: tuple[PlatformField, ...]
    probe: _Probe | _Attempt | None = None


def _parsed(name: str, text: str) -> object:
    """The value of a setting as it was typed; its default if nothing was."""
    key = find_key(name)
    if text.strip():
        return parse_value(key, text.strip())
    return key.default


async def _sign_in_to_mailbox(settings: Settings, given: Mapping[str, str]) -> str:
    """Signs in to both servers of a mailbox."""
    values = {
        name.removeprefix("gateway.email."): _parsed(name, text)
        for name, text in given.items()
        if name.startswith("gateway.email.")
    }
    mailbox = msgspec.structs.replace(settings.gateway.email, **values)
    if exposes_password(mailbox):
        raise UsageError(
            t.later(
                "gateway.email.security is none, but the server is on another machine: others could read the password."
            ),
            hint=_UNCHANGED,
        )
    for host, port in (
        (mailbox.imap_host, mailbox.imap_port),
        (mailbox.smtp_host, mailbox.smtp_port),
    ):
        await _require_allowed(f"https://{host}:{port}")
    await asyncio.to_thread(_sign_in, mailbox, given["EMAIL_PASSWORD"].strip())
    return mailbox.address


def _sign_in(mailbox: EmailSettings, password: str) -> None:
    """Raises HermesError. No error has words of the server, which may be anybody's."""
    for what, host, sign_in in (
        ("receives", mailbox.imap_host, open_imap),
        ("sends", mailbox.smtp_host, open_smtp),
    ):
        try:
            connection = sign_in(mailbox, password)
        except WrongMailPassword as error:
            raise HermesError(
                t.later(
                    "The server that {what} mail, {host}, rejected the password.",
                    what=what,
                    host=host,
                ),
                hint=t.later(
                    "{unchanged} Many providers want an app password.",
                    unchanged=_UNCHANGED,
                ),
            ) from error
        except OwnNetworkAddress as error:
            raise _own_network() from error
        except (OSError, imaplib.IMAP4.error, smtplib.SMTPException) as error:
            raise HermesError(
                t.later(
                    "The server that {what} mail, {host}, can't be used ({name}).",
                    what=what,
                    host=host,
                    name=type(error).__name__,
                ),
                hint=t.later(
                    "{unchanged} Check its name and port.", unchanged=_UNCHANGED
                ),
            ) from error
        connection.close() if isinstance(
            connection, smtplib.SMTP
        ) else connection.shutdown()


async def _check_webhook_key(_: Settings, given: Mapping[str, str]) -> str:
    if len(given["GATEWAY_WEBHOOK_SECRET"].strip()) < MIN_WEBHOOK_SECRET_CHARACTERS:
        raise UsageError(
            t.later("The key is too short to be a secret."),
            hint=t.later(
                "{unchanged} It needs at least {min_webhook_secret_characters} characters.",
                unchanged=_UNCHANGED,
                min_webhook_secret_characters=MIN_WEBHOOK_SECRET_CHARACTERS,
            ),
        )
    return ""


PLATFORMS = (
    ChatPlatform(
        "telegram",
        "Telegram",
        to_translate("Ask @BotFather for a new bot. It gives you a token."),
        (PlatformField("TELEGRAM_BOT_TOKEN", to_translate("Bot token")),),
        _Probe(
            lambda given: f"{given['api_url']}/bot{given['TELEGRAM_BOT_TOKEN']}/getMe",
            who=("result", "username"),
            flag="ok",
        ),
    ),
    ChatPlatform(
        "discord",
        "Discord",
        to_translate("Make an application with a bot in Discord's developer portal, and switch on its message "
"content intent."),
        (PlatformField("DISCORD_BOT_TOKEN", to_translate("Bot token")),),
        _Probe(
            lambda given: f"{given['api_url']}/users/@me",
            "DISCORD_BOT_TOKEN",
            "Bot",
            ("username",),
        ),
    ),
    ChatPlatform(
        "slack",
        "Slack",
        to_translate("Make a Slack app with socket mode. It has two tokens."),
        (
            PlatformField("SLACK_BOT_TOKEN", to_translate("Bot token"), to_translate("begins with xoxb-")),
            PlatformField("SLACK_APP_TOKEN", to_translate("App token"), to_translate("begins with xapp-")),
        ),
        _Probe(
            lambda given: f"{given['api_url'].rstrip('/')}/auth.test",
            "SLACK_BOT_TOKEN",
            who=("user",),
            flag="ok",
        ),
    ),
    ChatPlatform(
        "mattermost",
        "Mattermost",
        to_translate("Make a bot account in Mattermost's system console."),
        (
            PlatformField("gateway.mattermost.url", "Server", "https://chat.example.org"),
            PlatformField("MATTERMOST_TOKEN", to_translate("Bot token")),
        ),
        _Probe(
            lambda given: f"{given['gateway.mattermost.url'].rstrip('/')}/api/v4/users/me",
            "MATTERMOST_TOKEN",
            who=("username",),
        ),
    ),
    ChatPlatform(
        "matrix",
        "Matrix",
        to_translate("Make an account for the bot, and copy its access token."),
        (
            PlatformField("gateway.matrix.url", "Homeserver", "https://matrix.example.org"),
            PlatformField("MATRIX_ACCESS_TOKEN", to_translate("Access token")),
        ),
        _Probe(
            lambda given: f"{given['gateway.matrix.url'].rstrip('/')}/_matrix/client/v3/account/whoami",
            "MATRIX_ACCESS_TOKEN",
            who=("user_id",),
        ),
    ),
    ChatPlatform(
        "whatsapp",
        "WhatsApp",
        to_translate("Make an app with WhatsApp in Meta's app dashboard."),
        (
            PlatformField("gateway.whatsapp.phone_number_id", to_translate("Phone number id")),
            PlatformField("WHATSAPP_TOKEN", to_translate("Access token")),
            PlatformField("WHATSAPP_APP_SECRET", to_translate("App secret")),
            PlatformField(
                "WHATSAPP_VERIFY_TOKEN",
                to_translate("Verify token"),
                to_translate("a word of your choice"),
                is_chosen=True,
            ),
        ),
        _Probe(
            lambda given: f"{given['api_url'].rstrip('/')}/{given['gateway.whatsapp.phone_number_id']}",
            "WHATSAPP_TOKEN",
            who=("display_phone_number",),
        ),
    ),
    ChatPlatform(
        "email",
        "E-mail",
        to_translate("Give Hermes a mailbox of its own. It answers only mail whose sender your mail server has "
"verified: open the source of a mail in that mailbox, and copy the first word of the "
"topmost Authentication-Results header."),
        (
            PlatformField("gateway.email.address", "Address", "hermes@example.org"),
            PlatformField("EMAIL_PASSWORD", "Password"),
            PlatformField("gateway.email.imap_host", to_translate("IMAP server, which receives mail"), "imap.example.org"),
            PlatformField("gateway.email.smtp_host", to_translate("SMTP server, which sends mail"), "smtp.example.org"),
            PlatformField("gateway.email.trusted_authserv", to_translate("Server that verifies senders"), "mx.example.org"),
            PlatformField("gateway.email.user", to_translate("User name"), "the address", is_optional=True),
            PlatformField("gateway.email.imap_port", "IMAP port", "993", is_optional=True),
            PlatformField("gateway.email.smtp_port", "SMTP port", "465", is_optional=True),
        ),
        _sign_in_to_mailbox,
    ),
    ChatPlatform(
        "webhook",
        "Webhook",
        to_translate("Your own programs send signed requests. Choose a key, and give it to them. List them in "
"the setting gateway.allow, for example webhook:webhook."),
        (PlatformField("GATEWAY_WEBHOOK_SECRET", "Key", to_translate("at least 16 characters"), is_chosen=True),),
        _check_webhook_key,
    ),
    ChatPlatform(
        "ntfy",
        "ntfy",
        to_translate("Choose a topic. To write to Hermes, use a server that requires a token for publishing."),
        (PlatformField("gateway.ntfy.topic", "Topic"),),
    ),
    ChatPlatform(
        "signal",
        "Signal",
        to_translate("Run the daemon of signal-cli on this machine, with an account of its own."),
        (PlatformField("gateway.signal.account", to_translate("Phone number"), "+4915112345678"),),
    ),
)  # fmt: skip


def find_platform(name: str) -> ChatPlatform:
    """A platform by its name. Raises UsageError if there is none."""
    for one in PLATFORMS:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in PLATFORMS)
    raise UsageError(
        t.later("{name} can't be connected here.", name=name),
        hint=t.later("There are: {known}.", known=known),
    )


def is_connected(platform: ChatPlatform, settings: Settings, secrets: Secrets) -> bool:
    """Whether everything that the platform needs is set."""
    named = CHAT_PLATFORMS[platform.name]
    return all(
        _setting(settings, one.name)
        for one in platform.fields
        if not one.is_secret and not one.is_optional
    ) and all(secrets.get(one) for one in named)


def _setting(settings: Settings, key: str) -> object:
    """The value of a setting of a platform: gateway.PLATFORM.NAME."""
    _, platform, name = key.split(".")
    return getattr(getattr(settings.gateway, platform), name)


async def try_platform(
    platform: ChatPlatform, settings: Settings, given: Mapping[str, str]
) -> str:
    """The account's name, if the platform accepts what was given; empty if it can't be tried. Raises HermesError."""
    for field in platform.fields:
        if not field.is_optional and not given.get(field.name, "").strip():
            raise UsageError(
                t.later("{label} is missing.", label=t.marked_later(field.label)),
                hint=_UNCHANGED,
            )
    if platform.probe is None:
        return ""
    if not isinstance(platform.probe, _Probe):
        return await platform.probe(settings, given)
    section = getattr(settings.gateway, platform.name)
    values = {"api_url": getattr(section, "api_url", ""), **given}
    url, token = platform.probe.address(values), given.get(platform.probe.token, "")
    await _require_allowed(url)
    headers = {"authorization": f"{platform.probe.scheme} {token}"} if token else {}
    answer = await _answer(platform, url, headers)
    if platform.probe.flag and not answer.get(platform.probe.flag):
        raise _rejected(platform, str(answer.get("error", "")))
    found: Any = answer
    for name in platform.probe.who:
        found = object_of(found).get(name, "")
    return _one_line(str(found))


async def _require_allowed(url: str) -> None:
    _require_address(url)
    if await asyncio.to_thread(leads_to_own_network, url):
        raise _own_network()


def _own_network() -> UsageError:
    return UsageError(
        t.later(
            "Hermes does not call that address: it belongs to the machine's own network."
        ),
        hint=_UNCHANGED,
    )


def _require_address(url: str) -> None:
    """Refuses what is no address of a server. A name before an @ would hide which server it is."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:  # a port that is no port, or half an IPv6 address
        parts, has_port = urlsplit(""), False
    plain = parts.netloc.isascii() and "@" not in parts.netloc
    if parts.scheme in ("http", "https") and parts.hostname and has_port and plain:
        return
    raise UsageError(
        t.later("The server's address can't be used."),
        hint=t.later(
            "{unchanged} Write it as https://HOST or https://HOST:PORT.",
            unchanged=_UNCHANGED,
        ),
    )


async def _answer(
    platform: ChatPlatform, url: str, headers: Mapping[str, str]
) -> dict[str, Any]:
    """The JSON of the platform's answer. No error names the address: a token may be part of it."""
    from hermes.providers.http_client import TransportFailure

    try:
        async with asyncio.timeout(_CONNECTION_TEST_TIMEOUT_S):
            status, content = await _fetched(url, headers)
    except (TransportFailure, TimeoutError) as error:
        is_late = isinstance(error, TimeoutError) or error.timed_out
        why = (
            t.later(
                "no answer within {timeout_s:g} seconds",
                timeout_s=_CONNECTION_TEST_TIMEOUT_S,
            )
            if is_late
            else "no connection"
        )
        raise HermesError(
            t.later("{label} can't be reached ({why}).", label=platform.label, why=why),
            hint=_UNCHANGED,
        ) from error
    if status in (401, 403, 404):
        raise _rejected(platform, "")
    try:
        found = msgspec.json.decode(content)
    except msgspec.DecodeError:
        found = None
    if status != 200 or not isinstance(found, dict):
        raise HermesError(
            t.later(
                "{label} did not answer as expected (status {status}).",
                label=platform.label,
                status=status,
            ),
            hint=_UNCHANGED,
        )
    return found


async def _fetched(url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """The status and the beginning of the body. The client checks where the connection arrived."""
    from hermes.providers.http_client import Http, HttpTimeouts

    http = Http(environment())
    try:
        limits = HttpTimeouts(total=_CONNECTION_TEST_TIMEOUT_S)
        async with await http.send("GET", url, headers, b"", limits) as reply:
            return reply.status, await reply.read_all(_MAX_ANSWER_BYTES)
    finally:
        await http.aclose()


def _one_line(text: str) -> str:
    """The words of a service, which may say anything, as a part of a sentence."""
    line = " ".join(without_hidden(text).split())
    return (
        f"{line[:_MAX_SAID_CHARACTERS]}…" if len(line) > _MAX_SAID_CHARACTERS else line
    )


def _rejected(platform: ChatPlatform, why: str) -> HermesError:
    said = f" ({_one_line(why)})" if why else ""
    return HermesError(
        t.later("{label} rejected the token{said}.", label=platform.label, said=said),
        hint=_UNCHANGED,
    )


def save_platform(home: Home, platform: ChatPlatform, given: Mapping[str, str]) -> None:
    """Stores secrets and settings. An optional setting that is given empty goes back to its default.

    Raises HermesError for a value that can't be used, before anything is stored.
    """
    home.ensure()
    typed = {
        one.name: given[one.name].strip()
        for one in platform.fields
        if not one.is_secret and one.name in given
    }
    parsed = {name: _parsed(name, text) for name, text in typed.items()}
    for name, value in parsed.items():
        if typed[name]:
            set_value(home.config, name, value)
        else:
            unset_value(home.config, name)
    for one in platform.fields:
        if one.is_secret:
            set_secret(home.env_file, one.name, given[one.name].strip())


def forget_platform(home: Home, platform: ChatPlatform) -> None:
    """Removes the secrets of a platform; one without secrets loses the setting that switches it on."""
    secrets = [one.name for one in platform.fields if one.is_secret]
    for name in secrets:
        set_secret(home.env_file, name, None)
    if not secrets and home.config.exists():
        unset_value(home.config, platform.fields[0].name)

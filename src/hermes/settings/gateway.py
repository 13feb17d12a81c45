"""The settings of `hermes gateway` and its platforms, of the API server and of schedules."""

# ruff: noqa: RUF012 - msgspec gives each instance an empty dict of its own

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.settings.chat_platforms import (
    MatrixSettings,
    MattermostSettings,
    NtfySettings,
    SignalSettings,
    WhatsAppSettings,
)
from hermes.settings.secrets import Secrets
from hermes.settings.section import AMOUNT, ListenSettings, Port, Section


class TelegramSettings(Section, frozen=True):
    """Telegram. The bot's token is the secret TELEGRAM_BOT_TOKEN."""

    api_url: Annotated[
        str,
        Meta(
            description="URL of the Bot API; your own Bot API server accepts larger files."
        ),
    ] = "https://api.telegram.org"
    webhook_url: Annotated[
        str,
        Meta(
            description="Public https URL that leads to `gateway.port`; empty to poll Telegram for messages."
        ),
    ] = ""
    per_second: Annotated[
        float,
        Meta(
            gt=0,
            le=1000,
            description="The most messages and edits per second, over all chats.",
        ),
    ] = 25.0


class DiscordSettings(Section, frozen=True):
    """Discord. The bot's token is the secret DISCORD_BOT_TOKEN."""

    api_url: Annotated[
        str, Meta(description="URL of the API, including its version.")
    ] = "https://discord.com/api/v10"
    channels: Annotated[
        tuple[str, ...],
        Meta(
            description="Ids of channels in which Hermes reads every message, even without a mention."
        ),
    ] = ()


class SlackSettings(Section, frozen=True):
    """Slack. The secrets are SLACK_BOT_TOKEN (xoxb-) and SLACK_APP_TOKEN (xapp-)."""

    api_url: Annotated[str, Meta(description="URL of the Web API.")] = (
        "https://slack.com/api/"
    )
    channels: Annotated[
        tuple[str, ...],
        Meta(
            description="Ids of channels in which Hermes reads every message, even without a mention."
        ),
    ] = ()


class EmailSettings(Section, frozen=True):
    """E-mail. The password is the secret EMAIL_PASSWORD."""

    address: Annotated[
        str, Meta(description="Address of the mailbox; empty to turn e-mail off.")
    ] = ""
    user: Annotated[
        str, Meta(description="User name to sign in with; empty to use the address.")
    ] = ""
    imap_host: Annotated[
        str, Meta(description="Host of the IMAP server, which receives mail.")
    ] = ""
    imap_port: Annotated[
        int, Meta(ge=1, le=65535, description="Port of the IMAP server.")
    ] = 993
    smtp_host: Annotated[
        str, Meta(description="Host of the SMTP server, which sends mail.")
    ] = ""
    smtp_port: Annotated[
        int,
        Meta(
            ge=1,
            le=65535,
            description="Port of the SMTP server: 465 for TLS, any other for STARTTLS.",
        ),
    ] = 465
    security: Annotated[
        Literal["tls", "none"],
        Meta(
            description="`none` turns encryption off; use it only for a server on this machine."
        ),
    ] = "tls"
    poll_every: Annotated[
        float,
        Meta(
            gt=0,
            le=86400,
            description="Seconds between checks for mail, if the server can't push.",
        ),
    ] = 60.0
    trusted_authserv: Annotated[
        str,
        Meta(
            description="Name of your mail server in its Authentication-Results header. Hermes accepts only mail whose sender"
            " that server has verified (DMARC or aligned DKIM)."
        ),
    ] = ""


class GatewayWebhookSettings(Section, frozen=True):
    """Signed requests from your own programs. The key is the secret GATEWAY_WEBHOOK_SECRET."""

    tolerance: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds a request's timestamp may differ from this machine's clock.",
        ),
    ] = 300.0
    reply_timeout: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds that a caller who asks to wait gets for the reply.",
        ),
    ] = 120.0
    callback_url: Annotated[
        str,
        Meta(
            description="URL to post replies to if the caller doesn't wait; empty for none."
        ),
    ] = ""


CHAT_PLATFORMS = {
    "telegram": ("TELEGRAM_BOT_TOKEN",),
    "discord": ("DISCORD_BOT_TOKEN",),
    "slack": ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"),
    "email": ("EMAIL_PASSWORD",),
    "webhook": ("GATEWAY_WEBHOOK_SECRET",),
    "ntfy": (),
    "mattermost": ("MATTERMOST_TOKEN",),
    "signal": (),
    "matrix": ("MATRIX_ACCESS_TOKEN",),
    "whatsapp": ("WHATSAPP_TOKEN", "WHATSAPP_APP_SECRET", "WHATSAPP_VERIFY_TOKEN"),
}
"""The platforms that come with Hermes and receive messages, with their secrets; plugins may add others."""

MIN_WEBHOOK_SECRET_CHARACTERS = 16

_REQUIRED_SETTINGS = {
    "ntfy": "topic",
    "mattermost": "url",
    "whatsapp": "phone_number_id",
    "signal": "account",
    "matrix": "url",
}
"""The setting without which a platform does not run, in its section."""


class GatewaySettings(Section, frozen=True):
    """`hermes gateway`: Hermes in chat apps. Only people you name here or pair can use it."""

    platforms: Annotated[
        tuple[str, ...],
        Meta(
            description="Platforms to run; empty for every platform whose secrets are set."
        ),
    ] = ()
    owners: Annotated[
        tuple[str, ...],
        Meta(
            description="People who may do everything, including approve calls, such as `telegram:12345`: by id, not by name."
        ),
    ] = ()
    allow: Annotated[
        tuple[str, ...],
        Meta(
            description="Other people who may talk to Hermes; `slack:*` is everyone on that platform."
        ),
    ] = ()
    pairing: Annotated[
        bool,
        Meta(description="Send strangers a code that you can approve to let them in."),
    ] = True
    approvers: Annotated[
        Literal["owner", "user"],
        Meta(
            description="Who may answer requests for approval: only owners, or users too."
        ),
    ] = "owner"
    sessions: Annotated[
        dict[str, Literal["chat", "thread", "person"]],
        Meta(
            description="What gets its own session, by platform and kind of chat: `telegram.group: chat`, `*.group: person`."
        ),
    ] = {}
    groups: Annotated[
        Literal["addressed", "all"],
        Meta(description="In groups, react only when addressed, or to all messages."),
    ] = "addressed"
    while_busy: Annotated[
        Literal["steer", "queue", "interrupt"],
        Meta(
            description="Whether a message during a turn goes into it (`steer`), waits (`queue`) or stops it (`interrupt`)."
        ),
    ] = "steer"
    show_tools: Annotated[bool, Meta(description="Show tool calls in the chat.")] = True
    folder: Annotated[
        str, Meta(description="The folder in which chats work; empty for `~/hermes`.")
    ] = ""
    still_working: Annotated[
        float,
        Meta(
            ge=0,
            le=86400,
            description="Seconds of silence until Hermes says that it is still working; 0 for never.",
        ),
    ] = 120.0
    file_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=2_000_000_000,
            description="The largest file to receive or send, in bytes.",
        ),
    ] = 20_000_000
    connect_timeout: Annotated[
        float,
        Meta(gt=0, le=600, description="Seconds to wait for a platform to connect."),
    ] = 30.0
    drain_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Seconds that running turns get to finish when the gateway stops.",
        ),
    ] = 20.0
    host: Annotated[str, Meta(description="The address to listen on for webhooks.")] = (
        "127.0.0.1"
    )
    port: Annotated[
        int,
        Meta(
            ge=0,
            le=65535,
            description="The port to listen on for webhooks; 0 for any free port.",
        ),
    ] = 8710
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()
    slack: SlackSettings = SlackSettings()
    email: EmailSettings = EmailSettings()
    webhook: GatewayWebhookSettings = GatewayWebhookSettings()
    ntfy: NtfySettings = NtfySettings()
    mattermost: MattermostSettings = MattermostSettings()
    whatsapp: WhatsAppSettings = WhatsAppSettings()
    signal: SignalSettings = SignalSettings()
    matrix: MatrixSettings = MatrixSettings()


def connected_platforms(gateway: GatewaySettings, secrets: Secrets) -> tuple[str, ...]:
    """The platforms on which something can be sent, as far as settings and secrets tell."""
    if gateway.platforms:
        return tuple(one for one in gateway.platforms if one != "api")
    can_send = {"webhook": bool(gateway.webhook.callback_url)}
    return tuple(
        name
        for name, named in CHAT_PLATFORMS.items()
        if can_send.get(name, True)
        and not missing_setting(gateway, name)
        and all(secrets.get(one) for one in named)
    )


def missing_setting(gateway: GatewaySettings, platform: str) -> str:
    """The setting that a platform still needs to run; empty for none."""
    name = _REQUIRED_SETTINGS.get(platform, "")
    if not name or getattr(getattr(gateway, platform), name):
        return ""
    return f"gateway.{platform}.{name}"


class ScheduleSettings(Section, frozen=True):
    """Jobs that run on a schedule; see `hermes cron`. A job can't ask anyone for approval."""

    enabled: Annotated[
        bool, Meta(description="Let `hermes gateway run` run jobs when they are due.")
    ] = True
    tool: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether the agent may create jobs, with your approval; `auto`: once a job exists, and in chat apps."
        ),
    ] = "auto"
    timezone: Annotated[
        str,
        Meta(
            description="Time zone of schedules that name none; empty for this machine's."
        ),
    ] = ""
    catch_up: Annotated[
        Literal["skip", "once", "all"],
        Meta(
            description="Which missed runs to catch up on, for jobs that don't say: none, the last one, or all."
        ),
    ] = "once"
    approvals: Annotated[
        Literal["ask", "auto-edit", "plan", "full"],
        Meta(
            description="The approval mode of jobs. Calls that would need approval don't run."
        ),
    ] = "ask"
    timeout: Annotated[
        float, Meta(gt=0, le=86400, description="Seconds one run may take.")
    ] = 3_600.0
    budget: Annotated[
        str,
        Meta(
            pattern=AMOUNT,
            description="The most that one run may use; empty for no limit.",
        ),
    ] = ""
    at_once: Annotated[
        int, Meta(ge=1, le=100, description="How many jobs may run at the same time.")
    ] = 4
    keep_days: Annotated[
        int,
        Meta(ge=1, le=3650, description="Days to keep the results of runs."),
    ] = 90


class ApiSettings(ListenSettings, frozen=True):
    """`hermes api`: Hermes behind OpenAI's API. It always requires a key; `hermes api key add` creates one."""

    port: Port = 8711
    public_urls: Annotated[
        tuple[str, ...],
        Meta(
            description="Other URLs of the API server, such as that of a reverse proxy."
        ),
    ] = ()
    by_user: Annotated[
        bool,
        Meta(
            description="Let the field `user` of a chat completion name the conversation, for clients with one chat per user."
        ),
    ] = False
    show_tools: Annotated[bool, Meta(description="Show tool calls in the answer.")] = (
        False
    )
    approvals: Annotated[
        Literal["ask", "auto-edit", "plan", "full"],
        Meta(
            description="The approval mode of API sessions. Calls that would need approval don't run."
        ),
    ] = "ask"
    folder: Annotated[
        str,
        Meta(
            description="The folder in which API sessions work; empty for `~/hermes`."
        ),
    ] = ""

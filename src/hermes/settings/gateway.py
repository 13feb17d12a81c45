"""The sections of `hermes gateway`: the common one, one for each platform, the API and the schedules."""

# ruff: noqa: RUF012 - msgspec gives each instance an empty dict of its own

from typing import Annotated, Literal

from msgspec import Meta

from hermes.settings.section import AMOUNT, Section


class TelegramSettings(Section, frozen=True):
    """Telegram. The bot's token is the secret TELEGRAM_BOT_TOKEN."""

    api_url: Annotated[
        str,
        Meta(
            description="Where the Bot API is; your own server can take larger files."
        ),
    ] = "https://api.telegram.org"
    webhook_url: Annotated[
        str,
        Meta(
            description="Public https address that leads to `gateway.port`; empty to ask Telegram for messages."
        ),
    ] = ""
    per_second: Annotated[
        float,
        Meta(
            gt=0, le=1000, description="Messages and edits per second, over all chats."
        ),
    ] = 25.0


class DiscordSettings(Section, frozen=True):
    """Discord. The bot's token is the secret DISCORD_BOT_TOKEN."""

    api_url: Annotated[str, Meta(description="Where the API is, with its version.")] = (
        "https://discord.com/api/v10"
    )
    channels: Annotated[
        tuple[str, ...],
        Meta(
            description="Ids of channels in which Hermes reads every message, mentioned or not."
        ),
    ] = ()


class SlackSettings(Section, frozen=True):
    """Slack. The secrets are SLACK_BOT_TOKEN (xoxb-) and SLACK_APP_TOKEN (xapp-)."""

    api_url: Annotated[str, Meta(description="Where the Web API is.")] = (
        "https://slack.com/api/"
    )
    channels: Annotated[
        tuple[str, ...],
        Meta(
            description="Ids of channels in which Hermes reads every message, mentioned or not."
        ),
    ] = ()


class EmailSettings(Section, frozen=True):
    """E-mail. The password is the secret EMAIL_PASSWORD."""

    address: Annotated[
        str, Meta(description="The mailbox's address; empty for no e-mail.")
    ] = ""
    user: Annotated[
        str, Meta(description="The name to sign in with; empty for the address.")
    ] = ""
    imap_host: Annotated[str, Meta(description="Where mail is read.")] = ""
    imap_port: Annotated[int, Meta(ge=1, le=65535, description="Its port.")] = 993
    smtp_host: Annotated[str, Meta(description="Where mail is sent.")] = ""
    smtp_port: Annotated[
        int,
        Meta(ge=1, le=65535, description="Its port: 465 for TLS, others for STARTTLS."),
    ] = 465
    security: Annotated[
        Literal["tls", "none"],
        Meta(
            description="`none` only for a server on this machine: nothing is encrypted."
        ),
    ] = "tls"
    poll_every: Annotated[
        float,
        Meta(
            gt=0,
            le=86400,
            description="Seconds between checks, if the server can't push.",
        ),
    ] = 60.0
    trusted_authserv: Annotated[
        str,
        Meta(
            description="Name of your mail server in its Authentication-Results header. Only mail whose sender it has"
            " verified (DMARC or aligned DKIM) counts as from that sender."
        ),
    ] = ""


class GatewayWebhookSettings(Section, frozen=True):
    """Signed requests from your own programs. The key is the secret GATEWAY_WEBHOOK_SECRET."""

    tolerance: Annotated[
        float,
        Meta(
            gt=0, le=3600, description="Seconds by which a request's time may differ."
        ),
    ] = 300.0
    reply_timeout: Annotated[
        float,
        Meta(gt=0, le=3600, description="Seconds that a waiting caller waits at most."),
    ] = 120.0
    callback_url: Annotated[
        str,
        Meta(
            description="Where replies are posted if no caller waits; empty for nowhere."
        ),
    ] = ""


CHAT_PLATFORMS = ("telegram", "discord", "slack", "email", "webhook")
"""The built-in platforms that receive messages. Plugins may add others."""


class GatewaySettings(Section, frozen=True):
    """`hermes gateway`: Hermes in chat apps. Only people named here or paired can use it."""

    platforms: Annotated[
        tuple[str, ...],
        Meta(description="The platforms to run; empty for each whose secrets are set."),
    ] = ()
    owners: Annotated[
        tuple[str, ...],
        Meta(
            description="Who may do everything, including approvals, as `telegram:12345`: by id, not by name."
        ),
    ] = ()
    allow: Annotated[
        tuple[str, ...],
        Meta(description="Who else may talk to Hermes; `slack:*` is everybody there."),
    ] = ()
    pairing: Annotated[
        bool,
        Meta(
            description="Strangers who write get a pairing code that you can approve."
        ),
    ] = True
    approvers: Annotated[
        Literal["owner", "user"],
        Meta(
            description="Who may answer requests for approval: owners, or any user too."
        ),
    ] = "owner"
    sessions: Annotated[
        dict[str, Literal["chat", "thread", "person"]],
        Meta(
            description="What has its own session, by platform and kind: `telegram.group: chat`, `*.group: person`."
        ),
    ] = {}
    groups: Annotated[
        Literal["addressed", "all"],
        Meta(description="In groups, react when addressed, or to every message."),
    ] = "addressed"
    while_busy: Annotated[
        Literal["steer", "queue", "interrupt"],
        Meta(
            description="A message during a turn goes into it, waits for its end, or stops it."
        ),
    ] = "steer"
    show_tools: Annotated[
        bool, Meta(description="Show in the chat what is being done.")
    ] = True
    folder: Annotated[
        str, Meta(description="The folder that chats work in; empty for `~/hermes`.")
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
            description="The largest file that is received or sent.",
        ),
    ] = 20_000_000
    connect_timeout: Annotated[
        float, Meta(gt=0, le=600, description="Seconds for a platform to connect.")
    ] = 30.0
    drain_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Seconds for turns to end when the gateway stops.",
        ),
    ] = 20.0
    host: Annotated[
        str, Meta(description="Where it listens for webhooks and the API.")
    ] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="On which port; 0 for any that is free.")
    ] = 8710
    voice_model: Annotated[
        str,
        Meta(
            description="Model that transcribes voice notes, such as `whisper-1`; empty for none."
        ),
    ] = ""
    voice_url: Annotated[
        str,
        Meta(
            description="Address of that service, ending in /v1; its key is VOICE_API_KEY or OPENAI_API_KEY."
        ),
    ] = "https://api.openai.com/v1"
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()
    slack: SlackSettings = SlackSettings()
    email: EmailSettings = EmailSettings()
    webhook: GatewayWebhookSettings = GatewayWebhookSettings()


class ScheduleSettings(Section, frozen=True):
    """Jobs that run at set times, see `hermes cron`. Their agent cannot ask anybody."""

    enabled: Annotated[
        bool, Meta(description="`hermes gateway run` runs due jobs.")
    ] = True
    tool: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether the agent can create jobs, with your approval; `auto`: once one exists, and in chats."
        ),
    ] = "auto"
    timezone: Annotated[
        str,
        Meta(description="Zone of schedules that name none; empty for this machine's."),
    ] = ""
    catch_up: Annotated[
        Literal["skip", "once", "all"],
        Meta(
            description="What happens to runs that were missed while nothing ran the schedules, for jobs that don't say."
        ),
    ] = "once"
    approvals: Annotated[
        Literal["ask", "auto-edit", "full"],
        Meta(
            description="What jobs do without asking, as in the chat. What needs an approval is not done."
        ),
    ] = "ask"
    timeout: Annotated[
        float, Meta(gt=0, le=86400, description="Seconds that a run may take.")
    ] = 3_600.0
    budget: Annotated[
        str,
        Meta(
            pattern=AMOUNT, description="The most that one run may use; empty for any."
        ),
    ] = ""
    at_once: Annotated[
        int, Meta(ge=1, le=100, description="How many jobs run at the same time.")
    ] = 4
    keep_days: Annotated[
        int,
        Meta(ge=1, le=3650, description="How long the result of each run is kept."),
    ] = 90


class ApiSettings(Section, frozen=True):
    """`hermes api`, Hermes behind OpenAI's API. It always needs a key: `hermes api key add` creates one."""

    host: Annotated[str, Meta(description="The address it listens on.")] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="Its port; 0 for any that is free.")
    ] = 8711
    public_urls: Annotated[
        tuple[str, ...],
        Meta(
            description="Where it is reached through a reverse proxy or by another name."
        ),
    ] = ()
    behind_proxy: Annotated[
        bool, Meta(description="A reverse proxy in front of it handles TLS.")
    ] = False
    tls_cert: Annotated[str, Meta(description="File with its certificate.")] = ""
    tls_key: Annotated[str, Meta(description="File with the certificate's key.")] = ""
    by_user: Annotated[
        bool,
        Meta(
            description="`user` of a chat completion names its conversation; for clients with one chat each."
        ),
    ] = False
    show_tools: Annotated[
        bool, Meta(description="Show in the answer which tools are used.")
    ] = False
    approvals: Annotated[
        Literal["ask", "auto-edit", "full"],
        Meta(
            description="What is done without asking, as in the chat. What needs an approval is not done."
        ),
    ] = "ask"
    folder: Annotated[
        str,
        Meta(description="The folder that its sessions work in; empty for `~/hermes`."),
    ] = ""

"""The settings, as types. A new setting is a field of its section, here or in the module of its topic (`models`, `tools`,
`gateway` ...); a new section is a Struct and a field of `Settings`.

Everything else follows from these types: validation, the environment variables, `hermes config` and the reference page.
A field's `Meta` holds its bounds and its one-line description; a section's docstring describes the section.
"""

# ruff: noqa: RUF012 - msgspec gives each instance an empty dict of its own

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.settings.boards import BoardSettings
from hermes.settings.gateway import ApiSettings, GatewaySettings, ScheduleSettings
from hermes.settings.mcp import McpServerSettings, McpSettings
from hermes.settings.media import MediaSettings
from hermes.settings.models import (
    AuxiliarySettings,
    BudgetSettings,
    CompressionSettings,
    CustomProvider,
    LocalModelSettings,
    ModelSettings,
    SignInSettings,
)
from hermes.settings.section import AMOUNT, ListenSettings, Port, Section
from hermes.settings.tools import (
    ApprovalSettings,
    BrowserSettings,
    LanguageServerSettings,
    SandboxSettings,
    ToolSettings,
    WebSettings,
)


class WorktreeSettings(Section, frozen=True):
    """Copies of a repository to work in (`hermes --worktree`)."""

    children: Annotated[
        bool,
        Meta(
            description="Tell the model that a child agent can work in a worktree of its own."
        ),
    ] = False


class GoalSettings(Section, frozen=True):
    """Limits of goals (`/goal`). One goal can have others: `turns:` and `budget:` lines."""

    max_turns: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Turns after which a goal pauses."),
    ] = 20
    budget: Annotated[
        str,
        Meta(
            pattern=AMOUNT,
            description="The most that a goal may use, such as `$2` or `500k tokens`; empty for no cap of its own.",
        ),
    ] = ""


class SessionSettings(Section, frozen=True):
    """What Hermes keeps of conversations."""

    write_json_snapshots: Annotated[
        bool,
        Meta(
            description="After each turn, also write the session to `sessions/session_<id>.json`."
        ),
    ] = False
    json_snapshot_format: Annotated[
        Literal["events", "messages"],
        Meta(
            description="What such a file holds: `events`, or `messages` in the shape of Hermes Agent's session files."
        ),
    ] = "events"


class StoreSettings(Section, frozen=True):
    """The session log: `state.db`, or a PostgreSQL database that several machines share."""

    url: Annotated[
        str,
        Meta(
            description="Address of a PostgreSQL database, as `postgresql://hermes@db.example/hermes`; empty for `state.db`. "
            "A password is not part of it: `hermes config set STORE_PASSWORD`."
        ),
    ] = ""
    tls: Annotated[
        Literal["auto", "prefer", "require", "verify-full", "disable"],
        Meta(
            description="Encryption on the way to PostgreSQL. `verify-full` also checks the server's name and certificate; "
            "`auto` is `verify-full` for another machine and `prefer` for this one."
        ),
    ] = "auto"
    tls_ca: Annotated[
        str,
        Meta(
            description="File with the certificates that PostgreSQL's is checked against; empty for the system's."
        ),
    ] = ""
    tls_certificate: Annotated[
        str, Meta(description="File with this client's certificate for PostgreSQL.")
    ] = ""
    tls_private_key_file: Annotated[
        str, Meta(description="File with the key of that certificate.")
    ] = ""
    outage_timeout: Annotated[
        float,
        Meta(
            ge=1,
            le=86_400,
            description="Seconds that a request waits while PostgreSQL can't be reached.",
        ),
    ] = 300.0
    busy_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Seconds to wait while another process has the database locked.",
        ),
    ] = 30.0


class EventSettings(Section, frozen=True):
    """How processes on several machines tell one another what happens, beside the shared store."""

    url: Annotated[
        str,
        Meta(
            description="Address of a NATS server, as `nats://hermes@nats.example:4222`, or `tls://...`; several are "
            "separated by commas. Empty: NOTIFY of PostgreSQL. The password is apart: `hermes config set EVENTS_PASSWORD`."
        ),
    ] = ""
    subject: Annotated[
        str,
        Meta(
            pattern="^[A-Za-z0-9_-]{1,60}$",
            description="First word of all subjects. Machines that share a store have the same.",
        ),
    ] = "hermes"
    credentials_file: Annotated[
        str, Meta(description="File with a NATS user's credentials (`.creds`).")
    ] = ""
    tls_ca: Annotated[
        str,
        Meta(
            description="File with the certificates that the server's is checked against; empty for the system's."
        ),
    ] = ""
    tls_certificate: Annotated[
        str, Meta(description="File with this client's certificate for NATS.")
    ] = ""
    tls_private_key_file: Annotated[
        str, Meta(description="File with the key of that certificate.")
    ] = ""


class WorkerSettings(Section, frozen=True):
    """Which turns `hermes worker` runs for other machines."""

    place: Annotated[
        str,
        Meta(
            description="Name of this machine, which its sessions belong to; empty for its host name."
        ),
    ] = ""
    places: Annotated[
        tuple[str, ...],
        Meta(
            description="Shared folders, the same on every machine: any worker runs the sessions in them."
        ),
    ] = ()
    at_once: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Most sessions that a worker runs at once."),
    ] = 64
    drain_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="Seconds that running turns have to finish when a worker is stopped.",
        ),
    ] = 60.0


class DisplaySettings(Section, frozen=True):
    """How the terminal output looks, and the language of every surface."""

    language: Annotated[
        Literal[
            "auto", "en", "zh", "zh-hant", "ja", "de", "es", "fr", "tr", "uk",
            "af", "ko", "it", "ga", "pt", "ru", "hu", "ar",
        ],
        Meta(
            description="The language of Hermes's own sentences; `auto` follows the system, the browser, or the chat"
            " app's user. The model answers in yours anyway."
        ),
    ] = "auto"  # fmt: skip
    color: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Colour in the terminal; `auto` follows the terminal and NO_COLOR."
        ),
    ] = "auto"
    theme: Annotated[
        Literal["auto", "dark", "light", "contrast", "colorblind"],
        Meta(
            description="Colours for a dark or light background, high contrast, or without red and green;"
            " `auto` follows COLORFGBG."
        ),
    ] = "auto"
    layout: Annotated[
        Literal["full", "quiet", "linear"],
        Meta(
            description="How the chat looks: `quiet` leaves out tool calls that succeed and thinking; `linear` is for"
            " screen readers, without redrawing, spinners or boxes."
        ),
    ] = "full"
    keys: Annotated[
        Literal["emacs", "vim"], Meta(description="How the input is edited.")
    ] = "emacs"
    mouse: Annotated[
        bool,
        Meta(
            description="Whether a click chooses in menus and lists of the chat; at other times the mouse is the terminal's."
        ),
    ] = True
    status_script: Annotated[
        str,
        Meta(
            description="A program whose first line of output ends the status line. It gets the session, model and"
            " cost as JSON on its input."
        ),
    ] = ""


class NotifySettings(Section, frozen=True):
    """Notifications of the chat in a terminal when it waits for you or has finished."""

    when: Annotated[
        Literal["unfocused", "always", "never"],
        Meta(
            description="When to notify; `unfocused` means that the terminal's window is not looked at."
        ),
    ] = "unfocused"
    after: Annotated[
        float,
        Meta(
            ge=0, description="How many seconds a turn must take to notify at its end."
        ),
    ] = 10.0
    bell: Annotated[bool, Meta(description="Ring the terminal's bell.")] = True
    title: Annotated[
        bool,
        Meta(description="Show in the window's title whether Hermes works or waits."),
    ] = True
    terminal: Annotated[
        bool,
        Meta(
            description="Use the terminal's own notifications (OSC 9, 99 or 777) where it has them."
        ),
    ] = True
    desktop: Annotated[
        bool, Meta(description="Show a desktop notification with notify-send.")
    ] = False


class LoggingSettings(Section, frozen=True):
    """The log files in `logs/`."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The lowest level that is logged."),
    ] = "info"


class CodexSettings(Section, frozen=True):
    """The codex program as the engine, used when `model.openai_runtime` is `codex_app_server`."""

    binary: Annotated[
        str,
        Meta(description="Path of the codex program; empty to look for it on PATH."),
    ] = ""
    home: Annotated[
        str,
        Meta(
            description="A separate CODEX_HOME; empty to share your codex login and settings."
        ),
    ] = ""
    approval_policy: Annotated[
        Literal["on-request", "untrusted"],
        Meta(
            description="When codex asks: to leave its sandbox (`on-request`), or before every command (`untrusted`)."
        ),
    ] = "on-request"
    startup_timeout: Annotated[
        float, Meta(gt=0, le=600, description="Seconds to wait for codex to start.")
    ] = 10.0
    progress_timeout: Annotated[
        float,
        Meta(
            gt=0,
            le=86400,
            description="Seconds without progress until a turn is stopped, not counting commands and open questions.",
        ),
    ] = 600.0
    tool_silence_timeout: Annotated[
        float,
        Meta(
            gt=0,
            le=86400,
            description="Seconds of silence after a command until a turn is stopped.",
        ),
    ] = 300.0
    turn_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=604_800,
            description="Seconds a whole turn may take, not counting open questions; 0 for no limit.",
        ),
    ] = 14_400.0
    idle_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=604_800,
            description="Seconds until an idle codex process is stopped; it restarts when needed. 0 for never.",
        ),
    ] = 900.0


class LearningSettings(Section, frozen=True):
    """What Hermes learns from conversations. See `hermes memory` and `hermes skills`."""

    mode: Annotated[
        Literal["propose", "auto", "off"],
        Meta(
            description="Whether a review proposes changes, makes them (to your own skills it only proposes), or never runs."
        ),
    ] = "propose"
    turns: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Review a conversation after this many turns.",
        ),
    ] = 10
    iterations: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Also review it after this many tool steps that used no skill.",
        ),
    ] = 10
    budget: Annotated[
        str,
        Meta(
            pattern=AMOUNT,
            description="The most that one review may use; empty for no limit.",
        ),
    ] = "300k tokens"
    remote: Annotated[
        str,
        Meta(
            description="Git address through which memory and skills are shared by several machines; empty for none. "
            "The branch `hermes` is used."
        ),
    ] = ""
    memory_limit: Annotated[
        int,
        Meta(
            ge=500,
            le=100_000,
            description="The most characters that MEMORY.md may hold.",
        ),
    ] = 6_000
    user_limit: Annotated[
        int,
        Meta(
            ge=500, le=100_000, description="The most characters that USER.md may hold."
        ),
    ] = 3_000
    memory_url: Annotated[
        str,
        Meta(
            pattern=r"^$|^https?://[^\s/?#]+[^\s?#]*$",
            description="URL of an additional memory service (mem0's REST API); its key is the secret MEMORY_API_KEY.",
        ),
    ] = ""
    memory_user: Annotated[
        str,
        Meta(
            min_length=1, description="The user whose notes the memory service keeps."
        ),
    ] = "hermes"
    retire_after: Annotated[
        int,
        Meta(
            ge=0,
            le=3_650,
            description="Archive a skill that Hermes wrote after this many days without use; 0 for never.",
        ),
    ] = 90


class DashboardSettings(ListenSettings, frozen=True):
    """`hermes dashboard`: Hermes in a browser. Listening for other machines requires a password (or `token_only`) and TLS."""

    port: Port = 9119
    public_urls: Annotated[
        tuple[str, ...],
        Meta(
            description="Other URLs of the dashboard, such as that of a reverse proxy: `https://hermes.example.org`."
        ),
    ] = ()
    token_only: Annotated[
        bool,
        Meta(
            description="Let other machines sign in only with tokens and one-time links, without a password."
        ),
    ] = False
    shell: Annotated[
        str, Meta(description="The shell to run in its terminals; empty for your own.")
    ] = ""


class WebhookSettings(Section, frozen=True):
    """A URL that receives events, each in a signed request. Hermes doesn't follow redirects."""

    url: Annotated[
        str,
        Meta(
            pattern=r"^https?://",
            description="The URL to send events to; it may be on a private network.",
        ),
    ]
    secret: Annotated[
        str,
        Meta(description="Name of the variable that holds the signing key."),
    ]
    events: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(
            description="Event topics, with the wildcards `*` and `**`: `agent.turn.*`."
        ),
    ] = ("agent.turn.ended",)
    contents: Annotated[
        bool, Meta(description="Also send fields that may hold private text.")
    ] = False
    timeout: Annotated[
        float, Meta(gt=0, le=120, description="Seconds one request may take.")
    ] = 10.0


class TraceSettings(Section, frozen=True):
    """OpenTelemetry traces: one trace per turn, with its model calls and tool calls. Needs the extra `otel`."""

    endpoint: Annotated[
        str,
        Meta(
            description="URL of the collector (OTLP over HTTP), such as `http://localhost:4318/v1/traces`; empty for no traces."
        ),
    ] = ""
    metrics_endpoint: Annotated[
        str,
        Meta(
            description="URL for metrics, such as `http://localhost:4318/v1/metrics`; empty for no metrics."
        ),
    ] = ""
    headers: Annotated[
        dict[str, str],
        Meta(
            description="Headers to send with each request; `${NAME}` stands for a secret."
        ),
    ] = {}
    service_name: Annotated[
        str, Meta(min_length=1, description="The service name in the traces.")
    ] = "hermes"
    contents: Annotated[
        bool,
        Meta(description="Also send messages, and the arguments and results of tools."),
    ] = False


class Settings(Section, frozen=True):
    """All settings of one process."""

    model: ModelSettings = ModelSettings()
    custom_providers: Annotated[
        dict[str, CustomProvider],
        Meta(
            description="Model services, each under a name you choose: base_url, key_env, api, family, models, headers."
        ),
    ] = {}
    sign_ins: Annotated[
        dict[str, SignInSettings],
        Meta(
            description="How to sign in with a provider (openai, xai, nous, copilot, ...): client_id, issuer, base_url."
        ),
    ] = {}
    local_models: Annotated[
        dict[str, LocalModelSettings],
        Meta(
            description="GGUF files to download, each under a name you choose: sources, size, sha256, context_tokens."
        ),
    ] = {}
    mcp_servers: Annotated[
        dict[str, McpServerSettings],
        Meta(
            description="MCP servers, each under a name you choose: command, args and env, or url and headers."
        ),
    ] = {}
    mcp: McpSettings = McpSettings()
    auxiliary: AuxiliarySettings = AuxiliarySettings()
    compression: CompressionSettings = CompressionSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    budget: BudgetSettings = BudgetSettings()
    goals: GoalSettings = GoalSettings()
    worktrees: WorktreeSettings = WorktreeSettings()
    codex: CodexSettings = CodexSettings()
    web: WebSettings = WebSettings()
    browser: BrowserSettings = BrowserSettings()
    media: MediaSettings = MediaSettings()
    tools: ToolSettings = ToolSettings()
    schedules: ScheduleSettings = ScheduleSettings()
    boards: BoardSettings = BoardSettings()
    api: ApiSettings = ApiSettings()
    sandbox: SandboxSettings = SandboxSettings()
    learning: LearningSettings = LearningSettings()
    dashboard: DashboardSettings = DashboardSettings()
    gateway: GatewaySettings = GatewaySettings()
    webhooks: Annotated[
        dict[str, WebhookSettings],
        Meta(
            description="URLs that receive events, each under a name you choose: url, secret, events."
        ),
    ] = {}
    traces: TraceSettings = TraceSettings()
    sessions: SessionSettings = SessionSettings()
    store: StoreSettings = StoreSettings()
    aliases: Annotated[
        dict[str, str],
        Meta(
            description="Slash commands of your own, by name: another command or a message, such as `/review main`."
        ),
    ] = {}
    events: EventSettings = EventSettings()
    worker: WorkerSettings = WorkerSettings()
    notify: NotifySettings = NotifySettings()
    lsp: LanguageServerSettings = LanguageServerSettings()
    display: DisplaySettings = DisplaySettings()
    logging: LoggingSettings = LoggingSettings()

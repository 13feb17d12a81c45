"""The settings, as types. A new setting is a field here (or in `gateway`); a new section is a Struct and a field of
`Settings`.

Everything else follows from these types: validation, the environment variables, `hermes config` and the reference page.
A field's `Meta` holds its bounds and its one-line description; a section's docstring describes the section.
"""

# ruff: noqa: RUF012 - msgspec gives each instance an empty dict of its own

from typing import Annotated, Literal

from msgspec import Meta

from hermes.settings.gateway import ApiSettings, GatewaySettings, ScheduleSettings
from hermes.settings.section import AMOUNT, Section


class SessionSettings(Section, frozen=True):
    """What is saved of conversations."""

    write_json_snapshots: Annotated[
        bool,
        Meta(
            description="After each turn also write the session to `sessions/session_<id>.json`."
        ),
    ] = False


class StoreSettings(Section, frozen=True):
    """The session log, `state.db`."""

    busy_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Seconds to wait while another process has the database locked.",
        ),
    ] = 30.0


class DisplaySettings(Section, frozen=True):
    """What the terminal shows."""

    color: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Colour in the terminal; `auto` follows the terminal and NO_COLOR."
        ),
    ] = "auto"


class LoggingSettings(Section, frozen=True):
    """The log files in `logs/`."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least serious message that is logged."),
    ] = "info"


class ModelSettings(Section, frozen=True):
    """Which model answers, and how long Hermes waits for it."""

    provider: Annotated[
        str,
        Meta(
            description="A provider, one of `custom_providers`, or `auto`: by the keys that are set, else `embedded`."
        ),
    ] = "auto"
    default: Annotated[
        str, Meta(description="The model's name; empty for the provider's default.")
    ] = ""
    base_url: Annotated[
        str,
        Meta(
            description="Address of the service, mostly ending in /v1; empty for the provider's own."
        ),
    ] = ""
    api: Annotated[
        Literal["auto", "chat", "responses", "anthropic"],
        Meta(
            description="The wire format: chat completions, OpenAI Responses or Anthropic Messages."
        ),
    ] = "auto"
    fallback: Annotated[
        tuple[str, ...],
        Meta(
            description="Models to try in turn when this one fails: `provider:model`, or a model of the same provider."
        ),
    ] = ()
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="The longest reply, in tokens; null leaves it to the provider."
        ),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(description="Sampling temperature, where the model takes one."),
    ] = None
    reasoning_effort: Annotated[
        Literal["default", "none", "minimal", "low", "medium", "high", "xhigh", "max"],
        Meta(
            description="How much a reasoning model thinks; `default` leaves it to the provider."
        ),
    ] = "default"
    reasoning_summary: Annotated[
        Literal["off", "auto", "concise", "detailed"],
        Meta(
            description="Ask for a summary of hidden reasoning; not allowed for some accounts."
        ),
    ] = "off"
    connect_timeout: Annotated[
        float, Meta(gt=0, le=600, description="Seconds to wait for a connection.")
    ] = 10.0
    first_byte_timeout: Annotated[
        Annotated[float, Meta(gt=0, le=3600)] | None,
        Meta(
            description="Seconds to wait for an answer to begin; null for 60, or 300 on a local network."
        ),
    ] = None
    idle_timeout: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds of silence inside an answer.")
    ] = 300.0
    total_timeout: Annotated[
        float, Meta(gt=0, le=86400, description="Seconds for a whole answer.")
    ] = 1800.0
    max_attempts: Annotated[
        int,
        Meta(
            ge=1, le=10, description="How often one provider is tried for one answer."
        ),
    ] = 4
    max_retry_wait: Annotated[
        float,
        Meta(
            ge=0, le=3600, description="Seconds to wait between attempts, all together."
        ),
    ] = 60.0
    openai_runtime: Annotated[
        Literal["auto", "codex_app_server"],
        Meta(
            description="The engine that runs turns: Hermes, or the codex program (see `/codex-runtime`)."
        ),
    ] = "auto"


class CustomModel(Section, frozen=True):
    """Facts about one model of your own; missing ones are looked up or assumed. Prices are per
    million tokens.
    """

    window: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Tokens that fit into one request and its reply."),
    ] = None
    max_output: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The longest reply in tokens."),
    ] = None
    input_price: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Dollars per million tokens read."),
    ] = None
    output_price: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Dollars per million tokens written."),
    ] = None
    cache_read_price: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Dollars per million read from cache."),
    ] = None
    cache_write_price: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Dollars per million put into cache."),
    ] = None
    tools: Annotated[bool | None, Meta(description="It can call tools.")] = None
    images: Annotated[bool | None, Meta(description="It can see pictures.")] = None
    reasoning: Annotated[
        bool | None, Meta(description="It thinks before it answers.")
    ] = None


class CustomProvider(Section, frozen=True):
    """A service of your own, or facts about the models of a known one (then without `base_url`)."""

    base_url: Annotated[str, Meta(description="Its address.")] = ""
    key_env: Annotated[
        str,
        Meta(description="The variable that holds its key; empty if it needs none."),
    ] = ""
    api: Annotated[
        Literal["auto", "chat", "responses", "anthropic"],
        Meta(description="Its wire format."),
    ] = "auto"
    family: Annotated[
        str,
        Meta(
            description="The known provider it behaves like; empty to go by its address."
        ),
    ] = ""
    models: Annotated[
        dict[str, CustomModel], Meta(description="Facts about its models, by name.")
    ] = {}


class BudgetSettings(Section, frozen=True):
    """Hard caps: a call that could exceed one is not made. `$2.50` or `200k tokens`; empty for none."""

    per_turn: Annotated[
        str, Meta(pattern=AMOUNT, description="The most that one turn may use.")
    ] = ""
    per_session: Annotated[
        str, Meta(pattern=AMOUNT, description="The most that one session may use.")
    ] = ""
    per_day: Annotated[
        str,
        Meta(
            pattern=AMOUNT,
            description="The most that all sessions may use in a day (UTC).",
        ),
    ] = ""
    max_steps: Annotated[
        int,
        Meta(ge=1, le=10_000, description="How many times a turn may call the model."),
    ] = 500

    def caps(self) -> dict[str, str]:
        """The caps by scope."""
        return {"turn": self.per_turn, "session": self.per_session, "day": self.per_day}


class AuxiliarySettings(Section, frozen=True):
    """Models for auxiliary work: `provider:model`, a model of the main provider, `auto` for its
    cheapest suitable one, `main` for the model that answers, or `off`. If one fails, the model that
    answers takes over.
    """

    title: Annotated[
        str, Meta(description="Writes titles of sessions; `off` uses the first words.")
    ] = "off"
    summary: Annotated[
        str,
        Meta(
            description="Writes the summaries of long conversations; it can't be off."
        ),
    ] = "auto"
    review: Annotated[
        str,
        Meta(
            description="Reviews conversations to learn; `main` costs least, as its cache holds the conversation."
        ),
    ] = "main"
    vision: Annotated[
        str, Meta(description="Describes pictures to a model that reads only text.")
    ] = "auto"
    search: Annotated[
        str,
        Meta(
            description="Makes a digest of long web pages; `off` shows their beginning."
        ),
    ] = "off"


class CompressionSettings(Section, frozen=True):
    """When a long conversation is compressed, and what then stays verbatim."""

    threshold: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Share of the context window that may fill up before compression.",
        ),
    ] = 0.8
    protect_first_n: Annotated[
        int, Meta(ge=0, le=1000, description="Messages at the beginning.")
    ] = 3
    protect_last_n: Annotated[
        int, Meta(ge=1, le=10_000, description="Messages at the end.")
    ] = 20


class ApprovalSettings(Section, frozen=True):
    """Questions that wait for you. What runs without asking is in `policy.yaml`."""

    timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=604_800,
            description="Seconds until an unanswered question counts as no; 0 for never.",
        ),
    ] = 3_600.0


class McpToolSettings(Section, frozen=True):
    """Which tools of a server are offered: exact names, or patterns such as `read_*`."""

    include: Annotated[
        tuple[str, ...], Meta(description="Only these; empty for all.")
    ] = ()
    exclude: Annotated[tuple[str, ...], Meta(description="Not these.")] = ()


class McpServerSettings(Section, frozen=True):
    """A program that Hermes starts (`command`), or a service (`url`). `${NAME}` in `env` and `headers` is a secret."""

    command: Annotated[str, Meta(description="The program.")] = ""
    args: Annotated[tuple[str, ...], Meta(description="Its arguments.")] = ()
    env: Annotated[
        dict[str, str], Meta(description="Variables for it; it sees few others.")
    ] = {}
    cwd: Annotated[
        str, Meta(description="The folder it runs in; empty for your home folder.")
    ] = ""
    url: Annotated[
        str, Meta(description="The address of a service (streamable HTTP).")
    ] = ""
    headers: Annotated[
        dict[str, str], Meta(description="Sent with every request to the service.")
    ] = {}
    timeout: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds without output from a call.")
    ] = 60.0
    connect_timeout: Annotated[
        float, Meta(gt=0, le=600, description="Seconds for it to start.")
    ] = 10.0
    idle_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=86400,
            description="Seconds without a call after which it is stopped; 0 for never.",
        ),
    ] = 1800.0
    enabled: Annotated[
        bool, Meta(description="Off: it stays configured but is not used.")
    ] = True
    trusted: Annotated[
        bool,
        Meta(
            description="Trust its tool descriptions: tools that only read run without asking."
        ),
    ] = False
    tools: McpToolSettings = McpToolSettings()


class CodexSettings(Section, frozen=True):
    """The codex program as an engine; used when `model.openai_runtime` is `codex_app_server`. Times are in seconds."""

    binary: Annotated[
        str, Meta(description="The codex program; empty to look for it on PATH.")
    ] = ""
    home: Annotated[
        str,
        Meta(
            description="A CODEX_HOME of its own; empty shares your codex login and settings."
        ),
    ] = ""
    approval_policy: Annotated[
        Literal["on-request", "untrusted"],
        Meta(
            description="When codex asks: to leave its sandbox, or before every command."
        ),
    ] = "on-request"
    startup_timeout: Annotated[
        float, Meta(gt=0, le=600, description="For codex to start.")
    ] = 10.0
    progress_timeout: Annotated[
        float,
        Meta(
            gt=0,
            le=86400,
            description="Without any progress, while no command runs and nobody is asked.",
        ),
    ] = 600.0
    tool_silence_timeout: Annotated[
        float, Meta(gt=0, le=86400, description="Of silence after a command ended.")
    ] = 300.0
    turn_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=604_800,
            description="For a whole turn, not counting the time you are asked; 0 for any.",
        ),
    ] = 14_400.0
    idle_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=604_800,
            description="Unused, after which its process is ended until needed; 0 for never.",
        ),
    ] = 900.0


class WebSettings(Section, frozen=True):
    """Fetching and searching the web. Only public addresses are reached, whatever a page says."""

    search_backend: Annotated[
        Literal["auto", "brave", "tavily", "exa", "serper", "searxng", "duckduckgo"],
        Meta(
            description="The search service; `auto` uses one with a key (BRAVE_API_KEY, ...), else DuckDuckGo."
        ),
    ] = "auto"
    searxng_url: Annotated[
        str, Meta(description="Address of your own SearXNG, which may be private.")
    ] = ""
    allow_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Private hosts that may be reached too, by exact name: `wiki.lan`, `10.0.0.7:9000`."
        ),
    ] = ()
    proxy: Annotated[
        str,
        Meta(
            description="Address of a proxy; `environment` takes HTTPS_PROXY and its like; empty for none."
        ),
    ] = ""
    timeout: Annotated[
        float,
        Meta(gt=0, le=600, description="Seconds for one page, redirects included."),
    ] = 30.0
    max_bytes: Annotated[
        int,
        Meta(
            ge=1000,
            le=200_000_000,
            description="The most that is read of one page, decompressed.",
        ),
    ] = 10_000_000


class BrowserSettings(Section, frozen=True):
    """A browser for pages that need scripts, when `tools.enabled` names it. It reaches only what `web` may reach."""

    executable: Annotated[
        str, Meta(description="A Chromium or Chrome; empty to look for one.")
    ] = ""
    profile: Annotated[
        str,
        Meta(
            description="A folder that keeps its logins; empty for a fresh profile in each session."
        ),
    ] = ""
    headless: Annotated[bool, Meta(description="Without a window.")] = True
    timeout: Annotated[
        float,
        Meta(gt=0, le=600, description="Seconds for one step, such as opening a page."),
    ] = 30.0
    idle_timeout: Annotated[
        float, Meta(gt=0, le=86400, description="Seconds unused until it is closed.")
    ] = 900.0


class LearningSettings(Section, frozen=True):
    """What Hermes learns from conversations: memory and skills, see `hermes memory` and `hermes skills`."""

    mode: Annotated[
        Literal["propose", "auto", "off"],
        Meta(
            description="What a review does: propose changes, make them, or nothing. Your own skills only get proposals."
        ),
    ] = "propose"
    turns: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Turns after which a conversation is reviewed.",
        ),
    ] = 10
    iterations: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Or steps with tools, without using a skill, after which it is reviewed.",
        ),
    ] = 10
    budget: Annotated[
        str,
        Meta(
            pattern=AMOUNT,
            description="The most that one review may use; empty for any.",
        ),
    ] = "300k tokens"
    memory_limit: Annotated[
        int, Meta(ge=500, le=100_000, description="Characters that MEMORY.md may have.")
    ] = 6_000
    user_limit: Annotated[
        int, Meta(ge=500, le=100_000, description="Characters that USER.md may have.")
    ] = 3_000
    memory_url: Annotated[
        str,
        Meta(
            pattern=r"^$|^https?://[^\s/?#]+[^\s?#]*$",
            description="A memory service beside the files: mem0's REST API; its key is the secret MEMORY_API_KEY.",
        ),
    ] = ""
    memory_user: Annotated[
        str,
        Meta(
            min_length=1, description="The user of that service whose notes are used."
        ),
    ] = "hermes"
    retire_after: Annotated[
        int,
        Meta(
            ge=0,
            le=3_650,
            description="Days unused, after which a skill Hermes wrote is archived; 0 for never.",
        ),
    ] = 90


class DashboardSettings(Section, frozen=True):
    """`hermes dashboard`, Hermes in a browser. Other machines reach it only with a password (or tokens) and TLS."""

    host: Annotated[str, Meta(description="The address it listens on.")] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="Its port; 0 for any that is free.")
    ] = 9119
    public_urls: Annotated[
        tuple[str, ...],
        Meta(
            description="Where it is reached through a reverse proxy or by another name: `https://hermes.example.org`."
        ),
    ] = ()
    behind_proxy: Annotated[
        bool, Meta(description="A reverse proxy in front of it handles TLS.")
    ] = False
    tls_cert: Annotated[str, Meta(description="File with its certificate.")] = ""
    tls_key: Annotated[str, Meta(description="File with the certificate's key.")] = ""
    token_only: Annotated[
        bool,
        Meta(
            description="Let other machines in by tokens and one-time links alone, without a password."
        ),
    ] = False
    shell: Annotated[
        str, Meta(description="The shell of its terminals; empty for your own.")
    ] = ""


class ToolSettings(Section, frozen=True):
    """Which tools the model is offered, see `hermes tools`. An entry is a toolset, a tool or a pattern like `mcp.*`."""

    enabled: Annotated[
        tuple[str, ...],
        Meta(description="Offered in addition to what a surface offers by itself."),
    ] = ()
    disabled: Annotated[
        tuple[str, ...], Meta(description="Never offered, whatever else names it.")
    ] = ()


class SandboxSettings(Section, frozen=True):
    """What confines the commands of the model."""

    hide_secrets: Annotated[
        bool,
        Meta(
            description="Hide a project's own .env files and keys from commands, unless git tracks them or you let a"
            " command reach the machine."
        ),
    ] = True


class WebhookSettings(Section, frozen=True):
    """An address that receives events, each in a signed request. Redirects are not followed."""

    url: Annotated[
        str, Meta(pattern=r"^https?://", description="The address; it may be private.")
    ]
    secret: Annotated[
        str,
        Meta(description="The variable that holds the key requests are signed with."),
    ]
    events: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(description="Topics, with `*` and `**`: `agent.turn.*`."),
    ] = ("agent.turn.ended",)
    contents: Annotated[
        bool, Meta(description="Also send fields that may hold private text.")
    ] = False
    timeout: Annotated[
        float, Meta(gt=0, le=120, description="Seconds for one request.")
    ] = 10.0


class TraceSettings(Section, frozen=True):
    """OpenTelemetry traces: a trace for each turn, with model calls and tools. Needs the extra `otel`."""

    endpoint: Annotated[
        str,
        Meta(
            description="Where spans go (OTLP over HTTP): `http://localhost:4318/v1/traces`; empty for nowhere."
        ),
    ] = ""
    headers: Annotated[
        dict[str, str],
        Meta(description="Sent with each request; `${NAME}` is a secret."),
    ] = {}
    service_name: Annotated[
        str, Meta(min_length=1, description="The name of this service in traces.")
    ] = "hermes"
    contents: Annotated[
        bool,
        Meta(
            description="Also send what was said, and arguments and results of tools."
        ),
    ] = False


class Settings(Section, frozen=True):
    """All settings of one process."""

    model: ModelSettings = ModelSettings()
    custom_providers: Annotated[
        dict[str, CustomProvider],
        Meta(
            description="Services by a name of your choice: base_url, key_env, api, models."
        ),
    ] = {}
    mcp_servers: Annotated[
        dict[str, McpServerSettings],
        Meta(
            description="MCP servers by a name of your choice: command, args, env, or url, headers."
        ),
    ] = {}
    auxiliary: AuxiliarySettings = AuxiliarySettings()
    compression: CompressionSettings = CompressionSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    budget: BudgetSettings = BudgetSettings()
    codex: CodexSettings = CodexSettings()
    web: WebSettings = WebSettings()
    browser: BrowserSettings = BrowserSettings()
    tools: ToolSettings = ToolSettings()
    schedules: ScheduleSettings = ScheduleSettings()
    api: ApiSettings = ApiSettings()
    sandbox: SandboxSettings = SandboxSettings()
    learning: LearningSettings = LearningSettings()
    dashboard: DashboardSettings = DashboardSettings()
    gateway: GatewaySettings = GatewaySettings()
    webhooks: Annotated[
        dict[str, WebhookSettings],
        Meta(
            description="Addresses that receive events, by a name of your choice: url, secret, events."
        ),
    ] = {}
    traces: TraceSettings = TraceSettings()
    sessions: SessionSettings = SessionSettings()
    store: StoreSettings = StoreSettings()
    display: DisplaySettings = DisplaySettings()
    logging: LoggingSettings = LoggingSettings()

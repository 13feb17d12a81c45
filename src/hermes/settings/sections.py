"""The settings, as types. A new setting is a field here; a new section is a Struct and a field of `Settings`.

Everything else follows from these types: validation, the environment variables, `hermes config` and the reference page.
A field's `Meta` holds its bounds and its one-line description; a section's docstring describes the section.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """What every section is: frozen, and closed to keys that don't exist."""


class Sessions(Section, frozen=True):
    """What is kept of conversations."""

    write_json_snapshots: Annotated[
        bool, Meta(description="After each turn also write the session to `sessions/session_<id>.json`.")
    ] = False


class Store(Section, frozen=True):
    """The session log, `state.db`."""

    busy_timeout: Annotated[
        float, Meta(ge=0, le=3600, description="Seconds to wait while another process has the database locked.")
    ] = 30.0


class Display(Section, frozen=True):
    """What the terminal shows."""

    color: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="Colour in the terminal; `auto` follows the terminal and NO_COLOR."),
    ] = "auto"


class Logging(Section, frozen=True):
    """The log files in `logs/`."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="The least serious message that is logged.")
    ] = "info"


class Model(Section, frozen=True):
    """Which model answers, and how long Hermes waits for it."""

    provider: Annotated[
        str,
        Meta(
            description="A provider, one of `custom_providers`, or `auto`: by the keys that are set, else `embedded`."
        ),
    ] = "auto"
    default: Annotated[str, Meta(description="The model's name; empty for the provider's usual one.")] = ""
    base_url: Annotated[
        str, Meta(description="Address of the service, mostly ending in /v1; empty for the provider's own.")
    ] = ""
    api: Annotated[
        Literal["auto", "chat", "responses", "anthropic"],
        Meta(description="The wire format: chat completions, OpenAI Responses or Anthropic Messages."),
    ] = "auto"
    fallback: Annotated[
        tuple[str, ...],
        Meta(
            description="Models to try in turn when this one fails: `provider:model`, or a model of the same provider."
        ),
    ] = ()
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The longest reply, in tokens; null leaves it to the provider."),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None, Meta(description="Sampling temperature, where the model takes one.")
    ] = None
    reasoning_effort: Annotated[
        Literal["default", "none", "minimal", "low", "medium", "high", "xhigh", "max"],
        Meta(description="How much a reasoning model thinks; `default` leaves it to the provider."),
    ] = "default"
    reasoning_summary: Annotated[
        Literal["off", "auto", "concise", "detailed"],
        Meta(description="Ask for a summary of hidden thinking; some accounts may not."),
    ] = "off"
    connect_timeout: Annotated[float, Meta(gt=0, le=600, description="Seconds to wait for a connection.")] = 10.0
    first_byte_timeout: Annotated[
        Annotated[float, Meta(gt=0, le=3600)] | None,
        Meta(description="Seconds to wait for an answer to begin; null for 60, or 300 on a local network."),
    ] = None
    idle_timeout: Annotated[float, Meta(gt=0, le=3600, description="Seconds of silence inside an answer.")] = 300.0
    total_timeout: Annotated[float, Meta(gt=0, le=86400, description="Seconds for a whole answer.")] = 1800.0
    max_attempts: Annotated[int, Meta(ge=1, le=10, description="How often one provider is tried for one answer.")] = 4
    max_retry_wait: Annotated[
        float, Meta(ge=0, le=3600, description="Seconds to wait between attempts, all together.")
    ] = 60.0


class CustomModel(Section, frozen=True):
    """Facts about one model of your own; what is not given is looked up or assumed. Prices are per million tokens."""

    window: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Tokens that fit into one request and its reply.")
    ] = None
    max_output: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="The longest reply in tokens.")] = None
    input_price: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Dollars per million tokens read.")
    ] = None
    output_price: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Dollars per million tokens written.")
    ] = None
    cache_read_price: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Dollars per million read from cache.")
    ] = None
    cache_write_price: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Dollars per million put into cache.")
    ] = None
    tools: Annotated[bool | None, Meta(description="It can call tools.")] = None
    images: Annotated[bool | None, Meta(description="It can see pictures.")] = None
    reasoning: Annotated[bool | None, Meta(description="It thinks before it answers.")] = None


class CustomProvider(Section, frozen=True):
    """A service of your own, or facts about the models of a known one (then without `base_url`)."""

    base_url: Annotated[str, Meta(description="Its address.")] = ""
    key_env: Annotated[str, Meta(description="The variable that holds its key; empty if it needs none.")] = ""
    api: Annotated[Literal["auto", "chat", "responses", "anthropic"], Meta(description="Its wire format.")] = "auto"
    family: Annotated[str, Meta(description="The known provider it behaves like; empty to go by its address.")] = ""
    models: Annotated[dict[str, CustomModel], Meta(description="Facts about its models, by name.")] = {}


AMOUNT = r"^$|^\$\s*\d+(\.\d+)?$|^\d+(\.\d+)?\s*([kKmM]?\s*(tokens?)?|usd|dollars?)$"


class Budget(Section, frozen=True):
    """Hard caps: a call that could pass one is not made. `$2.50` or `200k tokens`; empty for none."""

    per_turn: Annotated[str, Meta(pattern=AMOUNT, description="The most that one turn may use.")] = ""
    per_session: Annotated[str, Meta(pattern=AMOUNT, description="The most that one session may use.")] = ""
    per_day: Annotated[str, Meta(pattern=AMOUNT, description="The most that all sessions may use in a day (UTC).")] = ""
    max_steps: Annotated[int, Meta(ge=1, le=10_000, description="How often a turn may ask the model.")] = 500

    def caps(self) -> dict[str, str]:
        """The caps by scope."""
        return {"turn": self.per_turn, "session": self.per_session, "day": self.per_day}


class Auxiliary(Section, frozen=True):
    """Models for work on the side: `provider:model`, or a model of the main provider; empty for none."""

    title: Annotated[str, Meta(description="Finds titles for sessions; empty takes the first words.")] = ""


class Settings(Section, frozen=True):
    """All settings of one process."""

    model: Model = Model()
    custom_providers: Annotated[
        dict[str, CustomProvider],
        Meta(description="Services by a name of your choice: base_url, key_env, api, models."),
    ] = {}
    auxiliary: Auxiliary = Auxiliary()
    budget: Budget = Budget()
    sessions: Sessions = Sessions()
    store: Store = Store()
    display: Display = Display()
    logging: Logging = Logging()

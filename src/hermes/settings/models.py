"""Settings of models: the default, own providers, local models, budgets, auxiliary models and compression."""

# ruff: noqa: RUF012 - msgspec gives each instance an empty dict of its own

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.settings.section import AMOUNT, Section


class ModelSettings(Section, frozen=True):
    """Which model answers, and how long Hermes waits for it."""

    provider: Annotated[
        str,
        Meta(
            description="A provider, one of `custom_providers`, or `auto`: the first provider with a key, else `embedded`."
        ),
    ] = "auto"
    default: Annotated[
        str,
        Meta(description="The model's name; empty for the provider's default model."),
    ] = ""
    base_url: Annotated[
        str,
        Meta(
            description="Base URL of the service, usually ending in /v1; empty for the provider's own."
        ),
    ] = ""
    api: Annotated[
        Literal["auto", "chat", "responses", "anthropic"],
        Meta(
            description="The wire format: Chat Completions, OpenAI Responses or Anthropic Messages; `auto` chooses by provider."
        ),
    ] = "auto"
    fallback: Annotated[
        tuple[str, ...],
        Meta(
            description="Models to try, in order, if this one fails: `provider:model`, or a model of the same provider."
        ),
    ] = ()
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="The longest reply, in tokens; null for the provider's default."
        ),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(
            description="Sampling temperature, if the model accepts one; null for the provider's default."
        ),
    ] = None
    reasoning_effort: Annotated[
        Literal["default", "none", "minimal", "low", "medium", "high", "xhigh", "max"],
        Meta(
            description="How much a reasoning model thinks; `default` is the provider's default."
        ),
    ] = "default"
    reasoning_summary: Annotated[
        Literal["off", "auto", "concise", "detailed"],
        Meta(
            description="Ask the provider for a summary of hidden reasoning; some accounts are not allowed to."
        ),
    ] = "off"
    connect_timeout: Annotated[
        float, Meta(gt=0, le=600, description="Seconds to wait for a connection.")
    ] = 10.0
    first_byte_timeout: Annotated[
        Annotated[float, Meta(gt=0, le=3600)] | None,
        Meta(
            description="Seconds to wait for the first byte of a reply; null for 60, or 300 on a local network."
        ),
    ] = None
    idle_timeout: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds of silence after which Hermes gives up on a reply.",
        ),
    ] = 300.0
    total_timeout: Annotated[
        float, Meta(gt=0, le=86400, description="Seconds a whole reply may take.")
    ] = 1800.0
    max_attempts: Annotated[
        int,
        Meta(ge=1, le=10, description="Attempts per provider for one reply."),
    ] = 4
    max_retry_wait: Annotated[
        float,
        Meta(ge=0, le=3600, description="Total seconds to wait between attempts."),
    ] = 60.0
    openai_runtime: Annotated[
        Literal["auto", "codex_app_server"],
        Meta(
            description="What runs your turns: Hermes (`auto`) or the codex program (`codex_app_server`); see `hermes codex`."
        ),
    ] = "auto"


class CustomModel(Section, frozen=True):
    """Facts about one of your models; Hermes looks up or assumes the rest. Prices are per million tokens."""

    window: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="The context window: tokens that fit into one request and its reply."
        ),
    ] = None
    max_output: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The longest reply, in tokens."),
    ] = None
    input_price: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Dollars per million input tokens."),
    ] = None
    output_price: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Dollars per million output tokens."),
    ] = None
    cache_read_price: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Dollars per million tokens read from the cache."),
    ] = None
    cache_write_price: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Dollars per million tokens written to the cache."),
    ] = None
    tools: Annotated[bool | None, Meta(description="The model can call tools.")] = None
    images: Annotated[bool | None, Meta(description="The model accepts images.")] = None
    reasoning: Annotated[
        bool | None, Meta(description="The model reasons before it answers.")
    ] = None


class CustomProvider(Section, frozen=True):
    """A model service of your own; without `base_url`, facts about the models of a known provider."""

    base_url: Annotated[str, Meta(description="Base URL of the service.")] = ""
    key_env: Annotated[
        str,
        Meta(
            description="Name of the variable that holds its API key; empty if it needs none."
        ),
    ] = ""
    api: Annotated[
        Literal["auto", "chat", "responses", "anthropic"],
        Meta(description="Its wire format."),
    ] = "auto"
    family: Annotated[
        str,
        Meta(
            description="The known provider it behaves like; empty to decide by its URL."
        ),
    ] = ""
    models: Annotated[
        dict[str, CustomModel], Meta(description="Facts about its models, by name.")
    ] = {}
    headers: Annotated[
        dict[str, str],
        Meta(
            description="Headers to add to every request, such as `X-BILLING-INVOKE-ORIGIN` for NVIDIA NIM. Never a key."
        ),
    ] = {}


class LocalModelSettings(Section, frozen=True):
    """A local model of your own: a GGUF file that is downloaded once and accepted only with this size and hash."""

    sources: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="Addresses in the order to try, or paths at the model hub: `OWNER/NAME/resolve/main/FILE.gguf`.",
        ),
    ]
    size: Annotated[int, Meta(gt=0, description="The size of the file in bytes.")]
    sha256: Annotated[
        str,
        Meta(pattern="^[0-9A-Fa-f]{64}$", description="The SHA-256 of the file."),
    ]
    description: Annotated[str, Meta(description="What it is, for people.")] = ""
    licence: Annotated[str, Meta(description="Its licence.")] = ""
    context_tokens: Annotated[
        int, Meta(ge=2048, description="The context window to run it with, in tokens.")
    ] = 4096


class BudgetSettings(Section, frozen=True):
    """Hard caps: Hermes doesn't make a call that could exceed one. `$2.50` or `200k tokens`; empty for none."""

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
        int, Meta(ge=1, le=10_000, description="Model calls that one turn may make.")
    ] = 500

    def caps(self) -> dict[str, str]:
        """The caps by scope."""
        return {"turn": self.per_turn, "session": self.per_session, "day": self.per_day}


class AuxiliarySettings(Section, frozen=True):
    """Models for background work: `provider:model`, a model of the main provider, `auto` for its cheapest suitable model,
    `main` for the model that answers you, or `off`. If one fails, the main model does the work."""

    title: Annotated[
        str, Meta(description="Gives sessions a title; `off` uses the first words.")
    ] = "off"
    summary: Annotated[
        str,
        Meta(description="Summarizes long conversations; can't be `off`."),
    ] = "auto"
    review: Annotated[
        str,
        Meta(
            description="Reviews conversations to learn from them; `main` is cheapest, as its cache holds the conversation."
        ),
    ] = "main"
    vision: Annotated[
        str, Meta(description="Describes images to a model that reads only text.")
    ] = "auto"
    search: Annotated[
        str,
        Meta(description="Summarizes long web pages; `off` shows their beginning."),
    ] = "off"
    judge: Annotated[
        str,
        Meta(description="Judges whether a goal is reached; can't be `off`."),
    ] = "main"
    cards: Annotated[
        str,
        Meta(description="Turns rough cards of boards into specs or smaller cards."),
    ] = "main"


class CompressionSettings(Section, frozen=True):
    """When Hermes compresses a long conversation, and what it keeps word for word."""

    threshold: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Fraction of the model's context window that may fill up before Hermes compresses the conversation.",
        ),
    ] = 0.8
    protect_first_n: Annotated[
        int,
        Meta(
            ge=0,
            le=1000,
            description="How many messages at the beginning to keep word for word.",
        ),
    ] = 3
    protect_last_n: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="How many messages at the end to keep word for word.",
        ),
    ] = 20
    engine: Annotated[
        str,
        Meta(
            max_length=100,
            description="Plugin context engine that compresses the conversation. If empty, Hermes writes a summary.",
        ),
    ] = ""


class SignInSettings(Section, frozen=True):
    """How to sign in with one provider. Everything empty is as usual."""

    client_id: Annotated[
        str,
        Meta(
            max_length=200,
            description="The OAuth client to sign in as, if you have registered one of your own.",
        ),
    ] = ""
    issuer: Annotated[
        str,
        Meta(
            description="Address of the identity provider, such as `https://auth.example.org`."
        ),
    ] = ""
    base_url: Annotated[
        str, Meta(description="Address of the service that the sign-in is good for.")
    ] = ""

"""`build_model` makes a model from settings and secrets. Nothing is contacted before its first call."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from hermes.providers.adapter import Codec, ModelAdapter
from hermes.providers.credentials import CredentialRing
from hermes.providers.endpoint import ModelEndpoint, Options
from hermes.providers.http_client import Http, HttpTimeouts
from hermes.providers.provider_table import INSPECTED_FAMILIES, is_local
from hermes.providers.retry import Candidate, Resilient, RetryLimits
from hermes.providers.routing import (
    ModelRoute,
    chosen_route,
    credentials_of,
    route_facts,
    route_for,
)
from hermes.settings import Secrets, Settings
from hermes.settings.load import environment

_LOCAL_FIRST_BYTE_TIMEOUT_S = 300.0  # a local server may first have to load the model
_REMOTE_FIRST_BYTE_TIMEOUT_S = 60.0


class Timing(msgspec.Struct, frozen=True):
    """Time and chance, so that tests decide them."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    chance: Callable[[], float] = random.random


def build_model(
    settings: Settings,
    secrets: Secrets,
    *,
    model: str = "",
    http: Http | None = None,
    timing: Timing | None = None,
) -> Resilient:
    """Builds the model of the settings, with its fallbacks. `model` (`name` or `provider:name`) overrides them."""
    http = http or Http(environment())
    timing = timing or Timing()
    first = chosen_route(settings, secrets, model)
    routes = [
        first,
        *(
            route_for(settings, secrets, text, first)
            for text in settings.model.fallback
        ),
    ]
    waiting = settings.model.max_retry_wait
    limits = RetryLimits(
        attempts=settings.model.max_attempts,
        waiting=waiting,
        total=max(90.0, waiting + 30.0),
    )
    candidates = tuple(_candidate(route, settings, secrets, http) for route in routes)
    return Resilient(
        candidates,
        limits,
        clock=timing.clock,
        sleep=timing.sleep,
        chance=timing.chance,
    )


def build_helper(route: ModelRoute, settings: Settings, secrets: Secrets) -> Resilient:
    """Builds one model without fallbacks and with few retries, for tasks that have another model to fall back on.

    The main model's reasoning and sampling options are left out, because this one may not support them.
    """
    chosen = settings.model
    limits = RetryLimits(
        attempts=min(2, chosen.max_attempts),
        waiting=min(10.0, chosen.max_retry_wait),
        total=45.0,
    )
    plain = msgspec.structs.replace(
        chosen,
        reasoning_effort="default",
        reasoning_summary="off",
        temperature=None,
        max_output_tokens=None,
    )
    settings = msgspec.structs.replace(settings, model=plain)
    return Resilient(
        (_candidate(route, settings, secrets, Http(environment())),), limits
    )


def _candidate(
    route: ModelRoute, settings: Settings, secrets: Secrets, http: Http
) -> Candidate:
    if route.embedded:
        from hermes.providers.local_model import LocalModel

        return Candidate(LocalModel(route.model, settings.local_models))
    keys = CredentialRing(credentials_of(route, settings, secrets))
    return Candidate(build_adapter(route, settings, http), keys)


def build_adapter(route: ModelRoute, settings: Settings, http: Http) -> ModelAdapter:
    """Builds the adapter for a route."""
    chosen = settings.model
    endpoint = ModelEndpoint(
        provider=route.provider,
        base_url=route.base_url,
        model=route.model,
        quirks=route.quirks,
        facts=route_facts(route),
        key_variable=route.key_variable,
        custom=route.custom,
        headers=route.headers,
        options=Options(
            max_output_tokens=chosen.max_output_tokens,
            temperature=chosen.temperature,
            reasoning_effort=""
            if chosen.reasoning_effort == "default"
            else chosen.reasoning_effort,
            reasoning_summary=""
            if chosen.reasoning_summary == "off"
            else chosen.reasoning_summary,
        ),
    )
    usual = (
        _LOCAL_FIRST_BYTE_TIMEOUT_S
        if is_local(route.base_url)
        else _REMOTE_FIRST_BYTE_TIMEOUT_S
    )
    deadlines = HttpTimeouts(
        connect=chosen.connect_timeout,
        first_byte=chosen.first_byte_timeout or usual,
        idle=chosen.idle_timeout,
        total=chosen.total_timeout,
    )
    is_inspected = route.quirks.family in INSPECTED_FAMILIES and route.api == "chat"
    if is_inspected and is_local(route.base_url):
        return _local_server(endpoint, http, deadlines)
    return ModelAdapter(http, endpoint, _codec(route), deadlines)


def _local_server(
    endpoint: ModelEndpoint, http: Http, deadlines: HttpTimeouts
) -> ModelAdapter:
    """Builds the adapter for a server of the user's own."""
    from hermes.providers.chat_completions import ChatCompletions
    from hermes.providers.embedded.adapter_choice import AdapterMemory
    from hermes.providers.local_server_adapter import LocalServerAdapter
    from hermes.settings.home import models_folder

    memory = AdapterMemory(models_folder(environment(), Path.home()))
    return LocalServerAdapter(http, endpoint, ChatCompletions(), deadlines, memory)


def _codec(route: ModelRoute) -> Codec:
    """Returns the codec of a route. Each format is imported when it is used."""
    if route.api == "anthropic":
        from hermes.providers.anthropic import AnthropicMessages

        return AnthropicMessages()
    if route.api == "responses":
        from hermes.providers.responses import Responses

        return Responses()
    from hermes.providers.chat_completions import ChatCompletions

    return ChatCompletions()

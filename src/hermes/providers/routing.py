"""Which service answers: from the settings, and from the keys and addresses that are set."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hermes.errors import SettingsError
from hermes.providers import quirks
from hermes.providers.catalogue import ModelFacts, Prices, facts_of
from hermes.providers.quirks import FAMILIES, Api, Quirks, is_local
from hermes.settings import Secrets, Settings
from hermes.settings.sections import CustomModel

EMBEDDED = "embedded"


class Route(Struct, frozen=True, kw_only=True):
    """One service and the model to ask there. Its keys stay in the secrets, under `key_variable`."""

    provider: str
    model: str
    base_url: str = ""
    api: Api = "chat"
    quirks: Quirks = quirks.GENERIC
    key_variable: str = ""
    custom: Mapping[str, CustomModel] = {}

    @property
    def embedded(self) -> bool:
        return self.provider == EMBEDDED


def first_route(settings: Settings, secrets: Secrets) -> Route:
    """The service that answers first."""
    chosen = settings.model
    provider = chosen.provider.strip()
    if provider in {"", "auto"}:
        return _automatic(settings, secrets)
    return route_to(settings, secrets, provider, chosen.default, chosen.base_url)


def chosen_route(settings: Settings, secrets: Secrets, model: str = "") -> Route:
    """The service that answers first; `model` (`name` or `provider:name`) wins over the settings."""
    first = first_route(settings, secrets)
    return route_for(settings, secrets, model, first) if model else first


def route_for(settings: Settings, secrets: Secrets, text: str, origin: Route) -> Route:
    """The route for `provider:model`, or for a model of the provider of `origin`."""
    provider, colon, model = text.partition(":")
    if colon and _known(settings, provider):
        return route_to(settings, secrets, provider, model)
    if text == EMBEDDED or (text and _known(settings, text)):
        return route_to(settings, secrets, text, "")
    if origin.embedded:
        return route_to(settings, secrets, EMBEDDED, text)
    return Route(
        provider=origin.provider,
        model=text,
        base_url=origin.base_url,
        api=origin.api,
        quirks=origin.quirks,
        key_variable=origin.key_variable,
        custom=origin.custom,
    )


def route_to(
    settings: Settings, secrets: Secrets, provider: str, model: str, base_url: str = ""
) -> Route:
    """The route to a provider by its name; SettingsError if nobody goes by it."""
    if provider == EMBEDDED:
        return Route(provider=EMBEDDED, model=model)
    custom = settings.custom_providers.get(provider)
    family = quirks.family((custom.family if custom else "") or provider)
    if family is None and custom is None and not base_url:
        raise _unknown(settings, provider)
    own = (custom.base_url if custom else "") or base_url
    if family is None or (own and family.family in {"openai", "generic"}):
        family = quirks.family_of(
            own
        )  # another service at OpenAI's name behaves as its address says
    variable = custom.key_env if custom else family.key_variable
    address = (
        own
        or (secrets.get(address_variable(variable)) if variable else None)
        or family.base_url
    )
    if not own and family.family == "openai":
        family = quirks.family_of(address)
    if not address:
        hint = f"Set custom_providers.{provider}.base_url, or model.base_url."
        raise SettingsError(f"The provider {provider} has no address.", hint=hint)
    api = settings.model.api if custom is None or custom.api == "auto" else custom.api
    return Route(
        provider=provider,
        model=model or family.default_model,
        base_url=_checked(address),
        api=family.api if api == "auto" else api,
        quirks=family,
        key_variable=variable,
        custom=custom.models if custom else {},
    )


def _automatic(settings: Settings, secrets: Secrets) -> Route:
    chosen = settings.model
    address = chosen.base_url or secrets.get("OPENAI_BASE_URL") or ""
    if address:
        own = (
            name
            for name, one in settings.custom_providers.items()
            if one.base_url == address
        )
        name = next(own, "") or _name_of(address, settings, secrets)
        return route_to(settings, secrets, name, chosen.default, address)
    wanted = facts_of(chosen.default).family if chosen.default else ""
    with_key = [
        family
        for family in FAMILIES
        if family.needs_key and secrets.get(family.key_variable)
    ]
    for family in sorted(with_key, key=lambda family: family.family != wanted):
        return route_to(settings, secrets, family.family, chosen.default)
    return Route(provider=EMBEDDED, model=chosen.default)


def _name_of(address: str, settings: Settings, secrets: Secrets) -> str:
    """Who is behind an address that is nobody's own: by its host, or Anthropic's stand-in if only its key is there.

    A key goes only where it was meant to go. `model.base_url` says where; OPENAI_BASE_URL is about OpenAI's key alone.
    """
    family = quirks.family_of(address)
    if family is not quirks.GENERIC:
        return family.family
    keys = {family.family for family in FAMILIES if secrets.get(family.key_variable)}
    speaks = settings.model.api in {"auto", "anthropic"}
    return (
        "anthropic"
        if settings.model.base_url and speaks and keys == {"anthropic"}
        else "openai-compatible"
    )


def keys_of(route: Route, secrets: Secrets) -> tuple[str, ...]:
    """Every key for a route: separated by commas, or in NAME_2, NAME_3 and so on."""
    if not route.key_variable:
        return ()
    names = [
        route.key_variable,
        *(f"{route.key_variable}_{number}" for number in range(2, 10)),
    ]
    found = [
        key.strip() for name in names for key in (secrets.get(name) or "").split(",")
    ]
    keys = tuple(dict.fromkeys(key for key in found if key))
    if not keys and (
        route.quirks.needs_key
        or route.key_variable not in {"", route.quirks.key_variable}
    ):
        secrets.require(route.key_variable)
    for key in keys:
        if not key.isascii() or not key.isprintable():
            hint = f"Store it again with: hermes config set {route.key_variable}"
            raise SettingsError(
                f"{route.key_variable} holds characters that no key has.", hint=hint
            )
    return keys


def address_variable(key_variable: str) -> str:
    """The variable of the address that belongs to a key's."""
    return key_variable.removesuffix("_API_KEY").removesuffix("_KEY") + "_BASE_URL"


def _known(settings: Settings, provider: str) -> bool:
    return (
        provider == EMBEDDED
        or provider in settings.custom_providers
        or quirks.family(provider) is not None
    )


def _checked(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        hint = "It looks like https://example.org/v1."
        raise SettingsError(
            "The address of the model service is not one that can be called.", hint=hint
        )
    return address.rstrip("/")


def _unknown(settings: Settings, provider: str) -> SettingsError:
    import difflib

    names = [
        EMBEDDED,
        *(family.family for family in FAMILIES),
        *settings.custom_providers,
    ]
    near = difflib.get_close_matches(provider, names, 1, 0.6)
    hint = (
        f"Did you mean {near[0]}?"
        if near
        else f"There are: {', '.join(names)}; or set custom_providers.{provider}."
    )
    return SettingsError(
        f"model.provider: there is no provider called {provider}.", hint=hint
    )


def route_facts(route: Route) -> ModelFacts:
    """What is known about a route's model. What runs on one's own machine costs nothing."""
    facts = facts_of(route.model, route.custom)
    if (
        facts.prices is None
        and route.quirks.family in {"ollama", "lmstudio"}
        and is_local(route.base_url)
    ):
        return msgspec.structs.replace(facts, prices=Prices(0.0, 0.0))
    return facts

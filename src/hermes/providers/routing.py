"""Chooses the service that answers, from the settings and from the keys and addresses that are set."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hermes.errors import SettingsError
from hermes.providers import provider_table
from hermes.providers.catalogue import ModelFacts, Prices, facts_of
from hermes.providers.provider_table import FAMILIES, Api, Quirks, is_local
from hermes.settings import Secrets, Settings
from hermes.settings.sections import CustomModel, CustomProvider

EMBEDDED = "embedded"


class ModelRoute(Struct, frozen=True, kw_only=True):
    """One service and the model to use there. Its keys stay in the secrets, under `key_variable`."""

    provider: str
    model: str
    base_url: str = ""
    api: Api = "chat"
    quirks: Quirks = provider_table.GENERIC
    key_variable: str = ""
    custom: Mapping[str, CustomModel] = {}

    @property
    def embedded(self) -> bool:
        return self.provider == EMBEDDED


def first_route(settings: Settings, secrets: Secrets) -> ModelRoute:
    """Returns the service that answers first, by the settings."""
    chosen = settings.model
    provider = chosen.provider.strip()
    if provider in {"", "auto"}:
        return _automatic(settings, secrets)
    return route_to(settings, secrets, provider, chosen.default, chosen.base_url)


def chosen_route(settings: Settings, secrets: Secrets, model: str = "") -> ModelRoute:
    """Returns the service that answers first. `model` (`name` or `provider:name`) overrides the settings."""
    first = first_route(settings, secrets)
    return route_for(settings, secrets, model, first) if model else first


def route_for(
    settings: Settings, secrets: Secrets, text: str, origin: ModelRoute
) -> ModelRoute:
    """Returns the route for `provider:model`, or for a model of the provider of `origin`."""
    provider, colon, model = text.partition(":")
    if colon and _known(settings, provider):
        return route_to(settings, secrets, provider, model)
    if text == EMBEDDED or (text and _known(settings, text)):
        return route_to(settings, secrets, text, "")
    if origin.embedded:
        return route_to(settings, secrets, EMBEDDED, text)
    return msgspec.structs.replace(origin, model=text)


def route_to(
    settings: Settings, secrets: Secrets, provider: str, model: str, base_url: str = ""
) -> ModelRoute:
    """Returns the route to a provider by its name. Raises SettingsError if there is none of that name."""
    if provider == EMBEDDED:
        return ModelRoute(provider=EMBEDDED, model=model)
    custom = settings.custom_providers.get(provider)
    family = provider_table.family((custom.family if custom else "") or provider)
    if family is None and custom is None and not base_url:
        raise _unknown(settings, provider)
    own_address = (custom.base_url if custom else "") or base_url
    family = _family_at(own_address, family)
    variable = custom.key_env if custom else family.key_variable
    address = own_address or _usual_address(family, variable, secrets)
    if not own_address and family.family == "openai":
        family = provider_table.family_of(address)
    return ModelRoute(
        provider=provider,
        model=model or family.default_model,
        base_url=_checked(provider, address),
        api=_api(settings, custom, family),
        quirks=family,
        key_variable=variable,
        custom=custom.models if custom else {},
    )


def _api(settings: Settings, custom: CustomProvider | None, family: Quirks) -> Api:
    """The wire format: the custom provider's choice, then the user's, then the family's own."""
    for choice in (custom.api if custom else "auto", settings.model.api):
        if choice != "auto":
            return choice
    return family.api


def _usual_address(family: Quirks, variable: str, secrets: Secrets) -> str:
    """The address in the environment beside the key, else the family's own."""
    stored = secrets.get(address_variable(variable)) if variable else None
    return stored or family.base_url


def _family_at(own_address: str, family: Quirks | None) -> Quirks:
    """The quirks of a service. Another service under OpenAI's name behaves as its address says."""
    is_generic = family is None or family.family in {"openai", "generic"}
    if family is None or (own_address and is_generic):
        return provider_table.family_of(own_address)
    return family


def _automatic(settings: Settings, secrets: Secrets) -> ModelRoute:
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
    return ModelRoute(provider=EMBEDDED, model=chosen.default)


def _name_of(address: str, settings: Settings, secrets: Secrets) -> str:
    """Names the provider behind an address: by its host, or Anthropic's if only its key is set.

    A key goes only where it was meant to go: `model.base_url` decides that, OPENAI_BASE_URL only for OpenAI's key.
    """
    family = provider_table.family_of(address)
    if family is not provider_table.GENERIC:
        return family.family
    keys = {family.family for family in FAMILIES if secrets.get(family.key_variable)}
    speaks = settings.model.api in {"auto", "anthropic"}
    return (
        "anthropic"
        if settings.model.base_url and speaks and keys == {"anthropic"}
        else "openai-compatible"
    )


def keys_of(route: ModelRoute, secrets: Secrets) -> tuple[str, ...]:
    """Returns every key for a route: separated by commas, or in NAME_2, NAME_3 and so on."""
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
    """Returns the name of the variable with the address that belongs to a key."""
    return key_variable.removesuffix("_API_KEY").removesuffix("_KEY") + "_BASE_URL"


def require_provider(settings: Settings, value: object) -> None:
    """Raises SettingsError for a value of `model.provider` that names no provider."""
    name = str(value).strip()
    if name not in {"", "auto"} and not _known(settings, name):
        raise _unknown(settings, name)


def _known(settings: Settings, provider: str) -> bool:
    return (
        provider == EMBEDDED
        or provider in settings.custom_providers
        or provider_table.family(provider) is not None
    )


def _checked(provider: str, address: str) -> str:
    if not address:
        hint = f"Set custom_providers.{provider}.base_url, or model.base_url."
        raise SettingsError(f"The provider {provider} has no address.", hint=hint)
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        hint = "It looks like https://example.org/v1."
        raise SettingsError(
            "The address of the model service is not an HTTP address.", hint=hint
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


def route_facts(route: ModelRoute) -> ModelFacts:
    """Returns what is known about a route's model. A model on this machine costs nothing."""
    facts = facts_of(route.model, route.custom)
    runs_here = route.quirks.family in {"ollama", "lmstudio"} and is_local(
        route.base_url
    )
    if facts.prices is None and runs_here:
        return msgspec.structs.replace(facts, prices=Prices(0.0, 0.0))
    return facts

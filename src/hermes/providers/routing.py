"""Chooses the service that answers, from the settings and from the keys and addresses that are set."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hermes.errors import SettingsError
from hermes.providers import provider_table
from hermes.providers.catalogue import ModelFacts, Prices, facts_of
from hermes.providers.credentials import ApiKey, Credential
from hermes.providers.provider_table import FAMILIES, Api, Quirks, is_local
from hermes.settings import Secrets, Settings
from hermes.settings.models import CustomModel, CustomProvider
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.providers.sign_in.accounts import Account

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
    headers: Mapping[str, str] = {}

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
        headers=_headers(provider, custom, family),
    )


def service_address(settings: Settings, secrets: Secrets, provider: str) -> str:
    """Returns the address of a provider's service; empty if it has none, or is not known any more."""
    chosen = settings.model
    base_url = chosen.base_url if provider == chosen.provider.strip() else ""
    try:
        return route_to(settings, secrets, provider, "", base_url).base_url
    except SettingsError:
        return ""


_OWN_HEADERS = frozenset(
    ("authorization", "x-api-key", "host", "content-length", "content-type", "cookie")
)


def _headers(
    provider: str, custom: CustomProvider | None, family: Quirks
) -> Mapping[str, str]:
    """The headers that every request adds: the family's, then the user's."""
    if custom is None or not custom.headers:
        return dict(family.headers)
    for name, value in custom.headers.items():
        is_sound = value.isprintable() and re.fullmatch(r"[A-Za-z0-9_\-]{1,100}", name)
        if name.lower() in _OWN_HEADERS or not is_sound:
            raise SettingsError(
                t.later(
                    "custom_providers.{provider}.headers: {name!r} can't be set there.",
                    provider=provider,
                    name=name[:100],
                ),
                hint=t.later("A key goes into .env, and its variable into key_env."),
            )
    own = {name.lower(): value for name, value in custom.headers.items()}
    return dict(family.headers) | own


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
    if (signed_in := _signed_in(secrets)) is not None:
        return route_to(settings, secrets, signed_in.family, chosen.default)
    return ModelRoute(provider=EMBEDDED, model=chosen.default)


def _signed_in(secrets: Secrets) -> Quirks | None:
    """The family of the first account that somebody signed in with."""
    file = secrets.sign_in_file
    if file is None or not file.exists():
        return None
    from hermes.providers.sign_in.accounts import AccountStore

    services = [account.service for account in AccountStore(file).usable()]
    found = [family for family in FAMILIES if family.sign_in in services]
    return min(found, key=lambda one: services.index(one.sign_in), default=None)


def is_signed_in(route: ModelRoute, secrets: Secrets) -> bool:
    """Whether there is an account for a route, so that it needs no key."""
    return any(not one.problem for one in _accounts_at(route, secrets))


def credentials_of(
    route: ModelRoute, settings: Settings, secrets: Secrets
) -> tuple[Credential, ...]:
    """Returns everything that a route can be called with: accounts by priority, then keys. Raises SettingsError if none."""
    signed_in: tuple[Credential, ...] = ()
    if accounts := _accounts_at(route, secrets):
        from hermes.providers.sign_in.credential import credentials_for

        signed_in = credentials_for(accounts, settings, secrets)
    keys = keys_of(route, secrets, required=not signed_in)
    if (
        keys
        and not signed_in
        and (urlsplit(route.base_url).hostname or "").endswith(".invalid")
    ):
        variable = address_variable(route.key_variable)
        raise SettingsError(
            t.later(
                "{label} needs the address of your resource.", label=route.quirks.label
            ),
            hint=t.later(
                "Store it with: hermes config set {variable} https://NAME.openai.azure.com/openai/v1",
                variable=variable,
            ),
        )
    named = tuple(
        ApiKey(key, api=route.api, name=f"{route.key_variable} {number}")
        for number, key in enumerate(keys, 1)
    )
    return (*signed_in, *named) or (ApiKey(api=route.api),)


def _accounts_at(route: ModelRoute, secrets: Secrets) -> "tuple[Account, ...]":
    """The accounts for a route, never at another address than the provider's own. If all are dead, they say so when used."""
    quirks, file = route.quirks, secrets.sign_in_file
    at_home = route.base_url == quirks.base_url.rstrip("/")
    if not quirks.sign_in or not at_home or file is None or not file.exists():
        return ()
    from hermes.providers.sign_in.accounts import AccountStore

    store = AccountStore(file)
    return store.usable(quirks.sign_in) or store.accounts(quirks.sign_in)


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


def keys_of(
    route: ModelRoute, secrets: Secrets, *, required: bool = True
) -> tuple[str, ...]:
    """Returns every key for a route: separated by commas, or in NAME_2, NAME_3 and so on."""
    needs_sign_in = route.quirks.sign_in and not route.quirks.key_variable
    if needs_sign_in and not route.key_variable and required:
        raise SettingsError(
            t.later("No sign-in with {label} works.", label=route.quirks.label),
            hint=t.later(
                "Sign in with: hermes auth add {sign_in}", sign_in=route.quirks.sign_in
            ),
        )
    if not route.key_variable:
        return ()
    keys = _stored_keys(route.key_variable, secrets)
    is_own_variable = route.key_variable != route.quirks.key_variable
    if required and not keys and (route.quirks.needs_key or is_own_variable):
        secrets.require(route.key_variable)
    return keys


def _stored_keys(variable: str, secrets: Secrets) -> tuple[str, ...]:
    """Raises SettingsError for a key that can't be one."""
    names = [variable, *(f"{variable}_{number}" for number in range(2, 10))]
    values = ",".join(secrets.get(name) or "" for name in names).split(",")
    keys = tuple(dict.fromkeys(filter(None, map(str.strip, values))))
    if not all(key.isascii() and key.isprintable() for key in keys):
        raise SettingsError(
            t.later("{variable} holds characters that no key has.", variable=variable),
            hint=t.later(
                "Store it again with: hermes config set {variable}", variable=variable
            ),
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
        hint = t.later(
            "Set custom_providers.{provider}.base_url, or model.base_url.",
            provider=provider,
        )
        raise SettingsError(
            t.later("The provider {provider} has no address.", provider=provider),
            hint=hint,
        )
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        hint = t.later("It looks like https://example.org/v1.")
        raise SettingsError(
            t.later("The address of the model service is not an HTTP address."),
            hint=hint,
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
        t.later("Did you mean {near}?", near=near[0])
        if near
        else t.later(
            "There are: {names}; or set custom_providers.{provider}.",
            names=", ".join(names),
            provider=provider,
        )
    )
    return SettingsError(
        t.later(
            "model.provider: there is no provider called {provider}.", provider=provider
        ),
        hint=hint,
    )


def route_facts(route: ModelRoute) -> ModelFacts:
    """Returns what is known about a route's model. One on this machine, or of a subscription, costs nothing."""
    facts = facts_of(route.model, route.custom)
    runs_here = route.quirks.family in {"ollama", "lmstudio"} and is_local(
        route.base_url
    )
    is_free = route.quirks.is_subscription or (facts.prices is None and runs_here)
    if is_free:
        return msgspec.structs.replace(facts, prices=Prices(0.0, 0.0))
    return facts

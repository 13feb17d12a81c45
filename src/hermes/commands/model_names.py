"""Checks the name of a model against the list of the service that serves it."""

import asyncio
import difflib

from hermes.errors import ModelError, SettingsError, UsageError
from hermes.providers.build import build_adapter
from hermes.providers.catalogue import all_models, facts_of
from hermes.providers.http_client import Http
from hermes.providers.provider_table import FAMILIES
from hermes.providers.routing import ModelRoute, credentials_of
from hermes.settings import Secrets, Settings
from hermes.settings.load import environment
from hermes.text.translation import translator

t = translator(__name__)


_LIST_TIMEOUT_S = 5.0  # a service that takes longer is taken to have the model
_MAX_LISTED_NAMES = 5


async def checked_name(
    route: ModelRoute, settings: Settings, secrets: Secrets, *, force: str
) -> str:
    """The model that will answer; empty if only the service knows. `force` is what to type if the list is wrong.

    Raises UsageError for a name that the service does not list. A service that can't be asked is taken to have the model.
    """
    if route.embedded:
        _check_local_name(route.model, settings)
        return route.model
    if _is_known(route):
        return route.model
    listed = await listed_names(route, settings, secrets)
    if not route.model or not listed or is_listed(route.model, listed):
        return route.model or next(iter(listed), "")
    near = near_names(route.model, listed)
    hint = (
        t("Did you mean {near}?", near=t(" or ").join(near))
        if near
        else t(
            "It lists {listed}{more_names}.",
            listed=", ".join(listed[:_MAX_LISTED_NAMES]),
            more_names=_more_names(listed),
        )
    )
    raise UsageError(
        t(
            "{provider} has no model called {model!r}.",
            provider=route.provider,
            model=route.model,
        ),
        hint=t("{hint} To use it anyway: {force}", hint=hint, force=force),
    )


def is_listed(name: str, listed: list[str]) -> bool:
    """Whether a service that lists these knows the name. Tags and makers may be left out, and a date at the end."""
    plain = name.partition(":")[0]
    return any(
        one in {name, plain}
        or one.endswith(f"/{name}")
        or one.startswith((f"{name}:", f"{name}-20"))
        or one.rpartition("/")[2].startswith(f"{name}-20")
        for one in listed
    )


def near_names(name: str, listed: list[str]) -> list[str]:
    """Up to three names that were probably meant: nearly the same, or containing it."""
    alike = difflib.get_close_matches(name, listed, 3, 0.6)
    return alike or [one for one in listed if name.lower() in one.lower()][:3]


def _check_local_name(name: str, settings: Settings) -> None:
    """Raises UsageError for a local model that Hermes does not know. A path is tried when it is used."""
    from hermes.providers.embedded import known_models

    models = known_models(settings.local_models)
    if not name or name in models or "/" in name:
        return
    family = facts_of(name).family
    others = [*models, *(one.family for one in FAMILIES), *settings.custom_providers]
    near = [f"{family}:{name}"] if family else near_names(name, others)
    raise UsageError(
        t(
            "There is no local model {name!r}; there are {models}.",
            name=name,
            models=", ".join(models),
        ),
        hint=t("Did you mean {near}?", near=t(" or ").join(near))
        if near
        else t("See: hermes model list"),
    )


def _is_known(route: ModelRoute) -> bool:
    """Whether Hermes itself knows the model as one of this service's, or the user has described it."""
    facts = all_models().get(route.model)
    return route.model in route.custom or (
        facts is not None and facts.family == route.quirks.family
    )


async def listed_names(
    route: ModelRoute, settings: Settings, secrets: Secrets
) -> list[str]:
    """The models that a service lists; empty if it can't be asked."""
    try:
        credential = credentials_of(route, settings, secrets)[0]
    except SettingsError:  # no key: said when it is picked, or asked
        return []
    adapter = build_adapter(route, settings, Http(environment()))
    try:
        return await asyncio.wait_for(adapter.list_models(credential), _LIST_TIMEOUT_S)
    except (ModelError, TimeoutError):
        return []
    finally:
        await adapter.close()


def _more_names(listed: list[str]) -> str:
    return (
        t(" and {count:,} more", count=len(listed) - _MAX_LISTED_NAMES)
        if len(listed) > _MAX_LISTED_NAMES
        else ""
    )

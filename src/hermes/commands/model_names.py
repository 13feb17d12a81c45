"""Is there a model of that name? Asked of the service that would answer, where it lists its models."""

import asyncio
import difflib

from hermes.errors import ModelError, SettingsError, UsageError
from hermes.providers.build import build_adapter
from hermes.providers.catalogue import all_models
from hermes.providers.http_client import Http
from hermes.providers.routing import Route, keys_of
from hermes.settings import Secrets, Settings
from hermes.settings.load import environment

_SECONDS = 5.0  # for the list to come; a service that takes longer is not asked
_NAMED = 5


async def checked_name(
    route: Route, settings: Settings, secrets: Secrets, *, force: str
) -> str:
    """The model that will answer; empty if only the service knows. `force` is what to type if the list is wrong.

    Raises UsageError for a name that the service does not list. One that can't be asked is taken at its word.
    """
    if route.embedded or _is_known(route):
        return route.model
    listed = await _listed(route, settings, secrets)
    if not route.model or not listed or is_listed(route.model, listed):
        return route.model or next(iter(listed), "")
    near = near_names(route.model, listed)
    hint = (
        f"Did you mean {' or '.join(near)}?"
        if near
        else f"It lists {', '.join(listed[:_NAMED])}{_more(listed)}."
    )
    raise UsageError(
        f"{route.provider} has no model called {route.model!r}.",
        hint=f"{hint} To use it anyway: {force}",
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
    """Up to three that were perhaps meant: written nearly so, or with this in them."""
    alike = difflib.get_close_matches(name, listed, 3, 0.6)
    return alike or [one for one in listed if name.lower() in one.lower()][:3]


def _is_known(route: Route) -> bool:
    """Whether Hermes itself knows the model as one of this service's, or the user has described it."""
    facts = all_models().get(route.model)
    return route.model in route.custom or (
        facts is not None and facts.family == route.quirks.family
    )


async def _listed(route: Route, settings: Settings, secrets: Secrets) -> list[str]:
    try:
        key = next(iter(keys_of(route, secrets)), "")
    except SettingsError:  # no key: said when it is picked, or asked
        return []
    adapter = build_adapter(route, settings, Http(environment()))
    try:
        return await asyncio.wait_for(adapter.list_models(key), _SECONDS)
    except (ModelError, TimeoutError):
        return []
    finally:
        await adapter.close()


def _more(listed: list[str]) -> str:
    return f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""

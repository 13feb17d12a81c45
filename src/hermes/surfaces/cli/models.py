"""Choosing the model that answers, and adding one: `hermes model pick` and `hermes model add`."""

import asyncio
import shlex
from pathlib import Path
from typing import Annotated

from hermes.app.connections import (
    Connection,
    add,
    locate,
    own_service,
    save,
    set_model,
    small_context,
    try_model,
)
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.errors import HermesError, SettingsError, UsageError, os_reason, translated
from hermes.settings import Home
from hermes.settings.load import find_home, load, load_secrets
from hermes.surfaces.cli.answer import DONE, FAILED
from hermes.surfaces.terminal.menus import terminal_menus
from hermes.surfaces.terminal.stderr_message import say
from hermes.text.translation import translator

t = translator(__name__)


_GGUF_MAGIC = b"GGUF"
_SERVICE_TIMEOUT_S = 60.0
_MAX_LISTED_NAMES = 10


@command("model pick")
def pick_model(
    context: CommandContext,
    model: Annotated[str, "PROVIDER, PROVIDER:MODEL, or a model"] = "",
    *,
    force: Annotated[bool, "accept a model that the service does not list"] = False,
) -> int:
    """Choose the model that answers from now on."""
    if not model and terminal_menus() is not None:
        return _ask_for_model(context.home)
    if not model:
        raise UsageError(
            t("Which model?"),
            hint=t("hermes model pick PROVIDER:MODEL; see: hermes model list"),
        )
    provider, name = _split(model)
    if not force:
        _check_name(provider, name, model)
        is_own = provider in load(home=context.home).custom_providers
        if name and is_own and not _service_answers(provider, name):
            say(
                t("The model was not changed."),
                t("To use it anyway: hermes model pick {model} --force", model=model),
            )
            return FAILED
    before = load(home=context.home).model
    base_url = before.base_url if before.provider == provider else ""
    for note in set_model(context.home, provider, name, base_url):
        say(note, alarming=False)
    print(
        t(
            "Now using {provider}{name}.",
            provider=provider,
            name=":" + name if name else "",
        )
    )
    _warn_about_key(provider)
    return DONE


@command("model add")
def add_model(  # noqa: PLR0913 - the options of one command
    context: CommandContext,
    what: Annotated[
        str,
        "a local model, a path to a GGUF file, or a name for a service; nothing to list the local models",
    ] = "",
    *,
    base_url: Annotated[
        str, Arg("the service's address, usually ending in /v1", metavar="URL")
    ] = "",
    key_env: Annotated[
        str, Arg("the variable that holds its key, if it needs one", metavar="NAME")
    ] = "",
    model: Annotated[str, "the model to use there; the only one it has otherwise"] = "",
    force: Annotated[bool, "add a service that does not answer"] = False,
    verbose: Annotated[bool, "show where the local model comes from"] = False,
) -> int:
    """Download the local model, use a GGUF file, or add a service of your own, which must answer."""
    if not what and not base_url:
        from hermes.surfaces.cli.addable_models import print_addable_models

        print_addable_models()
        return DONE
    if base_url:
        connection = own_service(what, base_url, key_variable=key_env, model=model)
        return _add_service(connection, context.home, force=force)
    if "://" in what:
        hint = f"hermes model add NAME --base-url {shlex.quote(what)}"
        raise UsageError(t("A service of your own needs a name."), hint=hint)
    if key_env or model:
        raise UsageError(t("--key-env and --model also need --base-url."))
    if what.lower().endswith(".gguf") or "/" in what:
        return _add_file(what, context.home)
    return _add_weights(what, verbose=verbose)


def _add_service(connection: Connection, home: Home, *, force: bool) -> int:
    """Tries a service, adds it if it answers, and makes its model the default."""
    name, variable = connection.provider, connection.key_variable
    if not force:
        if variable and load_secrets(home=home).get(variable) is None:
            raise HermesError(
                t(
                    "{variable} is not set, so {name} can't be tried. Nothing was added.",
                    variable=variable,
                    name=name,
                ),
                hint=t(
                    "Store the key first: hermes config set {variable}   or add it untried with --force",
                    variable=variable,
                ),
            )
        try:
            connection = asyncio.run(_tried(connection, home))
        except HermesError as error:
            reason = error.message.removesuffix(".")
            say(
                t("{reason}. {name} was not added.", reason=reason, name=name),
                t("{hint}\nTo add it anyway: --force", hint=error.hint),
            )
            return FAILED
    if not connection.model:
        add(connection, home)
        print(t("Added {name}. To use it: hermes model pick {name}:MODEL", name=name))
        return DONE
    for note in save(connection, home):
        say(note, alarming=False)
    print(f"Added {name}. Now using {connection.model}.")
    return DONE


async def _tried(connection: Connection, home: Home) -> Connection:
    """Finds the service, and tries the model. Without a name, the model is the only one that the service has."""
    name = connection.provider
    print(f"Trying {name} ...", end=" ", flush=True)
    try:
        if not connection.model:
            connection, models = await locate(connection, home)
            if len(models) != 1:
                listed = ", ".join(one.name for one in models[:_MAX_LISTED_NAMES])
                print(
                    t(
                        "it lists {count:,} models: {listed}.",
                        count=len(models),
                        listed=listed or t("none"),
                    ),
                    flush=True,
                )
                return connection
            connection = connection.at_model(models[0].name)
        seconds = await try_model(connection, home, timeout_s=_SERVICE_TIMEOUT_S)
        facts = await small_context(connection, home)
    except HermesError:
        print("failed.", flush=True)
        raise
    print(f"it answers ({seconds:.1f} s).", flush=True)
    if facts is not None:
        say(facts.warning(), facts.advice(), alarming=False)
    return connection


def _ask_for_model(home: Home) -> int:
    """Shows the same screen as `hermes setup`."""
    from hermes.surfaces.terminal.connect_screen import ConnectScreen

    menus = terminal_menus()
    if menus is None or ConnectScreen(menus, home).run(is_first_run=False) is None:
        say(t("The model was not changed."), alarming=False)
        return FAILED
    return DONE


def _split(text: str) -> tuple[str, str]:
    """`provider:model`, `provider/model` or `provider` as two parts; a lone model belongs to the current provider."""
    from hermes.providers.routing import first_route

    for mark in (":", "/"):
        provider, found, model = text.partition(mark)
        if _is_provider(provider) and (found or provider == text):
            return provider, model
    home = find_home()
    return first_route(load(home=home), load_secrets(home=home)).provider, text


def _is_provider(name: str) -> bool:
    from hermes.providers import provider_table

    return (
        name == "embedded"
        or name in load(home=find_home()).custom_providers
        or provider_table.family(name) is not None
    )


def _check_name(provider: str, model: str, text: str) -> None:
    """Raises UsageError for a model that the service does not have. Nothing is changed then."""
    from hermes.commands.model_names import checked_name
    from hermes.providers.routing import first_route, route_to

    home = find_home()
    settings, secrets = load(home=home), load_secrets(home=home)
    first = first_route(settings, secrets)
    address = first.base_url if provider == first.provider else ""
    route = route_to(settings, secrets, provider, model, address)
    if model:
        force = f"hermes model pick {text} --force"
        asyncio.run(checked_name(route, settings, secrets, force=force))


def _warn_about_key(provider: str) -> None:
    from hermes.providers.routing import address_variable, credentials_of, route_to

    home = find_home()
    settings, secrets = load(home=home), load_secrets(home=home)
    try:
        route = route_to(settings, secrets, provider, "")
        credentials_of(route, settings, secrets)
    except SettingsError as error:
        say(translated(error.words), translated(error.hint_words), alarming=False)
        return
    variable = address_variable(route.key_variable) if route.key_variable else ""
    if not variable or secrets.origin(variable) != "environment":
        return
    if route.base_url == (secrets.get(variable) or "").rstrip("/"):
        say(
            t(
                "The address {base_url} comes from {variable}, which is set in this shell only.",
                base_url=route.base_url,
                variable=variable,
            ),
            t(
                "To save the address: hermes config set model.base_url {base_url}",
                base_url=route.base_url,
            ),
            alarming=False,
        )


def _add_weights(name: str, *, verbose: bool) -> int:
    """Downloads one of the models that Hermes knows."""
    from hermes.providers.embedded import find
    from hermes.surfaces.terminal.weights_download import (
        fetch_weights,
        local_models,
        models_folder,
        stop_confirmed,
    )

    models = local_models()
    entry = models.get(name)
    if entry is None:
        hint = t(
            "For a service of your own: --base-url URL. For a file: its path, such as ./model.gguf."
        )
        raise UsageError(
            t(
                "There is no local model {name!r}; there are {models}.",
                name=name,
                models=", ".join(models),
            ),
            hint=hint,
        )
    if find(entry, models_folder()) is None:
        with stop_confirmed():
            fetch_weights(name, agreed=True, verbose=verbose)
    print(f"{entry.description} is in {models_folder()}")
    print(t("To use it: hermes model pick embedded:{name}", name=name))
    return DONE


def _add_file(text: str, home: Home) -> int:
    """Lets a GGUF file of the user's own answer."""
    path = Path(text).expanduser().absolute()
    try:
        with path.open("rb") as file:
            magic = file.read(len(_GGUF_MAGIC))
    except OSError as error:
        reason = os_reason(error)
        raise HermesError(
            t("{path} can't be read ({reason}).", path=path, reason=reason),
            hint=t("Nothing was changed."),
        ) from error
    if magic != _GGUF_MAGIC:
        raise HermesError(
            t("{path} is not a GGUF file.", path=path), hint=t("Nothing was changed.")
        )
    for note in set_model(home, "embedded", str(path)):
        say(note, alarming=False)
    print(
        t(
            "Now using {name}, on this machine. See what it can do: hermes model test",
            name=path.name,
        )
    )
    return DONE


def _service_answers(name: str, model: str) -> bool:
    """Makes one tiny call to a service of the settings and prints the result."""
    home = find_home()
    custom = load(home=home).custom_providers[name]
    connection = Connection(
        provider=name,
        model=model,
        base_url=custom.base_url,
        key_variable=custom.key_env,
        is_custom=True,
    )
    try:
        asyncio.run(_tried(connection, home))
    except HermesError as error:
        say(translated(error.words), translated(error.hint_words))
        return False
    return True

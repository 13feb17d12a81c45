"""Choosing the model that answers, and adding one: `hermes model pick` and `hermes model add`."""

import asyncio
import re
import sys
import time
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.models import providers
from hermes.errors import HermesError, ModelError, SettingsError, UsageError, os_reason
from hermes.settings import Secrets, Settings
from hermes.settings.edit import set_value, unset_value
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.settings.secrets import is_secret_variable
from hermes.surfaces.cli.answer import DONE, FAILED
from hermes.surfaces.terminal.stderr_message import say

_GGUF_MAGIC = b"GGUF"
_SERVICE_TIMEOUT_S = 60.0
_TRY_TIMEOUT_S = 120.0  # for one tiny answer; a local model may have to be loaded
_MODEL_VARIABLES = (
    "HERMES_MODEL_PROVIDER",
    "HERMES_MODEL_DEFAULT",
    "HERMES_MODEL_BASE_URL",
)


@command("model pick")
def pick_model(
    _context: CommandContext,
    model: Annotated[str, "PROVIDER, PROVIDER:MODEL, or a model"] = "",
    *,
    force: Annotated[bool, "accept a model that the service does not list"] = False,
) -> int:
    """Choose the model that answers from now on."""
    text = model or _ask_for_model()
    provider, name = _split(text)
    if not force:
        _check_name(provider, name, text)
        is_own = provider in load(home=find_home()).custom_providers
        if name and is_own and not _service_answers(provider, name):
            say(
                "The model was not changed.",
                f"To use it anyway: hermes model pick {text} --force",
            )
            return FAILED
    set_model(provider, name)
    print(f"Now using {provider}{':' + name if name else ''} answers.")
    _warn_about_key(provider)
    return DONE


@command("model add")
def add_model(
    _context: CommandContext,
    what: Annotated[
        str, "base, small or nano; a path to a GGUF file; or a name for a service"
    ],
    *,
    base_url: Annotated[
        str, Arg("the service's address, usually ending in /v1", metavar="URL")
    ] = "",
    key_env: Annotated[
        str, Arg("the variable that holds its key, if it needs one", metavar="NAME")
    ] = "",
    model: Annotated[str, "the model to use there"] = "",
) -> int:
    """Download the local model, use a GGUF file, or add a service of your own."""
    if base_url:
        return add_service(what, base_url, key_env, model)
    if key_env or model:
        raise UsageError("--key-env and --model also need --base-url.")
    if what.lower().endswith(".gguf") or "/" in what:
        return _add_file(what)
    return _add_weights(what)


def _ask_for_model() -> str:
    """Lets a person choose a provider by number, then a model."""
    if not sys.stdin.isatty():
        raise UsageError(
            "Which model?",
            hint="hermes model pick PROVIDER:MODEL; see: hermes model list",
        )
    home = find_home()
    listed = providers(load(home=home), load_secrets(home=home))
    for number, one in enumerate(listed, 1):
        print(f"{number:>3}  {one.provider:<16}{one.ready}")
    answer = ask_line(f"Which provider? [1-{len(listed)}] ")
    if not answer.isdecimal() or not 1 <= int(answer) <= len(listed):
        raise UsageError(
            f"Please type a number from 1 to {len(listed)}.",
            hint="Nothing was changed.",
        )
    chosen = listed[int(answer) - 1]
    model = ask_line(f"Which model? [{chosen.model}] ")
    return f"{chosen.provider}:{model}"


def ask_line(prompt: str) -> str:
    """One line from the person at the terminal."""
    print(prompt, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        print()
        raise UsageError("Nothing was entered.", hint="Nothing was changed.")
    return line.strip()


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


def set_model(provider: str, model: str, base_url: str = "") -> None:
    """Writes the choice to config.yaml. Values that belonged to the provider before it are removed."""
    path = find_home().ensure().config
    set_value(path, "model.provider", provider)
    for key, value in (("model.default", model), ("model.base_url", base_url)):
        if value:
            set_value(path, key, value)
        elif path.exists():
            unset_value(path, key)
    for name in _MODEL_VARIABLES:
        if name in environment():
            say(f"{name} is set and overrides config.yaml.", alarming=False)


def _warn_about_key(provider: str) -> None:
    from hermes.providers.routing import address_variable, keys_of, route_to

    home = find_home()
    settings, secrets = load(home=home), load_secrets(home=home)
    try:
        route = route_to(settings, secrets, provider, "")
        keys_of(route, secrets)
    except SettingsError as error:
        say(error.message, error.hint, alarming=False)
        return
    variable = address_variable(route.key_variable) if route.key_variable else ""
    if not variable or secrets.origin(variable) != "environment":
        return
    if route.base_url == (secrets.get(variable) or "").rstrip("/"):
        say(
            f"The address {route.base_url} comes from {variable}, which is set in this shell only.",
            f"To save the address: hermes config set model.base_url {route.base_url}",
            alarming=False,
        )


def _add_weights(name: str) -> int:
    """Downloads one of the models that Hermes knows."""
    from hermes.providers.embedded import find
    from hermes.surfaces.terminal.weights_download import (
        fetch_weights,
        local_models,
        models_folder,
    )

    models = local_models()
    entry = models.get(name)
    if entry is None:
        hint = "For a service of your own: --base-url URL. For a file: its path, such as ./model.gguf."
        raise UsageError(
            f"There is no local model {name!r}; there are {', '.join(models)}.",
            hint=hint,
        )
    if find(entry, models_folder()) is None:
        fetch_weights(name, agreed=True)
    print(f"{entry.description} is in {models_folder()}")
    print(f"To use it: hermes model pick embedded:{name}")
    return DONE


def _add_file(text: str) -> int:
    """Lets a GGUF file of the user's own answer."""
    path = Path(text).expanduser().absolute()
    try:
        with path.open("rb") as file:
            magic = file.read(len(_GGUF_MAGIC))
    except OSError as error:
        reason = os_reason(error)
        raise HermesError(
            f"{path} can't be read ({reason}).", hint="Nothing was changed."
        ) from error
    if magic != _GGUF_MAGIC:
        raise HermesError(f"{path} is not a GGUF file.", hint="Nothing was changed.")
    set_model("embedded", str(path))
    print(
        f"Now using {path.name}, on this machine. See what it can do: hermes model test"
    )
    return DONE


def add_service(
    name: str, base_url: str, key_env: str, model: str, *, tried: bool = False
) -> int:
    """Adds a service, and makes its model the default if it answers. `tried`: it has just answered a test."""
    check_service(name, base_url, key_env)
    home = find_home().ensure()
    set_value(home.config, f"custom_providers.{name}.base_url", base_url.rstrip("/"))
    if key_env:
        set_value(home.config, f"custom_providers.{name}.key_env", key_env)
    pick = f"hermes model pick {name}:{model or 'MODEL'}"
    if key_env and load_secrets(home=home).get(key_env) is None:
        print(f"Added {name}.")
        say(
            f"{key_env} is not set yet.",
            f"Store it with: hermes config set {key_env}; then: {pick}",
            alarming=False,
        )
        return DONE
    if not model:
        print(f"Added {name}. To use it: {pick}")
        return DONE
    if not tried and not _service_answers(name, model):
        say(
            f"Added {name}, but it does not answer. You are still using your current model.",
            f"To use it anyway: {pick} --force",
        )
        return FAILED
    set_model(name, model)
    print(f"Added {name}. Now using {model}.")
    return DONE


def _service_answers(name: str, model: str) -> bool:
    """Makes one tiny call and prints the result."""
    home = find_home()
    settings, secrets = load(home=home), load_secrets(home=home)
    chosen = msgspec.structs.replace(
        settings.model,
        provider=name,
        default=model,
        base_url="",
        fallback=(),
        max_attempts=1,
    )
    trial = msgspec.structs.replace(settings, model=chosen)
    print(f"Trying {name} ...", end=" ", flush=True)
    try:
        seconds = try_once(trial, secrets, timeout_s=_SERVICE_TIMEOUT_S)
    except HermesError as error:
        print("failed.", flush=True)
        say(error.message, error.hint)
        return False
    print(f"it answers ({seconds:.1f} s).", flush=True)
    return True


def try_once(
    settings: Settings, secrets: Secrets, *, timeout_s: float = _TRY_TIMEOUT_S
) -> float:
    """Asks the model that the settings name for one word. Returns the seconds it took; ModelError if it can't."""
    from hermes.providers.build import build_model
    from hermes.schema.messages import UserMessage
    from hermes.schema.model import ModelRequest, ReplyFinished

    model = build_model(settings, secrets)
    request = ModelRequest(
        system=("Answer with one word.",),
        messages=(UserMessage(text="Say ok."),),
        max_output_tokens=64,
    )

    async def call() -> None:
        async with asyncio.timeout(timeout_s):
            async for event in model.stream(request):
                if isinstance(event, ReplyFinished):
                    return
        raise ModelError("the stream ended early", reason="malformed")

    started = time.monotonic()
    try:
        asyncio.run(call())
    except TimeoutError as error:
        raise ModelError(
            f"no answer within {timeout_s:.0f} seconds", reason="timeout"
        ) from error
    return time.monotonic() - started


def check_service(name: str, base_url: str, key_env: str) -> None:
    """Raises UsageError for a description of a service that can't be right. Nothing is written."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", name) or name in {"auto", "embedded"}:
        raise UsageError(
            f"{name!r} can't be a provider's name.",
            hint="Use lower-case letters, digits, - and _.",
        )
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            "That is not a usable address.",
            hint="An address looks like https://example.org/v1.",
        )
    if parts.username or parts.password or is_secret_value(base_url):
        raise UsageError(
            "The address must not contain a key.",
            hint="Name the key's variable with --key-env.",
        )
    if key_env and (is_secret_value(key_env) or not is_secret_variable(key_env)):
        variable = re.sub("[^A-Z0-9]", "_", name.upper())
        raise UsageError(
            "--key-env takes the name of a variable, not a key.",
            hint=f"Such as {variable}_API_KEY; the key itself goes into .env.",
        )

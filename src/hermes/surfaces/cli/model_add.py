"""`hermes model add`: the local model's weights, a GGUF file, or a service of one's own."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from hermes.errors import HermesError, UsageError
from hermes.settings.edit import set_value
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import find_home, load, load_secrets
from hermes.settings.secrets import is_secret_variable
from hermes.surfaces.cli.answer import FAILED
from hermes.surfaces.cli.model import set_model
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.weights_download import fetch_weights, models_folder

_MAGIC = b"GGUF"
_TRY_TIMEOUT_S = 60.0


def add_weights(name: str) -> int:
    """Fetches one of the models that Hermes knows."""
    from hermes.providers.embedded import CATALOGUE, find

    entry = CATALOGUE.get(name)
    if entry is None:
        hint = "For a service of your own: --base-url URL. For a file: its path, such as ./model.gguf."
        raise UsageError(
            f"There is no local model {name!r}; there are {', '.join(CATALOGUE)}.",
            hint=hint,
        )
    if find(entry, models_folder()) is None:
        fetch_weights(name, agreed=True)
    print(f"{entry.description} is in {models_folder()}")
    print(f"Let it answer: hermes model pick embedded:{name}")
    return 0


def add_file(text: str) -> int:
    """Lets a GGUF file of the user's own answer."""
    path = Path(text).expanduser().absolute()
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise HermesError(
            f"{path} can't be read ({reason}).", hint="Nothing was changed."
        ) from error
    if magic != _MAGIC:
        raise HermesError(f"{path} is not a GGUF file.", hint="Nothing was changed.")
    set_model("embedded", str(path))
    print(
        f"From now on {path.name} answers, on this machine. See what it can do: hermes model test"
    )
    return 0


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
        return 0
    if not model:
        print(f"Added {name}. To use it: {pick}")
        return 0
    if not tried and not service_answers(name, model):
        say(
            f"Added {name}, but it does not answer. Your current model stays.",
            f"To use it anyway: {pick} --force",
        )
        return FAILED
    set_model(name, model)
    print(f"Added {name}. From now on {model} answers.")
    return 0


def service_answers(name: str, model: str) -> bool:
    """Makes one tiny call and prints the result."""
    from hermes.surfaces.cli.model_test import try_once

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
    print(f"Trying {name} ...", end=" ", flush=True)
    try:
        seconds = try_once(
            msgspec.structs.replace(settings, model=chosen),
            secrets,
            timeout_s=_TRY_TIMEOUT_S,
        )
    except HermesError as error:
        print("failed.", flush=True)
        say(error.message, error.hint)
        return False
    print(f"it answers ({seconds:.1f} s).", flush=True)
    return True


def check_service(name: str, base_url: str, key_env: str) -> None:
    """Says what is wrong with the description of a service, before anything is written."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", name) or name in {"auto", "embedded"}:
        raise UsageError(
            f"{name!r} can't be a provider's name.",
            hint="Use small letters, digits, - and _.",
        )
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            "That address can't be called.",
            hint="It looks like https://example.org/v1.",
        )
    if parts.username or parts.password or is_secret_value(base_url):
        raise UsageError(
            "A key does not belong into the address.",
            hint="Name its variable with --key-env.",
        )
    if key_env and (is_secret_value(key_env) or not is_secret_variable(key_env)):
        raise UsageError(
            "--key-env takes the name of a variable, not a key.",
            hint=f"Such as {re.sub('[^A-Z0-9]', '_', name.upper())}_API_KEY; the key itself goes into .env.",
        )

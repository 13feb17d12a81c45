"""`hermes setup`: connects a model. It tries the connection before it writes anything."""

import getpass
import sys
from typing import Annotated

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.errors import HermesError, UsageError
from hermes.providers import provider_table
from hermes.providers.routing import EMBEDDED, ModelRoute, first_route
from hermes.settings import Secrets, Settings
from hermes.settings.edit import set_secret
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.settings.sections import CustomProvider
from hermes.surfaces.cli.models import (
    add_service,
    ask_line,
    check_service,
    set_model,
    try_once,
)
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.style import stdout_style, terminal_width
from hermes.surfaces.terminal.text import wrap
from hermes.surfaces.terminal.weights_download import have_weights

_HOW = """\
Without a terminal, say what to set up:
  hermes setup --local --fetch
  hermes setup --provider anthropic < file-with-the-key
  hermes setup --base-url http://localhost:8000/v1 --model NAME [--key-env NAME]"""
_CHOICES = (
    "the local model: no key, nothing leaves this machine; for simple file tasks",
    "a provider such as Anthropic, OpenAI, OpenRouter or DeepSeek, with your key",
    "a server of your own: Ollama, vLLM, LM Studio, or any address",
)
_OWN = "own"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to set up. `key` is never shown."""

    provider: str
    model: str = ""
    base_url: str = ""
    key_variable: str = ""
    key: str = ""

    def __repr__(self) -> str:
        return f"Plan({self.provider}, {self.model})"


@command("setup")
def setup(  # noqa: PLR0913 - the options of one command
    _context: CommandContext,
    *,
    local: Annotated[
        bool,
        Arg("the local model: no key, nothing leaves the machine", excludes="what"),
    ] = False,
    provider: Annotated[
        str,
        Arg(
            "a known provider; its key is asked for or piped in",
            metavar="NAME",
            excludes="what",
        ),
    ] = "",
    base_url: Annotated[
        str, Arg("a service of your own", metavar="URL", excludes="what")
    ] = "",
    model: Annotated[str, "the model; the provider's usual one otherwise"] = "",
    name: Annotated[
        str, Arg(f"a name for your own service (default: {_OWN})", metavar="NAME")
    ] = _OWN,
    key_env: Annotated[
        str, Arg("the variable of your own service's key", metavar="NAME")
    ] = "",
    fetch: Annotated[bool, "download the local model without asking"] = False,
    no_test: Annotated[bool, "don't try the connection"] = False,
) -> int:
    """Connect a model, in under a minute."""
    if local:
        plan = Plan(provider=EMBEDDED, model=model)
    elif base_url:
        plan = _own_service(name, base_url, key_env, model)
    else:
        plan = _known(provider, model) if provider else _from_person()
    if plan.provider == EMBEDDED:
        have_weights(plan.model, fetch=fetch)
    if not no_test and not _works(plan):
        return 1
    _write(plan)
    style = stdout_style()
    print(
        style.green("Ready."),
        'Start a chat with: hermes    or ask: hermes "what is in this folder?"',
    )
    return 0


def _own_service(name: str, base_url: str, key_env: str, model: str) -> Plan:
    check_service(name, base_url, key_env)
    if not model:
        raise UsageError("--model is missing: which model does that service have?")
    return Plan(
        provider=name,
        model=model,
        base_url=base_url,
        key_variable=key_env,
        key=_key(key_env) if key_env else "",
    )


def _from_person() -> Plan:
    if not sys.stdin.isatty():
        raise UsageError("Nobody is here to answer.", hint=_HOW)
    print("What should answer?")
    for number, text in enumerate(_CHOICES, 1):
        first, *rest = wrap(text, max(20, terminal_width() - 6))
        print(f"  {number}  {first}")
        for line in rest:
            print(f"     {line}")
    match ask_line("1, 2 or 3? [1] "):
        case "" | "1":
            return Plan(provider=EMBEDDED)
        case "2":
            return _choose_provider()
        case "3":
            return _describe_server()
        case _:
            raise UsageError("Please type 1, 2 or 3.", hint="Nothing was changed.")


def _choose_provider() -> Plan:
    known = [family for family in provider_table.FAMILIES if family.needs_key]
    for number, family in enumerate(known, 1):
        print(f"{number:>4}  {family.family:<12} {family.default_model}")
    answer = ask_line("Which one (number or name)? [1] ") or "1"
    name = (
        known[int(answer) - 1].family
        if answer.isdecimal() and 1 <= int(answer) <= len(known)
        else answer
    )
    return _known(name, "")


def _describe_server() -> Plan:
    base_url = (
        ask_line("Its address? [http://localhost:11434/v1] ")
        or "http://localhost:11434/v1"
    )
    check_service(_OWN, base_url, "")
    model = ask_line("Which model? ")
    if not model:
        raise UsageError(
            "Without a model's name nothing can be asked.", hint="Nothing was changed."
        )
    key = getpass.getpass("Its key, if it needs one (not shown): ").strip()
    variable = "OWN_API_KEY" if key else ""
    return Plan(
        provider=_OWN, model=model, base_url=base_url, key_variable=variable, key=key
    )


def _known(name: str, model: str) -> Plan:
    family = provider_table.family(name)
    if family is None:
        names = ", ".join(known.family for known in provider_table.FAMILIES)
        raise UsageError(
            f"There is no provider {name!r}; there are {names}.",
            hint="For another: --base-url URL",
        )
    key = _key(family.key_variable) if family.needs_key else ""
    return Plan(provider=name, model=model, key_variable=family.key_variable, key=key)


def _key(variable: str) -> str:
    """The key: typed without an echo, piped in, or the one that is set already."""
    there = load_secrets().get(variable) is not None
    if sys.stdin.isatty():
        kept = ", Enter keeps the one that is set" if there else ""
        key = getpass.getpass(f"{variable} (not shown{kept}): ").strip()
    else:
        key = sys.stdin.readline().strip()
    if not key and not there:
        raise UsageError(
            f"No key was given for {variable}.", hint="Nothing was changed."
        )
    return key


def _works(plan: Plan) -> bool:
    """Makes one tiny call. After a failure a person can keep the settings anyway."""
    settings, secrets = _as_settings(plan)
    print("Trying it ...", end=" ", flush=True)
    try:
        seconds = try_once(settings, secrets)
    except HermesError as error:
        print("failed.")
        say(error.message, error.hint)
        if sys.stdin.isatty() and ask_line(
            "Keep these settings anyway? [y/N] "
        ).lower() in {"y", "yes"}:
            return True
        say("Nothing was changed.", alarming=False)
        return False
    print(f"it answers ({seconds:.1f} s).")
    return True


def _as_settings(plan: Plan) -> tuple[Settings, Secrets]:
    """The settings and secrets as they would be with the plan."""
    home = find_home()
    settings, file = load(home=home), {plan.key_variable: plan.key} if plan.key else {}
    model = msgspec.structs.replace(
        settings.model,
        provider=plan.provider,
        default=plan.model,
        base_url="",
        fallback=(),
        max_attempts=1,
    )
    custom = dict(settings.custom_providers)
    if plan.base_url:
        custom[plan.provider] = CustomProvider(
            base_url=plan.base_url, key_env=plan.key_variable
        )
    # A key that was just given must not lose against an older one of the environment.
    environ = {name: value for name, value in environment().items() if name not in file}
    secrets = Secrets(file, environ) if plan.key else load_secrets(home=home)
    return msgspec.structs.replace(
        settings, model=model, custom_providers=custom
    ), secrets


def _write(plan: Plan) -> None:
    home = find_home().ensure()
    if plan.key:
        set_secret(home.env_file, plan.key_variable, plan.key)
        print(f"{plan.key_variable} is stored in {home.env_file}, for you only.")
    if plan.base_url:
        add_service(
            plan.provider, plan.base_url, plan.key_variable, plan.model, tried=True
        )
        return
    set_model(plan.provider, plan.model)
    route: ModelRoute = first_route(load(home=home), load_secrets(home=home))
    print(f"{route.provider} {route.model or ''}".strip(), f"is set in {home.config}.")

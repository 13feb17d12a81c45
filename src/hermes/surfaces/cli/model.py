"""`hermes model`: which models there are, which one answers, adding and testing one."""

import argparse
import sys

from hermes.errors import UsageError
from hermes.settings.edit import set_value, unset_value
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.surfaces.cli.answer import FAILED
from hermes.surfaces.cli.parser import add_action
from hermes.surfaces.terminal.stderr_message import say

_EXAMPLES = """\
examples:
  hermes model list                        providers, their usual models, which keys are set
  hermes model pick anthropic              let Anthropic's usual model answer
  hermes model pick openrouter:z-ai/glm-5  ... or a certain one
  hermes model add base                    fetch the local model
  hermes model add ~/models/qwen.gguf      use a GGUF file of your own
  hermes model add lab --base-url http://lab:8000/v1 --model qwen3
  hermes model test                        what can the model do? 30 and more small tasks
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    every = add_action(
        actions,
        "list",
        "list providers and models, with window, price and whether a key is set",
    )
    every.add_argument(
        "provider",
        metavar="PROVIDER",
        nargs="?",
        default="",
        help="every known model of this provider",
    )
    every.add_argument("--json", action="store_true", help="print JSON")
    show = add_action(actions, "show", "show the model that answers now")
    show.add_argument("--json", action="store_true", help="print JSON")
    pick = add_action(actions, "pick", "choose the model that answers from now on")
    pick.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        default="",
        help="PROVIDER, PROVIDER:MODEL, or a model",
    )
    pick.add_argument(
        "--force",
        action="store_true",
        help="also a name that the service does not list",
    )
    add = add_action(
        actions,
        "add",
        "fetch the local model, use a GGUF file, or add a service of your own",
    )
    add.add_argument(
        "what",
        metavar="WHAT",
        help="base, small or nano; a path to a GGUF file; or a name for a service",
    )
    add.add_argument(
        "--base-url",
        metavar="URL",
        default="",
        help="the service's address, mostly ending in /v1",
    )
    add.add_argument(
        "--key-env",
        metavar="NAME",
        default="",
        help="the variable that holds its key, if it needs one",
    )
    add.add_argument(
        "--model", metavar="MODEL", default="", help="the model to ask there"
    )
    test = add_action(
        actions,
        "test",
        "run small tasks in a throwaway folder and print the score; exit code 1 if none succeeds",
    )
    test.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        default="",
        help="another than the one that answers now",
    )
    test.add_argument(
        "--kind", choices=("choose", "finish", "answer"), help="only tasks of this kind"
    )
    test.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    match args.action:
        case "pick":
            return _pick(args.model, force=args.force)
        case "add":
            return _add(args)
        case "test":
            from hermes.surfaces.cli.model_test import test

            return test(args.model, kind=args.kind or "", as_json=args.json)
        case action:
            from hermes.surfaces.cli.model_list import print_current, print_list

            if action == "show":
                return print_current(as_json=args.json)
            return print_list(
                getattr(args, "provider", ""), as_json=getattr(args, "json", False)
            )


def _pick(text: str, *, force: bool) -> int:
    if not text:
        if not sys.stdin.isatty():
            raise UsageError(
                "Which model?",
                hint="hermes model pick PROVIDER:MODEL; see: hermes model list",
            )
        from hermes.surfaces.cli.model_list import choose

        text = choose()
    provider, model = split(text)
    if not force:
        _check_name(provider, model, text)
        if (
            model
            and provider in load(home=find_home()).custom_providers
            and not _answers(provider, model, text)
        ):
            return FAILED
    set_model(provider, model)
    print(f"From now on {provider}{':' + model if model else ''} answers.")
    _warn_about_key(provider)
    return 0


def _answers(provider: str, model: str, text: str) -> bool:
    """Whether a service of the user's own answers; says what to do if not. Nothing is changed then."""
    from hermes.surfaces.cli.model_add import service_answers

    if service_answers(provider, model):
        return True
    say(
        "The model was not changed.",
        f"To use it anyway: hermes model pick {text} --force",
    )
    return False


def _check_name(provider: str, model: str, text: str) -> None:
    """Raises UsageError for a model that the service does not have. Nothing is changed then."""
    import asyncio

    from hermes.providers.routing import first_route, route_to
    from hermes.surfaces.terminal.model_names import checked_name

    home = find_home()
    settings, secrets = load(home=home), load_secrets(home=home)
    first = first_route(settings, secrets)
    address = first.base_url if provider == first.provider else ""
    route = route_to(settings, secrets, provider, model, address)
    if model:
        asyncio.run(
            checked_name(
                route, settings, secrets, force=f"hermes model pick {text} --force"
            )
        )


def split(text: str) -> tuple[str, str]:
    """`provider:model`, `provider/model` or `provider` as two parts; a lone model belongs to the current provider."""
    from hermes.providers.routing import first_route

    home = find_home()
    settings = load(home=home)
    for mark in (":", "/"):
        provider, found, model = text.partition(mark)
        if is_provider(provider) and (found or provider == text):
            return provider, model
    return first_route(settings, load_secrets(home=home)).provider, text


def is_provider(name: str) -> bool:
    """Whether somebody goes by that name."""
    from hermes.providers import quirks

    return (
        name == "embedded"
        or name in load(home=find_home()).custom_providers
        or quirks.family(name) is not None
    )


def set_model(provider: str, model: str, base_url: str = "") -> None:
    """Writes the choice to config.yaml. What belonged to the provider of before does not stay."""
    path = find_home().ensure().config
    set_value(path, "model.provider", provider)
    for key, value in (("model.default", model), ("model.base_url", base_url)):
        if value:
            set_value(path, key, value)
        elif path.exists():
            unset_value(path, key)
    for name in (
        "HERMES_MODEL_PROVIDER",
        "HERMES_MODEL_DEFAULT",
        "HERMES_MODEL_BASE_URL",
    ):
        if name in environment():
            say(f"{name} is set and still wins over config.yaml.", alarming=False)


def _warn_about_key(provider: str) -> None:
    from hermes.errors import SettingsError
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
    if (
        variable
        and secrets.origin(variable) == "environment"
        and route.base_url == (secrets.get(variable) or "").rstrip("/")
    ):
        say(
            f"It answers at {route.base_url} only while {variable} is set, as it is in this shell.",
            f"To keep the address: hermes config set model.base_url {route.base_url}",
            alarming=False,
        )


def _add(args: argparse.Namespace) -> int:
    from hermes.surfaces.cli.model_add import add_file, add_service, add_weights

    if args.base_url:
        return add_service(args.what, args.base_url, args.key_env, args.model)
    if args.key_env or args.model:
        raise UsageError(
            "--key-env and --model belong to a service: --base-url is missing."
        )
    if args.what.lower().endswith(".gguf") or "/" in args.what:
        return add_file(args.what)
    return add_weights(args.what)

"""`hermes setup`: connects a model. It tries the connection before it writes anything."""

import asyncio
import getpass
import sys
from typing import Annotated

from hermes.app.connections import (
    OWN,
    Connection,
    known_service,
    locate,
    name_for_address,
    own_service,
    save,
    small_context,
    try_model,
)
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.errors import HermesError, UsageError, translated
from hermes.providers import provider_table
from hermes.providers.key_recognition import recognise
from hermes.providers.routing import EMBEDDED
from hermes.settings import Home
from hermes.settings.load import load_secrets
from hermes.surfaces.terminal.connect_screen import ConnectScreen
from hermes.surfaces.terminal.menus import terminal_menus
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.style import stdout_style
from hermes.surfaces.terminal.weights_download import have_weights
from hermes.text.translation import to_translate, translator

t = translator(__name__)


_HOW = to_translate("""\
Without a terminal, say what to connect:
  hermes setup --provider anthropic < file-with-the-key
  hermes setup --key < file-with-the-key
  hermes setup --base-url http://localhost:8000/v1 --model NAME [--key-env NAME]
  hermes setup --local --fetch""")


@command("setup")
def setup(  # noqa: PLR0913 - the options of one command
    context: CommandContext,
    *,
    local: Annotated[
        bool,
        Arg("the local model: no key, nothing leaves the machine", excludes="what"),
    ] = False,
    key: Annotated[
        bool,
        Arg("read a key from stdin; its shape names the provider", excludes="what"),
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
        str,
        Arg(
            f"a name for your own service (default: {OWN}; after its host if that is taken)",
            metavar="NAME",
        ),
    ] = "",
    key_env: Annotated[
        str, Arg("the variable of your own service's key", metavar="NAME")
    ] = "",
    fetch: Annotated[bool, "download the local model without asking"] = False,
    no_test: Annotated[bool, "don't try the connection"] = False,
    verbose: Annotated[bool, "show where the local model comes from"] = False,
) -> int:
    """Connect a model, in under a minute."""
    home = context.home
    if not (local or key or provider or base_url):
        return _ask(home, verbose=verbose)
    if local:
        have_weights(model, fetch=fetch, verbose=verbose)
        connection = Connection(provider=EMBEDDED, model=model)
    elif base_url:
        connection = _own(
            home, name or name_for_address(base_url, home), base_url, key_env, model
        )
    else:
        connection = _known(home, provider, model)
    if not no_test and not _works(connection, home):
        say(t("Nothing was changed."), alarming=False)
        return 1
    _write(connection, home)
    return 0


def _ask(home: Home, *, verbose: bool) -> int:
    """Shows the screen with the three choices."""
    menus = terminal_menus()
    if menus is None:
        raise UsageError(t("There is no terminal to ask in."), hint=t.marked(_HOW))
    connected = ConnectScreen(menus, home, verbose=verbose).run(is_first_run=False)
    if connected is None:
        say(t("Nothing was changed."), alarming=False)
        return 1
    return 0


def _own(
    home: Home, name: str, base_url: str, key_variable: str, model: str
) -> Connection:
    key = _key(home, key_variable) if key_variable else ""
    connection = own_service(
        name, base_url, key_variable=key_variable, key=key, model=model
    )
    if model:
        return connection
    found, models = asyncio.run(locate(connection, home))
    if len(models) != 1:
        listed = ", ".join(one.name for one in models[:10]) or "none"
        raise UsageError(
            t("--model is missing: which model of that service?"),
            hint=t("Nothing was changed. It lists: {listed}", listed=listed),
        )
    return found.at_model(models[0].name)


def _known(home: Home, provider: str, model: str) -> Connection:
    """The connection to a provider that was named, or that the shape of the key names."""
    if provider:
        connection = known_service(provider, model=model)
        family = provider_table.family(provider)
        if family is None or not family.takes_key:
            return connection
        key = _key(home, connection.key_variable)
        return known_service(provider, key=key, model=model)
    found = recognise(_typed(t("The key (not shown): ")))
    if found.problem:
        raise UsageError(found.problem, hint=t("Nothing was changed."))
    if len(found.providers) != 1:
        names = found.providers or [
            one.family for one in provider_table.FAMILIES if one.takes_key
        ]
        raise UsageError(
            t("It is not clear which provider this key is from."),
            hint=t(
                "Nothing was changed. Name it with --provider: {names}",
                names=", ".join(names),
            ),
        )
    return known_service(found.providers[0], key=found.key, model=model)


def _key(home: Home, variable: str) -> str:
    """The key: typed without an echo, piped in, or empty for the one that is set already."""
    is_set = load_secrets(home=home).get(variable) is not None
    kept = t(", Enter keeps the one that is set") if is_set else ""
    typed = _typed(f"{variable} (not shown{kept}): ")
    if not typed and is_set:
        return ""
    if not typed:
        raise UsageError(
            t("No key was given for {variable}.", variable=variable),
            hint=t("Nothing was changed."),
        )
    found = recognise(typed)
    return found.key or typed


def _typed(prompt: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(prompt).strip()
    return sys.stdin.readline().strip()


def _works(connection: Connection, home: Home) -> bool:
    """Makes one tiny call, and says how it went."""
    print(t("Trying it ..."), end=" ", flush=True)
    try:
        seconds = asyncio.run(try_model(connection, home))
        facts = asyncio.run(small_context(connection, home))
    except HermesError as error:
        print("failed.", flush=True)
        say(translated(error.words), translated(error.hint_words))
        return False
    print(f"it answers ({seconds:.1f} s).", flush=True)
    if facts is not None:
        say(facts.warning(), facts.advice(), alarming=False)
    return True


def _write(connection: Connection, home: Home) -> None:
    notes = save(connection, home)
    if connection.key:
        print(
            t(
                "{key_variable} is stored in {env_file}, for you only.",
                key_variable=connection.key_variable,
                env_file=home.env_file,
            )
        )
    what = f"{connection.label} {connection.model}".strip()
    print(stdout_style().green("Ready."), t("{what} answers from now on.", what=what))
    for note in notes:
        say(note, alarming=False)
    print(t('Start a chat with: hermes    or ask: hermes "what is in this folder?"'))

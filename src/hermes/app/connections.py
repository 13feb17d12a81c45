"""Connecting a model: try a service with its key, list its models, and make one of them answer.

The first-run screen, `hermes setup`, `hermes model add` and the dashboard all connect through here. Nothing is saved
before a person confirms it, and a key is sent only to the service that it belongs to.
"""

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from hermes.codex.binary import find_codex
from hermes.codex.engine_choice import is_on
from hermes.codex.engine_switch import SwitchContext, disable, enable
from hermes.errors import HermesError, ModelError, UsageError
from hermes.providers import provider_table
from hermes.providers.build import build_adapter, build_model
from hermes.providers.catalogue import ModelFacts, all_models, facts_of
from hermes.providers.http_client import Http
from hermes.providers.routing import (
    EMBEDDED,
    ModelRoute,
    credentials_of,
    first_route,
    keys_of,
)
from hermes.providers.server_discovery import LocalServer, may_chat
from hermes.schema.messages import UserMessage
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.settings import Home, Secrets, Settings
from hermes.settings.edit import set_secret, set_value, unset_value
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import environment, load, load_secrets
from hermes.settings.models import CustomProvider
from hermes.settings.secrets import is_secret_variable
from hermes.text.formats import short_number
from hermes.text.translation import Later, current_sentences, translator

if TYPE_CHECKING:
    from hermes.providers.server_facts import ServerFacts

t = translator(__name__)


OWN = "my-server"
"""The usual name of a service that is only an address."""
_LIST_TIMEOUT_S = 20.0
_TRY_TIMEOUT_S = 120.0  # for one tiny answer; a local model may have to be loaded
_MODEL_VARIABLES = (
    "HERMES_MODEL_PROVIDER",
    "HERMES_MODEL_DEFAULT",
    "HERMES_MODEL_BASE_URL",
)
_LONGEST_HOST = 254  # a name of 253 characters, and a dot at its end
_ADDRESS_HINT = t.later("An address looks like https://example.org/v1.")


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A service, its key and one of its models. `is_custom`: one of `custom_providers`. The key is never shown."""

    provider: str
    model: str = ""
    base_url: str = ""
    key_variable: str = ""
    key: str = ""
    is_custom: bool = False

    def __repr__(self) -> str:
        return f"Connection({self.provider}, {self.model})"

    @property
    def label(self) -> str:
        """The service's name for a person."""
        return provider_table.label_of(self.provider)

    def at_model(self, model: str) -> "Connection":
        """Returns the connection to another model of the service."""
        return msgspec.structs.replace(self, model=model)


class OfferedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a service lists, with what Hermes knows about it. Prices are dollars for a million tokens."""

    name: str
    is_usual: bool = False
    window: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    abilities: tuple[str, ...] = ()
    """What it can do besides text, in words."""

    @property
    def facts(self) -> str:
        """What is known, in a few words."""
        words = [f"{short_number(self.window)} context"] if self.window else []
        if self.output_price:
            words.append(f"${self.input_price:g} in, ${self.output_price:g} out")
        words += self.abilities
        return " · ".join(words)


def known_service(provider: str, *, key: str = "", model: str = "") -> Connection:
    """Returns the connection to a provider that Hermes knows. Raises UsageError if it knows none of that name."""
    family = provider_table.family(provider)
    if family is None or family is provider_table.GENERIC:
        names = ", ".join(one.family for one in provider_table.FAMILIES)
        raise UsageError(
            t.later(
                "There is no provider {provider!r}; there are {names}.",
                provider=provider,
                names=names,
            ),
            hint=t.later("Nothing was changed. For another service: --base-url URL"),
        )
    return Connection(
        provider=family.family, model=model, key_variable=family.key_variable, key=key
    )


def local_service(server: LocalServer, model: str = "") -> Connection:
    """Returns the connection to a server that was found on this machine."""
    family = provider_table.family(server.provider)
    usual = family.base_url if family else ""
    address = "" if server.base_url == usual else server.base_url
    return Connection(provider=server.provider, base_url=address, model=model)


def own_service(
    name: str, base_url: str, *, key_variable: str = "", key: str = "", model: str = ""
) -> Connection:
    """Returns the connection to a service at an address. Raises UsageError for what can't be right.

    A key that comes without the name of its variable gets one after the service.
    """
    check_service(name, base_url, key_variable)
    if key and not key_variable:
        key_variable = key_variable_of(name)
    return Connection(
        provider=name,
        model=model,
        base_url=base_url.rstrip("/"),
        key_variable=key_variable,
        key=key,
        is_custom=True,
    )


def name_for_address(typed: str, home: Home) -> str:
    """Returns the name of the service at a typed address: the one it has, the usual one, or one after its host.

    Raises UsageError if it is no address.
    """
    addresses = possible_addresses(typed)
    custom = load(home=home).custom_providers
    for name, service in custom.items():
        if service.base_url.rstrip("/") in addresses:
            return name
    parts = urlsplit(addresses[0])
    host = _as_name(parts.hostname or "")
    port = f"-{parts.port}" if parts.port else ""
    numbered = (f"{host[:28]}-{number}" for number in count(2))
    for name in chain((OWN, host, host[:26] + port), numbered):
        if name not in custom and provider_table.family(name) is None:
            return name
    raise AssertionError("numbers do not end")  # not translated


def _as_name(host: str) -> str:
    """A host as a provider's name: `gpu.lab.example` is `gpu-lab-example`."""
    if host in {"127.0.0.1", "::1"}:
        return "localhost"
    name = re.sub("[^a-z0-9]+", "-", host.lower()).strip("-")[:32].rstrip("-")
    if name[:1].isalpha():
        return name
    return f"{OWN}-{name}"[:32]


def key_variable_of(name: str) -> str:
    """Returns the variable for the key of a service of one's own."""
    return f"{re.sub('[^A-Z0-9]', '_', name.upper())}_API_KEY"


def check_service(name: str, base_url: str, key_variable: str) -> None:
    """Raises UsageError for a description of a service that can't be right."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", name) or name in {"auto", EMBEDDED}:
        raise UsageError(
            t.later("{name!r} can't be a provider's name.", name=name),
            hint=t.later("Use lower-case letters, digits, - and _."),
        )
    _require_address(base_url)
    parts = urlsplit(base_url)
    has_more = bool(parts.query or parts.fragment)  # where keys are, and no path
    if parts.username or parts.password or has_more or is_secret_value(base_url):
        raise UsageError(
            t.later("The address must not contain a key, nor anything after ? or #."),
            hint=t.later(
                "Give the key separately: name the key's variable with --key-env."
            ),
        )
    if key_variable and (
        is_secret_value(key_variable) or not is_secret_variable(key_variable)
    ):
        raise UsageError(
            t.later("--key-env takes the name of a variable, not a key."),
            hint=t.later(
                "Such as {key_variable_of}; the key itself goes into .env.",
                key_variable_of=key_variable_of(name),
            ),
        )


def _require_address(base_url: str) -> None:
    """Raises UsageError for what is no address, or whose host can't exist."""
    words = t.later("That is not a usable address.")
    if not _is_address(base_url):
        raise UsageError(words, hint=_ADDRESS_HINT)
    host = urlsplit(base_url).hostname or ""
    if not _is_host(host):
        hint = t.later(
            "The host name {host!r} is not valid: each part between its dots has 1 to 63 letters, digits, - or _.",
            host=host[:80],
        )
        raise UsageError(words, hint=hint)


def _is_host(host: str) -> bool:
    """Returns whether `host` is an IPv6 address or can be looked up as a name."""
    if ":" in host:  # urlsplit has checked what is in brackets
        return True
    if not host.isascii():
        import idna

        try:
            host = idna.encode(host, uts46=True).decode()
        except UnicodeError:  # which idna's own error is
            return False
    label = "[A-Za-z0-9_-]{1,63}"
    return (
        len(host) <= _LONGEST_HOST
        and re.fullmatch(rf"{label}(?:\.{label})*\.?", host) is not None
    )


def _is_address(base_url: str) -> bool:
    if not base_url.isprintable() or " " in base_url:
        return False
    try:
        parts = urlsplit(base_url)
        _ = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    has_space = any(character.isspace() for character in host)
    return parts.scheme in {"http", "https"} and bool(host) and not has_space


def possible_addresses(typed: str) -> tuple[str, ...]:
    """Returns what a typed address may mean: the scheme may be missing, and the /v1 at its end."""
    text = typed.strip()
    if not text:
        raise UsageError(t.later("No address was given."), hint=_ADDRESS_HINT)
    if "://" not in text:
        scheme = "http" if provider_table.is_local(f"http://{text}") else "https"
        text = f"{scheme}://{text}"
    text = text.rstrip("/").removesuffix("/chat/completions").removesuffix("/models")
    _require_address(text)
    if urlsplit(text).path in {"", "/"}:
        return f"{text}/v1", text
    return (text,)


async def locate(
    connection: Connection, home: Home
) -> tuple[Connection, tuple[OfferedModel, ...]]:
    """Finds the service behind a typed address and lists its models. Raises ModelError of the likeliest address."""
    first: ModelError | None = None
    for address in possible_addresses(connection.base_url):
        check_service(connection.provider, address, connection.key_variable)
        found = msgspec.structs.replace(connection, base_url=address)
        try:
            return found, await list_models(found, home)
        except ModelError as error:
            if error.reason not in {"not_found", "malformed"}:
                raise
            first = first or error
    assert first is not None  # noqa: S101 - there is always an address
    raise first


@contextmanager
def advice_for(connection: Connection) -> Iterator[None]:
    """Changes a ModelError from inside to what helps a person who is connecting the service.

    The usual hints name commands and settings of a connection that is saved already, and a server that is only an
    address has no name that the person knows.
    """
    try:
        yield
    except ModelError as error:
        if (advice := _advice(error.reason, connection)) is not None:
            error.hint, error.hint_words = str(advice), advice
        is_english = current_sentences() is None
        if (
            is_english
            and connection.is_custom
            and error.message.startswith(connection.label)
        ):
            error.message = f"The server{error.message.removeprefix(connection.label)}"  # not translated
            error.words = error.message
        raise


def _advice(reason: str, connection: Connection) -> Later | None:
    """What to do about a connection that could not be made; None where the error's own hint will do."""
    name, later = connection.label, t.later("Try again in a minute.")
    model = t.later("Choose another model.")
    address = None
    if connection.base_url:
        address = t.later("Check the address: most end in /v1.")
    key = t.later(
        "Check that it is a whole key of {name}, and that it has not expired.",
        name=name,
    )
    advice = {
        "auth": key if connection.key else t.later("It needs a key."),
        "billing": t.later("Add credit at {name}, or use another service.", name=name),
        "forbidden": t.later("Choose another model, or use another key."),
        "not_found": address or model,
        "malformed": address,
        "bad_request": model,
        "rate_limited": later,
        "overloaded": later,
        "server": later,
        "timeout": later,
    }
    return advice.get(reason)


async def list_models(connection: Connection, home: Home) -> tuple[OfferedModel, ...]:
    """Lists the models of a service with its key, the usual one first. Raises ModelError if it can't be asked.

    Empty for a known provider that has no list.
    """
    settings, secrets = as_settings(connection, home)
    route = first_route(settings, secrets)
    credential = credentials_of(route, settings, secrets)[0]
    adapter = build_adapter(route, settings, Http(environment()))
    try:
        async with asyncio.timeout(_LIST_TIMEOUT_S):
            await adapter.check_key(credential)
            names = await adapter.list_models(credential)
    except TimeoutError as error:
        raise ModelError(
            t.later(
                "{label} did not answer within {list_timeout_s:.0f} seconds",
                label=connection.label,
                list_timeout_s=_LIST_TIMEOUT_S,
            ),
            hint=t.later("Nothing was changed. Try again later."),
            reason="timeout",
        ) from error
    except ModelError as error:
        if error.reason == "not_found" and not connection.is_custom:
            return ()
        raise
    finally:
        await adapter.close()
    return offered(names, route.quirks.default_model)


def offered(names: Sequence[str], usual: str = "") -> tuple[OfferedModel, ...]:
    """Describes models by name: the usual one first, those that don't chat last."""
    known = all_models()

    def place(name: str) -> tuple[bool, bool, bool, str]:
        return name != usual, not may_chat(name), name not in known, name.lower()

    found: list[OfferedModel] = []
    for name in sorted(dict.fromkeys(names), key=place):
        facts = facts_of(name)
        is_known = facts.family != "" or facts.prices is not None
        found.append(
            OfferedModel(
                name=name,
                is_usual=name == usual,
                window=facts.window if is_known else None,
                input_price=facts.prices.input if facts.prices else None,
                output_price=facts.prices.output if facts.prices else None,
                abilities=_abilities(facts) if is_known else (),
            )
        )
    return tuple(found)


def _abilities(facts: ModelFacts) -> tuple[str, ...]:
    known = (
        (facts.images, "pictures"),
        (facts.reasoning, "reasoning"),
        (not facts.tools, "no tools"),
    )
    return tuple(words for is_so, words in known if is_so)


async def try_model(
    connection: Connection, home: Home, *, timeout_s: float = _TRY_TIMEOUT_S
) -> float:
    """Asks the model for one word. Returns the seconds it took. Raises HermesError if it can't answer."""
    settings, secrets = as_settings(connection, home)
    model = build_model(settings, secrets)
    request = ModelRequest(
        system=("Answer with one word.",),  # not translated
        messages=(UserMessage(text="Say ok."),),  # not translated
        max_output_tokens=64,
    )
    started = time.monotonic()
    try:
        async with asyncio.timeout(timeout_s):
            async for event in model.stream(request):
                if isinstance(event, ReplyFinished):
                    return time.monotonic() - started
    except TimeoutError as error:
        raise ModelError(
            t.later("no answer within {timeout_s:.0f} seconds", timeout_s=timeout_s),
            reason="timeout",
        ) from error
    finally:
        await model.close()
    raise ModelError(t.later("the stream ended early"), reason="malformed")


async def small_context(connection: Connection, home: Home) -> "ServerFacts | None":
    """Returns what a server of one's own says about the model, if the context it gives it is too small for Hermes."""
    settings, secrets = as_settings(connection, home)
    return await small_context_at(first_route(settings, secrets), secrets)


async def small_context_at(route: ModelRoute, secrets: Secrets) -> "ServerFacts | None":
    """The same for a route. None where the context is large enough or not known, and for services elsewhere."""
    is_own = not route.quirks.needs_key and provider_table.is_local(route.base_url)
    if route.provider == EMBEDDED or not is_own:
        return None
    from hermes.providers.server_facts import read_server_facts

    family = route.quirks.family
    kind = family if family in provider_table.INSPECTED_FAMILIES else ""
    key = next(iter(keys_of(route, secrets)), "")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    http = Http(environment())
    try:
        facts = await read_server_facts(
            http, route.base_url, route.model, kind=kind, headers=headers
        )
    finally:
        await http.aclose()
    return facts if facts is not None and facts.has_small_context else None


def as_settings(connection: Connection, home: Home) -> tuple[Settings, Secrets]:
    """Returns the settings and secrets as they would be with the connection."""
    settings, secrets = load(home=home), load_secrets(home=home)
    before = settings.model
    custom = dict(settings.custom_providers)
    if connection.is_custom:
        custom[connection.provider] = msgspec.structs.replace(
            custom.get(connection.provider, CustomProvider()),
            base_url=connection.base_url,
            key_env=connection.key_variable,
        )
    model = msgspec.structs.replace(
        before,
        provider=connection.provider,
        default=connection.model,
        base_url="" if connection.is_custom else connection.base_url,
        api=before.api if before.provider == connection.provider else "auto",
        fallback=(),
        max_attempts=1,
    )
    if connection.key:
        secrets = secrets.with_value(connection.key_variable, connection.key)
    changed = msgspec.structs.replace(settings, model=model, custom_providers=custom)
    return changed, secrets


def save(connection: Connection, home: Home) -> tuple[str, ...]:
    """Makes the connection answer from now on. Returns what the user should know about it."""
    add(connection, home)
    base_url = "" if connection.is_custom else connection.base_url
    notes = list(set_model(home, connection.provider, connection.model, base_url))
    settings = load(home=home)
    if is_on(settings.model):
        notes += disable(_switch(home, settings)).lines[:1]
    variable = connection.key_variable
    in_environment = environment().get(variable) if variable else None
    if connection.key and in_environment and in_environment != connection.key:
        notes.append(
            t(
                "{variable} is set in your shell and overrides the new key.",
                variable=variable,
            )
        )
    return tuple(notes)


def add(connection: Connection, home: Home) -> None:
    """Stores the key, and the address of a service of one's own. The model that answers stays."""
    home.ensure()
    if connection.key:
        set_secret(home.env_file, connection.key_variable, connection.key)
    if not connection.is_custom:
        return
    prefix = f"custom_providers.{connection.provider}"
    set_value(home.config, f"{prefix}.base_url", connection.base_url)
    if connection.key_variable:
        set_value(home.config, f"{prefix}.key_env", connection.key_variable)
    else:
        unset_value(home.config, f"{prefix}.key_env")


def set_model(
    home: Home, provider: str, model: str, base_url: str = ""
) -> tuple[str, ...]:
    """Writes the choice to config.yaml; values that belonged to the provider before it are removed.

    Returns the variables that still win over it, in sentences.
    """
    path = home.ensure().config
    changes = load(home=home).model.provider != provider
    set_value(path, "model.provider", provider)
    for key, value in (("model.default", model), ("model.base_url", base_url)):
        if value:
            set_value(path, key, value)
        else:
            unset_value(path, key)
    if changes:
        unset_value(path, "model.api")
    return tuple(
        t("{name} is set and overrides config.yaml.", name=name)
        for name in _MODEL_VARIABLES
        if name in environment()
    )


def has_codex_login(home: Home) -> bool:
    """Whether codex is here and somebody signed in with it."""
    try:
        settings = load(home=home)
        switch = _switch(home, settings)
        program = find_codex(switch.environ, settings.codex.binary)
    except HermesError:
        return False
    return program is not None and (switch.codex_home / "auth.json").is_file()


async def use_codex_login(home: Home) -> tuple[str, ...]:
    """Lets codex run the turns with its sign-in. Returns what was done. Raises HermesError if codex can't."""
    return (await enable(_switch(home, load(home=home)))).lines


def _switch(home: Home, settings: Settings) -> SwitchContext:
    from hermes.codex.tools_server import serve_command

    return SwitchContext(
        home=home,
        settings=settings,
        environ=environment(),
        tool_server=serve_command(),
    )

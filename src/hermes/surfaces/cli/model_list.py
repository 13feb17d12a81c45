"""What `hermes model list` and `show` print, and the choice at a terminal."""

import sys

import msgspec

from hermes.codex.engine_choice import codex_model, is_on
from hermes.errors import UsageError
from hermes.providers import quirks
from hermes.providers.catalogue import ModelFacts, all_models
from hermes.providers.routing import EMBEDDED, Route, first_route, route_facts, route_to
from hermes.settings import Secrets, Settings
from hermes.settings.load import find_home, load, load_secrets
from hermes.surfaces.terminal.text import Screen, cut, stdout_screen, table, width
from hermes.surfaces.terminal.weights_download import models_folder

_MODEL = 28  # cells of a model's name


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One line: a provider with its usual model, or a model."""

    provider: str
    model: str
    window: int
    input_price: float | None
    output_price: float | None
    key: str
    key_set: bool
    current: bool

    @property
    def ready(self) -> str:
        """Whether it can be asked, in a word or two."""
        if self.provider == EMBEDDED:
            return "ready" if self.key_set else "not fetched"
        if not self.key:
            return "needs no key"
        return "key set" if self.key_set else "no key"


def print_list(provider: str, *, as_json: bool) -> int:
    """Every provider with its usual model, or every known model of one."""
    home = find_home()
    settings, secrets = load(home=home), load_secrets(home=home)
    listed = (
        models_of(provider, settings, secrets)
        if provider
        else providers(settings, secrets)
    )
    if as_json:
        print(
            msgspec.json.format(
                msgspec.json.encode({"models": listed}), indent=2
            ).decode()
        )
        return 0
    screen = stdout_screen()
    for line in lines_of(listed, screen):
        print(line)
    if not provider:
        print(
            screen.style.dim(
                "\n* answers now.\nMore of one: hermes model list PROVIDER"
            )
        )
        if engine := _codex(settings):
            print(f"Engine: {engine}")
    return 0


def providers(settings: Settings, secrets: Secrets) -> list[Listed]:
    """The local model, the user's own services, then every known provider."""
    current = first_route(settings, secrets)
    names = [
        EMBEDDED,
        *settings.custom_providers,
        *(family.family for family in quirks.FAMILIES),
    ]
    listed = [
        _listed(name, settings, secrets, current) for name in dict.fromkeys(names)
    ]
    if current.provider not in names:
        listed.insert(0, _line(current, secrets, is_current=True))
    return listed


def models_of(provider: str, settings: Settings, secrets: Secrets) -> list[Listed]:
    """Every known model of a provider."""
    current = first_route(settings, secrets)
    if provider == EMBEDDED:
        from hermes.providers.embedded import CATALOGUE

        names = list(CATALOGUE)
    else:
        route = route_to(settings, secrets, provider, "")
        family = route.quirks.family
        names = [
            *route.custom,
            *(
                name
                for name, facts in all_models().items()
                if facts.family == family and not name.endswith("-")
            ),
        ]
    if not names:
        raise UsageError(
            f"Hermes knows no model of {provider} by name.",
            hint=f"Ask for one: --model {provider}:NAME",
        )
    found = [route_to(settings, secrets, provider, name) for name in names]
    return [
        _line(
            one,
            secrets,
            is_current=provider == current.provider and one.model == current.model,
        )
        for one in found
    ]


def current_model(settings: Settings, secrets: Secrets) -> Listed:
    """The model that answers now."""
    return _line(first_route(settings, secrets), secrets, is_current=True)


def print_current(*, as_json: bool) -> int:
    """The model that answers now."""
    home = find_home()
    settings, secrets = load(home=home), load_secrets(home=home)
    route = first_route(settings, secrets)
    line = _line(route, secrets, is_current=True)
    if as_json:
        address = {"base_url": route.base_url, "api": route.api}
        print(
            msgspec.json.format(
                msgspec.json.encode(msgspec.to_builtins(line) | address), indent=2
            ).decode()
        )
        return 0
    rows = [
        ("engine", _codex(settings)),
        ("provider", route.provider),
        ("model", line.model),
        ("address", route.base_url),
        ("window", f"{line.window:,} tokens" if line.model else ""),
        ("price", _price(line) if line.model else ""),
        ("state", f"{line.ready} ({line.key})" if line.key else line.ready),
    ]
    width = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        if value:
            print(f"{name:<{width}}{value}")
    return 0


def _codex(settings: Settings) -> str:
    """Says that codex runs the turns; empty when Hermes does."""
    if not is_on(settings.model):
        return ""
    name = codex_model(settings.model) or "its own model"
    return f"codex runs your turns, with {name}; the model marked here does everything else"


def lines_of(listed: list[Listed], screen: Screen) -> list[str]:
    """A table; on a narrow screen two lines each."""
    if screen.is_narrow:
        lines: list[str] = []
        for one in listed:
            lines.append(
                cut(
                    f"{'*' if one.current else ' '} {one.provider}  {one.ready}",
                    screen.columns,
                )
            )
            lines.append(cut(f"    {one.model or '-'}".rstrip(), screen.columns))
        return lines
    lines = _table(listed, _MODEL)
    excess = max(map(width, lines)) - screen.columns
    if excess > 0:
        lines = [
            cut(line, screen.columns)
            for line in _table(listed, max(_MODEL - excess, 12))
        ]
    painted = [screen.style.bold(lines[0])]
    for one, line in zip(listed, lines[1:], strict=True):
        dim = one.key and not one.key_set and not one.current
        painted.append(
            screen.style.green(line)
            if one.current
            else screen.style.dim(line)
            if dim
            else line
        )
    return painted


def _table(listed: list[Listed], room: int) -> list[str]:
    """The rows, with that many cells for a model's name."""
    rows = [("", "PROVIDER", "", "MODEL", "WINDOW", "$/M IN", "OUT")]
    rows += [
        (
            "*" if one.current else "",
            one.provider,
            one.ready,
            cut(one.model or "-", room),
            *_numbers(one),
        )
        for one in listed
    ]
    return table(rows, right=(4, 5, 6))


def choose() -> str:
    """Lets a person choose a provider by number, then a model."""
    home = find_home()
    listed = providers(load(home=home), load_secrets(home=home))
    for number, one in enumerate(listed, 1):
        print(f"{number:>3}  {one.provider:<16}{one.ready}")
    answer = ask_line(f"Which provider? [1-{len(listed)}] ")
    if not answer.isdecimal() or not 1 <= int(answer) <= len(listed):
        raise UsageError("That is no number of the list.", hint="Nothing was changed.")
    one = listed[int(answer) - 1]
    model = ask_line(f"Which model? [{one.model}] ")
    return f"{one.provider}:{model}"


def ask_line(prompt: str) -> str:
    """One line from the person at the terminal."""
    print(prompt, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        print()
        raise UsageError("No answer came.", hint="Nothing was changed.")
    return line.strip()


def _listed(name: str, settings: Settings, secrets: Secrets, current: Route) -> Listed:
    if name == current.provider:
        return _line(current, secrets, is_current=True)
    return _line(route_to(settings, secrets, name, ""), secrets, is_current=False)


def _line(route: Route, secrets: Secrets, *, is_current: bool) -> Listed:
    if route.embedded:
        return _embedded(route, is_current=is_current)
    facts: ModelFacts = route_facts(route)
    key = (
        route.key_variable
        if route.quirks.needs_key or route.key_variable != route.quirks.key_variable
        else ""
    )
    return Listed(
        provider=route.provider,
        model=route.model,
        window=facts.window,
        input_price=facts.prices.input if facts.prices else None,
        output_price=facts.prices.output if facts.prices else None,
        key=key,
        key_set=bool(key) and secrets.get(key) is not None,
        current=is_current,
    )


def _embedded(route: Route, *, is_current: bool) -> Listed:
    from hermes.providers.embedded import CATALOGUE, DEFAULT, find

    name = route.model or DEFAULT
    entry = CATALOGUE.get(name)
    here = find(entry, models_folder()) is not None if entry else True
    return Listed(
        provider=EMBEDDED,
        model=name,
        window=4096,
        input_price=0.0,
        output_price=0.0,
        key="",
        key_set=here,
        current=is_current,
    )


def _numbers(one: Listed) -> tuple[str, str, str]:
    if not one.model:
        return "", "", ""
    return f"{one.window // 1000:,}k", *_prices(one)


def _prices(one: Listed) -> tuple[str, str]:
    if one.input_price is None or one.output_price is None:
        return "?", "?"
    return (
        (f"{one.input_price:g}", f"{one.output_price:g}")
        if one.output_price
        else ("free", "")
    )


def _price(one: Listed) -> str:
    first, second = _prices(one)
    if first == "?":
        return "not known"
    return f"${first} in, ${second} out per million tokens" if second else "free"

"""Models: list them, choose the one that answers, and show the tokens and cost of their calls."""

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hermes.app.model_info import ModelInfo
from hermes.codex.engine_choice import codex_model, is_on
from hermes.commands.command import Arg, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.views import (
    Block,
    Column,
    Look,
    Record,
    TableRow,
    TextResult,
    line,
    message,
    table,
)
from hermes.errors import NotFound, SessionNotFound
from hermes.providers import provider_table
from hermes.providers.catalogue import all_models
from hermes.providers.routing import (
    EMBEDDED,
    ModelRoute,
    first_route,
    is_signed_in,
    route_facts,
    route_to,
)
from hermes.settings import Secrets, Settings
from hermes.settings.load import environment
from hermes.settings.redaction import mask
from hermes.store.sessions import UsageRow
from hermes.text.formats import DAY_S, dollars
from hermes.text.translation import to_translate, translator

t = translator(__name__)


EXAMPLES = {
    "model": to_translate("""\
examples:
  hermes model list                        providers, their usual models, which keys are set
  hermes model pick anthropic              use Anthropic's usual model
  hermes model pick openrouter:z-ai/glm-5  ... or a certain one
  hermes model add base                    download the local model
  hermes model add ~/models/qwen.gguf      use a GGUF file of your own
  hermes model add lab --base-url http://lab:8000/v1 --model qwen3
  hermes model test                        does the model answer and call a tool? (--full: many tasks)
""")
}
_EMBEDDED_WINDOW_TOKENS = 4096
_MAX_DAYS = 36_500
_MAX_LISTED_MODELS = 20
_COUNTS = (
    "calls",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A provider with its usual model, or a model."""

    provider: str
    model: str
    window: int
    input_price: float | None
    output_price: float | None
    key: str
    key_set: bool
    current: bool
    sign_in: str = ""
    """What to sign in with, where that is possible."""
    signed_in: bool = False

    @property
    def ready(self) -> str:
        """Whether it can be used, in a word or two."""
        if self.provider == EMBEDDED:
            return t("ready") if self.key_set else t("not downloaded")
        if self.signed_in:
            return t("signed in")
        if not self.key:
            return t("sign in first") if self.sign_in else t("needs no key")
        return t("key set") if self.key_set else t("no key")

    @property
    def prices(self) -> tuple[str, str]:
        """Dollars for a million tokens, in and out."""
        if self.input_price is None or self.output_price is None:
            return "?", "?"
        if not self.output_price:
            return t("free"), ""
        return f"{self.input_price:g}", f"{self.output_price:g}"

    @property
    def price(self) -> str:
        """The prices in a sentence."""
        into, out = self.prices
        if into == "?":
            return t("unknown")
        return (
            t("${into} in, ${out} out per million tokens", into=into, out=out)
            if out
            else into
        )


class ModelListing(msgspec.Struct, frozen=True, kw_only=True):
    """Providers with their usual models, or the models of one."""

    models: tuple[ListedModel, ...]
    is_overview: bool
    engine: str = ""

    def document(self) -> Any:
        return {"models": self.models}

    def view(self, _now: float) -> Iterable[Block]:
        columns = (
            Column(),
            Column(t("PROVIDER")),
            Column(),
            Column(t("MODEL"), widest=28, shrinks=True),
            Column(t("WINDOW"), right=True),
            Column(t("$/M IN"), right=True),
            Column(t("OUT"), right=True),
        )
        rows = [_model_row(one) for one in self.models]
        yield table(columns, rows, narrow=((0, 1, 2), (3,)))
        if self.is_overview:
            yield line(t("\n* answers now.\nAll models of a provider: hermes model list PROVIDER"), "dim")  # fmt: skip
        if self.is_overview and self.engine:
            yield line(t("Engine: {engine}", engine=self.engine))


class CurrentModel(msgspec.Struct, frozen=True, kw_only=True):
    """The model that answers now."""

    model: ListedModel
    base_url: str
    api: str
    engine: str

    def document(self) -> Any:
        address = {"base_url": self.base_url, "api": self.api}
        return msgspec.to_builtins(self.model) | address

    def view(self, _now: float) -> Iterable[Block]:
        one = self.model
        rows = (
            (t("engine"), self.engine),
            (t("provider"), one.provider),
            (t("model"), one.model),
            (t("address"), self.base_url),
            (t("window"), f"{one.window:,} tokens" if one.model else ""),
            (t("price"), one.price if one.model else ""),
            (t("state"), f"{one.ready} ({one.key})" if one.key else one.ready),
        )
        yield Record(rows)


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and cost, by day and model."""

    days: tuple[UsageRow, ...]

    @property
    def total(self) -> dict[str, Any]:
        sums = {name: sum(getattr(row, name) for row in self.days) for name in _COUNTS}
        return sums | {
            "cost_usd": sum(row.cost_usd for row in self.days),
            "unpriced_calls": sum(row.unpriced_calls for row in self.days),
        }

    def document(self) -> Any:
        return {"days": list(map(msgspec.to_builtins, self.days)), "total": self.total}

    def view(self, _now: float) -> Iterable[Block]:
        if not self.days:
            yield line(t("There were no model calls in that time."))
            return
        total = self.total
        last = (
            t("total"), "", f"{total['calls']:,}", f"{total['input_tokens']:,}", "",
            f"{total['output_tokens']:,}", dollars(total["cost_usd"]),
        )  # fmt: skip
        numbers = (t("CALLS"), t("TOKENS IN"), t("CACHED"), t("TOKENS OUT"), t("COST"))
        columns = (
            Column(t("DAY (UTC)")),
            Column(t("MODEL"), widest=34),
            *(Column(title, right=True) for title in numbers),
        )
        rows = [TableRow(_usage_cells(row)) for row in self.days]
        rows.append(TableRow(last, "bold"))
        yield table(columns, rows, narrow=((0, 6, 1), (2, 3, 5)), cut=False)
        yield from self._unpriced()

    def _unpriced(self) -> Iterator[Block]:
        """Calls whose price is unknown are listed, never counted as free."""
        names = sorted({_usage_name(row) for row in self.days if row.unpriced_calls})
        if not names:
            return
        calls = self.total["unpriced_calls"]
        yield line(
            t(
                "\nThe price of {count:,} call is unknown and not in the total: {names}.",
                "\nThe price of {count:,} calls is unknown and not in the total: {names}.",
                count=calls,
                names=", ".join(names),
            ),
            "warn",
        )
        yield line(
            t(
                "Set it in custom_providers.NAME.models.MODEL: input_price and output_price."
            ),
            "dim",
        )


@command("model list", scope="observe")
def list_models(
    context: CommandContext,
    provider: Annotated[str, "every known model of this provider"] = "",
) -> ModelListing:
    """List providers and models, with window, price and whether a key is set."""
    settings, secrets = context.settings, context.secrets
    found = (
        models_of(provider, settings, secrets)
        if provider
        else providers(settings, secrets)
    )
    return ModelListing(
        models=tuple(found), is_overview=not provider, engine=_codex_engine(settings)
    )


@command("model show", scope="observe")
def show_model(context: CommandContext) -> CurrentModel:
    """Show the model that answers now."""
    settings, secrets = context.settings, context.secrets
    route = first_route(settings, secrets)
    return CurrentModel(
        model=_listed(route, settings, secrets, is_current=True),
        base_url=mask(route.base_url),
        api=route.api,
        engine=_codex_engine(settings),
    )


@command(slash="model name", role="owner", group="Model")
async def choose_chat_model(
    context: CommandContext,
    session: SessionId,
    name: Annotated[str, Arg("MODEL or PROVIDER:MODEL", metavar="NAME")] = "",
    *,
    force: Annotated[bool, "accept a name that the service does not list"] = False,
) -> TextResult:
    """Show which model answers in this chat, or change it."""
    chat = context.chat
    if name:
        return message(await chat.use_model(name, force=force))
    answers = model_in_words(chat.agent.describe(session))
    names = await chat.model_names()
    others = [f"- {one}" for one in names[:_MAX_LISTED_MODELS]]
    return message(
        answers, *others, t("Change it: /model NAME, or /model PROVIDER:NAME")
    )


@command("usage", scope="observe")
def show_usage(
    context: CommandContext,
    *,
    days: Annotated[
        int, Arg("the last N days (default: 30)", metavar="N", at_least=1)
    ] = 30,
    session: Annotated[
        str, Arg("only this session: its id, its title, or last", metavar="ID")
    ] = "",
) -> UsageReport:
    """Show tokens and cost, by day and model."""
    app = context.app
    if not app.has_log and session:
        raise SessionNotFound(
            t("there are no sessions yet"), hint=t('Start one: hermes "hello"')
        )
    if not app.has_log:
        return UsageReport(days=())
    only = app.store.sessions.find(session).id if session else ""
    first = app.clock.now() - (min(days, _MAX_DAYS) - 1) * DAY_S
    day = time.strftime("%Y-%m-%d", time.gmtime(first))
    return UsageReport(
        days=tuple(app.store.sessions.usage(session=only, since_day=day))
    )


@command(slash="usage", role="user", group="Model")
def show_session_usage(context: CommandContext, session: SessionId) -> TextResult:
    """Show tokens and cost of this session."""
    rows = context.app.store.sessions.usage(session=session)
    calls = t(
        "{count:,} model call",
        "{count:,} model calls",
        count=sum(row.calls for row in rows),
    )
    tokens = t(
        "{count:,} token",
        "{count:,} tokens",
        count=sum(row.input_tokens + row.output_tokens for row in rows),
    )
    spent = sum(row.cost_usd for row in rows)
    unpriced = sorted({_usage_name(row) for row in rows if row.unpriced_calls})
    cost = dollars(spent) if spent or not unpriced else t("cost unknown")
    note = (
        t(" (no price for {unpriced})", unpriced=", ".join(unpriced))
        if unpriced
        else ""
    )
    return message(
        t(
            "This session: {calls}, {tokens}, {cost}{note}",
            calls=calls,
            tokens=tokens,
            cost=cost,
            note=note,
        ),
        *_account_limits(context),
    )


def _account_limits(context: CommandContext) -> list[str]:
    """What is left of the limits of signed-in accounts, as last seen."""
    if not context.home.accounts.exists():
        return []
    from hermes.app.sign_ins import SignIns

    now = time.time()
    return [
        f"{one.id}: {limit.sentence(now)}"
        for one in SignIns(context.home).states()
        for limit in one.limits
    ]


def model_in_words(model: ModelInfo, found: str = "") -> str:
    """Says which model answers; `found` is its name if only its service knows it."""
    if model.provider == EMBEDDED:
        from hermes.providers.local_model import full_name

        return f"{full_name(model.name)} answers."
    own = (
        t("with its own model")
        if model.engine == "codex"
        else t("with its first model")
    )
    return f"{model.provider} {model.name or found or own} answers."


def providers(settings: Settings, secrets: Secrets) -> list[ListedModel]:
    """The local model, the user's own services, then every known provider."""
    current = first_route(settings, secrets)
    families = (family.family for family in provider_table.FAMILIES)
    names = dict.fromkeys((EMBEDDED, *settings.custom_providers, *families))
    listed = (
        []
        if current.provider in names
        else [_listed(current, settings, secrets, is_current=True)]
    )
    for name in names:
        is_current = name == current.provider
        route = current if is_current else route_to(settings, secrets, name, "")
        listed.append(_listed(route, settings, secrets, is_current=is_current))
    return listed


def models_of(provider: str, settings: Settings, secrets: Secrets) -> list[ListedModel]:
    """Every known model of a provider."""
    current = first_route(settings, secrets)
    names = _model_names(provider, settings, secrets)
    if not names:
        raise NotFound(
            t("Hermes knows no model of {provider} by name.", provider=provider),
            hint=t("Ask for one: --model {provider}:NAME", provider=provider),
        )
    routes = [route_to(settings, secrets, provider, name) for name in names]
    is_provider = provider == current.provider
    return [
        _listed(
            one,
            settings,
            secrets,
            is_current=is_provider and one.model == current.model,
        )
        for one in routes
    ]


def current_model(settings: Settings, secrets: Secrets) -> ListedModel:
    """The model that answers now."""
    return _listed(first_route(settings, secrets), settings, secrets, is_current=True)


def _model_names(provider: str, settings: Settings, secrets: Secrets) -> list[str]:
    if provider == EMBEDDED:
        from hermes.providers.embedded import known_models

        return list(known_models(settings.local_models))
    route = route_to(settings, secrets, provider, "")
    known = (
        name
        for name, facts in all_models().items()
        if facts.family == route.quirks.family and not name.endswith("-")
    )
    return [*route.custom, *known]


def _codex_engine(settings: Settings) -> str:
    """Says that codex runs the turns; empty when Hermes does."""
    if not is_on(settings.model):
        return ""
    name = codex_model(settings.model) or t("its own model")
    return t(
        "codex runs your turns, with {name}; the model marked here does everything else",
        name=name,
    )


def _listed(
    route: ModelRoute, settings: Settings, secrets: Secrets, *, is_current: bool
) -> ListedModel:
    if route.embedded:
        return _embedded(route, settings, is_current=is_current)
    facts = route_facts(route)
    own_key = route.key_variable != route.quirks.key_variable
    key = route.key_variable if route.quirks.needs_key or own_key else ""
    return ListedModel(
        provider=route.provider,
        model=route.model,
        window=facts.window,
        input_price=facts.prices.input if facts.prices else None,
        output_price=facts.prices.output if facts.prices else None,
        key=key,
        key_set=bool(key) and secrets.get(key) is not None,
        current=is_current,
        sign_in=route.quirks.sign_in,
        signed_in=is_signed_in(route, secrets),
    )


def _embedded(
    route: ModelRoute, settings: Settings, *, is_current: bool
) -> ListedModel:
    from hermes.providers.embedded import find, known_models, models_folder
    from hermes.providers.local_model import default_name

    name = route.model or default_name()
    entry = known_models(settings.local_models).get(name)
    folder = models_folder(environment(), Path.home())
    is_here = entry is None or find(entry, folder) is not None
    return ListedModel(
        provider=EMBEDDED,
        model=name,
        window=entry.context_tokens if entry else _EMBEDDED_WINDOW_TOKENS,
        input_price=0.0,
        output_price=0.0,
        key="",
        key_set=is_here,
        current=is_current,
    )


def _model_row(one: ListedModel) -> TableRow:
    look: Look = "good" if one.current else ""
    is_ready = one.signed_in or one.key_set or not (one.key or one.sign_in)
    if not is_ready and not one.current:
        look = "dim"
    mark = "*" if one.current else ""
    numbers = ("", "", "")
    if one.model:
        numbers = (f"{one.window // 1000:,}k", *one.prices)
    return TableRow((mark, one.provider, one.ready, one.model or "-", *numbers), look)


def _usage_cells(row: UsageRow) -> tuple[str, ...]:
    cost = dollars(row.cost_usd) + "+" * bool(row.unpriced_calls)
    if row.unpriced_calls and not row.cost_usd:
        cost = "?"
    numbers: Sequence[int] = (
        row.calls,
        row.input_tokens,
        row.cache_read_tokens,
        row.output_tokens,
    )
    return (row.day, _usage_name(row), *(f"{number:,}" for number in numbers), cost)


def _usage_name(row: UsageRow) -> str:
    return f"{row.provider}:{row.model}" if row.provider else row.model

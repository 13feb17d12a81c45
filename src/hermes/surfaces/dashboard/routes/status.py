"""Routes of the dashboard's state: status, usage, settings, tools, MCP servers, doctor."""

import asyncio
import shlex
import typing
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hermes import __version__
from hermes.app.agent import ModelChoice
from hermes.commands.context import CommandContext
from hermes.commands.doctor import check_installation
from hermes.commands.mcp import list_servers
from hermes.commands.tools import tools_of
from hermes.errors import HermesError, ModelError, for_reader
from hermes.events import default_bus
from hermes.providers.local_model import PROVIDER as EMBEDDED
from hermes.providers.local_model import require_weights
from hermes.providers.routing import require_provider
from hermes.settings import Settings, setting_keys
from hermes.settings.edit import set_value, unset_value
from hermes.settings.key_shapes import HIDDEN
from hermes.settings.load import environment, load
from hermes.settings.redaction import mask
from hermes.settings.value_origins import entries
from hermes.store.sessions import SurfaceUsage, UsageRow
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.commands import HttpSurface, run_command
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.text.translation import translator
from hermes.tools.toolsets import toolset_of

t = translator(__name__)


class DashboardStatus(msgspec.Struct, frozen=True):
    version: str
    started: float
    model: str
    model_problem: str
    feeds: dict[str, int]
    ingest: dict[str, Any]
    bus: dict[str, Any]
    wrong_credentials: int
    terminals: int
    running: Annotated[
        list[str],
        Meta(description="Sessions that are at work, whichever process runs them."),
    ]


class UsagePeriod(msgspec.Struct, frozen=True):
    since: Annotated[str, Meta(pattern=r"^$|^\d{4}-\d{2}-\d{2}$")] = ""
    session: str = ""


class UsageAnswer(msgspec.Struct, frozen=True):
    usage: list[UsageRow]
    surfaces: Annotated[
        list[SurfaceUsage],
        Meta(description="The same by surface; not of a single session."),
    ] = []


class Setting(msgspec.Struct, frozen=True):
    """One setting: its current value, where that comes from, and the values it may have."""

    key: str
    kind: str
    description: str
    default: Any
    value: Any
    origin: str
    variable: str
    choices: list[str]
    masked: Annotated[
        bool, Meta(description="Something in it looks like a key and is not shown.")
    ]


class SettingList(msgspec.Struct, frozen=True):
    settings: list[Setting]
    file: str
    sections: Annotated[
        dict[str, str],
        Meta(description="What each section is about, by the first word of its keys."),
    ]


class NewValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value as a person would type it."""

    value: str


class SettingApplied(msgspec.Struct, frozen=True):
    """When a change takes effect here."""

    applies: str = "restart"


class ToolRow(msgspec.Struct, frozen=True):
    name: str
    toolset: str
    effect: str
    summary: str
    offered: bool


class ToolList(msgspec.Struct, frozen=True):
    tools: list[ToolRow]


class McpServerList(msgspec.Struct, frozen=True):
    servers: list[dict[str, Any]]


class Models(msgspec.Struct, frozen=True):
    current: str
    label: str
    choices: list[ModelChoice]


class StateRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._app = dashboard.app
        self._examining = asyncio.Lock()  # one at a time: each is a process

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET", "/api/status", "observe", self.status, answer=DashboardStatus
            ),
            Endpoint("GET", "/api/models", "observe", self.models, answer=Models),
            Endpoint(
                "GET",
                "/api/usage",
                "observe",
                self.usage,
                UsagePeriod,
                answer=UsageAnswer,
            ),
            Endpoint(
                "GET", "/api/settings", "observe", self.settings, answer=SettingList
            ),
            Endpoint(
                "PUT",
                "/api/settings/{key}",
                "admin",
                self.change,
                body=NewValue,
                answer=SettingApplied,
            ),
            Endpoint(
                "DELETE",
                "/api/settings/{key}",
                "admin",
                self.restore,
                answer=SettingApplied,
            ),
            Endpoint("GET", "/api/tools", "observe", self.tools, answer=ToolList),
            Endpoint("GET", "/api/mcp", "observe", self.mcp, answer=McpServerList),
            Endpoint("GET", "/api/doctor", "observe", self.doctor, answer=None),
        ]

    async def status(self) -> DashboardStatus:
        """The status of this dashboard."""
        board, ingest = self._board, self._board.ingest
        model, problem = await asyncio.to_thread(self._model)
        stats = default_bus().stats()
        feed = board.feed
        feeds = {
            "open": feed.readers,
            "lost": feed.dropped,
            "closed_slow": feed.closed_slow,
            "replaced": feed.encoder.replaced,
        }
        counts = {
            "published": ingest.published,
            "refused": ingest.refused,
            "known": ingest.known,
        }
        names = ("delivered", "failed", "dropped", "pending", "refused", "unencodable")
        bus = {name: getattr(stats, name) for name in names}
        return DashboardStatus(
            version=__version__,
            started=board.started,
            model=model,
            model_problem=problem,
            feeds=feeds,
            ingest=counts | {"publishers": ingest.publishers},
            bus=bus | {"subscriptions": [one._asdict() for one in stats.subscriptions]},
            wrong_credentials=board.access.throttle.failures,
            terminals=len(board.terminals.overview()),
            running=await asyncio.to_thread(board.running),
        )

    def models(self) -> Models:
        """The current model, and others to choose from."""
        current, _ = self._model()
        label = self._board.agent.describe().full_label if current else ""
        return Models(current, label, self._board.agent.choices())

    def usage(self, call: EndpointCall) -> UsageAnswer:
        """Tokens and cost, by day and model."""
        if not self._app.has_log:
            return UsageAnswer([])
        query: UsagePeriod = call.query
        sessions = self._app.store.sessions
        usage = sessions.usage(session=query.session, since_day=query.since)
        if query.session:
            return UsageAnswer(usage)
        return UsageAnswer(usage, sessions.usage_by_surface(since_day=query.since))

    def settings(self) -> SettingList:
        """Every setting with its meaning. Secrets are not among them."""
        home = self._app.home
        found = [
            Setting(
                key=one.key.name,
                kind=setting_keys.kind(one.key.annotation).shown(),
                description=setting_keys.setting_text(one.key.description),
                default=msgspec.to_builtins(one.key.default),
                value=_masked(one.value),
                origin=one.origin,
                variable=one.key.variable,
                choices=_choices(one.key.annotation),
                masked=_masked(one.value) != one.value,
            )
            for one in entries(environment(), home)
        ]
        sections = {
            field.encode_name: setting_keys.setting_text(
                setting_keys.about_section(section)
            )
            for field in msgspec.structs.fields(Settings)
            if (section := setting_keys.as_section(field.type)) is not None
        }
        return SettingList(found, str(home.config), sections)

    def change(self, call: EndpointCall) -> SettingApplied:
        """Changes one setting in config.yaml; the rest of the file keeps every byte."""
        key = setting_keys.find_key(call.path["key"])
        value = setting_keys.parse_value(key, call.body.value)
        if key.name == "model.provider":
            require_provider(load(home=self._app.home), value)
        self._app.home.ensure()
        set_value(self._app.home.config, key.name, value)
        return SettingApplied()

    def restore(self, call: EndpointCall) -> SettingApplied:
        """Removes a setting from config.yaml, so that its default applies."""
        unset_value(self._app.home.config, call.path["key"])
        return SettingApplied()

    def tools(self) -> ToolList:
        """The tools that the model can use here."""
        with CommandContext(HttpSurface(), app=self._app) as context:
            tools, choice = tools_of(context, "dashboard")
        rows = [
            ToolRow(
                name,
                toolset_of(name),
                tool.effect,
                tool.spec.description,
                choice.wants(name),
            )
            for name, tool in tools.items()
        ]
        return ToolList(rows)

    def mcp(self) -> McpServerList:
        """The MCP servers and their last known state, without connecting."""
        return McpServerList(**run_command(self._app, list_servers).document())

    async def doctor(self) -> Any:
        """The results of `hermes doctor`."""
        async with self._examining:
            with CommandContext(HttpSurface(), app=self._app) as context:
                return (await check_installation.run(context, {})).document()

    def _model(self) -> tuple[str, str]:
        """The current model, or why there is none."""
        try:
            found = self._board.agent.describe()
            if found.provider == EMBEDDED:
                require_weights(found.name, self._app.settings.local_models)
        except ModelError as error:
            if error.reason == "not_found" and self._is_unset():
                return "", t("No model is connected yet.")
            return "", for_reader(error)
        except HermesError as error:
            return "", for_reader(error)
        return f"{found.provider}:{found.name}".removesuffix(":"), ""

    def _is_unset(self) -> bool:
        """Whether nobody has chosen a model."""
        chosen = self._app.settings.model
        return chosen.provider == "auto" and not chosen.default


def _choices(annotation: object) -> list[str]:
    base, _ = setting_keys.unwrap(annotation)
    if typing.get_origin(base) is typing.Literal:
        return [str(value) for value in typing.get_args(base)]
    return ["true", "false"] if base is bool else []


def _masked(value: object) -> Any:
    """Masks anything that looks like a key."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {name: _masked(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        pairs = pairwise(("", *value))
        return type(value)(_masked_word(before, word) for before, word in pairs)
    return value


def _masked_word(before: object, word: object) -> Any:
    """A word of a list, which may be a command: what follows `--token` is a secret, whatever its shape."""
    if isinstance(before, str) and isinstance(word, str) and before.startswith("-"):
        pair = shlex.join((before, word))
        if mask(pair) != pair and mask(before) == before and mask(word) == word:
            return HIDDEN
    return _masked(word)

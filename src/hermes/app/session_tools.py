"""The tools of all sessions of one process."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import msgspec

from hermes.app.app import App
from hermes.app.past_sessions import StoreRecall
from hermes.core.ports import Tool
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings import Home, Secrets
from hermes.settings.load import environment
from hermes.tools import Needs, close_tools, session_tools
from hermes.tools.files.file_stamps import FileStamps
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.session_commands import Surroundings
from hermes.tools.toolsets import SURFACES, ToolChoice
from hermes.tools.web import web_tools

if TYPE_CHECKING:
    from hermes.mcp import McpServers
    from hermes.tools.web.fetch import Digest

_MAX_CACHED_TOOLSETS = 1_024  # whose tools are kept: as many as may work at once


class SessionTools:
    """Makes and closes the tools of each session, which know what it has read and where its terminal is.

    `more` returns further tools for a session. `digest` shortens long web pages.
    """

    def __init__(
        self,
        app: App,
        secrets: Secrets,
        more: Callable[[str], tuple[Tool, ...]],
        digest: "Digest | None" = None,
    ) -> None:
        self._app = app
        self._secrets = secrets
        self._more = more
        self._digest = digest
        self._tools: RecentDict[str, Mapping[str, Tool]] = RecentDict(
            _MAX_CACHED_TOOLSETS, self._clear_up
        )
        self._seen: dict[str, FileStamps] = {}
        self._closing = BackgroundTasks("ending the tools of a session")

    @cached_property
    def servers(self) -> "McpServers | None":
        """The MCP servers; None if none is configured."""
        settings = self._app.settings.mcp_servers
        if not settings:
            return None
        from hermes.mcp import McpServers

        return McpServers(settings, self._app.home, self._secrets, environment())

    async def prepare(self) -> None:
        """Asks MCP servers that were never asked what they offer, before a session's tools are fixed. Waits only briefly."""
        if self.servers is not None:
            await self.servers.prepare()

    def of(self, session: str) -> Mapping[str, Tool]:
        """The tools of a session."""
        return self._tools.get_or_make(session, lambda: self._make(session))

    def forget_files(self, session: str) -> None:
        """Forgets what a session's tools know of files, after files were restored."""
        if session in self._seen:
            self._seen[session].forget()

    async def close(self) -> None:
        """Ends what tools left running, and closes the servers."""
        tools = list(self._tools.values())
        self._tools.clear()
        await asyncio.gather(*(close_tools(one) for one in tools))
        await self._closing.join()
        if self.servers is not None:
            await self.servers.close()

    def _make(self, session: str) -> Mapping[str, Tool]:
        served = (
            tuple(self.servers.tools().values()) if self.servers is not None else ()
        )
        info = self._app.store.sessions.origin(session)
        if info.kind == "child":
            info = self._app.store.sessions.origin(info.root)
        person = self._app.person(session)
        extra = (
            *self._more(session),
            *served,
            *(() if person else self._scheduling(info.surface)),
        )
        needs = needs_of(
            self._app,
            self._secrets,
            surface=info.surface,
            extra=extra,
            digest=self._digest,
        )
        if person:  # past sessions belong to the user
            choice = msgspec.structs.replace(
                needs.choice, disabled=(*needs.choice.disabled, "sessions")
            )
            needs = msgspec.structs.replace(needs, choice=choice)
        self._seen[session] = seen = FileStamps()
        return session_tools(msgspec.structs.replace(needs, seen=seen))

    def _scheduling(self, surface: str) -> tuple[Tool, ...]:
        """The tools for jobs, if they are offered."""
        if not offers_schedules(self._app, surface):
            return ()
        from hermes.app.schedules.tools import schedule_tools

        return schedule_tools(self._app, surface)

    def _clear_up(self, session: str, tools: Mapping[str, Tool]) -> None:
        self._seen.pop(session, None)
        self._closing.start(close_tools(tools))


def offers_schedules(app: App, surface: str) -> bool:
    """Whether to offer tools for jobs. `auto` means in chats, and wherever there are jobs. Creates nothing."""
    wanted = app.settings.schedules.tool
    in_chat = surface == "gateway" or surface not in SURFACES
    return wanted == "on" or (
        wanted == "auto" and (in_chat or (app.has_log and app.store.has_jobs))
    )


def needs_of(
    app: App,
    secrets: Secrets,
    *,
    surface: str = "cli",
    extra: tuple[Tool, ...] = (),
    digest: "Digest | None" = None,
) -> Needs:
    """What `session_tools` needs. `extra` are further tools."""
    settings = app.settings
    choice = ToolChoice(surface, settings.tools.enabled, settings.tools.disabled)
    around = surroundings_of(app)
    outputs = OutputFolder(around.readable[0])
    web = tuple(web_tools(settings.web, secrets, outputs, environment(), digest))
    return Needs(
        outputs=outputs.path,
        environment=environment(),
        hermes_home=around.hermes_home,
        recall=StoreRecall(lambda: app.store),
        surroundings=around,
        extra=(
            *web,
            *(_browser(app, outputs) if choice.wants("browser_open") else ()),
            *extra,
        ),
        choice=choice,
    )


def surroundings_of(app: App) -> Surroundings:
    """The environment and the sandbox of commands."""
    return _surroundings(app.home, app.settings.sandbox.hide_secrets)


@lru_cache(maxsize=8)
def _surroundings(home: Home, hide_secrets: bool) -> Surroundings:
    """The same for all sessions: a gateway remembers the tools of many."""
    readable = (home.cache / "outputs", home.skills)
    return Surroundings(environment(), home.root, readable, hide_secrets=hide_secrets)


def _browser(app: App, outputs: OutputFolder) -> tuple[Tool, ...]:
    from hermes.tools.browser import BrowserTools

    return tuple(
        BrowserTools(
            app.settings.browser, app.settings.web, outputs, environment()
        ).tools
    )

"""The tools of all sessions of one process."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hermes.app.app import App
from hermes.app.past_sessions import StoreRecall
from hermes.app.picture_tools import PicturePorts, PictureTools
from hermes.core.ports import Tool
from hermes.errors import ToolFailed
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings import Home, Secrets
from hermes.settings.gateway import connected_platforms
from hermes.settings.load import environment
from hermes.tools import Needs, close_tools, session_tools
from hermes.tools.files.file_stamps import FileStamps
from hermes.tools.policy.rule_file import host_rule
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.session_commands import Surroundings
from hermes.tools.tool import FunctionTool
from hermes.tools.toolsets import SURFACES, ToolChoice
from hermes.tools.web import web_tools

if TYPE_CHECKING:
    from hermes.app.deferred_tools import ToolIndexes
    from hermes.mcp import McpServers
    from hermes.tools.files.open_buffers import OpenBuffers
    from hermes.tools.web.fetch import Digest

_LISTENING = threading.Semaphore(2)  # as many recordings are read at once
_MAX_CACHED_TOOLSETS = 1_024  # whose tools are kept: as many as may work at once


class SessionTools:
    """Makes and closes the tools of each session, which know what it has read and where its terminal is.

    `more` returns further tools for a session. `digest` shortens long web pages. `pictures` looks at and pays for pictures.
    """

    def __init__(
        self,
        app: App,
        secrets: Secrets,
        more: Callable[[str], tuple[Tool, ...]],
        digest: "Digest | None" = None,
        *,
        pictures: PicturePorts | None = None,
        max_sessions: int = _MAX_CACHED_TOOLSETS,
    ) -> None:
        self._app = app
        self._pictures = pictures
        self.surface_tools: Callable[[str], tuple[Tool, ...]] = lambda _: ()
        """Tools that replace ours of the same name."""
        self.buffers_of: Callable[[str], OpenBuffers | None] = lambda _: None
        """The editor that a session runs in."""
        self._secrets = secrets
        self._more = more
        self._digest = digest
        self._tools: RecentDict[str, Mapping[str, Tool]] = RecentDict(
            max_sessions, self._clear_up
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seen: dict[str, FileStamps] = {}
        self._indexes: ToolIndexes | None = None
        self._closing = BackgroundTasks("ending the tools of a session")

    @cached_property
    def servers(self) -> "McpServers | None":
        """The MCP servers; None if none is configured."""
        settings = self._app.settings.mcp_servers
        if not settings:
            return None
        from hermes.app.server_reports import server_reports
        from hermes.mcp import McpServers

        return McpServers(
            settings,
            self._app.home,
            self._secrets,
            environment(),
            reports=server_reports(self._app),
        )

    async def prepare(self) -> None:
        """Asks MCP servers that were never asked what they offer, before a session's tools are fixed. Waits only briefly."""
        self._loop = asyncio.get_running_loop()
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
            (*self.servers.tools().values(), *self.servers.resource_tools())
            if self.servers is not None
            else ()
        )
        info = self._app.store.sessions.origin(session)
        if info.kind == "child":
            info = self._app.store.sessions.origin(info.root)
        person = self._app.person(session)
        extra = (
            *self._more(session),
            *served,
            *(() if person else self._scheduling(info.surface)),
            *self._on_card(session, info.surface),
            *(() if person else self._messages()),
            *speaking_tools(self._app, self._secrets),
        )
        choice = choice_of(self._app, info.surface)
        needs = needs_of(
            self._app,
            self._secrets,
            choice.for_others() if person else choice,
            extra=extra,
            digest=self._digest,
            pictures=self._pictures,
            session=session,
        )
        self._seen[session] = seen = FileStamps()
        first = self.surface_tools(session)
        made = session_tools(
            msgspec.structs.replace(needs, seen=seen, buffers=self.buffers_of(session))
        )
        tools = {**made, **{one.spec.name: one for one in first}}
        if not person:
            for one in self._of_plugins():
                if needs.choice.wants(one.spec.name):
                    tools.setdefault(one.spec.name, one)
        return self._with_catalogue(tools, needs.choice) if served else tools

    def _of_plugins(self) -> tuple[Tool, ...]:
        """The tools of enabled plugins."""
        if self._app.plugins is None:
            return ()
        from hermes.app.plugin_parts import plugin_tools

        return plugin_tools(self._app.plugins)

    def _with_catalogue(
        self, tools: dict[str, Tool], choice: ToolChoice
    ) -> Mapping[str, Tool]:
        """Adds the tools that find those of MCP servers. A prompt describes either these or the servers' own tools."""
        from hermes.app.deferred_tools import ToolCatalogue, ToolIndexes

        if self._indexes is None:
            self._indexes = ToolIndexes()
        for one in ToolCatalogue(tools, self._indexes).tools():
            if choice.wants(one.spec.name):
                tools.setdefault(one.spec.name, one)
        return tools

    def shown(
        self, tools: Mapping[str, Tool], window_tokens: Callable[[], int | None]
    ) -> Mapping[str, Tool]:
        """The tools that a session's prompt describes. Those of MCP servers may have to be searched for, and others
        join later."""
        choice = ToolChoice(enabled=self._app.settings.tools.enabled)
        tools = {
            name: one
            for name, one in tools.items()
            if not _waits(one) or choice.enables(name)
        }
        if self.servers is None:
            return tools
        from hermes.app.deferred_tools import shown_tools

        return shown_tools(tools, self._app.settings.mcp.defer, window_tokens())

    def joined(self, session: str) -> Mapping[str, Tool]:
        """The tools of a session that joined since it began: those for the page that it opened."""
        return {
            name: one
            for name, one in self._tools.get(session, {}).items()
            if isinstance(one, FunctionTool) and one.joins_later and one.has_joined()
        }

    def _scheduling(self, surface: str) -> tuple[Tool, ...]:
        """The tools for jobs, if they are offered."""
        if not offers_schedules(self._app, surface):
            return ()
        from hermes.app.schedules.tools import schedule_tools

        return schedule_tools(self._app, surface)

    def _on_card(self, session: str, surface: str) -> tuple[Tool, ...]:
        """The tools of a session that works on a card of a board."""
        if surface != "kanban" or self._app.root(session):
            return ()
        from hermes.app.boards.worker_tools import card_tools

        return card_tools(self._app, session, self._secrets)

    def _messages(self) -> tuple[Tool, ...]:
        """The tool that sends messages, if a chat platform is configured."""
        if not connected_platforms(self._app.settings.gateway, self._secrets):
            return ()
        from hermes.app.send_tool import message_tools

        return message_tools(self._app)

    def _clear_up(self, session: str, tools: Mapping[str, Tool]) -> None:
        self._seen.pop(session, None)
        if self._loop is None:
            self._close(tools)
        else:  # tools are also made in threads
            self._loop.call_soon_threadsafe(self._close, tools)

    def _close(self, tools: Mapping[str, Tool]) -> None:
        self._closing.start(close_tools(tools))


def _waits(one: Tool) -> bool:
    """Whether a tool has not joined yet."""
    return isinstance(one, FunctionTool) and not one.has_joined()


def speaking_tools(app: App, secrets: Secrets) -> tuple[Tool, ...]:
    """The tool that speaks, if something here can."""
    if app.settings.media.speech_out == "off":
        return ()
    from hermes.app.speech import can_speak, speech_deps

    if not can_speak(speech_deps(app, secrets)):
        return ()
    from hermes.media.speech_tool import speech_tools

    return speech_tools(lambda: speech_deps(app, secrets))


def offers_schedules(app: App, surface: str) -> bool:
    """Whether to offer tools for jobs. `auto` means in chats, and wherever there are jobs. Creates nothing."""
    wanted = app.settings.schedules.tool
    in_chat = surface == "gateway" or surface not in SURFACES
    return wanted == "on" or (
        wanted == "auto" and (in_chat or (app.has_log and app.store.has_jobs))
    )


def choice_of(app: App, surface: str) -> ToolChoice:
    """Which tools a surface offers to the user."""
    return ToolChoice(surface, app.settings.tools.enabled, app.settings.tools.disabled)


def needs_of(  # noqa: PLR0913 - the others have defaults
    app: App,
    secrets: Secrets,
    choice: ToolChoice,
    *,
    extra: tuple[Tool, ...] = (),
    digest: "Digest | None" = None,
    pictures: PicturePorts | None = None,
    session: str = "",
) -> Needs:
    """What `session_tools` needs. `extra` are further tools."""
    settings = app.settings
    around = surroundings_of(app)
    outputs = OutputFolder(around.readable[0])
    rule = host_rule(app.home.root)
    web = tuple(web_tools(settings.web, secrets, outputs, environment(), digest, rule))
    seeing = PictureTools(app, secrets, pictures, session)
    return Needs(
        outputs=outputs.path,
        environment=environment(),
        hermes_home=around.hermes_home,
        recall=StoreRecall(lambda: app.store),
        listen=partial(_heard, app),
        reads_documents=settings.media.documents != "off",
        surroundings=around,
        extra=(
            *web,
            *seeing.tools(),
            *seeing.browser_tools(outputs, choice),
            *extra,
        ),
        choice=choice,
    )


def _heard(app: App, path: Path) -> str:
    """What is said in a recording. Reading a file sends nothing away, and leaves threads to those who write messages."""
    from hermes.app.speech import listener, sends_recordings

    if sends_recordings(app):
        raise ToolFailed(
            "What is said in it would have to be sent to a service (media.speech_in).",
            hint="Ask the user to attach the recording to a message.",
        )
    if not _LISTENING.acquire(blocking=False):
        raise ToolFailed(
            "Other recordings are being read.", hint="Read this one after them."
        )
    try:
        return listener(app)(path)
    finally:
        _LISTENING.release()


def surroundings_of(app: App) -> Surroundings:
    """The environment and the sandbox of commands."""
    return _surroundings(app.home, app.settings.sandbox.hide_secrets)


@lru_cache(maxsize=8)
def _surroundings(home: Home, hide_secrets: bool) -> Surroundings:
    """The same for all sessions: a gateway remembers the tools of many."""
    readable = (home.cache / "outputs", home.skills, home.media)
    return Surroundings(environment(), home.root, readable, hide_secrets=hide_secrets)

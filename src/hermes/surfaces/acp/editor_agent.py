"""`EditorAgent`: handles an editor's requests of the Agent Client Protocol."""

import asyncio
import functools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec
from acp import PROTOCOL_VERSION, helpers
from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    TerminalAuthMethod,
)

from hermes import __version__
from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.engine import ApprovalMode
from hermes.app.undo import Rewind, shadows_of
from hermes.children.own_python import hermes_command
from hermes.errors import HermesError, SessionNotFound
from hermes.mcp.definitions import usable_server_name
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import BackgroundTasks
from hermes.providers.local_model import require_weights
from hermes.schema.events import SessionCreated
from hermes.settings import Home, Secrets
from hermes.settings.load import load, load_secrets
from hermes.settings.mcp import McpServerSettings
from hermes.surfaces.acp.content import PromptContent
from hermes.surfaces.acp.editor_buffers import EditorBuffers
from hermes.surfaces.acp.editor_commands import (
    available_commands,
    expanded,
    run_command,
)
from hermes.surfaces.acp.prompt_turn import PromptTurn
from hermes.surfaces.acp.questions import EditorQuestions
from hermes.surfaces.acp.updates import past_updates

_MODES = {
    "ask": ("Ask", "Ask before edits and commands that need approval"),
    "auto-edit": ("Auto-edit", "Edit files in the folder without asking"),
    "plan": ("Plan", "Only read, search and ask, then show a plan"),
    "full": ("Full", "Ask only for what leaves the folder or destroys work"),
}
_SESSIONS_PER_PAGE = 50
_MAX_OPEN_SESSIONS = 64
_MODEL_OPTION = "model"
_INVALID_PARAMS = -32602
_AUTH_REQUIRED = -32000
_SURFACE = "editor"
_SETUP = "hermes-setup"
_SETUP_ARGUMENT = "--setup"
_TERMINAL_SETUP = "terminal-auth"
"""The name under which Zed and the registry's check know a set-up in a terminal, beside the protocol's own."""


class EditorAgent:
    """Answers one editor. Each session is one of Hermes' own."""

    def __init__(self, app: App, agent: Agent, secrets: Secrets) -> None:
        self._app = app
        self._agent = agent
        self._secrets = secrets
        self._client: Client | None = None
        self._questions: EditorQuestions | None = None
        self._cancelled: dict[str, asyncio.Event] = {}
        """The prompts that are being answered, by session."""
        self._abilities = ClientCapabilities()
        self._loop = asyncio.get_running_loop()
        self._buffers: RecentDict[str, EditorBuffers] = RecentDict(_MAX_OPEN_SESSIONS)
        agent.buffers_of = self._buffers_of
        self._notices = BackgroundTasks("telling the editor about commands")

    def on_connect(self, conn: Client) -> None:
        """Keeps the connection to the editor."""
        self._client = conn
        self._questions = EditorQuestions(conn, self._agent.service)

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Returns what Hermes can do, and remembers what the editor can do."""
        self._abilities = client_capabilities or self._abilities
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            agent_info=Implementation(
                name="hermes", title="Hermes", version=__version__
            ),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(
                    image=True, audio=False, embedded_context=True
                ),
                mcp_capabilities=McpCapabilities(http=True, sse=False),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    fork=SessionForkCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[_setup_in_terminal(self._app.home)]
            if self._can_set_up
            else [],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """Uses the model that was connected in the editor's terminal meanwhile."""
        if method_id != _SETUP:
            raise RequestError(_INVALID_PARAMS, f"There is no method {method_id}.")
        home, own = self._app.home, self._app.settings
        saved = await asyncio.to_thread(load, home=home)
        self._secrets = await asyncio.to_thread(load_secrets, home=home)
        self._app.settings = msgspec.structs.replace(
            own, model=saved.model, custom_providers=saved.custom_providers
        )
        await self._agent.renew(self._secrets)

    async def new_session(
        self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> NewSessionResponse:
        """Begins a session in a folder."""
        folder = Path(cwd)
        is_there = await asyncio.to_thread(folder.is_dir)
        if not folder.is_absolute() or not is_there:
            raise RequestError(_INVALID_PARAMS, f"There is no folder {cwd}.")
        await self._require_model()
        await self._add_servers(mcp_servers or [])
        created = SessionCreated(surface=_SURFACE, cwd=str(folder))
        row = await asyncio.to_thread(self._app.begin, created)
        self._announce(row.session)
        return NewSessionResponse(
            session_id=row.session,
            modes=self._modes(row.session),
            config_options=await self._options(row.session),
        )

    async def load_session(
        self, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Shows a session's conversation, to continue it."""
        await self._find(session_id)
        await self._add_servers(mcp_servers or [])
        for update in await asyncio.to_thread(
            lambda: list(past_updates(self._app, session_id))
        ):
            await self._connected.session_update(session_id=session_id, update=update)
        self._announce(session_id)
        return LoadSessionResponse(
            modes=self._modes(session_id),
            config_options=await self._options(session_id),
        )

    async def resume_session(
        self, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Continues a session whose conversation the editor already shows."""
        await self._find(session_id)
        await self._add_servers(mcp_servers or [])
        self._announce(session_id)
        return ResumeSessionResponse(
            modes=self._modes(session_id),
            config_options=await self._options(session_id),
        )

    async def fork_session(self, session_id: str, **_: Any) -> ForkSessionResponse:
        """A new session that begins with this conversation."""
        await self._find(session_id)
        rewind = Rewind(self._app, shadows_of(self._app))
        branch = await asyncio.to_thread(rewind.branch, session_id, surface=_SURFACE)
        self._announce(branch)
        return ForkSessionResponse(
            session_id=branch,
            modes=self._modes(branch),
            config_options=await self._options(branch),
        )

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        """The newest sessions, of a folder if one is named."""
        try:
            before = float(cursor) if cursor else None
        except ValueError as error:
            raise RequestError(_INVALID_PARAMS, "The cursor is not valid.") from error
        found, more = await asyncio.to_thread(
            self._app.store.sessions.page,
            limit=_SESSIONS_PER_PAGE,
            updated_before=before,
        )
        listed = [
            SessionInfo(
                session_id=info.id,
                cwd=info.cwd or "/",
                title=info.title or None,
                updated_at=datetime.fromtimestamp(info.updated, UTC).isoformat(),
            )
            for info in found
            if info.messages and (cwd is None or info.cwd == cwd)
        ]
        return ListSessionsResponse(
            sessions=listed, next_cursor=repr(found[-1].updated) if more else None
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Stops the turn of a session. The session itself stays."""
        await self.cancel(session_id)
        return CloseSessionResponse()

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> SetSessionModeResponse:
        """Changes what runs without asking."""
        await self._find(session_id)
        if mode_id not in get_args(ApprovalMode):
            raise RequestError(_INVALID_PARAMS, f"There is no mode {mode_id}.")
        await self._agent.set_mode(session_id, msgspec.convert(mode_id, ApprovalMode))
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Changes the model."""
        await self._find(session_id)
        if config_id != _MODEL_OPTION or not isinstance(value, str):
            raise RequestError(_INVALID_PARAMS, f"There is no option {config_id}.")
        try:
            await asyncio.to_thread(self._agent.choose, session_id, value)
        except HermesError as error:
            raise RequestError(_INVALID_PARAMS, str(error)) from error
        return SetSessionConfigOptionResponse(
            config_options=await self._options(session_id)
        )

    async def prompt(
        self, session_id: str, prompt: list[Any], **_: Any
    ) -> PromptResponse:
        """Works on a message until the turn ends, or until the person has to answer a question in the chat."""
        cancelled = asyncio.Event()
        self._cancelled[session_id] = cancelled  # before anything is waited for
        try:
            await self._find(session_id)
            turn = PromptTurn(
                self._app,
                self._connected,
                self._dialogue,
                self._agent.service,
                session_id,
                cancelled,
                shows_terminals=self._shows_terminals,
            )
            return await self._answered(session_id, prompt, turn)
        finally:
            if self._cancelled.get(session_id) is cancelled:
                del self._cancelled[session_id]

    async def _answered(
        self, session_id: str, prompt: list[Any], turn: PromptTurn
    ) -> PromptResponse:
        content = PromptContent(self._app.home.root / "cache" / "pictures")
        try:
            await asyncio.to_thread(content.add, prompt)
            answer = await run_command(
                self._app,
                self._agent,
                session_id,
                content.text,
                functools.partial(self._say_later, session_id),
            )
        except HermesError as error:
            raise RequestError(_INVALID_PARAMS, str(error)) from error
        if answer is not None:
            await self._say(session_id, answer)
            return PromptResponse(stop_reason="end_turn")
        text = await asyncio.to_thread(
            expanded, self._app, self._agent, session_id, content.text
        )
        try:
            served = await self._agent.with_server_texts(text)
        except HermesError as error:
            raise RequestError(_INVALID_PARAMS, str(error)) from error
        for remark in served.left:
            update = helpers.update_agent_message_text(f"[{remark}]\n\n")
            await self._connected.session_update(session_id=session_id, update=update)
        return await turn.run(served.text, tuple(content.images))

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stops the turn of a session; its prompt is answered with `cancelled`."""
        cancelled = self._cancelled.get(session_id)
        if cancelled is not None:
            cancelled.set()
            await self._agent.service.interrupt(session_id, by="editor")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's shape
        """Hermes has no methods of its own."""
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignores notifications that the protocol does not know."""

    def _buffers_of(self, session: str) -> EditorBuffers | None:
        """The files of the editor, if it lends them."""
        files = self._abilities.fs
        if self._client is None or files is None or not files.read_text_file:
            return None
        root = self._app.top(session)
        return self._buffers.get_or_make(
            root, lambda: EditorBuffers(self._connected, root, files, self._loop)
        )

    @property
    def _can_set_up(self) -> bool:
        """Whether the editor can run `hermes acp --setup` in a terminal."""
        named = (self._abilities.field_meta or {}).get(_TERMINAL_SETUP)
        own = self._abilities.auth
        return bool(named or (own is not None and own.terminal))

    async def _require_model(self) -> None:
        """Raises the protocol's error for a missing sign-in, if no model is connected and the editor can mend that."""
        if not self._can_set_up:
            return
        try:
            await asyncio.to_thread(self._find_model)
        except HermesError as error:
            raise RequestError(_AUTH_REQUIRED, str(error)) from error

    def _find_model(self) -> None:
        """Raises HermesError if there is no model, or if the local one is not on this machine."""
        found = self._agent.describe()
        if found.local:
            require_weights(found.name, self._app.settings.local_models)

    @property
    def _shows_terminals(self) -> bool:
        """Whether the editor shows the output of a command that the agent runs as a terminal, as Zed does."""
        return bool((self._abilities.field_meta or {}).get("terminal_output"))

    @property
    def _connected(self) -> Client:
        if self._client is None:
            raise RequestError.internal_error()
        return self._client

    @property
    def _dialogue(self) -> EditorQuestions:
        if self._questions is None:
            raise RequestError.internal_error()
        return self._questions

    async def _find(self, session: str) -> None:
        """Raises an error of the protocol if there is no such session."""
        try:
            found = await asyncio.to_thread(self._app.store.sessions.find, session)
        except SessionNotFound as error:
            raise RequestError.resource_not_found(session) from error
        if found.id != session:
            raise RequestError.resource_not_found(session)

    def _modes(self, session: str) -> SessionModeState:
        return SessionModeState(
            current_mode_id=self._agent.mode(session),
            available_modes=[
                SessionMode(id=name, name=label, description=description)
                for name, (label, description) in _MODES.items()
            ],
        )

    async def _options(self, session: str) -> list[SessionConfigOptionSelect]:
        """The model as an option with the models to choose from; none if no model is connected."""
        try:
            now = await asyncio.to_thread(self._agent.describe, session)
        except HermesError:
            return []
        choices = await asyncio.to_thread(self._agent.choices)
        names = dict.fromkeys((now.name, *(choice.name for choice in choices)))
        return [
            SessionConfigOptionSelect(
                id=_MODEL_OPTION,
                name="Model",
                category="model",
                type="select",
                current_value=now.name,
                options=[
                    SessionConfigSelectOption(value=one, name=one) for one in names
                ],
            )
        ]

    async def _say(self, session: str, text: str) -> None:
        update = helpers.update_agent_message_text(text)
        await self._connected.session_update(session_id=session, update=update)

    def _say_later(self, session: str, text: str) -> None:
        """Shows what a command found after its answer."""
        self._notices.start(self._say(session, text))

    def _announce(self, session: str) -> None:
        """Lists the commands for the editor, after it has heard of the session."""

        async def tell() -> None:
            await self._list_commands(session)
            if self._agent.toolbox.servers is not None:  # their prompts are commands
                await self._agent.toolbox.prepare()
                await self._list_commands(session)

        self._notices.start(tell())

    async def _list_commands(self, session: str) -> None:
        commands = await asyncio.to_thread(available_commands, self._agent)
        update = helpers.update_available_commands(commands)
        await self._connected.session_update(session_id=session, update=update)

    async def _add_servers(self, servers: list[Any]) -> None:
        """Connects the MCP servers of the editor's settings, beside those of Hermes' own."""
        settings = self._app.settings
        known = settings.mcp_servers
        added = {
            name: entry
            for server in servers
            if (name := usable_server_name(server.name) or server.name) not in known
            and (entry := _server_settings(server))
        }
        if not added:
            return
        self._app.settings = msgspec.structs.replace(
            settings, mcp_servers={**known, **added}
        )
        await self._agent.renew(self._secrets)

    async def close(self) -> None:
        """Cancels notices that are still being sent."""
        await self._notices.close()


def _setup_in_terminal(home: Home) -> TerminalAuthMethod:
    """How an editor connects a model: it runs Hermes' own set-up in a terminal, for this very home."""
    command, *arguments = hermes_command("acp", _SETUP_ARGUMENT)
    return TerminalAuthMethod(
        id=_SETUP,
        name="Connect a model",
        description="Signs in, takes a key or downloads a local model, in a terminal",
        type="terminal",
        args=[_SETUP_ARGUMENT],
        env=home.variables,
        field_meta={
            _TERMINAL_SETUP: {
                "label": "hermes setup",
                "command": command,
                "args": arguments,
                "env": home.variables,
            }
        },
    )


def _server_settings(server: Any) -> McpServerSettings | None:
    """The settings of a server that the editor names; None for a kind that Hermes does not know."""
    if isinstance(server, McpServerStdio):
        return McpServerSettings(
            command=server.command,
            args=tuple(server.args),
            env={one.name: one.value for one in server.env},
        )
    if isinstance(server, HttpMcpServer):
        return McpServerSettings(
            url=server.url, headers={one.name: one.value for one in server.headers}
        )
    return None

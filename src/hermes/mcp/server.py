"""One configured server: connected when it is first needed, reconnected after a failure with growing delays, and
disconnected when idle. Its status says what went wrong."""

import asyncio
import contextlib
import contextvars
from collections.abc import Mapping
from typing import Any

from hermes.core.ports import ToolContext
from hermes.errors import HermesError, Refused, ToolFailed, UsageError
from hermes.mcp import elicitation
from hermes.mcp.connection import McpConnection, PeerHandlers
from hermes.mcp.definitions import Definition, Listing, is_server_name
from hermes.mcp.results import ResultReader, listed_blocks, marked, source, unusable
from hermes.mcp.safe_text import Redaction, ServerFailed, ServerRefused, one_line
from hermes.mcp.server_config import (
    ServerContext,
    ServerState,
    ServerStatus,
    address_of,
    bad_name,
)
from hermes.mcp.server_limits import CallTimeout
from hermes.mcp.server_prompts import prompt_arguments
from hermes.mcp.tool_pins import PinnedTools
from hermes.primitives.backoff import delay_s
from hermes.primitives.tasks import BackgroundTasks
from hermes.primitives.untyped import object_in
from hermes.schema.tool_spec import ToolResult
from hermes.settings.mcp import McpServerSettings
from hermes.text.translation import translator

t = translator(__name__)

_MAX_RETRY_DELAY_S = 60.0
_MAX_LOG_CHARACTERS = 500
_QUIET_LEVELS = frozenset(("debug", "info", "notice"))


class _Call:
    """A running call: its timeout, and the user to ask, one question at a time."""

    def __init__(self, context: ToolContext, timeout: CallTimeout) -> None:
        self.context = context
        self.timeout = timeout
        self.asking = asyncio.Lock()


_running: contextvars.ContextVar[_Call | None] = contextvars.ContextVar(
    "mcp_call", default=None
)


class McpServer:
    """A server by its name in the settings."""

    def __init__(
        self, name: str, settings: McpServerSettings, context: ServerContext
    ) -> None:
        self.name = name
        self.settings = settings
        self._context = context
        self._pins = PinnedTools(name, context.pins)
        self._listing = (
            context.listings.load(name, settings) if is_server_name(name) else None
        )
        self._connection: McpConnection | None = None
        self._connections: set[McpConnection] = set()
        self._opening: asyncio.Task[McpConnection] | None = None
        self._failure: HermesError | None = None
        self._failures = 0
        self._retry_at = 0.0
        self._timeouts = 0
        self._calls: list[_Call] = []
        self._redact = Redaction()
        self._idle: asyncio.TimerHandle | None = None
        self._leaving = BackgroundTasks("leaving an MCP server")
        if not is_server_name(name):
            self._failure = bad_name()

    @property
    def _listed(self) -> Listing:
        """What the server offers; empty until it has been asked."""
        return self._listing or Listing()

    @property
    def listing(self) -> Listing | None:
        """What the server last offered; None if it was never asked with these settings."""
        return self._listing

    @property
    def is_unknown(self) -> bool:
        """Whether it is not known yet what the server offers."""
        return (
            self.settings.enabled
            and self._listing is None
            and is_server_name(self.name)
        )

    def status(self) -> ServerStatus:
        """Returns the state of the server now."""
        listing, connection = self._listed, self._connection
        state, detail = self._state()
        return ServerStatus(
            name=self.name,
            state=state,
            detail=detail,
            hint=self._failure.hint if self._failure and state == "failed" else "",
            retry_in=max(0.0, self._retry_at - self._context.now())
            if state == "failed"
            else 0.0,
            tools=len(listing.tools),
            changed=self.changed(),
            left_out=listing.left_out,
            pid=connection.pid if connection and connection.alive else 0,
        )

    def _state(self) -> tuple[ServerState, str]:
        if not self.settings.enabled:
            return "off", t.logged("it is not enabled")
        if self._connection is not None and self._connection.alive:
            flood = (
                f"; {self._connection.dropped:,} messages dropped"
                if self._connection.dropped
                else ""
            )
            return "connected", self._connection.title + flood
        if self._opening is not None:
            return "connecting", ""
        if self._failure is not None:
            return "failed", self._failure.full if isinstance(
                self._failure, ServerFailed
            ) else self._failure.message
        return "idle", t.logged("it is connected at the first call")

    def changed(self) -> tuple[str, ...]:
        """Returns the tools that differ from what the user accepted."""
        return self._pins.changed(self._listed)

    def is_changed(self, tool: str) -> bool:
        """Whether a tool differs from what the user accepted."""
        return self._pins.is_changed(tool, self._listed)

    def offered(self) -> Mapping[str, Definition]:
        """Returns the tools to offer a model, as the user accepted them."""
        if self._listing is None or not self.settings.enabled:
            return {}
        try:
            return self._pins.offered(self._listing)
        except HermesError as error:
            self._fail(error)
            return {}

    def accept(self) -> None:
        """Accepts every tool as it is now, for the user."""
        self._pins.accept(self._listed)

    async def connected(self) -> McpConnection:
        """Returns the connection, and opens it if necessary. Raises ServerFailed."""
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._opening is None:
            wait = self._retry_at - self._context.now()
            if wait > 0 and self._failure is not None:
                raise ServerFailed(
                    t.later(
                        "{message}; the next attempt is in {wait:.0f} s",
                        message=self._failure.message,
                        wait=wait,
                    ),
                    hint=self._failure.hint,
                )
            self._opening = asyncio.get_running_loop().create_task(self._open())
            self._opening.add_done_callback(self._opened)
            self._report_status()
        return await asyncio.shield(self._opening)

    async def _open(self) -> McpConnection:
        try:
            self._context.make_folders()
            address = address_of(self.name, self.settings, self._context)
            connection = McpConnection(
                address,
                self.settings.tools,
                PeerHandlers(self._elicit, self._log_message),
                self._ended,
                self._context.reports.scan,
            )
            self._connections.add(connection)
            listing = await connection.opened()
        except HermesError as failure:
            self._fail(failure)
            raise (
                failure
                if isinstance(failure, ServerFailed)
                else ServerFailed(failure.message.rstrip("."), hint=failure.hint)
            ) from failure
        self._redact = address.redact
        self._connection, self._failure = connection, None
        self._update_listing(listing)
        self._wait_for_calls()
        return connection

    def _opened(self, task: "asyncio.Task[McpConnection]") -> None:
        self._opening = None
        if not task.cancelled():
            task.exception()  # whoever waited for it has raised it
        self._report_status()

    async def call(
        self, tool: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Calls a tool that is still as the user accepted it. ToolFailed says what went wrong and what may have happened."""
        if not self.settings.enabled:
            raise unusable(
                self.name, t.logged("it is not enabled"), t.logged("Nothing was done.")
            )
        try:
            connection = await self.connected()
            await self._pins.ensure(
                tool, lambda: self._definition(connection, tool), context
            )
        except (ServerFailed, ServerRefused, TimeoutError) as failure:
            raise self._unusable(failure) from failure
        call = _Call(context, CallTimeout(self.settings.timeout))
        self._calls.append(call)
        token = _running.set(call)
        try:
            return await self._run(connection, tool, arguments, call)
        finally:
            _running.reset(token)
            self._calls.remove(call)
            self._wait_for_calls()

    async def resource(self, uri: str) -> ToolResult:
        """Reads a resource, or lists all of them if `uri` is empty. Raises ToolFailed."""
        scan = self._context.reports.scan
        try:
            async with asyncio.timeout(self.settings.timeout):
                connection = await self.connected()
                reading = ResultReader(self.name, self._context.files, self._redact)
                if uri:
                    found = await connection.read_resource(uri)
                    blocks = [{"type": "resource", "resource": one} for one in found]
                else:
                    blocks = listed_blocks(await connection.resources(), scan)
        except ServerRefused as refused:
            return ToolResult(
                text=self._redact(f"Error: {one_line(str(refused))}"),
                ok=False,
                source=source(self.name),
            )
        except (ServerFailed, TimeoutError) as failure:
            raise self._unusable(failure) from failure
        self._wait_for_calls()
        result = reading.result({"content": blocks})
        return marked(result, scan) if uri else result

    async def prompt(self, name: str, words: str) -> str:
        """The text of a prompt. Raises UsageError for wrong arguments, Refused for a text that looks like an attack."""
        if self.is_unknown:
            try:
                await self.connected()
            except ServerFailed as failure:
                raise self._unusable(failure) from failure
        offered = self._listing.prompts if self._listing else {}
        if not self.settings.enabled or name not in offered:
            raise UsageError(
                t.later(
                    "The MCP server {name} has no prompt {prompt}.",
                    name=self.name,
                    prompt=name,
                ),
                hint=t.later("It has: {offered}", offered=", ".join(offered))
                if offered
                else "",
            )
        arguments = prompt_arguments(offered[name], words)
        try:
            async with asyncio.timeout(self.settings.timeout):
                connection = await self.connected()
                messages = await connection.prompt(name, arguments)
        except ServerRefused as refused:
            why = self._redact(one_line(str(refused)))
            raise UsageError(
                t.later("The MCP server {name} refused: {why}", name=self.name, why=why)
            ) from refused
        except (ServerFailed, TimeoutError) as failure:
            raise self._unusable(failure) from failure
        self._wait_for_calls()
        reading = ResultReader(self.name, self._context.files, self._redact)
        blocks = [object_in(one, "content") for one in messages]
        text = reading.result({"content": blocks}).text
        if found := self._context.reports.scan(text):
            raise Refused(
                t.later(
                    "The prompt {prompt} of the MCP server {name} looks like an attack: {found}.",
                    prompt=name,
                    name=self.name,
                    found=one_line(found, 120),
                ),
                hint=t.later("Nothing was sent."),
            )
        return text

    def _unusable(
        self, failure: ServerFailed | ServerRefused | TimeoutError
    ) -> ToolFailed:
        """The error that says why nothing was done, without the server's words."""
        match failure:
            case ServerFailed():
                return unusable(
                    self.name,
                    failure.message,
                    f"Nothing was done. {failure.hint}".strip(),  # not translated
                )
            case TimeoutError():
                return unusable(
                    self.name,
                    t.logged("it does not answer"),
                    t.logged("Nothing was done."),
                )
            case _:
                return unusable(
                    self.name,
                    t.logged("it refused to list its tools"),
                    t.logged("Nothing was done."),
                )

    async def _run(
        self,
        connection: McpConnection,
        tool: str,
        arguments: Mapping[str, Any],
        call: _Call,
    ) -> ToolResult:
        reading = ResultReader(self.name, self._context.files, self._redact)

        async def show_progress(
            progress: float, total: float | None, message: str | None
        ) -> None:
            call.timeout.extend()
            share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            call.context.show(
                f"{self._redact(one_line(message or ''))} ({share})\n".lstrip()
            )

        try:
            async with call.timeout:
                raw = await connection.call(tool, arguments, show_progress)
        except TimeoutError:
            await self._silent(connection)
            raise ToolFailed(
                f"{tool} of the MCP server {self.name} did not answer within {self.settings.timeout:g} s; Hermes cancelled it.",
                hint="It may or may not have taken effect. Check before you continue.",
            ) from None
        except ServerRefused as refused:
            self._works()
            return ToolResult(
                text=reading.capped(f"Error: {refused}"),
                ok=False,
                source=source(self.name),
            )
        except ServerFailed as failure:
            hint = t.later(
                "The call may or may not have taken effect. Check before you continue."
            )
            hint = f"{hint} {failure.hint}".strip()
            raise unusable(self.name, failure.message, hint) from failure
        self._works()
        return reading.result(raw)

    async def _definition(self, connection: McpConnection, tool: str) -> Definition:
        async with asyncio.timeout(self.settings.timeout):
            self._update_listing(await connection.tools())
        found = self._listed.tools.get(tool)
        if found is None:
            raise ToolFailed(
                f"The MCP server {self.name} no longer offers {tool}.",
                hint="Nothing was done.",
            )
        return found

    async def _elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        """Asks the user of the call that a server's question belongs to. Declines if that call is ambiguous."""
        call = _running.get() or (self._calls[0] if len(self._calls) == 1 else None)
        if call is None:
            return {"action": "decline"}
        with call.timeout.paused():
            async with call.asking:
                return await elicitation.answer(self.name, params, call.context.ask)

    def _log_message(self, level: str, text: str) -> None:
        """Passes on a log message. A warning is also shown with the running call, if there is only one."""
        text = self._redact(one_line(text, _MAX_LOG_CHARACTERS))
        self._context.reports.on_log(self.name, level, text)
        if level not in _QUIET_LEVELS and len(self._calls) == 1:
            self._calls[0].context.show(f"{level}: {text}\n")

    def _update_listing(self, listing: Listing) -> None:
        if listing != self._listing:
            before = self._listing.suspected if self._listing else ()
            if listing.suspected and listing.suspected != before:
                self._context.reports.on_suspected(self.name, listing.suspected)
            self._listing = listing
            self._context.listings.save(self.name, self.settings, listing)

    def _works(self) -> None:
        self._failures = self._timeouts = 0

    async def _silent(self, connection: McpConnection) -> None:
        """Stops a server that left two calls in a row unanswered, so that the next call restarts it."""
        self._timeouts += 1
        if self._timeouts >= 2:
            self._timeouts = 0
            await connection.close(
                ServerFailed(t.later("it stopped answering and was ended"))
            )

    def _ended(self, connection: McpConnection) -> None:
        """Handles the end of a connection. A newer one may exist by now."""
        self._connections.discard(connection)
        if connection is not self._connection:
            return
        self._connection = None
        if connection.failure is not None:
            self._fail(connection.failure)
        self._report_status()

    def _fail(self, failure: HermesError) -> None:
        """Records a failure. After the first one, the next attempt may follow immediately; then the delays double."""
        self._failure = failure
        self._failures += 1
        wait_s = 0.0
        if self._failures > 1:
            wait_s = delay_s(self._failures - 1, first_s=1.0, max_s=_MAX_RETRY_DELAY_S)
        self._retry_at = self._context.now() + wait_s

    def _report_status(self) -> None:
        self._context.reports.on_change(self.status())

    def _wait_for_calls(self) -> None:
        """Disconnects when nobody has called the server for a while."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if (
            self.settings.idle_timeout
            and not self._calls
            and self._connection is not None
        ):
            self._idle = asyncio.get_running_loop().call_later(
                self.settings.idle_timeout, self._disconnect_idle
            )

    def _disconnect_idle(self) -> None:
        if self._connection is not None and not self._calls:
            self._leaving.start(self._connection.close())

    async def close(self) -> None:
        """Ends all connections to this server."""
        if self._idle is not None:
            self._idle.cancel()
        if self._opening is not None:
            self._opening.cancel()
            with contextlib.suppress(asyncio.CancelledError, HermesError):
                await self._opening
        await asyncio.gather(
            *(connection.close() for connection in tuple(self._connections))
        )
        await self._leaving.join()

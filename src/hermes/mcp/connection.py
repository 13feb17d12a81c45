"""One connection to a server. A separate task opens and closes it, whoever uses it.

Whatever a server does can end this connection, but nothing else.
"""

import asyncio
import contextlib
import importlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from hermes.children.process_tree import describe_exit
from hermes.mcp.definitions import Listing, RawTool, listing
from hermes.mcp.safe_text import (
    ConnectionClosed,
    ServerFailed,
    ServerRefused,
    leaves,
    one_line,
)
from hermes.mcp.server_config import ServerAddress
from hermes.mcp.server_limits import NotificationFilter
from hermes.mcp.server_prompts import prompt_listing
from hermes.mcp.stdio_server import ServerChild
from hermes.settings.mcp import McpToolSettings
from hermes.text.install_words import install_hint
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.mcp.http_server import LimitedTransport
    from hermes.mcp.protocol import Elicit, Peer, Progress

log = logging.getLogger("hermes.mcp")

_LISTING_MAX_AGE_S = 60.0
_SERVER_CLOSE_TIMEOUT_S = 3.0
_STDERR_TIMEOUT_S = 0.5
_OVER = frozenset((401, 403, 404))
"""HTTP statuses after which the connection must be reopened."""

_T = TypeVar("_T")


OnEnd: TypeAlias = "Callable[[McpConnection], None]"


class PeerHandlers(msgspec.Struct, frozen=True):
    """Who answers a server's questions, and who reads its log messages."""

    elicit: "Elicit"
    on_log: Callable[[str, str], None] = lambda *_: None


class McpConnection:
    """An open connection. `failure` says why it ended."""

    def __init__(
        self,
        address: ServerAddress,
        chosen: McpToolSettings,
        handlers: PeerHandlers,
        on_end: "OnEnd",
        scan: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.failure: ServerFailed | None = None
        self.pid = 0
        self._address = address
        self._chosen = chosen
        self._handlers = handlers
        self._scan = scan
        self._on_end = on_end
        self._peer: Peer | None = None
        self._listing = Listing()
        self._raw: tuple[list[RawTool], list[dict[str, Any]]] | None = None
        self._listed = float("-inf")
        self._listing_lock = asyncio.Lock()
        self._gate = NotificationFilter(self._list_changed)
        self._child: ServerChild | None = None
        self._transport: LimitedTransport | None = None
        self._left = False
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def alive(self) -> bool:
        """Whether the server can be called."""
        return (
            self._peer is not None
            and not self._closing.is_set()
            and not self._task.done()
        )

    @property
    def title(self) -> str:
        """The server's name for itself, and the version of the protocol."""
        return (
            f"{one_line(self._peer.title, 60)} (MCP {self._peer.version})"
            if self._peer
            else ""
        )

    @property
    def dropped(self) -> int:
        """How many messages were dropped because too many came."""
        return self._gate.dropped

    async def opened(self) -> Listing:
        """Waits until the server can be called. If ServerFailed is raised, nothing is left running."""
        try:
            await load()  # the time for loading must not count as the server's
            async with asyncio.timeout(self._address.connect_timeout):
                await asyncio.shield(self._ready)
                return await self.tools()
        except TimeoutError:
            failure = ServerFailed(
                t.later(
                    "it did not answer within {connect_timeout:g} s",
                    connect_timeout=self._address.connect_timeout,
                ),
                hint=t.later("If it is only slow to start, raise its connect_timeout."),
            )
            await self.close(failure)
            raise failure from None
        except ServerRefused as refused:
            await self.close(self._refused(refused))
            raise self.failure or self._refused(refused) from refused
        except BaseException:
            await self.close(self.failure)
            raise

    async def tools(self) -> Listing:
        """Returns what the server offers. Asks again if the server announced a change, or after a while."""
        async with self._listing_lock:
            if time.monotonic() - self._listed > _LISTING_MAX_AGE_S:
                self._listed = (
                    time.monotonic()
                )  # a change announced from here on is not missed
                try:
                    raw = await self._request(_offers)
                except BaseException:
                    self._list_changed()
                    raise
                if raw != self._raw:  # scanning the same texts again is slow
                    self._listing = await asyncio.to_thread(self._made, *raw)
                    self._raw = raw
            return self._listing

    def _made(self, tools: list[RawTool], prompts: list[dict[str, Any]]) -> Listing:
        """Returns the tools that can be offered. Scans all of their texts."""
        made = listing(tools, self._chosen, self._scan)
        asked = prompt_listing(prompts, self._scan)
        return msgspec.structs.replace(
            made,
            has_resources=self._peer is not None and self._peer.has_resources,
            prompts=asked.prompts,
            left_out=(*made.left_out, *asked.suspected),
            suspected=(*made.suspected, *asked.suspected),
        )

    async def call(
        self, name: str, arguments: Mapping[str, Any], progress: "Progress"
    ) -> dict[str, Any]:
        """Calls a tool. ServerRefused carries an error of the server; ServerFailed means that the connection ended."""
        return await self._request(lambda peer: peer.call(name, arguments, progress))

    async def resources(self) -> list[dict[str, Any]]:
        """Lists the resources of the server. Raises as `call` does."""
        return await self._request(lambda peer: peer.list_resources())

    async def prompt(
        self, name: str, arguments: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """Returns the messages of a prompt. Raises as `call` does."""
        return await self._request(lambda peer: peer.get_prompt(name, arguments))

    async def read_resource(self, uri: str) -> list[dict[str, Any]]:
        """Reads a resource. Raises as `call` does."""
        return await self._request(lambda peer: peer.read_resource(uri))

    async def close(self, failure: ServerFailed | None = None) -> None:
        """Ends the connection, the server and everything the server started."""
        self.failure = self.failure or failure
        self._closing.set()
        if not self._ready.done():
            self._task.cancel()  # it is still opening, so there is nothing to close politely
        done, _ = await asyncio.wait([self._task], timeout=_SERVER_CLOSE_TIMEOUT_S)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_SERVER_CLOSE_TIMEOUT_S)

    async def _request(self, ask: "Callable[[Peer], Awaitable[_T]]") -> _T:
        if self._peer is None or self._task.done():
            raise self.failure or ServerFailed(t.later("it has ended"))
        try:
            return await ask(self._peer)
        except ConnectionClosed as closed:
            await asyncio.wait(
                [self._task],
                timeout=_STDERR_TIMEOUT_S
                if not self._closing.is_set()
                else _SERVER_CLOSE_TIMEOUT_S,
            )
            if self._task.done():
                raise self.failure or ServerFailed(t.later("it has ended")) from closed
            raise ServerRefused(str(closed)) from closed  # only this request has failed
        except ServerRefused as refused:
            if self._transport is not None and self._transport.refusal in _OVER:
                await self.close(self._refused(refused))
                raise self._refused(refused) from refused
            raise

    async def _run(self) -> None:
        """Owns the connection. Whatever goes wrong in a server becomes a `failure`, never an exception in a session."""
        try:
            async with (
                self._streams() as (incoming, outgoing),
                _protocol().initialized(incoming, outgoing, self._handlers) as peer,
            ):
                self._peer = peer
                self._ready.set_result(None)
                await self._closing.wait()
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - see above
            log.info(
                "MCP connection ended: %s",
                self._address.redact(repr(leaves(error)[:3])),
            )
            self.failure = self.failure or self._explain(leaves(error))
        else:
            if self._left:
                self.failure = self.failure or self._exit_failure()
        finally:
            self._closing.set()
            if not self._ready.done():
                self._ready.set_exception(
                    self.failure or ServerFailed(t.later("it was stopped"))
                )
                self._ready.exception()  # marks it as retrieved: nobody may be waiting any more
            self._on_end(self)

    @contextlib.asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any]]:
        address = self._address
        protocol = await asyncio.to_thread(_protocol)
        if address.launch is None:
            service = await asyncio.to_thread(
                importlib.import_module, "hermes.mcp.http_server"
            )
            self._transport = service.LimitedTransport()
            over = service.over_http(
                address.url,
                address.headers,
                self._transport,
                address.connect_timeout,
                address.login,
            )
            async with (
                over as streams,
                protocol.filtered(streams, self._gate, self._lost) as gated,
            ):
                yield gated
            return
        self._child = child = await ServerChild.start(address.launch)
        self.pid = child.pid
        try:
            async with protocol.over_pipes(child, self._gate, self._lost) as streams:
                yield streams
        finally:
            await child.stop()

    def _lost(self) -> None:
        """Handles the server closing its output."""
        self._left = not self._closing.is_set()
        self._closing.set()

    def _list_changed(self) -> None:
        self._listed = float("-inf")

    def _explain(self, errors: list[BaseException]) -> ServerFailed:
        """Turns the most informative of these errors into a failure."""
        for error in errors:
            if isinstance(error, ServerFailed):
                return error
            if isinstance(error, ServerRefused):
                return self._refused(error)
            if type(error).__module__.startswith("httpx2"):
                return ServerFailed(
                    t.later("it can't be reached"),
                    hint=t.later("Check its url, and the network."),
                    said=self._safe(error),
                )
        if any(isinstance(error, ConnectionClosed) for error in errors):
            return self._exit_failure()
        return ServerFailed(
            t.later(
                "something unexpected went wrong ({name})",
                name=type(errors[0]).__name__,
            ),
            said=self._safe(errors[0]),
        )

    def _refused(self, refused: ServerRefused) -> ServerFailed:
        if self._transport is not None and self._transport.refusal:
            words, hint = importlib.import_module(
                "hermes.mcp.http_server"
            ).refusal_words(self._transport.refusal, self._address.name)
            return ServerFailed(words, hint=hint)
        return ServerFailed(t.later("it refused"), said=self._safe(refused))

    def _exit_failure(self) -> ServerFailed:
        """Describes how a server ended by itself, with its last line of stderr."""
        if self._child is None:
            return ServerFailed(t.later("it closed the connection"))
        code = self._child.return_code
        words = self._safe(self._child.last_words())
        how = t.later("it closed its output")
        if code is not None:
            how = t.later("it ended by itself ({exit})", exit=describe_exit(code))
        hint = (
            t.later("What it wrote is in {path}.", path=self._child.log.path)
            if words
            else ""
        )
        return ServerFailed(how, hint=hint, said=words)

    def _safe(self, words: object) -> str:
        """Shortens text of a server and masks secrets in it."""
        return one_line(self._address.redact(str(words)), 200)


async def _offers(peer: "Peer") -> tuple[list[RawTool], list[dict[str, Any]]]:
    """The tools and prompts of a server. A server that can't list its prompts has none."""
    tools = await peer.list_tools()
    try:
        return tools, await peer.list_prompts()
    except ServerRefused:
        return tools, []


async def load() -> None:
    """Loads the protocol's module in a thread, because that is slow."""
    await asyncio.to_thread(_protocol)


def _protocol() -> ModuleType:
    """Returns the protocol's module, which is slow to load and may not be installed."""
    try:
        return importlib.import_module("hermes.mcp.protocol")
    except ImportError as error:
        raise ServerFailed(
            t.later("the MCP library is not installed"),
            hint=install_hint("mcp"),
        ) from error

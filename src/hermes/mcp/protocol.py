"""Speaks the protocol with the `mcp` library. Only this module imports it, and only when a server is used.

`Peer` lists tools, calls them, and passes on questions of the server. It knows nothing of sessions, pins or approvals.
"""

import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import BaseModel, TypeAdapter, ValidationError

from hermes import __version__
from hermes.mcp.definitions import RawTool
from hermes.mcp.safe_text import ConnectionClosed, ServerFailed, ServerRefused
from hermes.mcp.server_limits import NotificationFilter
from hermes.mcp.stdio_server import ServerChild
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.mcp.connection import PeerHandlers

_MAX_LIST_PAGES = 50
_MAX_INPUT_ROUNDS = 10
"""How many times a call may return with another question."""
_MAX_NOISE_LINES = 50
"""A server that writes more consecutive lines that are not messages does not speak MCP."""

_ANSWER = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,12})\s*,\s*"(?:result|error)"\s*:'
)

Elicit = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
Progress = ProgressFnT
Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]

_messages: TypeAdapter[Any] = types.jsonrpc_message_adapter
_results: TypeAdapter[Any] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class _Head(msgspec.Struct):
    """The fields that decide whether a message passes."""

    method: str | None = None
    id: int | str | None = None


class Peer:
    """An initialized server."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    @property
    def title(self) -> str:
        """What the server calls itself."""
        info = self._session.server_info
        return f"{info.name} {info.version}".strip() if info else ""

    @property
    def version(self) -> str:
        """The version of the protocol."""
        return self._session.protocol_version or ""

    async def list_tools(self) -> list[RawTool]:
        """Returns every tool, page by page."""
        capabilities = self._session.server_capabilities
        if capabilities is None or capabilities.tools is None:
            return []
        found: list[RawTool] = []
        cursor: str | None = None
        for _ in range(_MAX_LIST_PAGES):
            page = await _answered(
                self._session.list_tools(
                    params=types.PaginatedRequestParams(cursor=cursor)
                )
            )
            found += [_raw(tool) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    @property
    def has_resources(self) -> bool:
        """Whether the server offers resources."""
        capabilities = self._session.server_capabilities
        return capabilities is not None and capabilities.resources is not None

    async def list_resources(self) -> list[dict[str, Any]]:
        """Returns every resource, page by page."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MAX_LIST_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            page = await _answered(self._session.list_resources(params=params))
            found += [_dumped(one) for one in page.resources]
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    async def read_resource(self, uri: str) -> list[dict[str, Any]]:
        """Returns the contents of a resource."""
        result = await _answered(self._session.read_resource(uri))
        return [_dumped(one) for one in result.contents]

    async def list_prompts(self) -> list[dict[str, Any]]:
        """Returns every prompt, page by page; none from a server that has none."""
        capabilities = self._session.server_capabilities
        if capabilities is None or capabilities.prompts is None:
            return []
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MAX_LIST_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            page = await _answered(self._session.list_prompts(params=params))
            found += [_dumped(one) for one in page.prompts]
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """Returns the messages of a prompt."""
        result = await _answered(self._session.get_prompt(name, dict(arguments)))
        return [_dumped(one) for one in result.messages]

    async def call(
        self, name: str, arguments: Mapping[str, Any], progress: Progress
    ) -> dict[str, Any]:
        """Calls a tool, and answers the server's questions first if it has any. Cancelling tells the server."""
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments))
        for _ in range(_MAX_INPUT_ROUNDS):
            request = types.CallToolRequest(params=params)
            # Not the library's `call_tool`, which matches results against regular expressions from the server.
            result = await _answered(
                self._session.send_request(
                    request, _results, progress_callback=progress
                )
            )
            if isinstance(result, types.CallToolResult):
                return result.model_dump(by_alias=True, mode="json", exclude_none=True)
            answers = {
                key: await self._answer(key, asked)
                for key, asked in (result.input_requests or {}).items()
            }
            if not answers:
                await anyio.sleep(0.1)  # the server only wants us to ask again
            params = params.model_copy(
                update={
                    "input_responses": answers,
                    "request_state": result.request_state,
                }
            )
        raise ServerRefused(
            t.logged(
                "it asked for input more than {count} times", count=_MAX_INPUT_ROUNDS
            )
        )

    async def _answer(self, key: str, asked: Any) -> Any:
        meta = asked.params.meta if asked.params else None
        context = ClientRequestContext(session=self._session, request_id=key, meta=meta)
        answer = await self._session.dispatch_input_request(context, asked)
        if isinstance(answer, types.ErrorData):
            raise ServerRefused(answer.message)
        return answer


@contextlib.asynccontextmanager
async def initialized(
    incoming: Any, outgoing: Any, handlers: "PeerHandlers"
) -> AsyncIterator[Peer]:
    """Initializes a server over a pair of streams. Servers from before 2026 answer `initialize`, newer ones `discover`."""

    async def elicit(
        context: ClientRequestContext,  # noqa: ARG001 - the library's shape
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        answer = await handlers.elicit(
            params.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        return types.ElicitResult(**answer)

    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        said = params.data if isinstance(params.data, str) else json.dumps(params.data)
        handlers.on_log(
            params.level, f"{params.logger}: {said}" if params.logger else said
        )

    info = types.Implementation(name="hermes", version=__version__)
    async with ClientSession(
        incoming,
        outgoing,
        elicitation_callback=elicit,
        logging_callback=logged,
        client_info=info,
    ) as session:
        await _initialize(session)
        yield Peer(session)


async def _initialize(session: ClientSession) -> None:
    try:
        await _answered(session.initialize())
    except ServerRefused as refusal:
        try:
            await _answered(session.discover())
        except (ServerRefused, RuntimeError):
            raise refusal from None
    except RuntimeError as error:
        raise ServerFailed(
            t.later("it speaks another version of the protocol ({error})", error=error)
        ) from error


async def _answered(request: Awaitable[Any]) -> Any:
    """Waits for an answer, and turns the library's errors into ours."""
    try:
        return await request
    except MCPError as error:
        if error.error.code == types.CONNECTION_CLOSED:
            raise ConnectionClosed(error.error.message) from error
        raise ServerRefused(error.error.message) from error
    except ValidationError as error:
        raise ServerRefused(
            t.logged(
                "its answer does not follow the protocol ({count} problems)",
                count=error.error_count(),
            )
        ) from error


def _dumped(one: BaseModel) -> dict[str, Any]:
    return one.model_dump(by_alias=True, mode="json", exclude_none=True)


def _raw(tool: types.Tool) -> RawTool:
    hints = tool.annotations
    return RawTool(
        tool.name,
        tool.description or "",
        tool.input_schema,
        bool(hints and hints.read_only_hint),
    )


@contextlib.asynccontextmanager
async def over_pipes(
    child: ServerChild, gate: NotificationFilter, on_end: Callable[[], None]
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Opens the streams of a server on this machine, one message per line. Calls `on_end` when its output ends."""
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    # A server that does not read must not block a caller that stops waiting for it.
    outgoing, out = anyio.create_memory_object_stream[SessionMessage](64)

    async def read() -> None:
        noise = 0
        async with into:
            async for line in child.lines():
                message = _message(line, gate)
                noise = noise + 1 if message is None else 0
                if noise > _MAX_NOISE_LINES:
                    raise ServerFailed(
                        t.later("it does not speak MCP: its output is something else")
                    )
                if isinstance(message, SessionMessage):
                    await into.send(message)
        on_end()

    async def write() -> None:
        async with out:
            async for message in out:
                text = message.message.model_dump_json(
                    by_alias=True, exclude_unset=True
                )
                await child.write(text.encode() + b"\n")

    async with incoming, outgoing, anyio.create_task_group() as group:
        group.start_soon(_until_closed, read)
        group.start_soon(_until_closed, write)
        try:
            yield incoming, outgoing
        finally:
            group.cancel_scope.cancel()


def _message(line: bytes, gate: NotificationFilter) -> SessionMessage | bool | None:
    """Returns a message that passes, False for one that does not, or None for a line that is not a message."""
    if not line.strip():
        return False
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.MsgspecError, RecursionError):
        return _unreadable(line)
    if not gate.admits(head.method, wants_answer=head.id is not None):
        return False
    try:
        return SessionMessage(_messages.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        return _unreadable(line)


def _unreadable(line: bytes) -> SessionMessage | None:
    """Turns an unreadable answer into an error, so that its caller does not wait until the timeout."""
    found = _ANSWER.match(line)
    if found is None:
        return None
    problem = types.ErrorData(
        code=types.PARSE_ERROR,
        message="its answer can't be read",  # not translated
    )
    return SessionMessage(
        types.JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=problem)
    )


async def _until_closed(work: Callable[[], Awaitable[None]]) -> None:
    """Runs until the other side closes, which is not a failure."""
    with contextlib.suppress(
        anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError
    ):
        await work()


@contextlib.asynccontextmanager
async def filtered(
    streams: tuple[Any, Any], gate: NotificationFilter, on_end: Callable[[], None]
) -> AsyncIterator[tuple[Incoming, Any]]:
    """Opens the streams of another transport, with the filter in between."""
    source, outgoing = streams
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def read() -> None:
        async with into:
            async for item in source:
                message = getattr(item, "message", None)
                method = getattr(message, "method", None)
                if gate.admits(
                    method, wants_answer=getattr(message, "id", None) is not None
                ):
                    await into.send(item)
        on_end()

    async with incoming, anyio.create_task_group() as group:
        group.start_soon(_until_closed, read)
        try:
            yield incoming, outgoing
        finally:
            group.cancel_scope.cancel()

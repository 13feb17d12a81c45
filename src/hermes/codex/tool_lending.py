"""Lends codex the tools it lacks. Codex starts `hermes mcp serve-tools`, which forwards calls over a socket to the
running session. There they run like any other call: logged, judged by the same policy, approved in the same place.
Shell tools and tools that change files are never lent, because codex has its own, in its own sandbox. `read_file` is
lent, because codex can't read documents and recordings.

Only this user can open the socket, and a caller needs a random token that only codex's tool server was given.
"""

import asyncio
import contextlib
import hmac
import itertools
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from hermes.codex.elicitation import OWN_SERVER
from hermes.core.calls import CallRunner, CallScope
from hermes.core.ports import Approver, Journal, Keeper, Policy, Tool, Veto
from hermes.primitives.acceptor import Acceptor, accept_streams
from hermes.primitives.files import make_private_folder
from hermes.primitives.tasks import BackgroundTasks, running
from hermes.schema.event_base import Event
from hermes.schema.messages import ToolCall, ToolFinished
from hermes.schema.tool_spec import ToolResult, ToolSpec

SOCKET, TOKEN = "HERMES_LEND_SOCKET", "HERMES_LEND_TOKEN"
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_MAX_SOCKET_PATH_BYTES = 100  # maximum bytes of a socket's address
_LENT_CALL_TIMEOUT_S = (
    7_200  # seconds that codex waits for a lent tool: a person may have to approve
)

_LENT = (
    "read_file",
    *("web_*", "browser_*", "vision_*", "image_*", "video_*", "text_to_speech"),
    "send_message",
    *("ask_user", "present_plan", "todo", "session_search", "delegate", "delegate_*"),
    *("memory", "memory_*", "skill", "skill_*", "skills_*", "kanban", "kanban_*"),
)


def lendable(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Returns the tools that codex lacks and may use. Tools that change files are left out, whatever their name."""
    return {
        name: tool
        for name, tool in tools.items()
        if tool.effect != "files"
        and any(fnmatchcase(name, pattern) for pattern in _LENT)
    }


class LendingContext(msgspec.Struct, frozen=True):
    """The lent tools, and the rules for their calls."""

    tools: Mapping[str, Tool]
    policy: Policy
    approvals: Approver
    keeper: Keeper | None = None
    veto: Veto | None = None


class LendingRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request of the tool server: the list of tools, or one call."""

    token: str
    call: str = ""
    arguments: Mapping[str, Any] = {}


class LentTool(msgspec.Struct, frozen=True):
    """A tool as offered to codex."""

    spec: ToolSpec
    reads: bool


class LentToolReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply to the tool server."""

    offers: tuple[LentTool, ...] = ()
    result: ToolResult | None = None
    refusal: str = ""


def offers(tools: Mapping[str, Tool]) -> tuple[LentTool, ...]:
    """Returns the tools in a form that can be sent."""
    return tuple(
        LentTool(tool.spec, tool.effect in ("read", "network"))
        for tool in tools.values()
    )


class _Captured:
    """A journal that also remembers results."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.results: dict[str, ToolFinished] = {}

    async def record(self, *events: Event) -> tuple[int, ...]:
        self._collect(events)
        return await self._journal.record(*events)

    def note(self, *events: Event) -> None:
        self._collect(events)
        self._journal.note(*events)

    async def flush(self) -> None:
        await self._journal.flush()

    async def nothing_under_way(self) -> None:
        await self._journal.nothing_under_way()

    def show(self, event: Event) -> None:
        self._journal.show(event)

    def _collect(self, events: tuple[Event, ...]) -> None:
        self.results |= {
            event.call_id: event for event in events if isinstance(event, ToolFinished)
        }


class Lender:
    """The session's side of the socket. Listens from the first turn on."""

    def __init__(self, folder: Path, command: tuple[str, ...]) -> None:
        self._command = command
        self._token = secrets.token_urlsafe(32)
        self._folder = folder
        self._own_folder = ""
        self._path: Path | None = None
        self._server: Acceptor | None = None
        self._now: tuple[CallScope, LendingContext] | None = None
        self._offered: Mapping[str, Tool] = {}
        self._numbers = itertools.count(1)
        self._calls = BackgroundTasks("serving a tool to codex")

    @property
    def config(self) -> Mapping[str, Any]:
        """The part of codex's settings that makes it start the tool server for this session."""
        if not self._command:
            return {}
        server = {
            "command": self._command[0],
            "args": list(self._command[1:]),
            "env": {SOCKET: str(self._socket_path()), TOKEN: self._token},
            "startup_timeout_sec": 30,
            "tool_timeout_sec": _LENT_CALL_TIMEOUT_S,
            "default_tools_approval_mode": "approve",  # the calls return to Hermes, whose policy decides
        }
        return {"mcp_servers": {OWN_SERVER: server}}

    @asynccontextmanager
    async def during(
        self, place: CallScope, lending: LendingContext | None
    ) -> AsyncIterator[None]:
        """Runs calls for this turn inside the context. Cancels those still running at the end."""
        if lending is None or not self._command:
            yield
            return
        await self._listen()
        self._offered = lendable(lending.tools)
        self._now = (place, lending)
        try:
            yield
        finally:
            self._now = None
            await self._calls.close()

    async def close(self) -> None:
        """Stops listening and removes the socket."""
        if self._server is not None:
            self._server.close()
        await self._calls.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        if self._own_folder:
            shutil.rmtree(self._own_folder, ignore_errors=True)

    def _socket_path(self) -> Path:
        """Returns the socket's path: in Hermes' folder, or in a private one if that path would be too long."""
        if self._path is None:
            wanted = self._folder / f"codex-{secrets.token_hex(4)}.sock"
            if len(os.fsencode(wanted)) > _MAX_SOCKET_PATH_BYTES:
                self._own_folder = tempfile.mkdtemp(prefix="hermes-")
                wanted = Path(self._own_folder) / "codex.sock"
            self._path = wanted
        return self._path

    async def _listen(self) -> None:
        if self._server is not None:
            return
        path = self._socket_path()
        make_private_folder(path.parent)
        bound = _bound(path)
        try:
            bound.listen()
            self._server = accept_streams(bound, self._accept, limit=MAX_MESSAGE_BYTES)
        except BaseException:
            bound.close()
            raise

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        serving = self._calls.start(self._serve(reader, writer))
        serving.add_done_callback(lambda _: writer.close())  # also if it never began

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serves one request per connection. A caller that hangs up cancels its request."""
        try:
            ask = msgspec.json.decode(
                await reader.readuntil(b"\n"), type=LendingRequest
            )
            async with (
                running(self._answer(ask)) as answer,
                running(reader.read(1)) as hung_up,
            ):
                await asyncio.wait(
                    {answer, hung_up}, return_when=asyncio.FIRST_COMPLETED
                )
                if answer.done():
                    writer.write(msgspec.json.encode(answer.result()) + b"\n")
                    await writer.drain()
        except (
            msgspec.DecodeError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ConnectionError,
        ):
            pass  # not our tool server, or it has gone away

    async def _answer(self, ask: LendingRequest) -> LentToolReply:
        if not hmac.compare_digest(ask.token.encode(), self._token.encode()):
            return LentToolReply(refusal="The token is wrong.")
        if not ask.call:
            return LentToolReply(offers=offers(self._offered))
        if self._now is None:
            return LentToolReply(
                refusal="No turn is running, so there is nobody to run this for."
            )
        place, lending = self._now
        return LentToolReply(result=await self._run(place, lending, ask))

    async def _run(
        self, place: CallScope, lending: LendingContext, ask: LendingRequest
    ) -> ToolResult:
        runner = CallRunner(
            lendable(lending.tools),
            lending.policy,
            lending.approvals,
            lending.keeper,
            lending.veto,
        )
        arguments = msgspec.json.encode(ask.arguments).decode()
        call = ToolCall(
            id=f"lent-{place.turn}-{next(self._numbers)}",
            name=ask.call,
            arguments=arguments,
        )
        journal = _Captured(place.journal)
        here = CallScope(journal, place.session, place.turn, place.cwd)
        await runner.run(here, runner.prepare((call,)), ())
        found = journal.results[call.id]
        return ToolResult(text=found.text, ok=found.ok, images=found.images)


def _bound(path: Path) -> socket.socket:
    """Returns a socket that only this user can open.

    Its mode is set before it listens, so that nobody can connect in between. The process's umask stays, because other
    code relies on it.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(path))
        path.chmod(0o600)
    except OSError:
        made.close()
        raise
    return made


async def send_lending_request(address: str, ask: LendingRequest) -> LentToolReply:
    """Sends one request from the tool server and returns the reply. Raises OSError if the session is gone."""
    reader, writer = await asyncio.open_unix_connection(
        address, limit=MAX_MESSAGE_BYTES
    )
    try:
        writer.write(msgspec.json.encode(ask) + b"\n")
        await writer.drain()
        return msgspec.json.decode(await reader.readuntil(b"\n"), type=LentToolReply)
    except (asyncio.IncompleteReadError, msgspec.DecodeError) as error:
        raise ConnectionError("the session did not answer") from error
    finally:
        with contextlib.suppress(OSError):
            writer.close()

"""Routes of terminals: list, open and end them; `/api/pty` is the connection to one."""

import asyncio
import logging
from contextlib import closing
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.websockets import WebSocket

from hermes.errors import HermesError
from hermes.primitives.tasks import run_until_first
from hermes.pty import Viewer
from hermes.surfaces.dashboard.access_control import offered_subprotocol
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.terminals import (
    OpenTerminal,
    TerminalInfo,
    TerminalLaunch,
)
from hermes.surfaces.dashboard.uvicorn_protocol import send_bytes, send_text
from hermes.surfaces.web.endpoint import (
    Acknowledged,
    Endpoint,
    EndpointCall,
)
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.dashboard")

GONE = 4004
_FRAME = 192 * 1024  # bytes of output in one frame

_Size = Annotated[int, Meta(ge=1, le=1000)]


class NewTerminal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: Literal["hermes", "shell"] = "hermes"
    session: str = ""
    cwd: str = ""
    cols: _Size = 80
    rows: _Size = 24

    def opening(self) -> TerminalLaunch:
        return TerminalLaunch(
            command=self.command,
            session=self.session,
            cwd=self.cwd,
            cols=self.cols,
            rows=self.rows,
        )


class TerminalList(msgspec.Struct, frozen=True):
    available: bool
    reason: str
    terminals: list[TerminalInfo]


class PtyQuery(msgspec.Struct, frozen=True, kw_only=True):
    id: str = ""
    after: Annotated[int, Meta(ge=0)] | None = None
    window: Annotated[int, Meta(ge=0, le=512 * 1024)] = 0
    command: Literal["hermes", "shell"] = "hermes"
    session: str = ""
    cwd: str = ""
    cols: _Size | None = None
    rows: _Size | None = None


class _Order(msgspec.Struct):
    """A text frame of the page."""

    op: Literal["resize", "ack"]
    cols: int = 80
    rows: int = 24
    bytes: int = 0


_read_order = msgspec.json.Decoder(_Order).decode


class TerminalRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._terminals = dashboard.terminals

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET", "/api/terminals", "terminal", self.overview, answer=TerminalList
            ),
            Endpoint(
                "POST",
                "/api/terminals",
                "terminal",
                self.open,
                body=NewTerminal,
                answer=TerminalInfo,
            ),
            Endpoint("DELETE", "/api/terminals/{id}", "terminal", self.end),
            Endpoint("WEBSOCKET", "/api/pty", "terminal", self.use, PtyQuery),
        ]

    async def overview(self) -> TerminalList:
        """The open terminals, and whether terminals are available."""
        reason = self._terminals.unavailable()
        return TerminalList(not reason, reason, self._terminals.overview())

    async def open(self, call: EndpointCall) -> TerminalInfo:
        """Opens a terminal that runs Hermes or a shell."""
        return (await self._terminals.open(call.body.opening())).describe()

    async def end(self, call: EndpointCall) -> Acknowledged:
        """Ends a terminal and everything it started."""
        if not await self._terminals.end(call.path["id"]):
            raise Refusal(404, t("There is no such terminal (any more)."))
        return Acknowledged()

    async def use(self, socket: WebSocket, query: PtyQuery) -> None:
        """Connects to a terminal: bytes in both directions, JSON for everything else."""
        await socket.accept(offered_subprotocol(socket))
        try:
            one = (
                self._terminals.find(query.id)
                if query.id
                else await self._terminals.open(_opening(query))
            )
        except HermesError as error:
            await send_text(
                socket,
                msgspec.json.encode(
                    {"type": "pty.failed", "error": error.message, "hint": error.hint}
                ),
            )
            await socket.close(GONE)
            return
        if one is None:
            await socket.close(GONE, t("no such terminal"))
            return
        await self._serve(socket, one, query)

    async def _serve(
        self, socket: WebSocket, one: OpenTerminal, query: PtyQuery
    ) -> None:
        kept = one.terminal.scrollback
        continues = query.after is not None and kept.start <= query.after <= kept.end
        position = (
            query.after if continues and query.after is not None else kept.fresh_start()
        )
        viewer = one.terminal.watch(position)
        viewer.window = query.window
        with one.following() as resized, closing(viewer):
            if query.cols and query.rows:
                one.resize(query.cols, query.rows, resized)
            ready = {
                "type": "pty.ready",
                "position": position,
                "shown": one.terminal.shown,
                "fresh": not continues,
            }
            await send_text(
                socket, msgspec.json.encode(ready | msgspec.to_builtins(one.describe()))
            )
            if not continues and position:
                one.redraw()
            await run_until_first(
                _show(socket, one, viewer),
                _receive_input(socket, one, viewer, resized),
                _follow(socket, one, resized),
            )


async def _show(socket: WebSocket, one: OpenTerminal, viewer: Viewer) -> None:
    while (piece := await viewer.take(_FRAME)) is not None:
        await send_bytes(socket, piece)
    await send_text(
        socket,
        msgspec.json.encode({"type": "pty.ended", "exit_code": one.terminal.exit_code}),
    )
    await socket.close(1000)


async def _follow(socket: WebSocket, one: OpenTerminal, resized: asyncio.Event) -> None:
    """Reports when another viewer changes the size: later output is written for that size."""
    while True:
        await resized.wait()
        resized.clear()
        cols, rows = one.size
        await send_text(
            socket,
            msgspec.json.encode({"type": "pty.resized", "cols": cols, "rows": rows}),
        )


async def _receive_input(
    socket: WebSocket, one: OpenTerminal, viewer: Viewer, resized: asyncio.Event
) -> None:
    """Input waits for the child to read; meanwhile nothing more is read from this socket, and nobody else waits."""
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        data, text = message.get("bytes"), message.get("text")
        if data is not None:
            await one.terminal.write(data)
        elif text is not None:
            _obey(text, one, viewer, resized)


def _obey(text: str, one: OpenTerminal, viewer: Viewer, resized: asyncio.Event) -> None:
    try:
        order = _read_order(text)
    except (msgspec.DecodeError, RecursionError):
        log.debug(
            "a terminal got a message that is not a command: %.100s", text
        )  # perhaps by a newer page
        return
    match order.op:
        case "resize":
            one.resize(order.cols, order.rows, resized)
        case "ack":
            viewer.confirm(order.bytes)


def _opening(query: PtyQuery) -> TerminalLaunch:
    return TerminalLaunch(
        command=query.command,
        session=query.session,
        cwd=query.cwd,
        cols=query.cols or 80,
        rows=query.rows or 24,
    )

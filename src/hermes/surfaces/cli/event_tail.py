"""`hermes events tail`: events of all processes at once, including those that start meanwhile."""

import contextlib
import selectors
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hermes.bridge.event_socket import (
    SocketRequest,
    event_sockets,
    new_process_socket,
    remove_new_process_socket,
    send_request,
)
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.events import OnlySession, Pattern, require_pattern
from hermes.surfaces.terminal.event_line import EventLines
from hermes.surfaces.terminal.text import stdout_screen
from hermes.text.translation import translator

t = translator(__name__)


_HELLO_TIMEOUT_S = 2.0
_HELLO = "tail.hello"


class _Process:
    """The connection to one process."""

    def __init__(self, path: Path, peer: socket.socket) -> None:
        self.path = path
        self.peer = peer
        self.name = ""
        self._rest = b""

    def read(self) -> list[dict[str, Any]] | None:
        """The events received since the last call; None when the process has ended."""
        try:
            data = self.peer.recv(65536)
        except OSError:
            data = b""
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        events: list[dict[str, Any]] = []
        for line in filter(None, lines):
            event = msgspec.json.decode(line, type=dict[str, Any])
            if event.get("type") == _HELLO and not self.name:
                self.name = f"{event['surface']}:{event['pid']}"
            else:
                events.append(event)
        return events


@command("events tail")
def tail_events(
    context: CommandContext,
    pattern: Pattern = "**",
    *,
    relayed: Annotated[bool, "also what came to a dashboard from elsewhere"] = False,
    count: Annotated[int, Arg("stop after N events", metavar="N", at_least=0)] = 0,
    session: OnlySession = "",
    json: Annotated[bool, "print JSON"] = False,
) -> int:
    """Show events of all processes that run, as they happen."""
    require_pattern(pattern)
    home = context.home
    only = context.app.store.sessions.find(session).id if session else ""
    folder = home.ensure(home.root / "run").root / "run"
    request = SocketRequest("tail", pattern=pattern, relayed=relayed)
    with new_process_socket(folder) as server:
        try:
            return _Tail(request, only, count, folder, server, as_json=json).run()
        finally:
            remove_new_process_socket(folder)


class _Tail:
    """The connections to all processes, and which of their events are shown."""

    def __init__(
        self,
        request: SocketRequest,
        session: str,
        count: int,
        folder: Path,
        server: socket.socket,
        *,
        as_json: bool,
    ) -> None:
        self._look = request
        self._lines = EventLines(stdout_screen())
        self._as_json = as_json
        self._left = count
        self._session = session
        self._folder = folder
        self._server = server
        self._processes: dict[Path, _Process] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)

    def run(self) -> int:
        self._open(patient=False)
        if not self._processes:
            print(
                t("No Hermes process is running yet; waiting. Ctrl-C stops."),
                file=sys.stderr,
            )
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    with self._server.accept()[
                        0
                    ]:  # a process that begins: it goes on once we let go
                        self._open(patient=True)
                elif self._show(key.data):
                    return 0

    def _show(self, process: _Process) -> bool:
        """Shows new events of a process; True once enough were shown."""
        events = process.read()
        if events is None:
            self._selector.unregister(process.peer)
            process.peer.close()
            del self._processes[process.path]
        for event in events or ():
            if self._session and self._session not in (
                event.get("session_id"),
                event.get("root_session_id"),
            ):
                continue
            if self._as_json:
                print(msgspec.json.encode(event).decode(), flush=True)
            else:
                print(self._lines.line(event, process.name), flush=True)
            self._left -= 1
            if not self._left:
                return True
        return False

    def _open(self, *, patient: bool) -> None:
        """Connects to processes that are not connected yet; with `patient`, waits for each one's greeting."""
        for path in event_sockets(self._folder):
            if path in self._processes:
                continue
            try:
                peer = send_request(path, self._look, _HELLO_TIMEOUT_S)
            except OSError:
                continue  # it ends at this moment
            if patient:
                with contextlib.suppress(
                    OSError
                ):  # one that is busy says hello later, and is seen from then on
                    peer.recv(1, socket.MSG_PEEK)
            process = self._processes[path] = _Process(path, peer)
            self._selector.register(peer, selectors.EVENT_READ, process)

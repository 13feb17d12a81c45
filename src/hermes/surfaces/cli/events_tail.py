"""`hermes events tail`: looks through the windows of all processes at once, also of those that begin meanwhile."""

import argparse
import contextlib
import selectors
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec

from hermes.app import build
from hermes.bridge.event_socket import Look, forget_lookout, look_into, lookout, windows
from hermes.settings.load import find_home, load
from hermes.surfaces.cli.events_line import EventLines

_PATIENCE = 2.0  # seconds for a process to say hello
_HELLO = "tail.hello"


class _Pane:
    """What is seen through one window."""

    def __init__(self, path: Path, peer: socket.socket) -> None:
        self.path = path
        self.peer = peer
        self.name = ""
        self._rest = b""

    def read(self) -> list[dict[str, Any]] | None:
        """The events that have come; None when the process is gone."""
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


def tail(args: argparse.Namespace) -> int:
    """Shows events until it is interrupted, or as many as were wanted."""
    home = find_home()
    session = ""
    if args.session:
        with build(load(home=home), home) as app:
            session = app.store.sessions.find(args.session).id
    folder = home.ensure(home.root / "run").root / "run"
    with lookout(folder) as server:
        try:
            return _Tail(args, session, folder, server).run()
        finally:
            forget_lookout(folder)


class _Tail:
    """Windows that are open, and what is shown of what is seen through them."""

    def __init__(
        self,
        args: argparse.Namespace,
        session: str,
        folder: Path,
        server: socket.socket,
    ) -> None:
        self._look = Look("tail", pattern=args.pattern, relayed=args.relayed)
        self._lines = EventLines(as_json=args.json)
        self._left = args.count
        self._session = session
        self._folder = folder
        self._server = server
        self._panes: dict[Path, _Pane] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)

    def run(self) -> int:
        self._open(patient=False)
        if not self._panes:
            print(
                "Nothing of this home runs yet; waiting. Ctrl-C ends it.",
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

    def _show(self, pane: _Pane) -> bool:
        """Shows what has come; True when that was enough."""
        events = pane.read()
        if events is None:
            self._selector.unregister(pane.peer)
            pane.peer.close()
            del self._panes[pane.path]
        for event in events or ():
            if self._session and self._session not in (
                event.get("session_id"),
                event.get("root_session_id"),
            ):
                continue
            self._lines.show(event, pane.name)
            self._left -= 1
            if not self._left:
                return True
        return False

    def _open(self, *, patient: bool) -> None:
        """Opens windows that are not open yet; one that is patient waits for each until everything is told."""
        for path in windows(self._folder):
            if path in self._panes:
                continue
            try:
                peer = look_into(path, self._look, _PATIENCE)
            except OSError:
                continue  # it ends at this moment
            if patient:
                with contextlib.suppress(
                    OSError
                ):  # one that is busy says hello later, and is seen from then on
                    peer.recv(1, socket.MSG_PEEK)
            pane = self._panes[path] = _Pane(path, peer)
            self._selector.register(peer, selectors.EVENT_READ, pane)

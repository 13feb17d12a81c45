"""A model hub on loopback that speaks the real one's protocol.

`/OWNER/NAME/resolve/main/FILE` answers with a redirect that names the size and SHA-256 of the file; its target, on the
file server, serves bytes with ETag and Range. Faults are served in order, one for each request of the file server.
"""

import contextlib
import hashlib
import http.server
import threading
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

_HOLD_TIMEOUT_S = 30.0  # the longest that a held answer waits


class HubFault(NamedTuple):
    """What goes wrong with one answer of the file server.

    `status` instead of the bytes; the connection `cut_at` a byte of the file, or silent from `hold_at` on.
    """

    status: int = 0
    cut_at: int | None = None
    hold_at: int | None = None
    ignores_range: bool = False


class ModelHubServer:
    """Serves files by path. `refuses` is a status for every request of the hub itself; `announced` replaces the hashes."""

    def __init__(self, files: dict[str, bytes], *faults: HubFault) -> None:
        self.files = dict(files)
        self.announced: dict[str, str] = {}
        self.refuses = 0
        self.faults = deque(faults)
        self.requests: list[str] = []
        self.ranges: list[str] = []
        self.released = threading.Event()
        self.url = ""

    def fault(self) -> HubFault:
        """The next fault, or none."""
        return self.faults.popleft() if self.faults else HubFault()


@contextlib.contextmanager
def model_hub_server(
    files: dict[str, bytes], *faults: HubFault
) -> Iterator[ModelHubServer]:
    """Runs the hub until the test ends."""
    hub = ModelHubServer(files, *faults)

    class Handler(_Handler):
        served = hub

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        hub.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    served: ModelHubServer

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        hub = self.served
        hub.requests.append(f"{self.command} {self.path}")
        path = self.path.removeprefix("/cdn/").lstrip("/")
        content = hub.files.get(path)
        if hub.refuses:
            self._send_status(hub.refuses)
        elif content is None:
            self._send_status(404)
        elif not self.path.startswith("/cdn/"):
            self._redirect(path, content)
        elif with_body:
            self._serve(content, hub.fault())

    def _redirect(self, path: str, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        self.send_response(302)
        self.send_header("Location", f"{self.served.url}/cdn/{path}")
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("X-Linked-Size", str(len(content)))
        announced = self.served.announced.get(path, digest)
        self.send_header("X-Linked-ETag", f'"{announced}"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _serve(self, content: bytes, fault: HubFault) -> None:
        wanted = self.headers.get("Range", "")
        self.served.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if fault.status:
            self._send_status(fault.status)
            return
        if fault.ignores_range:
            wanted, start = "", 0
        if start >= len(content):
            self._send_status(416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content) - start))
        if wanted:
            end = len(content) - 1
            self.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
        self.end_headers()
        self._write(content, start, fault)

    def _write(self, content: bytes, start: int, fault: HubFault) -> None:
        with contextlib.suppress(ConnectionError):
            if fault.hold_at is not None:
                self.wfile.write(content[start : fault.hold_at])
                self.wfile.flush()
                self.served.released.wait(_HOLD_TIMEOUT_S)
                start = fault.hold_at
            self.wfile.write(content[start : fault.cut_at])

    def _send_status(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    # pyrefly: ignore[missing-override-decorator]
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass

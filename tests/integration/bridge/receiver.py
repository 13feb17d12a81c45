"""A service on loopback that takes requests, answers as it is told, and remembers them."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes


class Receiver:
    """`answers` are given one after the other, 204 from then on: a status, or a status with headers."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[Request] = []
        self.answers: list[int | tuple[int, dict[str, str]]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.requests.append(Request(self.path, dict(self.headers), body))
                answer = receiver.answers.pop(0) if receiver.answers else 204
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                self.send_response(status)
                for name, value in {"content-length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            # pyrefly: ignore[missing-override-decorator]
            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its own name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/in?x=1"
        threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        ).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    one = Receiver(port)
    try:
        yield one
    finally:
        one.close()


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        threading.Event().wait(0.01)

"""A model service on loopback with a key, or a server like Ollama's without one: real routes, real wire formats.

`GET /v1/models`, `GET /v1/key`, `POST /v1/chat/completions`, `/v1/responses` and `/v1/messages` want the key as their
originals do. With `is_ollama` it has `GET /api/version` and `GET /api/tags`, too.
"""

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from hermes.testing.formats import Format, error_body, render
from hermes.testing.scripted_responses import ScriptedResponse

_FORMATS: dict[str, Format] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "anthropic",
}


class ServiceRequest(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        """The key it carried, wherever."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key", "") or bearer


class FakeModelService:
    """What is served and how, and what was asked."""

    def __init__(self, *models: str, key: str = "", is_ollama: bool = False) -> None:
        self.models = models
        self.key = key
        self.is_ollama = is_ollama
        self.owner = "library" if is_ollama else "openai"
        self.reply = "Hello from the service."
        self.lists_to_everyone = False
        self.redirect_to = ""
        self.broken_models: tuple[str, ...] = ()
        self.requests: list[ServiceRequest] = []
        self.url = ""
        self.host = ""

    def answer(self, request: ServiceRequest) -> tuple[int, bytes, dict[str, str]]:
        """The status, body and headers for a request."""
        if self.redirect_to:
            return 307, b"", {"location": self.redirect_to + request.path}
        path = request.path.partition("?")[0]
        is_public = self.lists_to_everyone and path == "/v1/models"
        if self.key and request.key != self.key and not is_public:
            return _error(401, "Incorrect API key provided.", "invalid_api_key")
        if request.method == "POST" and path in _FORMATS:
            return self._reply(_FORMATS[path], request.body)
        document = self._documents().get(path)
        if request.method == "GET" and document is not None:
            return _json(200, document)
        return _error(404, f"no such path: {path}", "")

    def _documents(self) -> dict[str, Any]:
        """What can be read, by path."""
        listed = [_listed(name, self.owner) for name in self.models]
        documents: dict[str, Any] = {
            "/v1/models": {"object": "list", "data": listed},
            "/v1/key": {"data": {"label": "test"}},
        }
        if self.is_ollama:
            tags = {"models": [_tag(name) for name in self.models]}
            documents |= {"/api/version": {"version": "0.24.0"}, "/api/tags": tags}
        return documents

    def _reply(self, kind: Format, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        model = json.loads(body)["model"]
        if model not in self.models or model in self.broken_models:
            return _error(404, f"The model {model} does not exist.", "model_not_found")
        events = render(kind, ScriptedResponse(text=self.reply), model, 1)
        return 200, b"".join(events), {"content-type": "text/event-stream"}


def _listed(name: str, owner: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1700000000, "owned_by": owner}


def _tag(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": "2026-11-01T10:00:00.000000000Z",
        "size": 2_019_393_189,
        "digest": "a80c4f17acd55265feec403c7aef86be0c25983ab279d83f3bcd3abbcb5b8b72",
        "details": {"format": "gguf", "parameter_size": "3.2B"},
    }


def _json(status: int, content: Any) -> tuple[int, bytes, dict[str, str]]:
    return status, json.dumps(content).encode(), {"content-type": "application/json"}


def _error(status: int, words: str, code: str) -> tuple[int, bytes, dict[str, str]]:
    return status, error_body("chat", status, words, code), {"content-type": "application/json"}  # fmt: skip


@contextlib.contextmanager
def model_service(
    *models: str, key: str = "", is_ollama: bool = False, port: int = 0
) -> Iterator[FakeModelService]:
    """Runs the service until the test ends."""
    service = FakeModelService(*models, key=key, is_ollama=is_ollama)

    class Handler(_Handler):
        served = service

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    service.host = f"127.0.0.1:{server.server_address[1]}"
    service.url = f"http://{service.host}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    served: FakeModelService
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ServiceRequest(self.command, self.path, headers, body)
        self.served.requests.append(request)
        status, content, fields = self.served.answer(request)
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    # pyrefly: ignore[missing-override-decorator]
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keeps the output of the tests clean."""

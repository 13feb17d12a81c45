"""Model servers as people run them on their own machine: Ollama, LM Studio and llama.cpp, on loopback.

Each answers its own questions about models and the chat completions format. As the real Ollama does, the fake cuts a
request that does not fit its context and says nothing about it.
"""

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

Reply = str | tuple[str, dict[str, Any]]
"""A text, or the name and the arguments of a tool call."""


class SelfHostedServer:
    """One server with one model. `answer` makes the reply to a request of the chat completions format."""

    def __init__(
        self,
        kind: Literal["ollama", "lmstudio", "llamacpp"],
        answer: Callable[[dict[str, Any]], Reply],
        *,
        context_tokens: int = 32_768,
        parameters: int = 8_000_000_000,
        has_tools: bool = True,
        is_loaded: bool = True,
    ) -> None:
        self.kind = kind
        self.model = "qwen3:8b"
        self.answer = answer
        self.context_tokens = context_tokens
        self.parameters = parameters
        self.has_tools = has_tools
        self.is_loaded = is_loaded
        self.chats: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.url = ""

    def document(self, path: str) -> object | None:
        """The answer to a question about models; None if this kind of server has none."""
        listed = {"id": self.model, "object": "model", "owned_by": self.kind}
        if path == "/v1/models":
            meta = {"meta": {"n_params": self.parameters}}
            return {"data": [listed | (meta if self.kind == "llamacpp" else {})]}
        documents: dict[str, dict[str, object]] = {
            "ollama": {
                "/api/show": self._shown(),
                "/api/ps": {"models": self._running() if self.is_loaded else []},
                "/api/tags": {"models": [{"name": self.model, "size": 1}]},
                "/api/generate": {"model": self.model, "done": True},
            },
            "lmstudio": {"/api/v0/models": {"data": [self._studio_model()]}},
            "llamacpp": {"/props": self._props()},
        }
        if path == "/api/generate":
            self.is_loaded = True
        return documents[self.kind].get(path)

    def _shown(self) -> dict[str, object]:
        capabilities = ["completion", *(["tools"] if self.has_tools else [])]
        return {
            "details": {"parameter_size": f"{self.parameters / 1e9:.1f}B"},
            "model_info": {"general.parameter_count": self.parameters},
            "capabilities": capabilities,
            "parameters": 'stop   "<|im_end|>"\ntemperature   0.6',
        }

    def _running(self) -> list[dict[str, object]]:
        return [
            {
                "name": self.model,
                "model": self.model,
                "context_length": self.context_tokens,
            }
        ]

    def _studio_model(self) -> dict[str, object]:
        loaded = {"state": "loaded", "loaded_context_length": self.context_tokens}
        return {
            "id": self.model,
            "type": "llm",
            "max_context_length": 131_072,
            "capabilities": ["tool_use"] * self.has_tools,
            **(loaded if self.is_loaded else {"state": "not-loaded"}),
        }

    def _props(self) -> dict[str, object]:
        template = "{% if tools %}{{ tools }}{% endif %}" if self.has_tools else "{{ messages }}"  # fmt: skip
        settings = {"n_ctx": self.context_tokens}
        return {"default_generation_settings": settings, "chat_template": template}


@contextlib.contextmanager
def running_server(server: SelfHostedServer) -> Iterator[SelfHostedServer]:
    """Runs the server until the test ends."""

    class Handler(_Handler):
        served = server

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server.url = f"http://127.0.0.1:{httpd.server_address[1]}/v1"
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    served: SelfHostedServer

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        server = self.served
        server.paths.append(self.path)
        if self.path == "/v1/chat/completions":
            request = msgspec.json.decode(body, type=dict[str, Any])
            server.chats.append(request)
            self._stream(server.answer(request))
            return
        document = server.document(self.path)
        data = msgspec.json.encode(document or {"error": "not found"})
        self.send_response(404 if document is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Reply) -> None:
        if isinstance(reply, str):
            delta: dict[str, object] = {"content": reply}
            finish = "stop"
        else:
            name, arguments = reply
            function = {"name": name, "arguments": msgspec.json.encode(arguments).decode()}  # fmt: skip
            delta = {"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}
            finish = "tool_calls"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        last: dict[str, object] = {"content": None}
        for choice in (
            {"index": 0, "delta": delta},
            {"index": 0, "delta": last, "finish_reason": finish},
        ):
            data = msgspec.json.encode({"id": "c1", "choices": [choice]})
            self.wfile.write(b"data: " + data + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    # pyrefly: ignore[missing-override-decorator]
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass

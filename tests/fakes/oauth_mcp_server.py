"""A remote MCP server with its own authorization server on loopback: discovery, registration, PKCE, rotated refresh
tokens. It checks what the specifications ask for, and answers with an error when a client does otherwise."""

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit


class OAuthState:
    """What the server knows, and how it should behave."""

    def __init__(self) -> None:
        self.url = ""
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.access: set[str] = set()
        self.refresh: set[str] = set()
        self.refreshes = 0
        self.expires_in = 3600
        self.lock = threading.Lock()
        self.token_endpoint = ""
        self.resource = ""
        self.denies = False
        self.has_died = False
        """Whether every refresh token is refused."""
        self.arrived = threading.Event()
        self.go = threading.Event()
        self.go.set()
        """Refreshes wait for it."""

    def issue(self) -> dict[str, Any]:
        access, refresh = f"at-{secrets.token_hex(8)}", f"rt-{secrets.token_hex(8)}"
        self.access.add(access)
        self.refresh.add(refresh)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "refresh_token": refresh,
        }


class OAuthHandler(BaseHTTPRequestHandler):
    """One request."""

    state: OAuthState
    protocol_version = "HTTP/1.1"

    # pyrefly: ignore[missing-override-decorator]
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass

    def do_GET(self) -> None:
        parts, base = urlsplit(self.path), self.state.url
        match parts.path:
            case "/.well-known/oauth-protected-resource/mcp":
                resource = self.state.resource or f"{base}/mcp"
                self._json(200, {"resource": resource, "authorization_servers": [base]})
            case "/.well-known/oauth-authorization-server":
                self._json(200, self._metadata())
            case "/authorize":
                self._authorize({k: v[0] for k, v in parse_qs(parts.query).items()})
            case _:
                self._json(404, {})

    def _metadata(self) -> dict[str, Any]:
        base = self.state.url
        return {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": self.state.token_endpoint or f"{base}/token",
            "registration_endpoint": f"{base}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": ["tools"],
        }

    def _authorize(self, asked: dict[str, str]) -> None:
        known = self.state.clients.get(asked.get("client_id", ""))
        if known is None or asked["redirect_uri"] not in known["redirect_uris"]:
            self._json(400, {"error": "invalid_client"})
            return
        if asked.get("resource") != f"{self.state.url}/mcp" or (
            asked.get("code_challenge_method") != "S256"
        ):
            self._json(400, {"error": "invalid_request"})
            return
        code = secrets.token_hex(8)
        self.state.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.state.url}
        if self.state.denies:
            answer = {
                "error": "access_denied",
                "state": asked["state"],
                "iss": self.state.url,
            }
        self.send_response(302)
        self.send_header("location", f"{asked['redirect_uri']}?{urlencode(answer)}")
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        match self.path:
            case "/register":
                made = json.loads(body) | {"client_id": secrets.token_hex(6)}
                self.state.clients[made["client_id"]] = made
                self._json(201, made)
            case "/token":
                form = {k: v[0] for k, v in parse_qs(body.decode()).items()}
                self._json(*self._token(form))
            case "/mcp":
                self._mcp(json.loads(body))
            case _:
                self._json(404, {})

    def _token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        state = self.state
        if form.get("resource") != f"{state.url}/mcp":
            return 400, {"error": "invalid_target"}
        if form["grant_type"] == "refresh_token":
            state.arrived.set()
            state.go.wait(20)
            with state.lock:
                state.refreshes += 1
                if state.has_died or form["refresh_token"] not in state.refresh:
                    return 400, {"error": "invalid_grant", "error_description": "gone"}
                state.refresh.discard(form["refresh_token"])  # each works once
                return 200, state.issue()
        asked = state.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or challenge != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        return 200, state.issue()

    def _mcp(self, message: dict[str, Any]) -> None:
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.state.access:
            where = f"{self.state.url}/.well-known/oauth-protected-resource/mcp"
            self._json(
                401, {}, {"www-authenticate": f'Bearer resource_metadata="{where}"'}
            )
            return
        results: dict[str, dict[str, Any]] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "remote", "version": "1"},
            },
            "tools/list": {
                "tools": [{"name": "look", "inputSchema": {"type": "object"}}]
            },
            "tools/call": {"content": [{"type": "text", "text": "looked"}]},
        }
        if "id" not in message:
            self._json(202, None)
            return
        result = results.get(message["method"])
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": "unknown method"}
        else:
            reply["result"] = result
        self._json(200, reply)

    def _json(
        self, status: int, content: Any, more: dict[str, str] | None = None
    ) -> None:
        data = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def oauth_mcp_server() -> Iterator[OAuthState]:
    """Serves until the block ends."""
    state = OAuthState()
    handler = type("Handler", (OAuthHandler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.go.set()
            server.shutdown()
            thread.join(10)

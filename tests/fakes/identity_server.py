"""Identity providers on loopback, with the model services that take their tokens.

It speaks OIDC discovery, RFC 8628 (device code), RFC 6749 (refresh, with a refresh token that can be used once), OpenAI's
own device code, GitHub's (errors with status 200, Copilot's token exchange) and OpenRouter's (PKCE, RFC 7636, that mints a
key). `GET /v1/models` and `POST /v1/responses` and `/v1/chat/completions` want an access token that has not been replaced.
"""

# ruff: noqa: S105 - tokens of nobody

import base64
import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from hermes.testing.formats import Format, error_body, render
from hermes.testing.scripted_responses import ScriptedResponse

Answer = tuple[int, bytes, dict[str, str]]

_DEVICE_PATHS = ("/oauth2/device/code", "/login/device/code", "/api/oauth/device/code")
_TOKEN_PATHS = ("/oauth2/token", "/login/oauth/access_token", "/api/oauth/token")
_FORMATS: dict[str, Format] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
}


def jwt(**claims: Any) -> str:
    """A token that says something about itself. Nobody checks its signature."""

    def part(content: dict[str, Any]) -> str:
        return (
            base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
        )

    return f"{part({'alg': 'RS256'})}.{part(claims)}.c2lnbmF0dXJl"


class FakeIdentityServer:
    """What it answers, and what was asked. Every access token is good until the next one is given out."""

    def __init__(self) -> None:
        self.url = ""
        self.polls: list[str] = ["ok"]
        """What the polls for a device code get, one by one; the last one stays."""
        self.discovery: dict[str, str] = {}
        """What discovery says instead of the truth."""
        self.verification_uri = ""
        self.interval_s = 5.0
        self.expires_in: int | None = 3600
        self.email = "ada@example.org"
        self.refusal: tuple[int, dict[str, Any]] | None = None
        """What the token endpoint answers instead of refreshing."""
        self.before_refresh: Callable[[], None] | None = None
        self.api_refusal: tuple[int, str, str] | None = None
        self.api_headers: dict[str, str] = {}
        self.is_cut = False
        """Whether replies of the model end in the middle."""
        self.copilot_api = ""
        self.asked: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.api_calls: list[dict[str, str]] = []
        self.refreshes = 0
        self.reused = 0
        self.refresh_token = "refresh-token-0"
        self.access = ""
        self._minted: set[str] = set()
        self.github_token = "gho_0123456789abcdefghijklmnopqrstuvwxyz"
        self.key = "sk-or-v1-0123456789abcdef0123456789abcdef"
        self.challenges: dict[str, str] = {}
        self._number = 0
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """Where the model service is."""
        return f"{self.url}/v1"

    def grant(self) -> dict[str, Any]:
        """New tokens; those before stop working."""
        self._number += 1
        moment = 1_800_000_000 + self._number
        self.refresh_token = f"refresh-token-{self._number}"
        life = self.expires_in or 3600
        self.access = jwt(
            n=self._number, iat=moment, exp=moment + life, email=self.email,
            **{"https://api.openai.com/auth": {"chatgpt_account_id": "acc-1", "chatgpt_plan_type": "plus"}},
        )  # fmt: skip
        granted: dict[str, Any] = {
            "access_token": self.access,
            "refresh_token": self.refresh_token,
            "id_token": jwt(email=self.email),
            "token_type": "Bearer",
        }
        return granted | ({"expires_in": self.expires_in} if self.expires_in else {})

    def answer(  # noqa: PLR0911 - one for each kind of path
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> Answer:
        path = urlsplit(target).path
        self.asked.append(f"{method} {path}")
        fields = _fields(headers, body)
        self.bodies.append(fields)
        if path in _FORMATS or path in {"/v1/models", "/v1/wham/usage", "/api/v1/key"}:
            return self._api(path, headers, body)
        if path == "/.well-known/openid-configuration":
            return _json(200, self._discovery())
        if path in _DEVICE_PATHS:
            return _json(200, self._device_code())
        if path in _TOKEN_PATHS or path == "/oauth/token":
            return self._token(path, fields)
        if path.startswith("/api/accounts/deviceauth/"):
            return self._chatgpt(path, fields)
        if path == "/copilot_internal/v2/token":
            return self._copilot(headers)
        if path == "/auth":
            return self._authorize(target)
        if path == "/api/v1/auth/keys":
            return self._mint(fields)
        return _json(404, {"error": "not_found"})

    def _discovery(self) -> dict[str, str]:
        return {
            "issuer": self.url,
            "device_authorization_endpoint": f"{self.url}/oauth2/device/code",
            "token_endpoint": f"{self.url}/oauth2/token",
            "authorization_endpoint": f"{self.url}/oauth2/authorize",
        } | self.discovery

    def _device_code(self) -> dict[str, Any]:
        page = self.verification_uri or f"{self.url}/device"
        return {
            "device_code": "device-code-secret",
            "user_code": "WDJB-MJHT",
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code=WDJB-MJHT",
            "expires_in": 900,
            "interval": self.interval_s,
        }

    def _poll(self) -> str:
        return self.polls.pop(0) if len(self.polls) > 1 else self.polls[0]

    def _token(self, path: str, fields: dict[str, Any]) -> Answer:
        kind = fields.get("grant_type", "")
        if kind == "refresh_token":
            return self._refresh(str(fields.get("refresh_token")))
        if kind == "authorization_code":
            is_right = fields.get("code") == "code-1" and fields.get("code_verifier") == "verifier-1"  # fmt: skip
            return _json(200, self.grant()) if is_right else _json(400, {"error": "invalid_grant"})  # fmt: skip
        word = self._poll()
        if word == "unreachable":
            return _json(503, {})
        if word != "ok":
            said = {"error": word, "error_description": f"it says {word}"}
            return _json(200 if path.startswith("/login/") else 400, said)
        if path.startswith("/login/"):
            return _json(200, {"access_token": self.github_token, "scope": "read:user"})
        return _json(200, self.grant())

    def _refresh(self, given: str) -> Answer:
        if self.before_refresh is not None:
            self.before_refresh()
        with self._lock:
            self.refreshes += 1
            if self.refusal is not None:
                return _json(*self.refusal)
            if given != self.refresh_token:
                self.reused += 1
                error = {"code": "refresh_token_reused", "message": "Your refresh token has already been used."}  # fmt: skip
                return _json(401, {"error": error})
            return _json(200, self.grant())

    def _chatgpt(self, path: str, fields: dict[str, Any]) -> Answer:
        if path.endswith("/usercode"):
            return _json(200, {"device_auth_id": "auth-1", "user_code": "ABCD-1234", "interval": "5"})  # fmt: skip
        word = self._poll()
        if word == "authorization_pending":
            return _json(403, {})
        if word != "ok":
            return _json(400, {"error": {"code": word, "message": f"it says {word}"}})
        is_right = fields == {"device_auth_id": "auth-1", "user_code": "ABCD-1234"}
        granted = {"authorization_code": "code-1", "code_challenge": "c", "code_verifier": "verifier-1"}  # fmt: skip
        return _json(200, granted) if is_right else _json(400, {})

    def _copilot(self, headers: dict[str, str]) -> Answer:
        if headers.get("authorization") != f"token {self.github_token}":
            return _json(401, {"message": "Bad credentials"})
        if self.refusal is not None:
            return _json(*self.refusal)
        self.refreshes += 1
        self._number += 1
        self.access = f"tid=abc;exp=1;n={self._number};secret0123456789"
        return _json(200, {
            "token": self.access, "expires_at": 1_800_000_000, "refresh_in": 1500,
            "endpoints": {"api": self.copilot_api or self.base_url},
        })  # fmt: skip

    def _authorize(self, target: str) -> Answer:
        """The person says yes, and is sent back."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}  # fmt: skip
        self.challenges["code-1"] = query["code_challenge"]
        back = (
            {"code": "code-1"} if self._poll() == "ok" else {"error": "access_denied"}
        )
        return 302, b"", {"location": f"{query['callback_url']}?{urlencode(back)}"}

    def _mint(self, fields: dict[str, Any]) -> Answer:
        digest = hashlib.sha256(str(fields.get("code_verifier")).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if self.challenges.pop(str(fields.get("code")), "") != challenge:
            return _json(403, {"error": {"message": "Invalid code or code_verifier", "code": 403}})  # fmt: skip
        self._minted.add(self.key)
        return _json(200, {"key": self.key, "user_id": "user_1"})

    def _api(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        self.api_calls.append(headers)
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if not token or token not in {self.access, *self._minted}:
            words = f"Incorrect token provided: {headers.get('authorization')}"
            return 401, error_body("chat", 401, words, "invalid_token"), {}
        if path == "/v1/wham/usage":
            window = {"used_percent": 42, "limit_window_seconds": 18000, "reset_after_seconds": 3600}  # fmt: skip
            return _json(200, {"plan_type": "plus", "rate_limit": {"primary_window": window}})  # fmt: skip
        if path == "/api/v1/key":
            return _json(200, {"data": {"limit": 10, "limit_remaining": 7.5}})
        if path == "/v1/models":
            return _json(200, {"data": [{"id": "fake-model"}]})
        if self.api_refusal is not None:
            status, words, code = self.api_refusal
            return status, error_body("chat", status, words, code), self.api_headers
        model = json.loads(body)["model"]
        events = render(_FORMATS[path], ScriptedResponse(text="Hello."), model, 1)
        kind = {"content-type": "text/event-stream"}
        sent = events[: len(events) // 2] if self.is_cut else events
        return 200, b"".join(sent), kind | self.api_headers


def _fields(headers: dict[str, str], body: bytes) -> dict[str, Any]:
    if "json" in headers.get("content-type", ""):
        found: dict[str, Any] = json.loads(body or b"{}")
        return found
    return {name: values[0] for name, values in parse_qs(body.decode()).items()}


def _json(status: int, content: Any) -> Answer:
    return status, json.dumps(content).encode(), {"content-type": "application/json"}


@contextlib.contextmanager
def identity_server() -> Iterator[FakeIdentityServer]:
    """Runs the server until the test ends."""
    served = FakeIdentityServer()

    class Handler(_Handler):
        identity = served

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    identity: FakeIdentityServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, content, fields = self.identity.answer(
            self.command, self.path, headers, body
        )
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    # pyrefly: ignore[missing-override-decorator]
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keeps the output of the tests clean."""

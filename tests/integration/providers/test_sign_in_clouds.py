"""Clouds: their own libraries find who the machine is, from servers on loopback that speak the real protocols."""

import base64
import http.server
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from hermes.app.sign_ins import SignIns
from hermes.errors import HermesError
from hermes.providers.sign_in.accounts import Account, AccountStore
from hermes.providers.sign_in.credential import credential_for
from hermes.providers.sign_in.states import SignInOptions
from hermes.settings import Home, load


@contextmanager
def token_server(seen: list[dict[str, Any]]) -> Iterator[str]:
    """Gives out tokens: a managed identity's (GET), or a service account's (POST)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append({"path": self.path, "key": self.headers.get("X-IDENTITY-HEADER")})  # fmt: skip
            expires = str(int(time.time()) + 3600)
            self._answer({"access_token": "azure-token-1", "expires_on": expires, "token_type": "Bearer"})  # fmt: skip

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            seen.append({name: values[0] for name, values in parse_qs(body).items()})
            self._answer({"access_token": "google-token-1", "expires_in": 3600, "token_type": "Bearer"})  # fmt: skip

        def _answer(self, document: dict[str, Any]) -> None:
            content = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        # pyrefly: ignore[missing-override-decorator]
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keeps the output of the tests clean."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").ensure()


async def sign_in(home: Home, service: str, options: SignInOptions) -> Account:
    return await SignIns(home).add(service, options, lambda _: None)


async def test_bedrock_signs_a_short_lived_key_on_this_machine(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("botocore")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv(
        "AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    )
    account = await sign_in(home, "bedrock", SignInOptions(region="eu-central-1"))
    store = AccountStore(home.accounts)
    held = credential_for(account, store, load(home=home))
    granted = await held.acquire()
    key = granted.headers["authorization"].removeprefix("Bearer bedrock-api-key-")
    signed = base64.b64decode(key).decode()
    assert signed.startswith("bedrock.amazonaws.com/?Action=CallWithBearerToken")
    assert "%2Feu-central-1%2Fbedrock%2Faws4_request" in signed
    assert granted.base_url == "https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1"  # fmt: skip
    assert 0 < (granted.expires_at or 0) - time.time() <= 3600
    assert await held.acquire() is granted
    assert await held.renew(granted)
    assert await held.acquire() is not granted
    content = home.accounts.read_text()
    assert "wJalr" not in content
    assert key not in content


async def test_bedrock_without_credentials_says_how_to_get_some(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("botocore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    (tmp_path / "config").write_text("[profile other]\nregion = eu-west-1\n")
    with pytest.raises(HermesError, match="AWS does not know who you are"):
        await sign_in(
            home, "bedrock", SignInOptions(region="eu-west-1", profile="other")
        )
    assert not home.accounts.exists()


async def test_azure_uses_the_identity_of_the_machine(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("azure.identity")
    seen: list[dict[str, Any]] = []
    with token_server(seen) as url:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{url}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "of-this-machine")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        account = await sign_in(
            home, "azure", SignInOptions(endpoint="https://lab.openai.azure.com/")
        )
        held = credential_for(account, AccountStore(home.accounts), load(home=home))
        granted = await held.acquire()
    assert granted.headers["authorization"] == "Bearer azure-token-1"
    assert granted.base_url == "https://lab.openai.azure.com/openai/v1"
    assert seen[0]["key"] == "of-this-machine"
    assert "cognitiveservices.azure.com" in seen[0]["path"]
    assert len(seen) == 1  # the library keeps it until it expires
    assert "azure-token-1" not in home.accounts.read_text()


async def test_vertex_uses_a_service_account(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("google.auth")
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    seen: list[dict[str, Any]] = []
    with token_server(seen) as url:
        file = tmp_path / "service.json"
        file.write_text(json.dumps({
            "type": "service_account", "project_id": "lab-1", "private_key_id": "1", "private_key": pem,
            "client_email": "bot@lab-1.iam.gserviceaccount.com", "client_id": "1", "token_uri": f"{url}/token",
        }))  # fmt: skip
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        account = await sign_in(home, "vertex", SignInOptions(location="europe-west4"))
        held = credential_for(account, AccountStore(home.accounts), load(home=home))
        granted = await held.acquire()
    assert granted.headers["authorization"] == "Bearer google-token-1"
    assert granted.base_url == (
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/lab-1/locations/europe-west4/endpoints/openapi"
    )
    assert seen[0]["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert len(seen) == 1


def test_nothing_of_sign_ins_is_imported_before_somebody_signs_in(home: Home) -> None:
    import subprocess

    program = """
import sys
from pathlib import Path
from hermes.providers.build import build_model
from hermes.settings import Home, load, load_secrets
home = Home(Path(sys.argv[1]))
settings = load(home=home)
build_model(settings, load_secrets({"OPENROUTER_API_KEY": "sk-or-v1-x"}, home=home))
print([name for name in sys.modules if name.startswith(("hermes.providers.sign_in", "azure", "google.auth", "botocore"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(home.root)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"

"""Web push: signed requests without text to the browsers' own services, and what a notification says."""

import asyncio
import base64
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from tests.integration.dashboard.harness import PATIENCE, Harness

from hermes.errors import UsageError
from hermes.schema.events import QuestionAsked, SessionCreated, TurnStarted
from hermes.settings import Home
from hermes.surfaces.dashboard.credentials import Pass
from hermes.surfaces.dashboard.push import WebPush

HELD = Pass("cookie", ("chat",), 1e12, "one")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class PushService:
    """A push service on loopback: notes each request, and answers with a status."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.requests: list[bytes] = []

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(f"HTTP/1.1 {self.status} X\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


async def test_a_push_is_signed_and_empty_and_dead_subscriptions_go(
    tmp_path: Path,
) -> None:
    service = PushService(201)
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}/send/abc"
    signed_in = {HELD.id}
    push = WebPush(
        Home(tmp_path / "home"),
        lambda held: held.id in signed_in,
        is_allowed=lambda _: True,
    )
    async with server:
        push.subscribe(endpoint, HELD)
        await asyncio.wait_for(push.send(), PATIENCE)
        (request,) = service.requests
        head = request.decode().lower()
        assert "ttl: 3600" in head
        assert "content-length: 0" in head
        given = request.decode().split("vapid t=")[1].split("\r\n")[0]
        token, _, key = given.partition(", k=")
        assert key == push.public_key()
        point = ec.EllipticCurvePublicKey.from_encoded_point(
            ec.SECP256R1(), _bytes(key)
        )
        body, _, signature = token.rpartition(".")
        raw = _bytes(signature)
        der = utils.encode_dss_signature(
            int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
        )
        point.verify(der, body.encode(), ec.ECDSA(hashes.SHA256()))
        claims = msgspec.json.decode(_bytes(body.partition(".")[2]))
        assert claims["aud"] == f"http://{urlsplit(endpoint).netloc}"
        service.status = 410
        await push.send()
        await push.send()  # nobody is left
        assert len(service.requests) == 2
        push.subscribe(endpoint, HELD)
        signed_in.clear()
        await push.send()  # that browser was signed out
        assert len(service.requests) == 2


async def test_only_push_services_of_browsers_are_taken(harness: Harness) -> None:
    push = harness.served.board.push_notices.push
    for bad in (
        "http://fcm.googleapis.com/x",
        "https://169.254.169.254/x",
        "https://evilfcm.googleapis.com.example/x",
        "https://fcm.googleapis.com:8443/x",
        "https://fcm.googleapis.com:x/",
        "https://fcm.googleapis.com/\x00",
        "https://169.254.169.254\\@fcm.googleapis.com/x",
    ):
        with pytest.raises(UsageError):
            push.subscribe(bad, HELD)
    good = {"endpoint": "https://web.push.apple.com/abc"}
    await harness.call("POST", "/api/push", good, scope="chat")
    assert (await harness.call("GET", "/api/push"))["key"] == push.public_key()
    await harness.call("POST", "/api/push/leave", good, scope="chat")

    assert (await harness.call("GET", "/api/notice"))["title"] == ""
    session = harness.app.begin(SessionCreated(surface="dashboard")).session
    harness.app.record(session, TurnStarted(), turn="t")
    asked = QuestionAsked(call_id="c", text="Which colour?")
    lease = harness.app.store.leases.acquire(session)
    harness.app.record(session, asked, turn="t", lease=lease)
    notice = await harness.call("GET", "/api/notice")
    assert notice["body"] == "Which colour?"
    assert (notice["session_id"], notice["waiting"]) == (session, 1)

"""Outgoing webhooks against a real service: signed, in order, tried again, kept over a restart, not redirected."""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.integration.bridge.receiver import Receiver, Request, receiving, wait_until

from hermes.app import build
from hermes.bridge.webhooks import WebhookSender, key_of
from hermes.events import Bus
from hermes.events.envelope import relay
from hermes.primitives.backoff import Backoff
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import WebhookSettings

_KEY = b"a key of 32 bytes for the tests!"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def _sender(
    bus: Bus, url: str, place: Path, *events: str, contents: bool = False
) -> WebhookSender:
    webhook = WebhookSettings(
        url=url,
        secret="X",  # noqa: S106
        events=events or ("agent.turn.*",),
        contents=contents,  # noqa: RUF100, S106
    )
    return WebhookSender(bus, "ops", webhook, _KEY, place, backoff=Backoff(0.01, 0.05))


def _numbers(receiver: Receiver) -> list[int]:
    return [
        msgspec.json.decode(request.body)["data"]["n"] for request in receiver.requests
    ]


def _is_genuine(request: Request, key: bytes) -> bool:
    """As the Standard Webhooks specification has a receiver check it."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    signed = (
        f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode()
        + request.body
    )
    mark = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return headers["webhook-signature"] == f"v1,{mark}"


def test_events_of_its_patterns_are_sent_once_signed_and_without_private_fields(
    receiver: Receiver, tmp_path: Path
) -> None:
    bus = Bus()
    sender = _sender(bus, receiver.url, tmp_path, "agent.**", "agent.tool.*")
    bus.publish(
        "agent.tool.started",
        {"name": "ls", "arguments": "secret", "session_id": "s", "epoch": 3, "seq": 7},
    )
    bus.publish("session.created", {})
    relay(bus.publish, "agent.tool.started", {"name": "elsewhere"})
    bus.publish("agent.turn.ended", {"reason": "done"})
    sender.stop()
    first, second = receiver.requests
    body = msgspec.json.decode(first.body)
    assert (body["type"], body["data"]["name"], body["id"]) == (
        "agent.tool.started",
        "ls",
        "s-3-7",
    )
    assert "arguments" not in body["data"]
    assert first.path == "/in?x=1"
    assert _is_genuine(first, _KEY)
    assert _is_genuine(second, _KEY)
    assert not _is_genuine(first._replace(body=first.body + b" "), _KEY)
    assert not _is_genuine(first, b"another key")
    assert sender.stats().delivered == 2
    assert list(tmp_path.iterdir()) == []


def test_private_fields_are_sent_when_that_is_wanted(
    receiver: Receiver, tmp_path: Path
) -> None:
    bus = Bus()
    sender = _sender(bus, receiver.url, tmp_path, "agent.**", contents=True)
    bus.publish("agent.tool.started", {"name": "ls", "arguments": "secret"})
    sender.stop()
    assert (
        msgspec.json.decode(receiver.requests[0].body)["data"]["arguments"] == "secret"
    )


def test_a_service_that_fails_is_tried_again_and_gets_everything_in_order(
    receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answers = [500, 503, (429, {"retry-after": "0"}), 204, 502]
    bus = Bus()
    sender = _sender(bus, receiver.url, tmp_path)
    for number in range(20):
        bus.publish("agent.turn.ended", {"n": number})
    wait_until(lambda: sender.stats().delivered == 20)
    assert _numbers(receiver) == [0, 0, 0, 0, 1, 1, *range(2, 20)]
    ids = [request.headers["webhook-id"] for request in receiver.requests]
    assert len(set(ids)) == 20  # an attempt more is no event more
    sender.stop()


def test_a_redirect_is_not_followed_and_what_is_refused_for_good_is_left_out(
    receiver: Receiver, tmp_path: Path
) -> None:
    with receiving() as other:
        receiver.answers = [(302, {"location": other.url})] * 5 + [400] * 5
        bus = Bus()
        sender = _sender(bus, receiver.url, tmp_path)
        for number in range(3):
            bus.publish("agent.turn.ended", {"n": number})
        wait_until(lambda: sender.stats().delivered == 1)
        assert _numbers(receiver) == [0] * 5 + [1] * 5 + [2]
        assert sender.stats().refused == 2
        assert other.requests == []
        sender.stop()


def test_a_service_that_is_gone_is_left_alone(
    receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answers = [410]
    bus = Bus()
    sender = _sender(bus, receiver.url, tmp_path)
    bus.publish("agent.turn.ended", {"n": 1})
    wait_until(lambda: sender.stats().state == "gone")
    bus.publish("agent.turn.ended", {"n": 2})
    sender.stop()
    assert len(receiver.requests) == 1
    assert (sender.stats().refused, sender.stats().waiting) == (
        1,
        1,
    )  # what comes after is not kept


def test_where_others_can_listen_in_private_fields_are_not_sent(tmp_path: Path) -> None:
    for url, sent in (
        ("http://ops.lan/in", False),
        ("https://ops.lan/in", True),
        ("http://[::1]/in", True),
    ):
        sender = _sender(Bus(), url, tmp_path, contents=True)
        record = sender._record(
            {"type": "agent.tool.started", "name": "ls", "arguments": "secret"}
        )
        assert (b"secret" in record) is sent, url
        sender.stop(0.0)


def test_what_could_not_be_sent_is_sent_by_the_next_process(tmp_path: Path) -> None:
    with receiving() as gone:
        port = gone.port
    bus = Bus()
    sender = _sender(bus, f"http://127.0.0.1:{port}/", tmp_path)
    for number in range(5):
        bus.publish("agent.turn.ended", {"n": number})
    wait_until(lambda: sender.stats().state == "failing")
    sender.stop()
    assert len(list(tmp_path.iterdir())) == 1
    with receiving(port) as back:
        heir = _sender(bus, f"http://127.0.0.1:{port}/", tmp_path)
        wait_until(lambda: len(back.requests) == 5)
        bus.publish("agent.turn.ended", {"n": 5})
        wait_until(lambda: len(back.requests) == 6)
        heir.stop()
        assert _numbers(back) == [0, 1, 2, 3, 4, 5]
    assert list(tmp_path.iterdir()) == []


def test_without_its_secret_nothing_is_sent(receiver: Receiver, tmp_path: Path) -> None:
    settings = Settings(
        webhooks={
            "ops": WebhookSettings(
                url=receiver.url,
                secret="OPS_SECRET",  # noqa: S106
                events=("**",),
            )
        }
    )
    for secrets, expected in (
        (Secrets({}, {}), 0),
        (Secrets({"OPS_SECRET": "x"}, {}), 1),
    ):
        bus = Bus()
        with build(settings, Home(tmp_path / "home"), bus=bus) as app:
            app.go_live(secrets)
            bus.publish("agent.turn.ended", {"n": 1})
            assert app.exporters is not None
            (state,) = app.exporters.describe()["webhooks"]
            assert (state["state"] == "no secret") is (expected == 0)
        assert len(receiver.requests) == expected


def test_a_secret_is_base64_behind_its_prefix_or_any_text() -> None:
    assert key_of("whsec_" + base64.b64encode(_KEY).decode()) == _KEY
    assert key_of("plain") == b"plain"
    assert key_of("whsec_*") == b"whsec_*"
    assert key_of("whsec_é") == "whsec_é".encode()

"""Password, token and encryption on the way to NATS, with servers that ask for them."""

import asyncio
import queue
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nats.errors import Error as NatsError
from tests.fakes.machines import until
from tests.fakes.nats_server import LocalNats, running_nats

from hermes.bridge.nats_client import NatsOptions
from hermes.bridge.nats_health import nats_health
from hermes.bridge.nats_link import NatsLink, open_link
from hermes.bridge.work_stream import WorkStream, offer
from hermes.commands.doctor_checks import Site
from hermes.commands.store_checks import check_events
from hermes.commands.views import FAIL, OK
from hermes.primitives.tasks import running
from hermes.settings import Home, Secrets
from hermes.settings.sections import EventSettings

TIMEOUT_S = 30.0
WORD = "correct-horse-battery"


def arrives(settings: EventSettings, **secrets: str) -> bool:
    """Whether a wake-up of one process reaches another."""
    heard: queue.Queue[frozenset[str]] = queue.Queue()
    one = open_link(settings, Secrets(secrets, {}))
    two = open_link(settings, Secrets(secrets, {}))
    try:
        two.listen(heard.put)
        for link in (one, two):
            wait_until_connected(link)
        two.client.start(two.client.client.flush()).result(TIMEOUT_S)
        assert one.announce(frozenset({"s1"}))
        first = heard.get(timeout=TIMEOUT_S)  # none, if it listened before it connected
        return frozenset({"s1"}) in (first, first or heard.get(timeout=TIMEOUT_S))
    finally:
        one.close()
        two.close()


def wait_until_connected(link: Any) -> None:
    connected: queue.Queue[None] = queue.Queue()
    link.client.connected_listeners.append(lambda: connected.put(None))
    if not link.client.is_connected:
        connected.get(timeout=TIMEOUT_S)


def test_a_password(nats: LocalNats) -> None:
    with running_nats("--user", "hermes", "--pass", WORD) as one:
        settings = EventSettings(url=f"nats://hermes@127.0.0.1:{one.port}")
        wrong = nats_health(NatsOptions(settings, password=WORD + "?"))
        assert "refused the connection" in wrong.fault
        assert "EVENTS_PASSWORD" in wrong.to_do
        right = nats_health(NatsOptions(settings, password=WORD))
        assert (right.fault, right.has_work_queue, right.is_encrypted) == (
            "",
            True,
            False,
        )
        assert arrives(settings, EVENTS_PASSWORD=WORD)


def test_the_doctor_knows_the_server(nats: LocalNats, tmp_path: Path) -> None:
    environ = {"HERMES_EVENTS_URL": nats.url}
    (found,) = check_events(Site(Home(tmp_path), environ))
    assert found.mark == OK
    assert f"NATS: 127.0.0.1:{nats.port}; " in found.text
    assert "not encrypted, latency" in found.text
    environ = {"HERMES_EVENTS_URL": "nats://127.0.0.1:1"}
    (away,) = check_events(Site(Home(tmp_path), environ))
    assert away.mark == FAIL
    assert "NATS at 127.0.0.1:1: it can't be reached" in away.text
    assert check_events(Site(Home(tmp_path), {})) == []


def test_a_token(nats: LocalNats) -> None:
    with running_nats("--auth", WORD) as one:
        settings = EventSettings(url=one.url)
        assert "refused" in nats_health(NatsOptions(settings)).fault
        assert nats_health(NatsOptions(settings, token=WORD)).version
        assert arrives(settings, EVENTS_TOKEN=WORD)


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs openssl to make a certificate"
)
def test_encryption(nats: LocalNats, tmp_path: Path) -> None:
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    options = ["--tls", "--tlscert", str(certificate), "--tlskey", str(key)]
    with running_nats(*options) as one:
        address = f"tls://localhost:{one.port}"
        strange = nats_health(NatsOptions(EventSettings(url=address)))
        assert "certificate is not accepted" in strange.fault
        known = EventSettings(url=address, tls_ca=str(certificate))
        found = nats_health(NatsOptions(known))
        assert (found.fault, found.is_encrypted) == ("", True)
        other_name = EventSettings(
            url=f"tls://127.0.0.1:{one.port}", tls_ca=str(certificate)
        )
        assert (
            "certificate is not accepted" in nats_health(NatsOptions(other_name)).fault
        )
        assert arrives(known)


def test_a_server_that_does_not_encrypt_gets_no_password(nats: LocalNats) -> None:
    settings = EventSettings(url=f"tls://hermes@127.0.0.1:{nats.port}")
    found = nats_health(NatsOptions(settings, password=WORD))
    assert "does not encrypt" in found.fault
    assert "nats://" in found.to_do


def test_a_server_that_is_away_is_named(nats: LocalNats) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"nats://127.0.0.1:{free.getsockname()[1]}"
    assert (
        "can't be reached" in nats_health(NatsOptions(EventSettings(url=address))).fault
    )


@pytest.mark.parametrize("has_queue", [True, False])
async def test_a_worker_counts_on_the_queue_only_if_the_server_has_one(
    has_queue: bool,
) -> None:
    with running_nats(f"-js={str(has_queue).lower()}") as one:
        link = open_link(EventSettings(url=one.url), Secrets({}, {}))
        try:
            await asyncio.to_thread(wait_until_connected, link)
            stream = WorkStream(link, "here", lambda: 1)
            async with running(stream.run(_nothing)):
                if has_queue:
                    await until(lambda: stream.is_live)
                else:
                    with pytest.raises(NatsError):
                        await asyncio.wrap_future(link.client.start(_queues(link)))
                    assert not stream.is_live
        finally:
            link.close()


async def test_a_queue_that_was_set_up_on_a_disk_is_used_as_it_is(
    nats: LocalNats,
) -> None:
    link = open_link(EventSettings(url=nats.url, subject="on-disk"), Secrets({}, {}))
    taken: asyncio.Queue[str] = asyncio.Queue()
    try:
        await asyncio.to_thread(wait_until_connected, link)
        await asyncio.wrap_future(link.client.start(_set_up_on_disk(link)))
        stream = WorkStream(link, "here", lambda: 1)
        async with running(stream.run(taken.put)):
            await until(lambda: stream.is_live)
            offer(link, "s1", "")
            assert await asyncio.wait_for(taken.get(), TIMEOUT_S) == "s1"
    finally:
        link.close()


async def test_the_queue_is_there_again_after_the_server_was_restarted() -> None:
    with running_nats() as one:
        link = open_link(EventSettings(url=one.url), Secrets({}, {}))
        taken: asyncio.Queue[str] = asyncio.Queue()

        async def offers() -> None:
            while taken.empty():  # a message without a queue is lost
                offer(link, "s1", "")
                await asyncio.wait({look}, timeout=0.2)

        try:
            await asyncio.to_thread(wait_until_connected, link)
            stream = WorkStream(link, "here", lambda: 1)
            async with running(stream.run(taken.put)):
                await until(lambda: stream.is_live)
                await asyncio.to_thread(one.stop)
                await asyncio.to_thread(one.start)
                look = asyncio.ensure_future(asyncio.wait_for(taken.get(), TIMEOUT_S))
                async with running(offers()):
                    assert await look == "s1"
        finally:
            link.close()


async def _set_up_on_disk(link: NatsLink) -> None:
    await link.client.client.jetstream().add_stream(
        name=f"{link.subject}-work",
        subjects=[f"{link.subject}.work.>"],
        retention="workqueue",
        storage="file",
    )


async def _nothing(_: str) -> None:
    """There is no work."""


async def _queues(link: NatsLink) -> object:
    return await link.client.client.jetstream().account_info()

"""Checks the NATS server once: whether it is reachable and accepts us, its version, and its features."""

import asyncio
import ssl
from typing import Any

import msgspec

from hermes.bridge.nats_client import NOT_ENCRYPTED, NatsOptions, end_client, new_client
from hermes.errors import words_of_connection
from hermes.text.translation import translator

t = translator(__name__)


_HEALTH_TIMEOUT_S = 5.0
_MAX_GOOD_LATENCY_S = 0.020
_ONCE = {
    "allow_reconnect": False,
    "max_reconnect_attempts": 1,
    "reconnect_time_wait": 0.1,
}


class NatsHealth(msgspec.Struct, frozen=True):
    """The findings. `fault` says why the server can't be used, if it can't."""

    fault: str = ""
    to_do: str = ""
    version: str = ""
    is_encrypted: bool = False
    has_work_queue: bool = False
    latency_s: float = 0.0

    @property
    def is_slow(self) -> bool:
        """Whether live text would be late."""
        return self.latency_s > _MAX_GOOD_LATENCY_S


def nats_health(options: NatsOptions) -> NatsHealth:
    """Connects, asks and disconnects. Takes a few seconds at most. Raises for an address that can't be used."""
    arguments = options.connect_arguments() | _ONCE
    try:
        return asyncio.run(_look(arguments))
    except ssl.SSLError as error:
        to_do = t.logged(
            "Check `events.tls_ca`, and that the host in `events.url` is the name in the server's "
            "certificate."
        )
        return NatsHealth(
            t.logged("its certificate is not accepted: {reason}", reason=error.reason),
            to_do,
        )
    except Exception as error:  # noqa: BLE001 - the library raises many kinds
        return _fault(error)


async def _look(arguments: dict[str, Any]) -> NatsHealth:
    client = new_client()
    errors: list[Exception] = []

    async def note(error: Exception) -> None:
        errors.append(error)

    try:
        async with asyncio.timeout(_HEALTH_TIMEOUT_S):
            await client.connect(error_cb=note, **arguments)
            await client.flush()
            latency_s = min([await client.rtt() for _ in range(3)])
            return NatsHealth(
                version=_version(client),
                is_encrypted=_is_encrypted(client),
                has_work_queue=await _has_jetstream(client),
                latency_s=latency_s,
            )
    except Exception as error:  # noqa: BLE001 - the library raises many kinds
        raise errors[0] if errors else error from None
    finally:
        await end_client(client)


def _version(client: Any) -> str:
    found = client.connected_server_version
    return f"{found.major}.{found.minor}.{found.patch}"


def _is_encrypted(client: Any) -> bool:
    """Returns whether the connection is encrypted, which the library does not report."""
    return client._transport._io_writer.get_extra_info("ssl_object") is not None  # noqa: SLF001


async def _has_jetstream(client: Any) -> bool:
    from nats.errors import Error

    try:
        await client.jetstream(timeout=2.0).account_info()
    except (Error, TimeoutError):
        return False
    return True


def _fault(error: Exception) -> NatsHealth:
    reason = words_of_connection(error)
    if NOT_ENCRYPTED in reason:
        to_do = t.logged(
            "Turn on TLS there. Only on a network you trust, use nats:// instead of tls:// in `events.url`."
        )
        return NatsHealth(t.logged("it does not encrypt connections"), to_do)
    if "authorization" in reason.lower():
        to_do = t.logged(
            "Check the user in `events.url`, and run: hermes config set EVENTS_PASSWORD (or "
            "EVENTS_TOKEN)"
        )
        return NatsHealth(
            t.logged("it refused the connection: {reason}", reason=reason), to_do
        )
    to_do = t.logged(
        "Check that the server runs and that `events.url` is right. Until then Hermes works "
        "without NATS, but more slowly."
    )
    return NatsHealth(t.logged("it can't be reached: {reason}", reason=reason), to_do)

"""A WebSocket client for the bridge. It never blocks, and imports only modules that are loaded anyway."""

import base64
import hashlib
import ipaddress
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self, TypeAlias
from urllib.parse import quote, urlsplit

import msgspec

from hermes.errors import HermesError
from hermes.settings import Home
from hermes.settings.load import EventTarget
from hermes.text.translation import translator

t = translator(__name__)


_PATH = "/api/pub"  # of an address that names only the host
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONNECT_TIMEOUT_S = 10.0  # for a connection and its handshake
_READ_BYTES = 64 * 1024
_MAX_MESSAGE_BYTES = 1024 * 1024  # of an incoming message
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_MASKED_BYTES = 4096  # at once
_RETRY = (BlockingIOError, InterruptedError)


class WireClosed(HermesError):
    """The connection is closed, or could not be made."""


class WireRefused(WireClosed):
    """The dashboard rejected the connection."""

    def __init__(self, status: int, wait: float) -> None:
        super().__init__(t.logged("the dashboard refused with {status}", status=status))
        self.status = status
        self.wait = wait


class Target(NamedTuple):
    """The address of a dashboard's `/api/pub`, and the token for it."""

    url: str
    token: str
    cafile: str = ""
    """The file of its certificate, if it is self-signed."""


Wait: TypeAlias = Callable[[socket.socket, bool, float], None]
"""Waits until a socket is readable, or also writable. Raises WireClosed on a timeout, or when the bridge stops."""


class Wire:
    """One connection. Its user waits for the socket, then calls `receive` and `push`."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._key = b""
        self._out = memoryview(b"")
        self._in = bytearray()
        self._parts = bytearray()
        self.received = 0
        """How many bytes were received."""

    @classmethod
    def open(cls, target: Target, channel: str, wait: Wait) -> Self:
        """Connects and shakes hands. Raises WireClosed."""
        place = urlsplit(target.url)
        secure = place.scheme in {"wss", "https"}
        host = place.hostname or ""
        deadline = time.monotonic() + _CONNECT_TIMEOUT_S
        try:
            sock = _connect(host, place.port or (443 if secure else 80), wait, deadline)
        except (OSError, ValueError) as error:
            raise WireClosed(f"{host} can't be reached ({error})") from error
        try:
            if secure:
                sock = _secured(sock, host, target.cafile, wait, deadline)
            wire = cls(sock)
            wire._shake_hands(
                place.netloc.rpartition("@")[2],
                f"{place.path or _PATH}?channel={quote(channel)}",
                target.token,
            )
            wire._await_answer(wait, deadline)
        except BaseException:
            sock.close()
            raise
        return wire

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def is_idle(self) -> bool:
        """Whether everything was passed to the kernel."""
        return not self._out

    def send(self, text: bytes) -> None:
        """Starts sending a message. The previous one must have been sent."""
        self._queue(_TEXT, text)
        self.push()

    def push(self) -> None:
        """Continues sending. Raises WireClosed."""
        try:
            while self._out:
                self._out = self._out[self._sock.send(self._out) :]
        except _RETRY:
            return
        except OSError as error:
            if not _has_to_wait(error):
                raise WireClosed(f"the connection broke ({error})") from error

    def receive(self) -> list[bytes]:
        """Returns the messages that have arrived. Raises WireClosed if the peer is gone."""
        self._fill()
        messages: list[bytes] = []
        for opcode, is_last, payload in self._frames():
            if opcode == _PING:
                if (
                    len(self._out) < _MAX_MESSAGE_BYTES
                ):  # a peer that sends pings but reads no answers gets none
                    self._queue(_PONG, payload)
                    self.push()
            elif opcode == _CLOSE:
                code = (
                    struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else 1005
                )
                raise WireClosed(f"the dashboard closed the connection ({code})")
            elif opcode != _PONG:
                self._parts += payload
                if len(self._parts) > _MAX_MESSAGE_BYTES:
                    raise WireClosed("the dashboard sent too much")
                if is_last:
                    messages.append(bytes(self._parts))
                    self._parts.clear()
        return messages

    def close(self) -> None:
        """Sends a close frame if possible, and closes the connection."""
        try:
            if not self._out:
                self._queue(_CLOSE, struct.pack(">H", 1000))
                self.push()
        except WireClosed:
            pass
        finally:
            self._sock.close()

    def _queue(self, opcode: int, payload: bytes) -> None:
        self._out = memoryview(bytes(self._out) + _frame(opcode, payload))

    def _fill(self) -> None:
        try:
            while True:
                data = self._sock.recv(_READ_BYTES)
                if not data:
                    raise WireClosed("the dashboard is gone")
                self._in += data
                self.received += len(data)
                if len(self._in) > _MAX_MESSAGE_BYTES:
                    raise WireClosed("the dashboard sent too much")
        except _RETRY:
            return
        except OSError as error:
            if not _has_to_wait(error):
                raise WireClosed(f"the connection broke ({error})") from error

    def _frames(self) -> Iterator[tuple[int, bool, bytes]]:
        while len(self._in) >= 2:
            first, length, start = self._in[0], self._in[1] & 0x7F, 2
            if length == 126:
                start = 4
            elif length == 127:
                start = 10
            if start > 2 and len(self._in) >= start:
                length = int.from_bytes(self._in[2:start])
            if len(self._in) < start + length:
                return
            payload = bytes(self._in[start : start + length])
            del self._in[: start + length]
            yield first & 0x0F, bool(first & 0x80), payload

    def _shake_hands(self, host: str, path: str, token: str) -> None:
        self._key = base64.b64encode(os.urandom(16))
        if not (token.isascii() and token.isprintable()):
            raise WireClosed(
                "the token can't be sent: it has characters that no token has"
            )
        head = (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {self._key.decode()}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n"
        )
        self._out = memoryview(head.encode())
        self.push()

    def _await_answer(self, wait: Wait, deadline: float) -> None:
        while b"\r\n\r\n" not in self._in:
            wait(self._sock, bool(self._out), deadline - time.monotonic())
            self.push()
            self._fill()
        head, _, rest = bytes(self._in).partition(b"\r\n\r\n")
        self._in[:] = rest
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:])
        }
        status = lines[0].split(" ")[1] if lines[0].count(" ") else "0"
        if status != "101":
            wait_for = headers.get("retry-after", "0")
            raise WireRefused(
                int(status) if status.isdecimal() else 0,
                float(wait_for) if wait_for.isdecimal() else 0.0,
            )
        expected = base64.b64encode(
            hashlib.sha1(self._key + _GUID, usedforsecurity=False).digest()
        ).decode()
        if headers.get("sec-websocket-accept") != expected:
            raise WireClosed("the server there is not a dashboard")


def _frame(opcode: int, payload: bytes) -> bytes:
    length = len(payload)
    if length < 126:
        head = struct.pack(">BB", 0x80 | opcode, 0x80 | length)
    elif length < 65536:
        head = struct.pack(">BBH", 0x80 | opcode, 0x80 | 126, length)
    else:
        head = struct.pack(">BBQ", 0x80 | opcode, 0x80 | 127, length)
    key = os.urandom(4)
    return b"".join((head, key, *_masked(payload, key)))


def _masked(payload: bytes, key: bytes) -> Iterator[bytes]:
    """Masks the payload in pieces. All use one mask, and small pieces stay in the processor's cache."""
    size = min(_MASKED_BYTES, len(payload) + 4 & -4)
    mask = int.from_bytes(key * (size // 4), "little")
    for start in range(0, len(payload), size):
        piece = payload[start : start + size]
        yield (int.from_bytes(piece, "little") ^ mask).to_bytes(size, "little")[
            : len(piece)
        ]


def _connect(host: str, port: int, wait: Wait, deadline: float) -> socket.socket:
    failure: OSError = OSError("no address")
    for family, kind, number, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, number)
        try:
            sock.setblocking(False)
            if code := sock.connect_ex(address):
                wait(sock, True, deadline - time.monotonic())
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        except BaseException:
            sock.close()
            raise
        if not code:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        sock.close()
        failure = OSError(code, os.strerror(code))
    raise failure


def _secured(
    sock: socket.socket, host: str, cafile: str, wait: Wait, deadline: float
) -> socket.socket:
    import ssl

    context = ssl.create_default_context(cafile=cafile or None)
    if cafile:  # exactly this certificate, regardless of its name
        context.check_hostname = False
    secured = context.wrap_socket(
        sock, server_hostname=host, do_handshake_on_connect=False
    )
    while True:
        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            wait(secured, False, deadline - time.monotonic())
        except ssl.SSLWantWriteError:
            wait(secured, True, deadline - time.monotonic())
        except OSError as error:
            secured.close()
            raise WireClosed(f"no secure connection to {host} ({error})") from error
        else:
            return secured


def _has_to_wait(error: OSError) -> bool:
    return type(error).__name__ in {
        "SSLWantReadError",
        "SSLWantWriteError",
    }  # by name: ssl may not be loaded


class _Running(msgspec.Struct):
    pub_url: str
    token: str
    pid: int


def of_home(home: Home, cafile: str = "") -> Target | None:
    """Returns this home's dashboard, if it runs in another process. Its address is in a file private to the user."""
    try:
        found = msgspec.json.decode(
            (home.root / "dashboard" / "running.json").read_bytes(), type=_Running
        )
        os.kill(found.pid, 0)
    except (OSError, msgspec.MsgspecError):
        return None
    return (
        None if found.pid == os.getpid() else Target(found.pub_url, found.token, cafile)
    )


def finder(
    home: Home, named: EventTarget, cafile: str = ""
) -> Callable[[], Target | None]:
    """Returns a function that finds the dashboard. It is called for each attempt, because a restart changes the URL."""
    if named.url:
        return lambda: Target(named.url, named.token)
    return lambda: of_home(home, cafile)


def is_private(url: str) -> bool:
    """Returns whether the connection is private: it stays on this machine, or is encrypted."""
    place = urlsplit(url)
    if place.scheme in {"wss", "https"} or place.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(place.hostname or "").is_loopback
    except ValueError:
        return False

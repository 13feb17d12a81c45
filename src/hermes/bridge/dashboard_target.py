"""Finds the dashboard that the events of this process go to: the one in the environment, or the one of this home."""

import ipaddress
import os
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from hermes.bridge.websocket import Target
from hermes.settings import Home
from hermes.settings.load import EventTarget


class _Running(msgspec.Struct):
    pub_url: str
    token: str
    pid: int


def of_home(home: Home, cafile: str = "") -> Target | None:
    """The dashboard of this home, if it runs in another process. It writes its address to a file that only the user reads."""
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
    """Returns a function that finds the dashboard. It is called for each attempt, because a restarted dashboard has moved."""
    if named.url:
        return lambda: Target(named.url, named.token)
    return lambda: of_home(home, cafile)


def is_private(url: str) -> bool:
    """Whether nobody can listen in on the connection: it stays on this machine, or is encrypted."""
    place = urlsplit(url)
    if place.scheme in {"wss", "https"} or place.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(place.hostname or "").is_loopback
    except ValueError:
        return False

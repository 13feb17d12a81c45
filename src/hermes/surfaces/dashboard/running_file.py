"""`dashboard/running.json`: where a dashboard runs, for other processes of the same user."""

import contextlib
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from hermes.settings import Home, atomic
from hermes.surfaces.dashboard.credentials import Keyring, dashboard_folder

_LISTEN_PROBE_TIMEOUT_S = 5.0
_TOKEN_LIFETIME_S = 365 * 24 * 3600.0


class RunningDashboard(msgspec.Struct, frozen=True):
    """The address of a dashboard, and a token that may only publish, also into feeds of sessions."""

    url: str
    pub_url: str
    token: str
    pid: int

    def listens(self) -> bool:
        """Whether something listens there. After a crash, the process id may belong to another process."""
        place = urlsplit(self.url)
        try:
            with socket.create_connection(
                (place.hostname, place.port), _LISTEN_PROBE_TIMEOUT_S
            ):
                return True
        except ConnectionRefusedError:
            return False
        except OSError:
            return True


def announce(home: Home, keys: Keyring, url: str, pid: int) -> None:
    """Writes the file, with a new token."""
    home.ensure(dashboard_folder(home))
    token = keys.mint("token", ("publish", "relay"), seconds=_TOKEN_LIFETIME_S)
    running = RunningDashboard(
        url, url.replace("http", "ws", 1) + "/api/pub", token, pid
    )
    atomic.replace(_path(home), msgspec.json.encode(running).decode(), mode=0o600)


def running_dashboard(home: Home) -> RunningDashboard | None:
    """The running dashboard of a home; None when its process is gone."""
    try:
        found = msgspec.json.decode(_path(home).read_bytes(), type=RunningDashboard)
        os.kill(found.pid, 0)
    except (OSError, msgspec.MsgspecError):
        return None
    return found


def withdraw(home: Home) -> None:
    """Removes the file, if it belongs to this process."""
    found = running_dashboard(home)
    if found is not None and found.pid == os.getpid():
        with contextlib.suppress(OSError):
            _path(home).unlink()


def _path(home: Home) -> Path:
    return dashboard_folder(home) / "running.json"

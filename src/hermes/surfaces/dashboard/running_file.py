"""`dashboard/running.json`: what a running dashboard leaves for other processes of the same user, and nobody else."""

import contextlib
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from hermes.settings import Home, atomic
from hermes.surfaces.dashboard.credentials import Keyring, dashboard_folder

_PATIENCE = 5.0  # seconds to wait for a connection
_GOOD_FOR = 365 * 24 * 3600.0  # seconds that the token of local publishers is good


class RunningDashboard(msgspec.Struct, frozen=True):
    """Where it is, and a token that is good for publishing alone, also into the feeds of sessions."""

    url: str
    pub_url: str
    token: str
    pid: int

    def listens(self) -> bool:
        """Whether anything does, there. After a crash its process may be another one by now, even this one."""
        place = urlsplit(self.url)
        try:
            with socket.create_connection((place.hostname, place.port), _PATIENCE):
                return True
        except ConnectionRefusedError:
            return False
        except OSError:
            return True


def announce(home: Home, keys: Keyring, url: str, pid: int) -> None:
    """Writes the file, with a new token."""
    home.ensure(dashboard_folder(home))
    token = keys.mint("token", ("publish", "relay"), seconds=_GOOD_FOR)
    running = RunningDashboard(
        url, url.replace("http", "ws", 1) + "/api/pub", token, pid
    )
    atomic.replace(_path(home), msgspec.json.encode(running).decode(), mode=0o600)


def running_dashboard(home: Home) -> RunningDashboard | None:
    """The dashboard of this home that runs, as its file says; None when its process is gone."""
    try:
        found = msgspec.json.decode(_path(home).read_bytes(), type=RunningDashboard)
        os.kill(found.pid, 0)
    except (OSError, msgspec.MsgspecError):
        return None
    return found


def withdraw(home: Home) -> None:
    """Removes the file, if it is this process's."""
    found = running_dashboard(home)
    if found is not None and found.pid == os.getpid():
        with contextlib.suppress(OSError):
            _path(home).unlink()


def _path(home: Home) -> Path:
    return dashboard_folder(home) / "running.json"

"""`gateway/status.json`: what a running gateway says of itself, and whether that can be believed."""

import contextlib
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.primitives.repeated_errors import RepeatedProblem
from hermes.settings import Home, atomic
from hermes.store.leases import is_gone, this_process
from hermes.surfaces.gateway.sender import Counters

PartState: TypeAlias = Literal[
    "starting", "connecting", "connected", "retrying", "failed", "stopped"
]
HEARTBEAT = 5.0  # seconds between two
_STALE = 30.0  # seconds without one, after which a process that lives is stuck


class PartStatus(msgspec.Struct, omit_defaults=True):
    """How one platform or server is."""

    name: str
    state: PartState = "starting"
    since: float = 0.0
    identity: str = ""
    error: str = ""  # the last one
    error_at: float = 0.0
    attempts: int = 0  # since it was last connected
    counters: Counters = msgspec.field(default_factory=Counters)


class GatewayStatus(msgspec.Struct, omit_defaults=True):
    """A gateway."""

    owner: str  # host:pid:birth
    started: float
    heartbeat: float
    version: str = ""
    state: Literal["starting", "running", "draining"] = "starting"
    parts: list[PartStatus] = []
    turns: int = 0  # that run now
    url: str = ""
    problem: str = ""  # such as settings that could not be reloaded
    problems: list[
        RepeatedProblem
    ] = []  # what fails again and again, or did in the last hour

    @property
    def pid(self) -> int:
        """The process."""
        return int(self.owner.rsplit(":", 2)[1])


Health: TypeAlias = Literal["running", "stuck", "ended"]


def write_status(home: Home, status: GatewayStatus) -> None:
    """Replaces what was said before."""
    home.ensure(_folder(home))
    atomic.replace(_path(home), msgspec.json.encode(status).decode(), mode=0o600)


def read_status(home: Home, now: float) -> tuple[Health, GatewayStatus] | None:
    """What the last gateway said, and whether it still lives; None when there is nothing."""
    try:
        status = msgspec.json.decode(_path(home).read_bytes(), type=GatewayStatus)
    except (OSError, msgspec.MsgspecError):
        return None
    if is_gone(status.owner):
        return "ended", status
    return ("running" if now - status.heartbeat < _STALE else "stuck"), status


def withdraw(home: Home) -> None:
    """Removes it, if it is this process's."""
    found = read_status(home, 0.0)
    if found is not None and found[1].owner == this_process():
        with contextlib.suppress(OSError):
            _path(home).unlink()


def lock_path(home: Home) -> Path:
    """Held by the one gateway of a home."""
    home.ensure(_folder(home))
    return _folder(home) / "gateway.lock"


def _folder(home: Home) -> Path:
    return home.root / "gateway"


def _path(home: Home) -> Path:
    return _folder(home) / "status.json"

"""`gateway/status.json`: the state of a running gateway, and whether that state is still current."""

import contextlib
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.app.outgoing import gateway_status_file
from hermes.primitives.repeated_errors import RepeatedProblem
from hermes.settings import Home, atomic
from hermes.store.leases import is_gone, this_process
from hermes.surfaces.gateway.sender import Counters

PartState: TypeAlias = Literal[
    "starting", "connecting", "connected", "retrying", "failed", "stopped", "waiting"
]
HEARTBEAT_INTERVAL_S = 5.0
_STUCK_AFTER_S = 30.0
"""Without a heartbeat, a process that is alive counts as stuck."""
ProfileState: TypeAlias = Literal["running", "waiting", "stopped"]


class PartStatus(msgspec.Struct, omit_defaults=True):
    """The state of one platform or server."""

    name: str
    state: PartState = "starting"
    since: float = 0.0
    identity: str = ""
    error: str = ""  # the last one
    error_at: float = 0.0
    attempts: int = 0  # to connect, since the last success
    counters: Counters = msgspec.field(default_factory=Counters)


class GatewayStatus(msgspec.Struct, omit_defaults=True):
    """The state of a gateway."""

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
    """Writes the status file."""
    home.ensure(_folder(home))
    atomic.replace(_path(home), msgspec.json.encode(status).decode(), mode=0o600)


def read_status(home: Home, now: float) -> tuple[Health, GatewayStatus] | None:
    """The status of the last gateway and whether it still runs; None when there is none."""
    try:
        status = msgspec.json.decode(_path(home).read_bytes(), type=GatewayStatus)
    except (OSError, msgspec.MsgspecError):
        return None
    if is_gone(status.owner):
        return "ended", status
    return ("running" if now - status.heartbeat < _STUCK_AFTER_S else "stuck"), status


def withdraw(home: Home) -> None:
    """Removes the status file, if it belongs to this process."""
    found = read_status(home, 0.0)
    if found is not None and found[1].owner == this_process():
        with contextlib.suppress(OSError):
            _path(home).unlink()


def lock_path(home: Home) -> Path:
    """The lock that the one gateway of a home holds."""
    home.ensure(_folder(home))
    return _folder(home) / "gateway.lock"


def _folder(home: Home) -> Path:
    return gateway_status_file(home).parent


def _path(home: Home) -> Path:
    return gateway_status_file(home)


class ProfileGateway(msgspec.Struct, omit_defaults=True):
    """The gateway of one profile, as its supervisor knows it."""

    profile: str
    state: ProfileState = "stopped"
    since: float = 0.0
    restarts: int = 0
    ended: str = ""
    """How its process ended last."""


class SupervisorStatus(msgspec.Struct, omit_defaults=True):
    """`gateway/profiles.json` of the base home."""

    owner: str  # host:pid:birth
    gateways: list[ProfileGateway] = []

    @property
    def pid(self) -> int:
        return int(self.owner.rsplit(":", 2)[1])


def status_path(base: Home) -> Path:
    return base.root / "gateway" / "profiles.json"


def supervisor_lock(base: Home) -> Path:
    """The lock of the one process that keeps the gateways of all profiles running."""
    return base.ensure(base.root / "gateway").root / "gateway" / "profiles.lock"


def read_supervisor(base: Home) -> SupervisorStatus | None:
    """The status of the process that runs all gateways; None if there is none."""
    try:
        found = msgspec.json.decode(status_path(base).read_bytes(), type=SupervisorStatus)  # fmt: skip
    except (OSError, msgspec.MsgspecError):
        return None
    return None if is_gone(found.owner) else found

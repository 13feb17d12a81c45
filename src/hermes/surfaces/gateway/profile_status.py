"""`gateway/profiles.json` of the base home: the process that keeps the gateways of all profiles running."""

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.settings import Home
from hermes.store.leases import is_gone

ProfileState: TypeAlias = Literal["running", "waiting", "stopped"]


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

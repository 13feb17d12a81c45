"""Restarting a gateway as another copy of Hermes: it drains, then its process becomes the new program.

Whoever started it, a terminal or systemd, keeps the same process. The request is a file, because the new program may
be another version, which can't ask the old one in any other way.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hermes.app.updates.gateways import restart_lock
from hermes.children.own_python import hermes_command, replace_process
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import PRIVATE_FILE, replace_file
from hermes.settings import Home
from hermes.surfaces.gateway.systemd_unit import replace_command
from hermes.text.translation import translator

t = translator(__name__)


_VALID_S = 600.0  # a gateway that ends later than this ends for another reason


class RestartRequest(msgspec.Struct, frozen=True):
    """What a gateway becomes when it has drained."""

    command: tuple[str, ...]
    at: float


def request_restart(home: Home, *, all_profiles: bool = False) -> None:
    """Makes the running gateway of a home continue as this copy, once it has drained."""
    command = gateway_command(all_profiles=all_profiles)
    request = RestartRequest(command, time.time())
    replace_file(
        _path(home, all_profiles=all_profiles),
        msgspec.json.encode(request),
        mode=PRIVATE_FILE,
    )


def gateway_command(*, all_profiles: bool) -> tuple[str, ...]:
    """The command that runs the gateway with this copy."""
    more = ("--all-profiles",) if all_profiles else ()
    return hermes_command("gateway", "run", *more)


def is_restarting(home: Home, *, all_profiles: bool = False) -> bool:
    """Returns whether a gateway was asked to start again, and has not yet done so."""
    return _valid_request(_path(home, all_profiles=all_profiles)) is not None


def clear_restart_request(home: Home, *, all_profiles: bool = False) -> None:
    """Drops the request of a gateway that was killed before it could start again."""
    _path(home, all_profiles=all_profiles).unlink(missing_ok=True)


def run_requested_copy(home: Home, *, all_profiles: bool = False) -> None:
    """Replaces this process by the requested program. Returns if none was requested."""
    path = _path(home, all_profiles=all_profiles)
    if not path.exists():
        return
    with FileLock(restart_lock(home)) as lock:
        lock.acquire(_VALID_S, shared=True)
    request = _valid_request(path)  # it may have changed meanwhile
    path.unlink(missing_ok=True)
    if request is not None:
        _become(request.command)


def _valid_request(path: Path) -> RestartRequest | None:
    """Returns the restart request if it is still valid."""
    try:
        request = msgspec.json.decode(path.read_bytes(), type=RestartRequest)
    except (OSError, msgspec.MsgspecError):
        return None
    return request if time.time() - request.at < _VALID_S else None


def _become(command: Sequence[str]) -> None:
    print(t("The gateway starts again."), flush=True)
    replace_process(command)


def refresh_unit(home: Home) -> Path | None:
    """Makes the systemd unit of a gateway start this copy from now on. Returns the unit, if there is one."""
    return replace_command(home, gateway_command(all_profiles=False))


def _path(home: Home, *, all_profiles: bool) -> Path:
    folder = home.root / "gateway"
    home.ensure(folder)
    return folder / ("restart-all.json" if all_profiles else "restart.json")

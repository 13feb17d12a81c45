"""Time zones: by name, and the one of this machine."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hermes.errors import HermesError

_LINK = Path("/etc/localtime")
_FOLDER = "zoneinfo/"


class ScheduleError(HermesError):
    """A schedule that can't be understood, or can't be kept."""


def zone(name: str) -> ZoneInfo:
    """The zone by that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        hint = "Zones have names such as Europe/Berlin, America/New_York or UTC."
        raise ScheduleError(
            f"There is no time zone {name!r} here.", hint=hint
        ) from error


def on_the_clock(at: float, name: str) -> datetime:
    """An instant as a clock there shows it; in UTC when there is no such zone (any more)."""
    try:
        return datetime.fromtimestamp(at, zone(name))
    except ScheduleError:
        return datetime.fromtimestamp(at, UTC)


def local_zone(environment: Mapping[str, str], link: Path = _LINK) -> str:
    """The name of this machine's zone: by TZ, else by where /etc/localtime leads, else UTC."""
    for name in (environment.get("TZ", "").lstrip(":"), _linked(link)):
        if name:
            try:
                return zone(name).key
            except ScheduleError:
                continue  # TZ may hold a rule instead of a name
    return "UTC"


def _linked(link: Path) -> str:
    try:
        target = str(link.resolve())
    except (OSError, RuntimeError):
        return ""
    return target.rpartition(_FOLDER)[2] if _FOLDER in target else ""

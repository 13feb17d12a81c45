"""Time zones by name, and this machine's own."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hermes.errors import HermesError
from hermes.text.translation import translator

t = translator(__name__)

_LINK = Path("/etc/localtime")
_FOLDER = "zoneinfo/"


class ScheduleError(HermesError):
    """A schedule that can't be understood or is not possible."""


def zone(name: str) -> ZoneInfo:
    """Returns the zone of that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        hint = t.later(
            "Zones have names such as Europe/Berlin, America/New_York or UTC."
        )
        raise ScheduleError(
            t.later("Unknown time zone {name!r}.", name=name), hint=hint
        ) from error


def on_the_clock(at: float, name: str) -> datetime:
    """Returns an instant as a clock in a zone shows it; in UTC if the zone no longer exists."""
    try:
        return datetime.fromtimestamp(at, zone(name))
    except ScheduleError:
        return datetime.fromtimestamp(at, UTC)


def local_zone(environment: Mapping[str, str], link: Path = _LINK) -> str:
    """Returns the name of this machine's zone: from TZ, else from /etc/localtime, else UTC."""
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

"""Which entries of the log are shown."""

import pytest

from hermes.errors import UsageError
from hermes.surfaces.cli.log_tail import LogFilter, local_time, since_time

LOG = """\
    the end of a traceback that was rotated away
2026-11-17 08:00:00,100 77 INFO hermes.app: session 20261117-a began
2026-11-17 08:01:00,000 77 ERROR hermes.app: turn of session 20261117-b failed
Traceback (most recent call last):
  ValueError: 3
2026-11-17 08:02:00,000 78 WARNING hermes.store: slow disk""".splitlines()


def shown(**wanted: float | str) -> list[str]:
    return [line[:25] for line in LogFilter(**wanted).shown(LOG)]  # type: ignore[arg-type]


def test_a_traceback_goes_with_its_entry() -> None:
    assert shown(level=40) == [LOG[2][:25], LOG[3][:25], LOG[4][:25]]
    assert shown(session="20261117-a") == [LOG[1][:25]]
    assert shown(since=local_time("2026-11-17 08:02:00")) == [LOG[5][:25]]
    assert len(shown()) == 5


def test_since_takes_ages_and_times() -> None:
    assert since_time("30m", 10_000.0) == 10_000.0 - 1800
    assert since_time("2h", 10_000.0) == 10_000.0 - 7200
    assert since_time("2026-11-17T08:00", 0.0) == local_time("2026-11-17 08:00:00")
    with pytest.raises(UsageError, match="--since"):
        since_time("yesterday", 0.0)

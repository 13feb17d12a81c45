"""Computes the next instant of a rule.

A wall-clock time that daylight saving skips fires once, right after the gap; one that occurs twice
fires only the first time. Rules that fire within every hour follow elapsed time.
"""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from hermes.schedules.time_zones import ScheduleError, zone
from hermes.schema.schedules import Cron, Days, Every, Once, Rule
from hermes.text.translation import translator

t = translator(__name__)

MIN_INTERVAL_S = 60.0
"""The minimum seconds between two runs of a job."""

_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def cron(text: str) -> Cron:
    """Parses a cron expression or an alias such as @daily. Raises ScheduleError."""
    text = " ".join(text.split())
    if text == "@reboot":
        raise ScheduleError(
            t.later("@reboot is not a time."),
            hint=t.later("Run `hermes` when the machine starts, with systemd."),
        )
    if text.startswith("@") and text not in _ALIASES:
        raise ScheduleError(
            t.later("There is no {text}.", text=text),
            hint=t.later("There are: {aliases}.", aliases=", ".join(_ALIASES)),
        )
    expression = _ALIASES.get(text, text)
    if len(expression.split()) != 5:
        hint = t.later(
            "It has five: minute, hour, day of the month, month, day of the week. Such as: 0 9 * * 1-5"
        )
        raise ScheduleError(
            t.later(
                "{text!r} is not a cron expression: it has {count} fields.",
                text=text,
                count=len(expression.split()),
            ),
            hint=hint,
        )
    try:
        CronSim(expression, datetime(2026, 1, 1))  # noqa: DTZ001 - only to read it
    except (CronSimError, AssertionError) as error:
        what = t.later("it can't be read")
        if str(error).startswith("Bad "):
            field = str(error).removeprefix("Bad ")
            what = t.later("it has a bad {field}", field=field)
        elif str(error):
            what = str(error)
        raise ScheduleError(
            t.later("{text!r} is not a cron expression: {what}.", text=text, what=what),
            hint=t.later("Such as: 0 9 * * 1-5"),
        ) from error
    rule = Cron((expression,))
    if next_after(rule, "UTC", 0.0) is None:
        raise ScheduleError(
            t.later("{text!r} never happens.", text=text),
            hint=t.later("Check the day and the month."),
        )
    return rule


def next_after(rule: Rule, zone_name: str, after: float) -> float | None:
    """Returns the first instant of the rule after `after`; None if there is none."""
    return next(instants(rule, zone_name, after), None)


def instants(rule: Rule, zone_name: str, after: float) -> Iterator[float]:
    """Yields every instant of the rule after `after`, in order."""
    match rule:
        case Once():
            return iter((rule.at,) if rule.at > after else ())
        case Every():
            return _every(rule, after)
        case Days():
            return _days(rule, zone(zone_name), after)
        case Cron():
            return _cron(rule, zone(zone_name), after)


def _every(rule: Every, after: float) -> Iterator[float]:
    count = max(1, int((after - rule.since) // rule.seconds) + 1)
    while True:
        at = rule.since + count * rule.seconds
        if at > after:  # the division may have rounded
            yield at
        count += 1


def _cron(rule: Cron, where: ZoneInfo, after: float) -> Iterator[float]:
    """Merges the instants of all expressions, each once."""
    streams = [_one_cron(expression, where, after) for expression in rule.expressions]
    waiting = [
        (at, stream) for stream in streams if (at := next(stream, None)) is not None
    ]
    while waiting:
        first = min(at for at, _ in waiting)
        yield first
        waiting = [
            (later, stream)
            for at, stream in waiting
            if (later := at if at > first else next(stream, None)) is not None
        ]


def _one_cron(expression: str, where: ZoneInfo, after: float) -> Iterator[float]:
    """Yields cronsim's instants. It starts before an hour that comes twice, so it may yield past ones."""
    last = after
    for moment in CronSim(expression, datetime.fromtimestamp(after, where)):
        at = moment.timestamp()
        if at > last:
            last = at
            yield at


def _days(rule: Days, where: ZoneInfo, after: float) -> Iterator[float]:
    since = date.fromisoformat(rule.since)
    today = datetime.fromtimestamp(after, where).date()
    day = since + timedelta(days=max(0, (today - since).days // rule.days) * rule.days)
    times = sorted(time.fromisoformat(text) for text in rule.times)
    last = after
    while day.year < 9990:
        for at in (on_the_wall(day, moment, where) for moment in times):
            if at > last:
                last = at
                yield at
        day += timedelta(days=rule.days)


def on_the_wall(day: date, moment: time, where: ZoneInfo) -> float:
    """Returns the instant at which the wall clock shows this time: the first if there are two, the end of the
    gap if the clock skips it.
    """
    at = datetime.combine(day, moment, where).timestamp()  # fold is 0: the first of two
    if datetime.fromtimestamp(at, where).replace(tzinfo=None) == datetime.combine(
        day, moment
    ):
        return at
    low, high = datetime.combine(day, moment, where).replace(fold=1).timestamp(), at
    while high - low > 0.5:  # the clock jumps between these two
        middle = (low + high) / 2
        before = datetime.fromtimestamp(middle, where).replace(
            tzinfo=None
        ) < datetime.combine(day, moment)
        low, high = (middle, high) if before else (low, middle)
    return float(round(high))

"""Parses a schedule in words into a rule. The grammar is small and strict; errors say how far it was understood.

  every weekday at 9 · every monday and thursday at 9:00 and 17:30 · every 3 days at 8 · every 2 weeks on friday at 16
  every 90 minutes · every 30 minutes between 9 and 17 on weekdays
  on the 1st and 15th of each month at 8 · on the last friday of each month at 16 · every year on december 24 at 8
  tomorrow at 17:30 · next monday at 9 · on 2026-12-24 at 8 · in 20 minutes · 2h
  0 9 * * 1-5 · @daily

Each may end with a time zone: ... in Europe/Berlin.
"""

import re
from typing import NamedTuple

from hermes.schedules.grammar import Grammar, length_of
from hermes.schedules.recurrence import cron, next_after
from hermes.schedules.time_zones import ScheduleError, zone
from hermes.schedules.tokens import ScheduleTokens
from hermes.schema.schedules import Rule
from hermes.text.translation import translator

t = translator(__name__)

_MAX_SCHEDULE_CHARS = 300  # characters
_CRON = re.compile(
    r"[\d*@][^\s:]*(\s+[\d*A-Za-z][^\s:]*){4,}|@(?!every\b)\S+|[*\d][\d*,/-]*(\s+[*\d][\d*,/-]*)+"
)
_ZONE = re.compile(
    r"(?:,|\bin|\b)\s*((?:[A-Za-z_]+/[A-Za-z_/+-]+\d*)|UTC|GMT)$", re.IGNORECASE
)


class ParsedSchedule(NamedTuple):
    """The meaning of a schedule."""

    rule: Rule
    zone: str


def understand(text: str, now: float, zone_name: str) -> ParsedSchedule:
    """Parses a schedule as a person writes it. Raises ScheduleError, which says how far it was
    understood.
    """
    text = " ".join(text.split())
    if not text or len(text) > _MAX_SCHEDULE_CHARS:
        what = t.later("The schedule is empty.")
        raise ScheduleError(
            t.later("The schedule is too long.") if text else what,
            hint=t.later("Such as: every weekday at 9:00"),
        )
    if not _CRON.fullmatch(text):
        if found := _ZONE.search(text):
            zone_name, text = (
                zone(_proper(found[1])).key,
                text[: found.start()].rstrip(" ,"),
            )
        rule = Grammar(ScheduleTokens(text), now, zone_name).read()
    else:
        rule = cron(text)
    if next_after(rule, zone_name, now) is None:
        raise ScheduleError(
            t.later("“{text}” is already in the past.", text=text),
            hint=t.later("Name a time in the future."),
        )
    return ParsedSchedule(rule, zone_name)


def seconds(text: str) -> float:
    """Parses a duration: `90`, `90s`, `10 minutes`, `1h`."""
    if found := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:s|sec|seconds?)?\s*", text):
        return float(found[1])
    words = ScheduleTokens(text)
    total = length_of(words)
    if total is None or not words.done:
        raise ScheduleError(
            t.later("{text!r} is not a duration.", text=text),
            hint=t.later("Such as: 90s, 10 minutes, 2h"),
        )
    return total


def _proper(name: str) -> str:
    """Returns a zone's canonical name."""
    if name.lower() in ("utc", "gmt"):
        return name.upper()
    return (
        re.sub(r"(?<![A-Za-z])[a-z]", lambda letter: letter[0].upper(), name)
        if name.islower()
        else name
    )

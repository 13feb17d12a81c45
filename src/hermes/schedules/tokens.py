"""Splits a schedule into tokens: numbers, units, days, times. Errors say how far it was understood."""

import re
from datetime import date, time
from typing import NoReturn

from hermes.primitives.untyped import number_in_text
from hermes.schedules.time_zones import ScheduleError
from hermes.text.translation import Later, translator

t = translator(__name__)

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
UNITS = {"minute": 60.0, "hour": 3_600.0, "day": 86_400.0, "week": 604_800.0}
_SHORT_UNITS = {
    "m": "minute",
    "min": "minute",
    "mins": "minute",
    "h": "hour",
    "hr": "hour",
    "hrs": "hour",
}
_SHORT_UNITS |= {"d": "day", "w": "week"}
_NUMBERS = (
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_PLACES = ("first", "second", "third", "fourth", "fifth")
_WORD = re.compile(
    r"\d+(?:st|nd|rd|th)\b|\d{4}-\d\d-\d\d(?=[t\s]|$)|\d+:\d\d|\d+\.\d\d\b|\d+|:\d\d|[^\W\d]+(?:/[\w+-]+)*|\S",
    re.UNICODE,
)
_PARTS = ("morning", "afternoon", "evening", "night")
_NAMED_TIMES = {"noon": time(12), "midday": time(12), "midnight": time(0)}
EXAMPLES = (
    "every weekday at 9:00",
    "every 2 hours",
    "on the 1st of each month at 8:00",
    "tomorrow at 17:30",
    "in 20 minutes",
    "0 9 * * 1-5",
)  # not translated: schedules are written in English


class ScheduleTokens:
    """A schedule being parsed."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        self._words = [
            (found[0], found.start(), found.end())
            for found in _WORD.finditer(self.text.lower())
        ]
        self._at = 0
        self._part = ""

    @property
    def done(self) -> bool:
        """Whether all of it was parsed."""
        return self._at == len(self._words)

    @property
    def next(self) -> str:
        """The next word; empty at the end."""
        if self.done:
            return ""
        return self._words[self._at][0]

    def skip(self) -> str:
        """Consumes the next word, whatever it is."""
        word = self.next
        self._at += not self.done
        return word

    def take(self, *choices: str) -> str:
        """Consumes the next word if it is one of these."""
        return self.skip() if self.next in choices else ""

    def phrase(self, *words: str) -> bool:
        """Consumes these words if they all come next, in this order."""
        following = [
            word for word, _, _ in self._words[self._at : self._at + len(words)]
        ]
        if following != list(words):
            return False
        self._at += len(words)
        return True

    def need(self, *choices: str) -> str:
        """Consumes one of these words, which must come next."""
        return self.take(*choices) or self.fail(f"“{choices[0]}”")

    def fail(self, wanted: str | Later) -> NoReturn:
        """Builds the error: how far it was understood, and what should have come next."""
        hint = t.later("Such as: {examples}.", examples="; ".join(EXAMPLES))
        understood = self.text[: self._words[self._at - 1][2]] if self._at else ""
        rest = self.text[self._words[self._at][1] :] if not self.done else ""
        if not understood:
            raise ScheduleError(
                t.later(
                    "The schedule “{text}” can't be read: {wanted} should come first.",
                    text=self.text,
                    wanted=wanted,
                ),
                hint=hint,
            )
        if not rest:
            raise ScheduleError(
                t.later(
                    "Understood “{understood}”; then {wanted} is missing.",
                    understood=understood,
                    wanted=wanted,
                ),
                hint=hint,
            )
        raise ScheduleError(
            t.later(
                "Understood “{understood}”; then comes “{rest}”, but {wanted} should.",
                understood=understood,
                rest=rest,
                wanted=wanted,
            ),
            hint=hint,
        )

    def number(self) -> int | None:
        """Parses a number, in digits or as a word."""
        if (number := number_in_text(self.next)) is not None:
            self.skip()
            return number
        if self.next in _NUMBERS:
            return _NUMBERS.index(self.skip()) + 1
        return 1 if self.take("a", "an") else None

    def unit(self) -> str | None:
        """Parses minute, hour, day or week, in any spelling."""
        word = _SHORT_UNITS.get(self.next, self.next.removesuffix("s"))
        if word not in UNITS:
            return None
        self.skip()
        return word

    def day_of_week(self) -> tuple[int, bool] | None:
        """Parses a day of the week, 0 for Monday, and whether it was plural (`mondays`)."""
        word = self.next
        for number, name in enumerate(DAYS):
            if word in (name, name[:3], f"{name}s"):
                self.skip()
                return number, word == f"{name}s"
        return None

    def ordinal(self) -> int | None:
        """Parses 1st, 2nd... or first, second...; `last` is -1."""
        found = re.fullmatch(r"(\d{1,9})(?:st|nd|rd|th)", self.next)
        if found:
            self.skip()
            return int(found[1])
        if self.next in _PLACES:
            return _PLACES.index(self.skip()) + 1
        return -1 if self.take("last") else None

    def month(self) -> int | None:
        """Parses the name of a month, 1 for January."""
        for number, name in enumerate(MONTHS, 1):
            if self.take(name, name[:3]):
                return number
        return None

    def calendar_day(self) -> date | None:
        """Parses YYYY-MM-DD."""
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", self.next):
            return None
        try:
            found = date.fromisoformat(self.next)
        except ValueError:
            self.fail(t.later("a day that exists, as 2026-12-24,"))
        self.skip()
        return found

    def part_of_day(self, named: str = "") -> str:
        """Parses morning, afternoon, evening or night; it applies to following hours up to twelve."""
        part = named or self.take(*_PARTS)
        self._part = part or self._part
        return part

    def moment(self) -> time:
        """Parses a wall-clock time: 9, 9:30, 9am, 17:30, noon."""
        if self.next in _NAMED_TIMES:
            return _NAMED_TIMES[self.skip()]
        found = re.fullmatch(r"(\d{1,2})(?:[:.](\d\d))?", self.next)
        if not found:
            self.fail(t.later("a time such as 9:00 or 5:30pm"))
        hour, minute = int(found[1]), int(found[2] or 0)
        before = self._at
        self.skip()
        half = self.take("am", "pm")
        if minute > 59 or hour > (12 if half else 23) or (half and not hour):
            self._at = before
            self.fail(t.later("a time between 0:00 and 23:59"))
        if not half:
            hour = _within(self._part, hour)
        elif half == "pm":
            hour = hour % 12 + 12
        else:
            hour %= 12
        if not self.take("h", "uhr"):
            self.phrase("o", "'", "clock")
        return time(hour, minute)

    def times(self) -> list[time]:
        """Parses one or more times: 9:00, 12:00 and 17:30."""
        found = [self.moment()]
        while self._goes_on():
            self.take(",")
            self.take("and")
            self.take("at")
            found.append(self.moment())
        return sorted(set(found))

    def _goes_on(self) -> bool:
        """Returns whether another time follows, and not a zone."""
        following = [word for word, _, _ in self._words[self._at : self._at + 3]]
        listed = following[:1] in ([","], ["and"])
        return listed and any(
            word[0].isdecimal() or word in _NAMED_TIMES for word in following[1:]
        )


def _within(part: str, hour: int) -> int:
    """Returns the hour meant by “8 in the evening”."""
    if part == "night" and hour == 12:
        return 0
    first = {"afternoon": 1, "evening": 1, "night": 6}.get(part, 24)
    return hour + 12 if first <= hour < 12 else hour


def length(seconds: float) -> str:
    """Describes a duration."""
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return f"{seconds:g} seconds"

"""The grammar of schedules in words: one method for each phrase, from left to right."""

from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, time, timedelta

from hermes.schedules.recurrence import MIN_INTERVAL_S, cron, on_the_wall
from hermes.schedules.time_zones import ScheduleError, zone
from hermes.schedules.tokens import UNITS, ScheduleTokens
from hermes.schema.schedules import Cron, Days, Every, Once, Rule
from hermes.text.translation import translator

t = translator(__name__)

_EVERY_DAY = tuple(range(7))
_WEEKDAYS, _WEEKEND = (0, 1, 2, 3, 4), (5, 6)
_MAX_INTERVAL_S = 10 * 366 * 86_400.0


def length_of(words: ScheduleTokens) -> float | None:
    """Parses "20 minutes" or "1 hour and 30 minutes"; None if there is none."""
    total = 0.0
    while (number := words.number()) is not None:
        unit = words.unit()
        if unit is None:
            words.fail(t.later("minutes, hours, days or weeks"))
        total += number * UNITS[unit]
        if not words.take("and", ",") and not words.next.isdecimal():
            break
    return total or None


class Grammar:
    """Parses one schedule for a person in a time zone, at a moment."""

    def __init__(self, words: ScheduleTokens, now: float, zone_name: str) -> None:
        self._words = words
        self._now = now
        self._zone = zone(zone_name)
        self._today = datetime.fromtimestamp(now, self._zone).date()

    def read(self) -> Rule:
        words = self._words
        rule = self._start()
        if not words.done:
            words.fail(t.later("the end"))
        return rule

    def _start(self) -> Rule:
        if self._words.phrase("@", "every"):
            return self._every()
        beginnings: dict[str, Callable[[], Rule]] = {
            "every": self._every,
            "each": self._every,
            "daily": lambda: self._at(_EVERY_DAY),
            "weekdays": lambda: self._at(_WEEKDAYS),
            "hourly": lambda: cron("@hourly"),
            "weekly": lambda: self._each_weeks(1),
            "monthly": self._on_in_month,
            "on": self._on,
            "in": self._in,
            "tomorrow": lambda: self._once_on(self._today + timedelta(days=1)),
            "today": lambda: self._once_on(self._today),
            "tonight": self._tonight,
            "next": lambda: self._coming(self._one_day()),
        }
        word = self._words.take(*beginnings)
        return beginnings[word]() if word else self._once()

    # Recurring schedules

    def _every(self) -> Rule:
        words = self._words
        if words.take("day") or words.part_of_day():
            return self._at(_EVERY_DAY)
        if words.take("half"):
            words.take("an")
            words.need("hour")
            return self._interval(30, "minute")
        if words.take("month"):
            return self._on_in_month()
        if words.take("year"):
            words.need("on")
        if (month := words.month()) is not None:
            return self._cron(str(self._day_of_month()), str(month), "*")
        if days := self._maybe_days():
            return self._at(days)
        number = 2 if words.take("other") else words.number()
        if words.next in ("s", "sec", "secs", "second", "seconds"):
            raise ScheduleError(
                t.later("“{text}” is too often.", text=words.text),
                hint=t.later("A job runs once a minute at most."),
            )
        unit = words.unit() or words.fail(
            t.later("a day, or a number of minutes, hours, days or weeks,")
        )
        return self._interval(1 if number is None else number, unit)

    def _interval(self, number: int, unit: str) -> Rule:
        words = self._words
        if not 0 < number * UNITS[unit] <= _MAX_INTERVAL_S:
            raise ScheduleError(
                t.later("“{text}” is not a valid interval.", text=words.text),
                hint=t.later("Use one minute to ten years."),
            )
        if unit == "day" and words.next:
            return self._each_days(number, self._today)
        if unit == "week":
            return self._each_weeks(number)
        between = self._between()
        days = self._maybe_days() if words.take("on") else None
        if between is None and days is None:
            return Every(max(MIN_INTERVAL_S, number * UNITS[unit]), self._now)
        return self._within(number, unit, between or (0, 23), days or _EVERY_DAY)

    def _each_days(self, number: int, since: date) -> Rule:
        if number == 1:
            return self._at(_EVERY_DAY)
        times = self._times()
        if self._is_over(since, times):
            since += timedelta(days=1)
        return Days(number, since.isoformat(), _texts(times))

    def _each_weeks(self, number: int) -> Rule:
        words = self._words
        words.need("on")
        days = self._day_list()
        if number == 1:
            return self._at(days)
        if len(days) > 1:
            raise ScheduleError(
                t.later("“{text}” names several days.", text=words.text),
                hint=t.later("Make a job for each of them."),
            )
        since = self._today + timedelta(days=(days[0] - self._today.weekday()) % 7)
        times = self._times()
        if self._is_over(since, times):
            since += timedelta(days=7)
        return Days(number * 7, since.isoformat(), _texts(times))

    def _is_over(self, day: date, times: list[time]) -> bool:
        return all(
            on_the_wall(day, moment, self._zone) <= self._now for moment in times
        )

    def _between(self) -> tuple[int, int] | None:
        """Parses "between 9 and 17": whole hours, both included."""
        words = self._words
        if not words.take("between", "from"):
            return None
        first = words.moment()
        words.need("and", "to", "until", "-")
        last = words.moment()
        if first.minute or last.minute or first.hour > last.hour:
            words.fail(t.later("whole hours, the earlier one first,"))
        return first.hour, last.hour

    def _within(
        self, number: int, unit: str, hours: tuple[int, int], days: tuple[int, ...]
    ) -> Rule:
        whole = 60 if unit == "minute" else 24
        if unit == "day" or whole % number or number >= whole:
            fitting = [str(n) for n in range(1, whole) if whole % n == 0]
            hint = t.later("Name a time: every 2 days at 9:00")
            if unit != "day":
                possible = ", ".join(fitting)
                hint = t.later("These are possible: {possible}.", possible=possible)
            raise ScheduleError(
                t.later(
                    "Every {number} {unit}s does not fit into hours of a day.",
                    number=number,
                    unit=unit,
                ),
                hint=hint,
            )
        span = "*" if hours == (0, 23) else f"{hours[0]}-{hours[1]}"
        if unit == "hour":
            return cron(
                f"0 {span}/{number} * * {_numbers(days)}"
                if number > 1
                else f"0 {span} * * {_numbers(days)}"
            )
        return cron(f"*/{number} {span} * * {_numbers(days)}")

    def _on_in_month(self) -> Rule:
        self._words.need("on")
        return self._in_month()

    def _in_month(self) -> Rule:
        """Parses "the 1st and 15th [of each month] at 8", "the last friday [of each month] at 16",
        "the last day".
        """
        words = self._words
        words.take("the")
        place = words.ordinal() or words.fail(
            t.later("a day such as 1st, last day or first monday")
        )
        if words.take("day"):
            return self._monthly(("L" if place == -1 else str(place),))
        if (day := words.day_of_week()) is not None:
            number = (day[0] + 1) % 7
            self._of_month()
            return self._cron(
                "*", "*", f"{number}L" if place == -1 else f"{number}#{place}"
            )
        if place == -1:
            words.fail(t.later("“day” or a day of the week"))
        places = [place]
        while words.take(",", "and"):
            words.take("and")
            words.take("the")
            places.append(
                words.ordinal() or words.fail(t.later("another day such as 15th"))
            )
        return self._monthly(tuple(map(str, places)))

    def _monthly(self, days: tuple[str, ...]) -> Rule:
        self._of_month()
        if any(day.isdecimal() and not 1 <= int(day) <= 31 for day in days):
            raise ScheduleError(
                t.later("A month has no such day."),
                hint=t.later("1st to 31st are possible, and the last day."),
            )
        return self._cron(",".join(days), "*", "*")

    def _of_month(self) -> None:
        words = self._words
        if words.take("of", "in"):
            words.take("each", "every", "the")
            words.need("month")

    def _at(self, days: tuple[int, ...]) -> Rule:
        return self._cron("*", "*", _numbers(days))

    def _cron(
        self, day: str, month: str, weekday: str, times: list[time] | None = None
    ) -> Rule:
        """Builds a cron rule for these days, at these times or at those that follow."""
        by_minute: dict[int, list[int]] = {}
        for moment in times or self._times():
            by_minute.setdefault(moment.minute, []).append(moment.hour)
        found = [
            cron(f"{minute} {_list(hours)} {day} {month} {weekday}")
            for minute, hours in by_minute.items()
        ]
        return Cron(tuple(one.expressions[0] for one in found))

    # Parts of schedules

    def _times(self) -> list[time]:
        self._before_time()
        return self._words.times()

    def _before_time(self) -> None:
        self._words.part_of_day()
        self._words.take(",")
        if not self._words.take("at"):
            self._words.fail(t.later("a time such as “at 9:00”"))

    def _day_list(self) -> tuple[int, ...]:
        return self._maybe_days() or self._words.fail(t.later("a day of the week"))

    def _one_day(self) -> int:
        return (
            self._words.day_of_week() or self._words.fail(t.later("a day of the week"))
        )[0]

    def _maybe_days(self) -> tuple[int, ...] | None:
        """Parses "monday, tuesday and friday", "monday to thursday" or "weekdays"."""
        words = self._words
        if words.take("weekdays", "weekday", "workdays", "workday"):
            return _WEEKDAYS
        if words.take("weekends", "weekend"):
            return _WEEKEND
        first = words.day_of_week()
        if first is None:
            return None
        if words.take("to", "through", "-", "until"):
            length = (self._one_day() - first[0]) % 7 + 1
            return tuple(sorted((first[0] + step) % 7 for step in range(length)))
        days = {first[0]}
        while words.take(",", "and"):
            words.take("and")
            days.add(self._one_day())
        return tuple(sorted(days))

    def _day_of_month(self) -> int:
        words = self._words
        words.take("the")
        day = (
            words.ordinal() or words.number() or words.fail(t.later("a day such as 24"))
        )
        if not 1 <= day <= 31:
            words.fail(t.later("a day of a month"))
        return day

    # One-time schedules, and those that begin like one

    def _on(self) -> Rule:
        words = self._words
        if words.next == "the":
            return self._in_month()
        if (day := words.calendar_day()) is not None:
            return self._once_on(day)
        if (month := words.month()) is not None:
            return self._next_date(month)
        if words.next in ("weekdays", "weekends"):
            return self._at(self._day_list())
        habit = words.next.endswith("days")
        days = self._day_list()
        if habit:
            return self._at(days)
        if len(days) > 1:
            words.fail(t.later("“every”, or one day alone,"))
        return self._coming(days[0])

    def _in(self) -> Rule:
        return self._after(
            length_of(self._words)
            or self._words.fail(t.later("a number of minutes, hours, days or weeks"))
        )

    def _once(self) -> Rule:
        """Parses a schedule that starts with none of the usual keywords."""
        words = self._words
        if words.next == "at":
            return self._from_times(self._times())
        if (day := words.calendar_day()) is not None:
            return self._once_on(day)
        if (month := words.month()) is not None:
            return self._next_date(month)
        habit = words.next.endswith("days")
        if (days := self._maybe_days()) is not None:
            if habit or len(days) > 1:
                return self._at(days)
            return self._coming(days[0])
        length = length_of(words)
        if length is None:
            words.fail(t.later("every, on, at, in, tomorrow, next or a day"))
        return self._after(length)

    def _after(self, length: float) -> Rule:
        if length > _MAX_INTERVAL_S:
            self._words.fail(t.later("at most ten years"))
        if length % 86_400 == 0 and self._words.next == "at":
            return self._once_on(self._today + timedelta(days=length // 86_400))
        return Once(self._now + length)

    def _once_on(self, day: date) -> Rule:
        words = self._words
        words.take("t", ",")
        words.part_of_day()
        if not words.next[:1].isdecimal() and not words.take("at"):
            words.fail(t.later("a time such as “at 9:00”"))
        moment = words.moment()
        words.take(":00")
        return Once(on_the_wall(day, moment, self._zone))

    def _coming(self, weekday: int) -> Rule:
        """Returns the next such weekday; today only if the time is still ahead."""
        moment = self._one_time()
        day = self._today + timedelta(days=(weekday - self._today.weekday()) % 7)
        at = on_the_wall(day, moment, self._zone)
        return Once(
            at
            if at > self._now
            else on_the_wall(day + timedelta(days=7), moment, self._zone)
        )

    def _next_date(self, month: int) -> Rule:
        day = self._day_of_month()
        year = (
            self._words.number()
            if self._words.next.isdecimal() and len(self._words.next) == 4
            else None
        )
        moment = self._one_time()
        years = (year,) if year else range(self._today.year, self._today.year + 9)
        found = [
            date(one, month, day) for one in years if day <= monthrange(one, month)[1]
        ]
        at = [on_the_wall(one, moment, self._zone) for one in found]
        if not at:
            self._words.fail(t.later("a day that exists"))
        return Once(next((one for one in at if one > self._now), at[0]))

    def _tonight(self) -> Rule:
        self._words.part_of_day("night")
        return self._once_on(self._today)

    def _from_times(self, times: list[time]) -> Rule:
        """Parses "at 9", "at 9 every weekday" or "at 9 on mondays"."""
        words = self._words
        if (
            words.take("daily")
            or words.phrase("every", "day")
            or words.phrase("each", "day")
        ):
            return self._cron("*", "*", "*", times)
        again = words.take("every", "each", "on")
        if again == "on" and not words.next.endswith("days"):
            words.fail(t.later("“every”, or a day as in “mondays”,"))
        if again:
            return self._cron("*", "*", _numbers(self._day_list()), times)
        days = (self._today, self._today + timedelta(days=1))
        at = [on_the_wall(day, moment, self._zone) for day in days for moment in times]
        return Once(min(one for one in at if one > self._now))

    def _one_time(self) -> time:
        self._before_time()
        return self._words.moment()


def _numbers(days: tuple[int, ...]) -> str:
    """Returns days of the week in cron's numbers, from Sunday 0."""
    if days == _EVERY_DAY:
        return "*"
    numbers = sorted((day + 1) % 7 for day in days)
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return _list(numbers)


def _list(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def _texts(times: list[time]) -> tuple[str, ...]:
    return tuple(moment.strftime("%H:%M") for moment in times)

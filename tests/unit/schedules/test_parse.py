"""Schedules in words: what is understood, and how a refusal says how far it got."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.schedules.parse import seconds, understand
from hermes.schedules.recurrence import next_after
from hermes.schedules.time_zones import ScheduleError
from hermes.schema.schedules import Cron, Days, Every, Once

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 16, 10, 0, tzinfo=BERLIN).timestamp()  # a Monday

RECURRING = {
    "every weekday at 9": ("0 9 * * 1-5",),
    "Every Weekday at 9:00": ("0 9 * * 1-5",),
    "weekdays at 9am": ("0 9 * * 1-5",),
    "every day at noon and midnight": ("0 0,12 * * *",),
    "daily at 9:00": ("0 9 * * *",),
    "every morning at 7": ("0 7 * * *",),
    "every evening at 8": ("0 20 * * *",),
    "every evening at 8:30 and 20:45": ("30 20 * * *", "45 20 * * *"),
    "every night at 10": ("0 22 * * *",),
    "every night at 2": ("0 2 * * *",),
    "every night at 12": ("0 0 * * *",),
    "every afternoon at 3 o'clock": ("0 15 * * *",),
    "every evening at 8am": ("0 8 * * *",),
    "every sunday evening at 9": ("0 21 * * 0",),
    "every workday at 9.30": ("30 9 * * 1-5",),
    "mon-fri at 9": ("0 9 * * 1-5",),
    "at 9am every weekday": ("0 9 * * 1-5",),
    "at 9 daily": ("0 9 * * *",),
    "at 9 on weekdays": ("0 9 * * 1-5",),
    "every monday, wednesday and friday at 9:00 and 17:30": (
        "0 9 * * 1,3,5",
        "30 17 * * 1,3,5",
    ),
    "every mon to thu at 12:30 pm": ("30 12 * * 1-4",),
    "every weekend at 12am": ("0 0 * * 0,6",),
    "on mondays at 9": ("0 9 * * 1",),
    "weekly on sunday at 20": ("0 20 * * 0",),
    "every week on sunday at 20": ("0 20 * * 0",),
    "on the 1st of each month at 8:00": ("0 8 1 * *",),
    "on the 1st and 15th of each month at 8": ("0 8 1,15 * *",),
    "on the last day of the month at 23:30": ("30 23 L * *",),
    "on the last friday of each month at 4pm": ("0 16 * * 5L",),
    "every month on the first monday at 9": ("0 9 * * 1#1",),
    "monthly on the 31st at 8": ("0 8 31 * *",),
    "every december 24 at 8": ("0 8 24 12 *",),
    "every year on february 29 at 8": ("0 8 29 2 *",),
    "every 30 minutes between 9 and 17 on weekdays": ("*/30 9-17 * * 1-5",),
    "every 2 hours between 8 and 20": ("0 8-20/2 * * *",),
    "every hour on saturday": ("0 * * * 6",),
    "hourly": ("0 * * * *",),
    "@daily": ("0 0 * * *",),
    "0 9 * * MON-FRI": ("0 9 * * MON-FRI",),
    "*/15 * * * *": ("*/15 * * * *",),
}

ONCE = {
    "tomorrow at 17:30": "2026-11-17 17:30",
    "today at 11": "2026-11-16 11:00",
    "tonight at 23:00": "2026-11-16 23:00",
    "tonight at 8": "2026-11-16 20:00",
    "tomorrow evening at 7": "2026-11-17 19:00",
    "tomorrow morning at 7": "2026-11-17 07:00",
    "in 20 minutes": "2026-11-16 10:20",
    "in 1 hour and 30 minutes": "2026-11-16 11:30",
    "in an hour": "2026-11-16 11:00",
    "1h30m": "2026-11-16 11:30",
    "in two weeks at 9:00": "2026-11-30 09:00",
    "in 3 days": "2026-11-19 10:00",
    "monday at 9": "2026-11-23 09:00",
    "on monday at 11": "2026-11-16 11:00",
    "next friday at 9": "2026-11-20 09:00",
    "at 17:30": "2026-11-16 17:30",
    "at 9": "2026-11-17 09:00",
    "on december 24 at 18:00": "2026-12-24 18:00",
    "january 2nd at 8": "2027-01-02 08:00",
    "february 29 at 8": "2028-02-29 08:00",
    "2026-12-24 08:00": "2026-12-24 08:00",
    "2026-12-24T08:00:00": "2026-12-24 08:00",
    "on 2026-12-24 at 8am": "2026-12-24 08:00",
}

REFUSED = {
    "": "empty",
    "every day at 9 " + "and 10 " * 100: "too long",
    "every day": "Understood “every day”; then a time such as “at 9:00” is missing",
    "tomorrow": "then a time such as “at 9:00” is missing",
    "at 9 on monday": "Understood “at 9 on”; then comes “monday”, but “every”",
    "every weekday arround 9": "then comes “arround 9”, but a time such as “at 9:00” should",
    "every weekday at 25": "Understood “every weekday at”; then comes “25”",
    "every weekday at 13pm": "then comes “13pm”",
    "every weekday at 9 please": "Understood “every weekday at 9”; then comes “please”",
    "every 30 seconds": "is too often",
    "every": "is missing",
    "whenever you like": "should come first",
    "every 7 minutes between 9 and 17": "does not fit",
    "every 10 minutes between 17 and 9": "the earlier one first",
    "every 0 minutes": "not a valid interval",
    "every 99999999 weeks on monday at 9": "not a valid interval",
    "on the 32nd of each month at 9": "no such day",
    "on monday and tuesday at 9": "“every”",
    "every 2 weeks on monday and friday at 9": "several days",
    "today at 9": "already in the past",
    "2026-02-30 08:00": "a day that exists",
    "february 30 at 9": "a day that exists",
    "every day at 9 in Mars/City": "Unknown time zone 'Mars/City'",
    "61 * * * *": "bad minute",
    "5 4": "2 fields",
    "9:00": "should come first",
}


@pytest.mark.parametrize("text", RECURRING)
def test_what_comes_again_is_understood(text: str) -> None:
    assert understand(text, NOW, "Europe/Berlin") == (
        Cron(RECURRING[text]),
        "Europe/Berlin",
    )


@pytest.mark.parametrize("text", ONCE)
def test_what_comes_once_is_understood(text: str) -> None:
    rule, _ = understand(text, NOW, "Europe/Berlin")
    assert isinstance(rule, Once)
    assert (
        datetime.fromtimestamp(rule.at, BERLIN).strftime("%Y-%m-%d %H:%M") == ONCE[text]
    )


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_understood_says_how_far_it_was(text: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        understand(text, NOW, "Europe/Berlin")
    assert REFUSED[text] in raised.value.message
    assert raised.value.hint


def test_intervals_begin_now() -> None:
    for text, length in (
        ("every 2 hours", 7200),
        ("every 90 minutes", 5400),
        ("every half hour", 1800),
        ("every 30m", 1800),
        ("@every 1h", 3600),
    ):
        assert understand(text, NOW, "Europe/Berlin").rule == Every(length, NOW)


def test_every_few_days_keeps_the_time_on_the_wall() -> None:
    assert understand("every 3 days at 8", NOW, "Europe/Berlin").rule == Days(
        3, "2026-11-17", ("08:00",)
    )
    assert understand("every other day at 11", NOW, "Europe/Berlin").rule == Days(
        2, "2026-11-16", ("11:00",)
    )
    assert understand(
        "every 2 weeks on friday at 16", NOW, "Europe/Berlin"
    ).rule == Days(14, "2026-11-20", ("16:00",))
    assert understand(
        "every 2 weeks on monday at 9", NOW, "Europe/Berlin"
    ).rule == Days(14, "2026-11-23", ("09:00",))


@pytest.mark.parametrize(
    "end", [" in America/New_York", ", america/new_york", " America/New_York"]
)
def test_a_zone_at_the_end_is_the_zone(end: str) -> None:
    assert (
        understand(f"every weekday at 9{end}", NOW, "Europe/Berlin").zone
        == "America/New_York"
    )
    assert understand("tomorrow at 9 UTC", NOW, "Europe/Berlin").zone == "UTC"


def answered(text: str) -> bool:
    """Whether it is refused with words and a hint, or means something that is still to come."""
    try:
        rule, zone = understand(text, NOW, "Europe/Berlin")
    except ScheduleError as error:
        return bool(error.message and error.hint)
    return (next_after(rule, zone, NOW) or 0) > NOW


@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused_in_words(text: str) -> None:
    assert answered(text)


VOCABULARY = """every on the at in next each of and to monday weekdays weekday month day last first 2nd 9 9:30 12 am pm
, other week weeks minutes hours between tomorrow december 2026-12-24 year 2"""


@given(st.lists(st.sampled_from(VOCABULARY.split()), max_size=9))
def test_any_words_of_the_grammar_are_understood_or_refused(words: list[str]) -> None:
    assert answered(" ".join(words))


def test_lengths_of_time() -> None:
    assert [seconds(text) for text in ("90", "90s", "10 minutes", "2h", "1 day")] == [
        90,
        90,
        600,
        7200,
        86_400,
    ]
    with pytest.raises(ScheduleError, match="not a duration"):
        seconds("soon")


@pytest.mark.parametrize(
    "text",
    ["every {} minutes", "in {} hours", "on the {}th of every month at 9", "every {}m"],
)
def test_a_number_of_thousands_of_digits_is_refused_in_words(text: str) -> None:
    assert answered(text.format("9" * 5_000))
    with pytest.raises(ScheduleError):
        seconds(f"{'9' * 5_000} minutes")

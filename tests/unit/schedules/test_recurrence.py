"""When a rule is due next: the arithmetic of intervals, wall clocks, daylight saving and cron expressions."""

from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.thoroughness import rounds

from hermes.schedules.recurrence import cron, instants, next_after, on_the_wall
from hermes.schedules.time_zones import ScheduleError, local_zone, on_the_clock, zone
from hermes.schema.schedules import Cron, Days, Every, Once, Rule

ZONES = (
    *(
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "America/St_Johns",
    ),
    *("Africa/Casablanca", "Pacific/Apia", "America/Havana", "Asia/Tehran"),
)
BERLIN = ZoneInfo("Europe/Berlin")
moments = st.floats(1.2e9, 2.2e9, allow_nan=False)
zones = st.sampled_from(ZONES)
clock_times = st.times().map(lambda one: one.replace(second=0, microsecond=0))


def shown(at: float, where: ZoneInfo = BERLIN) -> str:
    return datetime.fromtimestamp(at, where).strftime("%Y-%m-%d %H:%M %z")


def berlin(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


def every_few_days(days: int, since: date, times: list[time]) -> Days:
    return Days(days, since.isoformat(), tuple(one.strftime("%H:%M") for one in times))


def expression(minute: str, hour: str, day: str, week: str) -> Cron:
    return Cron((f"{minute} {hour} {day} * {week}",))


rules = st.one_of(
    st.builds(Every, st.floats(60, 1e7), st.floats(1.0e9, 2.1e9)),
    st.builds(
        every_few_days,
        st.integers(1, 40),
        st.dates(date(2005, 1, 1), date(2035, 1, 1)),
        st.lists(clock_times, min_size=1, max_size=4),
    ),
    st.builds(
        expression,
        st.sampled_from(("0", "30", "*/20", "59", "*")),
        st.sampled_from(("2", "*", "0", "1-3", "*/5", "23")),
        st.sampled_from(("*", "1", "31", "L")),
        st.sampled_from(("*", "1-5", "0", "6L", "2#2")),
    ),
)


@given(rules, zones, moments)
def test_what_comes_next_is_later_and_nothing_is_left_out(
    rule: Rule, where: str, after: float
) -> None:
    first, second, third = islice(instants(rule, where, after), 3)
    assert after < first < second < third
    assert next_after(rule, where, first) == second
    assert next_after(rule, where, second) == third
    assert next_after(rule, where, (after + first) / 2) == first


@given(clock_times, zones, st.dates(date(2008, 1, 1), date(2037, 12, 1)))
def test_a_time_on_the_wall_is_shown_or_lies_in_a_gap_that_has_just_ended(
    at: time, where: str, day: date
) -> None:
    found = on_the_wall(day, at, zone(where))
    wanted = datetime.combine(day, at)
    seen = datetime.fromtimestamp(found, zone(where)).replace(tzinfo=None)
    before = datetime.fromtimestamp(found - 1, zone(where)).replace(tzinfo=None)
    assert (
        before < wanted <= seen
    )  # the clock jumped over it in this very second, or shows it for the first time


# Samoa once left out a whole day, on which nothing can run. Each example is two times 400 days.
@settings(max_examples=rounds(12, 30))
@given(
    clock_times,
    zones.filter(lambda name: name != "Pacific/Apia"),
    st.dates(date(2010, 1, 1), date(2036, 1, 1)),
)
def test_a_daily_job_runs_once_a_day_also_when_the_clock_is_changed(
    at: time, where: str, day: date
) -> None:
    since = on_the_wall(day, time(0), zone(where)) - 1
    runs = list(
        islice(instants(Cron((f"{at.minute} {at.hour} * * *",)), where, since), 400)
    )
    days = [datetime.fromtimestamp(one, zone(where)).date() for one in runs]
    assert days == [day + timedelta(days=number) for number in range(400)]
    assert runs == list(
        islice(
            instants(Days(1, day.isoformat(), (at.strftime("%H:%M"),)), where, since),
            400,
        )
    )


@given(st.floats(60, 1e6), moments, moments)
def test_an_interval_keeps_its_distance_from_where_it_began(
    seconds: float, since: float, after: float
) -> None:
    at = next_after(Every(seconds, since), "UTC", after)
    assert at is not None
    assert at > after
    assert at >= since + seconds * 0.999
    assert at - after <= seconds * 1.001 or after < since


def test_a_run_that_daylight_saving_leaves_out_happens_right_after_the_gap_and_once() -> (
    None
):
    after = berlin("2026-03-28T12:00")
    for rule in (
        cron("30 2 * * *"),
        cron("0,15,30 2 * * *"),
        Days(1, "2026-03-01", ("02:10", "02:30")),
    ):
        runs = [shown(at) for at in islice(instants(rule, "Europe/Berlin", after), 2)]
        assert runs[0] == "2026-03-29 03:00 +0200"
        assert runs[1].startswith("2026-03-30 02:")


def test_a_run_whose_hour_comes_twice_happens_the_first_time_only() -> None:
    after = berlin("2026-10-24T12:00")
    for rule in (cron("30 2 * * *"), Days(1, "2026-03-01", ("02:30",))):
        runs = [shown(at) for at in islice(instants(rule, "Europe/Berlin", after), 2)]
        assert runs == ["2026-10-25 02:30 +0200", "2026-10-26 02:30 +0100"]
        in_between = berlin("2026-10-25T02:10", fold=1)
        assert (
            shown(next_after(rule, "Europe/Berlin", in_between) or 0)
            == "2026-10-26 02:30 +0100"
        )


def test_what_runs_within_every_hour_follows_the_real_flow_of_time() -> None:
    after = berlin("2026-10-25T01:59")
    runs = [
        shown(at)[11:]
        for at in islice(instants(cron("*/30 * * * *"), "Europe/Berlin", after), 5)
    ]
    assert runs == [
        "02:00 +0200",
        "02:30 +0200",
        "02:00 +0100",
        "02:30 +0100",
        "03:00 +0100",
    ]


def test_several_expressions_are_one_stream_without_doubles() -> None:
    rule = Cron(("0 9 * * *", "0 9,17 * * *"))
    runs = [
        shown(at)[:16]
        for at in islice(instants(rule, "Europe/Berlin", berlin("2026-11-16T08:00")), 3)
    ]
    assert runs == ["2026-11-16 09:00", "2026-11-16 17:00", "2026-11-17 09:00"]


def test_once_is_once() -> None:
    assert list(instants(Once(100.0), "UTC", 99.0)) == [100.0]
    assert list(instants(Once(100.0), "UTC", 100.0)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("61 * * * *", "bad minute"),
        ("* * * *", "4 fields"),
        ("0 0 9 * * *", "6 fields"),
        ("@weekends", "There are: @hourly"),
        ("@reboot", "not a time"),
        ("0 0 30 2 *", "day-of-month"),
        ("0 0 1 2 1#6", "day-of-week"),
    ],
)
def test_a_cron_expression_that_is_none_says_why(text: str, words: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        cron(text)
    assert words in f"{raised.value.message} {raised.value.hint}"


def test_aliases_are_expressions() -> None:
    assert cron("@daily") == cron("0 0 * * *") == cron("@midnight")
    assert cron("@weekly").expressions == ("0 0 * * 0",)


def test_the_zone_of_this_machine_is_found_by_tz_else_utc() -> None:
    assert local_zone({"TZ": ":Europe/Paris"}) == "Europe/Paris"
    assert local_zone({}, Path("/nonexistent/localtime")) == "UTC"
    assert (
        local_zone({"TZ": "CET-1CEST"}, Path("/nonexistent/zoneinfo/Asia/Tokyo"))
        == "Asia/Tokyo"
    )
    with pytest.raises(ScheduleError, match="Mars"):
        zone("Mars/City")
    with pytest.raises(ScheduleError):
        zone("../../etc/passwd")


def test_an_instant_is_shown_also_when_its_zone_is_gone() -> None:
    assert on_the_clock(0.0, "Asia/Tokyo").hour == 9
    assert on_the_clock(0.0, "Atlantis/Capital").hour == 0

"""Buckets follow the calendar of the zone; times and ranges are read as Siddhi writes them."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.engine.aggregation.bucket_calendar import (
    Calendar,
    duration_of,
    parse_time,
    parse_within,
    within_range,
)
from sparkstream_nb.errors import SiddhiRuntimeError, SparkStreamError
from sparkstream_nb.plan.nodes import DURATIONS

ZONES = ["GMT", "Asia/Kolkata", "America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Sao_Paulo"]
SHORT_OFFSETS = [*ZONES, "Europe/Berlin", "Asia/Beirut", "Pacific/Apia", "Africa/Monrovia", "Asia/Kathmandu"]


def ms(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


def floor(zone: str, duration: str, *times: int) -> list[int]:
    return Calendar(zone).floor(duration, np.array(times, np.int64)).tolist()  # type: ignore[arg-type, no-any-return]


@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=examples(60), deadline=None)
@given(times=st.lists(st.integers(-(10**12), 4 * 10**12), min_size=1, max_size=20))
def test_days_months_and_years_begin_at_local_midnight(zone: str, times: list[int]) -> None:
    info = ZoneInfo(zone)
    for duration, reset in (("day", {}), ("month", {"day": 1}), ("year", {"day": 1, "month": 1})):
        expected = [
            int(dt.datetime.fromtimestamp(t // 1000, info)
                .replace(hour=0, minute=0, second=0, microsecond=0, fold=0, **reset).timestamp()) * 1000
            for t in times
        ]  # fmt: skip
        assert floor(zone, duration, *times) == expected


@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=examples(40), deadline=None)
@given(times=st.lists(st.integers(-(10**12), 4 * 10**12), min_size=1, max_size=20))
def test_buckets_hold_their_times_and_lie_within_larger_ones(zone: str, times: list[int]) -> None:
    calendar = Calendar(zone)
    t = np.array(times, np.int64)
    smaller = t
    for duration in ("sec", "min", "hour", "day", "month", "year"):
        start = calendar.floor(duration, t)  # type: ignore[arg-type]
        assert (start <= smaller).all()
        assert (calendar.floor(duration, start) == start).all()  # type: ignore[arg-type]
        assert (calendar.floor(duration, smaller) == start).all()  # type: ignore[arg-type]
        smaller = start


# At the switches of the clock, in UTC. Expected: java.time's LocalDate.atStartOfDay of the day, of the first of the
# month and of the year; an hour or minute begins on the zone's clock, or with the switch inside it.
SWITCHES = """
| zone                | time                | min                 | hour             | day              | month            | year             |
| Europe/Berlin       | 2024-03-31 00:59:59 | 2024-03-31 00:59:00 | 2024-03-31 00:00:00 | 2024-03-30 23:00:00 | 2024-02-29 23:00:00 | 2023-12-31 23:00:00 |
| Europe/Berlin       | 2024-03-31 01:00:00 | 2024-03-31 01:00:00 | 2024-03-31 01:00:00 | 2024-03-30 23:00:00 | 2024-02-29 23:00:00 | 2023-12-31 23:00:00 |
| Europe/Berlin       | 2024-10-27 00:30:00 | 2024-10-27 00:30:00 | 2024-10-27 00:00:00 | 2024-10-26 22:00:00 | 2024-09-30 22:00:00 | 2023-12-31 23:00:00 |
| Europe/Berlin       | 2024-10-27 01:30:00 | 2024-10-27 01:30:00 | 2024-10-27 01:00:00 | 2024-10-26 22:00:00 | 2024-09-30 22:00:00 | 2023-12-31 23:00:00 |
| Europe/Berlin       | 2024-03-30 23:00:00 | 2024-03-30 23:00:00 | 2024-03-30 23:00:00 | 2024-03-30 23:00:00 | 2024-02-29 23:00:00 | 2023-12-31 23:00:00 |
| Asia/Kolkata        | 2024-03-31 18:29:59 | 2024-03-31 18:29:00 | 2024-03-31 17:30:00 | 2024-03-30 18:30:00 | 2024-02-29 18:30:00 | 2023-12-31 18:30:00 |
| Asia/Kolkata        | 2024-12-31 18:30:00 | 2024-12-31 18:30:00 | 2024-12-31 18:30:00 | 2024-12-31 18:30:00 | 2024-12-31 18:30:00 | 2024-12-31 18:30:00 |
| Australia/Lord_Howe | 2024-04-06 14:45:00 | 2024-04-06 14:45:00 | 2024-04-06 14:00:00 | 2024-04-06 13:00:00 | 2024-03-31 13:00:00 | 2023-12-31 13:00:00 |
| Australia/Lord_Howe | 2024-04-06 15:15:00 | 2024-04-06 15:15:00 | 2024-04-06 15:00:00 | 2024-04-06 13:00:00 | 2024-03-31 13:00:00 | 2023-12-31 13:00:00 |
| Australia/Lord_Howe | 2024-10-05 15:30:00 | 2024-10-05 15:30:00 | 2024-10-05 15:30:00 | 2024-10-05 13:30:00 | 2024-09-30 13:30:00 | 2023-12-31 13:00:00 |
| America/Sao_Paulo   | 2018-11-04 03:00:00 | 2018-11-04 03:00:00 | 2018-11-04 03:00:00 | 2018-11-04 03:00:00 | 2018-11-01 03:00:00 | 2018-01-01 02:00:00 |
| America/Sao_Paulo   | 2018-02-18 01:30:00 | 2018-02-18 01:30:00 | 2018-02-18 01:00:00 | 2018-02-17 02:00:00 | 2018-02-01 02:00:00 | 2018-01-01 02:00:00 |
| America/Sao_Paulo   | 2018-02-18 02:30:00 | 2018-02-18 02:30:00 | 2018-02-18 02:00:00 | 2018-02-17 02:00:00 | 2018-02-01 02:00:00 | 2018-01-01 02:00:00 |
| Asia/Beirut         | 2024-03-30 22:30:00 | 2024-03-30 22:30:00 | 2024-03-30 22:00:00 | 2024-03-30 22:00:00 | 2024-02-29 22:00:00 | 2023-12-31 22:00:00 |
| Asia/Beirut         | 2024-10-26 21:30:00 | 2024-10-26 21:30:00 | 2024-10-26 21:00:00 | 2024-10-25 21:00:00 | 2024-09-30 21:00:00 | 2023-12-31 22:00:00 |
| Pacific/Apia        | 2011-12-30 09:59:59 | 2011-12-30 09:59:00 | 2011-12-30 09:00:00 | 2011-12-29 10:00:00 | 2011-12-01 10:00:00 | 2011-01-01 10:00:00 |
| Pacific/Apia        | 2011-12-30 10:00:00 | 2011-12-30 10:00:00 | 2011-12-30 10:00:00 | 2011-12-30 10:00:00 | 2011-12-01 10:00:00 | 2011-01-01 10:00:00 |
| America/St_Johns    | 2006-10-29 02:30:30 | 2006-10-29 02:30:00 | 2006-10-29 02:30:00 | 2006-10-29 02:30:00 | 2006-10-01 02:30:00 | 2006-01-01 03:30:00 |
| America/St_Johns    | 2006-10-29 02:31:00 | 2006-10-29 02:31:00 | 2006-10-29 02:31:00 | 2006-10-28 02:30:00 | 2006-10-01 02:30:00 | 2006-01-01 03:30:00 |
| Africa/Monrovia     | 1971-12-31 23:59:59 | 1971-12-31 23:59:30 | 1971-12-31 23:44:30 | 1971-12-31 00:44:30 | 1971-12-01 00:44:30 | 1971-01-01 00:44:30 |
| Asia/Kathmandu      | 1985-12-31 18:30:00 | 1985-12-31 18:30:00 | 1985-12-31 18:30:00 | 1985-12-31 18:30:00 | 1985-12-31 18:30:00 | 1985-12-31 18:30:00 |
"""  # noqa: E501


def switches() -> list[list[str]]:
    return [[c.strip() for c in line.strip("|").split("|")] for line in SWITCHES.strip().splitlines()[1:]]


@pytest.mark.parametrize("row", switches(), ids=lambda r: f"{r[0]} {r[1]}")
def test_buckets_at_switches_of_the_clock(row: list[str]) -> None:
    zone, time, *starts = row
    for duration, start in zip(("min", "hour", "day", "month", "year"), starts, strict=True):
        assert floor(zone, duration, ms(f"{time}+00:00")) == [ms(f"{start}+00:00")], duration


@settings(max_examples=examples(200), deadline=None)
@given(
    zone=st.sampled_from(SHORT_OFFSETS),
    near=st.sampled_from([ms(f"{row[1]}+00:00") for row in switches()]) | st.integers(-(10**12), 4 * 10**12),
    steps=st.lists(st.integers(-100_000_000, 100_000_000), min_size=1, max_size=30),
)
def test_buckets_tile_time(zone: str, near: int, steps: list[int]) -> None:
    """Starts never fall as time goes on, begin with themselves, and are starts of buckets of each smaller duration."""
    calendar, smaller = Calendar(zone), None
    times = near + np.sort(np.array(steps, np.int64))
    for duration in DURATIONS:
        start = calendar.floor(duration, times)
        assert (np.diff(start) >= 0).all()
        assert (start <= times).all()
        assert (calendar.floor(duration, start) == start).all()
        assert (calendar.floor(duration, start - 1) < start).all(), "the bucket before ends where this one begins"
        if smaller is not None:
            assert (calendar.floor(smaller, start) == start).all()
            assert (calendar.floor(duration, calendar.floor(smaller, times)) == start).all()
        smaller = duration


def test_a_repeated_hour_makes_two_buckets() -> None:
    first, second = ms("2023-11-05T01:30:00-04:00"), ms("2023-11-05T01:30:00-05:00")
    assert floor("America/New_York", "hour", first, second) == [first - 1_800_000, second - 1_800_000]
    assert floor("America/New_York", "day", first, second) == [ms("2023-11-05T00:00:00-04:00")] * 2


def test_a_skipped_midnight_begins_the_day_later() -> None:
    noon = ms("2018-11-04T12:00:00-02:00")
    assert floor("America/Sao_Paulo", "day", noon) == [ms("2018-11-04T01:00:00-02:00")]


def test_1900_and_2100_are_no_leap_years() -> None:
    for year in (1900, 2100):
        assert floor("GMT", "month", ms(f"{year}-02-28T23:00:00+00:00"), ms(f"{year}-03-01T00:00:00+00:00")) == [
            ms(f"{year}-02-01T00:00:00+00:00"),
            ms(f"{year}-03-01T00:00:00+00:00"),
        ]


def test_times_before_1970_are_floored_downwards() -> None:
    assert floor("GMT", "sec", -1, -1000, -1001) == [-1000, -1000, -2000]
    assert floor("GMT", "hour", -1) == [-3_600_000]


def test_an_unknown_zone_is_an_error() -> None:
    with pytest.raises(SparkStreamError, match="'Mars/Olympus' is not a valid time zone"):
        Calendar("Mars/Olympus")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2023-**-** **:**:**", "2023-01-01T00:00:00+00:00", "2024-01-01T00:00:00+00:00"),
        ("2023-12-** **:**:**", "2023-12-01T00:00:00+00:00", "2024-01-01T00:00:00+00:00"),
        ("2024-02-** **:**:**", "2024-02-01T00:00:00+00:00", "2024-03-01T00:00:00+00:00"),
        ("2023-03-14 **:**:**", "2023-03-14T00:00:00+00:00", "2023-03-15T00:00:00+00:00"),
        ("2023-03-14 10:**:**", "2023-03-14T10:00:00+00:00", "2023-03-14T11:00:00+00:00"),
        ("2023-03-14 10:05:**", "2023-03-14T10:05:00+00:00", "2023-03-14T10:06:00+00:00"),
        ("2023-03-14 10:05:07", "2023-03-14T10:05:07+00:00", "2023-03-14T10:05:08+00:00"),
        ("2023-03-** **:**:** +05:30", "2023-03-01T00:00:00+05:30", "2023-04-01T00:00:00+05:30"),
        ("2023-03-14 10:**:** -11:00", "2023-03-14T10:00:00-11:00", "2023-03-14T11:00:00-11:00"),
    ],
)
def test_within_of_one_text(text: str, start: str, end: str) -> None:
    assert parse_within(text) == (ms(start), ms(end))


@pytest.mark.parametrize(
    "text", ["", "2023", "2023-03-14", "2023-**-14 **:**:**", "2023-02-30 **:**:**", "**-**-** **:**:**"]
)
def test_within_of_no_range(text: str) -> None:
    with pytest.raises(SiddhiRuntimeError):
        parse_within(text)


def test_two_bounds() -> None:
    assert within_range((5, 6)) == (5, 6)
    assert within_range(("1970-01-01 00:00:01", 2000)) == (1000, 2000)
    for same in ((5, 5), (6, 5), ("1970-01-01 00:00:01", 1000)):
        with pytest.raises(SiddhiRuntimeError, match="must be before its end"):
            within_range(same)
    with pytest.raises(SiddhiRuntimeError, match="one value takes a string"):
        within_range((5,))


def test_times_as_texts() -> None:
    assert (
        parse_time("2017-06-01 09:35:50 +05:30")
        == parse_time(" 2017-06-01 04:05:50 ")
        == ms("2017-06-01T04:05:50+00:00")
    )
    for text in ("2017-06-01", "2017-06-31 00:00:00", "2017-06-01T00:00:00", "now"):
        with pytest.raises(SiddhiRuntimeError):
            parse_time(text)


def test_per_names_a_duration_that_is_kept() -> None:
    assert duration_of("Hours", "A", ("sec", "hour")) == "hour"
    with pytest.raises(SiddhiRuntimeError, match="'A' has no days; it has seconds, hours"):
        duration_of("day", "A", ("sec", "hour"))
    with pytest.raises(SiddhiRuntimeError, match="'weeks' is not a valid duration"):
        duration_of("weeks", "A", ("sec",))


@pytest.mark.parametrize("offset", ["+18:01", "-99:99", "+05:60"])
def test_offsets_that_there_are_not(offset: str) -> None:
    with pytest.raises(SiddhiRuntimeError, match="offsets go from"):
        parse_time(f"2014-01-01 00:00:00 {offset}")


def test_the_last_year_and_month_can_be_read() -> None:
    end = 253402300800000
    assert parse_within("9999-**-** **:**:**") == (ms("9999-01-01T00:00:00+00:00"), end)
    assert parse_within("9999-12-** **:**:** +01:00") == (ms("9999-12-01T00:00:00+01:00"), end - 3_600_000)


def test_hours_change_with_daylight_saving_in_the_last_year_too() -> None:
    assert floor("Asia/Kolkata", "day", 253402300799999) == [253402281000000]
    assert floor("America/New_York", "day", ms("9999-07-04T12:00:00-04:00")) == [ms("9999-07-04T00:00:00-04:00")]

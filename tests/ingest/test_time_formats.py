"""Event times of a feed: as they are by default, in a format of their own, and in a time zone."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.errors import Misuse
from sparkstream_nb.ingest.ingest import read_times, times
from sparkstream_nb.ingest.time_formats import TimeFormat, looks_wrong

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("value", "format", "zone", "at"),
    [
        ("03.06.2024 05:00:03", "%d.%m.%Y %H:%M:%S", None, "2024-06-03T05:00:03"),
        ("03.06.2024 05:00:03", "%d.%m.%Y %H:%M:%S", BERLIN, "2024-06-03T03:00:03"),
        ("3/6/2024 5:00:03.250 +0100", "%d/%m/%Y %H:%M:%S.%f %z", BERLIN, "2024-06-03T04:00:03.250"),
        ("2024-06-01 10:00:00", None, BERLIN, "2024-06-01T08:00:00"),
        ("2024-06-01T10:00:00+02:00", None, "Asia/Tokyo", "2024-06-01T08:00:00"),
        (dt.datetime(2024, 6, 1, 9), None, "Asia/Tokyo", "2024-06-01T00:00:00"),
        (dt.datetime(2024, 6, 1, 9, tzinfo=dt.UTC), None, "Asia/Tokyo", "2024-06-01T09:00:00"),
        (dt.date(2024, 6, 1), None, "Asia/Tokyo", "2024-05-31T15:00:00"),
        ("2024-10-27 02:30:00", None, BERLIN, "2024-10-27T00:30:00"),  # shown twice: the earlier
        ("2024-03-31 02:30:00", None, BERLIN, "2024-03-31T01:30:00"),  # left out: an hour later
        (dt.datetime(2024, 3, 31, 2, 30), None, BERLIN, "2024-03-31T01:30:00"),
        ("31.03.2024 02:30", "%d.%m.%Y %H:%M", BERLIN, "2024-03-31T01:30:00"),
        ("2011-12-30 12:00:00", None, "Pacific/Apia", "2011-12-30T22:00:00"),  # a day that was left out
        (1717236000, "s", BERLIN, "2024-06-01T10:00:00"),
        (1717236000.123, "s", None, "2024-06-01T10:00:00.123"),
        ("1717236000", "s", None, "2024-06-01T10:00:00"),
        (1717236000_000_000, "us", None, "2024-06-01T10:00:00"),
        (1717236000_000, "ms", None, "2024-06-01T10:00:00"),
    ],
)
def test_a_time_in_a_format(value: Any, format: str | None, zone: str | None, at: str) -> None:
    found, failed = times(pa.array([value]), TimeFormat.of(format, zone))
    assert failed is None
    wanted = dt.datetime.fromisoformat(at).replace(tzinfo=dt.UTC)
    assert dt.datetime.fromtimestamp(int(found[0]) / 1000, dt.UTC) == wanted


CHANGES = [
    "2024-03-31 01:59:59", "2024-03-31 02:00:00", "2024-03-31 02:59:59", "2024-03-31 03:00:00",
    "2024-10-27 01:59:59", "2024-10-27 02:00:00", "2024-10-27 02:59:59", "2024-10-27 03:00:00",
]  # fmt: skip


@pytest.mark.parametrize("way", ["iso", "mixed", "format", "datetime"])
def test_times_that_clocks_do_not_show_once_are_known(way: str) -> None:
    column: list[Any] = list(CHANGES)
    if way == "datetime":
        column = [dt.datetime.fromisoformat(text) for text in CHANGES]
    elif way == "mixed":  # ISO 8601 of both kinds: one of its own zone is no local time
        column += ["2024-10-27T02:30:00+01:00", "2024-03-31T02:30:00Z", None]
    found = read_times(pa.array(column), TimeFormat.of("%Y-%m-%d %H:%M:%S" if way == "format" else None, BERLIN))
    assert found.doubts is not None
    assert np.flatnonzero(found.doubts.skipped).tolist() == [1, 2]
    assert np.flatnonzero(found.doubts.twice).tolist() == [5, 6]
    assert read_times(pa.array(column[3:5]), TimeFormat.of(None, BERLIN)).doubts is None


@pytest.mark.parametrize(
    ("value", "format"), [("2024-06-03", "%d.%m.%Y"), (None, "%d.%m.%Y"), ("x", "s"), (None, "s"), (1e300, "s")]
)
def test_what_is_no_time_of_the_format(value: Any, format: str) -> None:
    _, failed = times(pa.array(["03.06.2024" if "%" in format else 1.0 if value == 1e300 else "1", value]),
                      TimeFormat.of(format, None))  # fmt: skip
    assert failed is not None
    assert failed.tolist() == [False, True]


@given(moment=st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), zone=st.sampled_from([None, "UTC"]))
def test_a_written_time_is_read_as_what_it_was(moment: dt.datetime, zone: str | None) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    text = moment.strftime("%Y|%m|%d %H:%M:%S.%f")
    found, _ = times(pa.array([text]), TimeFormat.of("%Y|%m|%d %H:%M:%S.%f", zone))
    iso, _ = times(pa.array([moment.isoformat(sep=" ")]), TimeFormat.of(None, zone))
    assert int(found[0]) == int(iso[0])


@pytest.mark.parametrize("format", ["%Q", "dd.MM.yyyy", "%", ""])
def test_no_format(format: str) -> None:
    with pytest.raises(Misuse, match="is no format of times: write one such as"):
        TimeFormat.of(format, None)


def test_no_zone() -> None:
    with pytest.raises(Misuse, match="'Europa/Berlin' is no time zone: write one such as Europe/Berlin"):
        TimeFormat.of(None, "Europa/Berlin")


@pytest.mark.parametrize(
    ("last", "wrong"), [(1717236000, True), (20_000_000_000, True), (5000, False), (1717236000_000, False)]
)
def test_times_in_1970_are_told(last: int, wrong: bool) -> None:
    said = looks_wrong(np.array([0, last]))
    assert (said is not None and "--time-format s" in said) is wrong

"""Formats of the event times of a feed: their format, and the time zone of times without one."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.columnar.column_data import Array
from ..errors import Misuse, shown

UNITS = {"s": 1000.0, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
"""Milliseconds of a unit in which times are counted since 1970."""
_SECONDS = range(10**8, 32 * 10**9)
"""Times (ms) that lie in 1970, except the first day, which made-up data often use. As seconds these are the times
from 1973 on.
"""


@dataclass(frozen=True)
class Doubts:
    """Masks of a column's times that clocks showed `twice`, when they went back, and that they `skipped`
    when they went forward.
    """

    twice: Array
    skipped: Array


@dataclass(frozen=True)
class DoubtCounts:
    """Numbers of times of a feed that clocks showed twice, and that they skipped."""

    twice: int = 0
    skipped: int = 0

    @staticmethod
    def of(doubts: Doubts | None, rows: Array) -> DoubtCounts:
        """Counts for the `rows` of a mask."""
        if doubts is None:
            return DoubtCounts()
        return DoubtCounts(int((doubts.twice & rows).sum()), int((doubts.skipped & rows).sum()))

    def __add__(self, other: DoubtCounts) -> DoubtCounts:
        return DoubtCounts(self.twice + other.twice, self.skipped + other.skipped)

    def words(self, zone: str | None) -> list[str]:
        """A line for each kind of doubt found."""
        out, clocks = [], f"the clocks of {zone}"
        if self.twice:
            one = self.twice == 1
            what = "1 event has a time that exists" if one else f"{self.twice:,} events have times that exist"
            out.append(f"{what} twice, as {clocks} went back (end of summer time): the first was taken.")
        if self.skipped:
            one = self.skipped == 1
            what = "1 event has a time that does" if one else f"{self.skipped:,} events have times that do"
            later = f"{'it was' if one else 'they were'} read as that much later, as 03:30 for 02:30"
            out.append(f"{what} not exist, as {clocks} went forward: {later}.")
        return out


@dataclass(frozen=True)
class TimeFormat:
    """`format` is the format of texts, as Python's `strptime` takes it, or the unit of numbers: s, ms, us or ns since
    1970. `zone` is the time zone of times without one, by default UTC.
    """

    format: str | None = None
    zone: str | None = None

    @staticmethod
    def of(format: str | None, zone: str | None) -> TimeFormat:
        """Parse a user's values. Raises `Misuse` for an unknown format or zone."""
        if format is not None and format not in UNITS:
            try:
                dt.datetime.strptime("", format)
            except ValueError as error:
                if "does not match" not in str(error):
                    raise _unknown(format) from None
            if "%" not in format:
                raise _unknown(format)
        if zone is not None:
            try:
                ZoneInfo(zone)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                raise Misuse(f"{shown(zone)} is no time zone: write one such as Europe/Berlin or UTC") from None
        return TimeFormat(format, zone)

    @property
    def plain(self) -> bool:
        """True if times are as they are by default."""
        return self.format is None and self.zone is None

    @property
    def a_time(self) -> str:
        """Words for the expected text of the column: `a time`, with an example if the format is not the default."""
        if self.format is None:
            return "a time"
        if self.format in UNITS:
            return f"a time in {self.format} since 1970"
        return f"a time like {dt.datetime(2024, 6, 1, 10, tzinfo=dt.UTC).strftime(self.format)}"

    def example(self) -> str:
        """Example of a time in the default format, for a message; "" if `format` is given."""
        if self.format is not None:
            return ""
        zone = self.zone or "UTC"
        return f"a time is ms since 1970, or as 2024-06-01 10:00:00 ({zone}) or 2024-06-01T10:00:00+02:00"

    def numbers_to_ms(self, numbers: Array) -> Array:
        """Numbers of the unit as ms."""
        return np.rint(numbers * UNITS[str(self.format)]).astype(np.int64)

    def parse_texts(self, texts: pa.Array) -> tuple[pa.Array, Array, Doubts | None]:
        """Texts of the format as int64 ms, a mask of the others, and doubts as in `place_moments`."""
        aware = "%z" in str(self.format)
        parsed_moments = pd.to_datetime(texts.to_pandas(), format=self.format, errors="coerce", utc=aware)
        misfits = parsed_moments.isna().to_numpy()
        placed_moments, doubts = self.place_moments(floor_to_ms(pa.Array.from_pandas(parsed_moments)))
        return placed_moments, misfits, doubts

    def place_moments(self, moments: pa.Array) -> tuple[pa.Array, Doubts | None]:
        """Arrow's times (ms) as int64 ms since 1970, and which of them the clocks of `zone`, in which those without a
        zone are, did not show once. One that they showed twice is the earlier. One that they left out is as much later
        as they went forward, as in Java and Python: 02:30 is 03:30."""
        if self.zone is None or moments.type.tz is not None:
            return moments.cast(pa.int64()), None
        first = pc.assume_timezone(moments, self.zone, ambiguous="earliest", nonexistent="earliest")
        last = pc.assume_timezone(moments, self.zone, ambiguous="latest", nonexistent="latest")
        ms = first.cast(pa.int64())
        if first.equals(last):
            return ms, None
        # Of a time that was left out, the first is the last ms before that gap, and the last the ms behind it.
        local, local_shown = moments.cast(pa.int64()), pc.local_timestamp(first).cast(pa.int64())
        skipped = pc.not_equal(local, local_shown)
        twice = pc.and_(pc.invert(skipped), pc.not_equal(first, last))
        ms = pc.if_else(skipped, pc.subtract(local, pc.subtract(local_shown, ms)), ms)
        return ms, Doubts(*(m.fill_null(False).to_numpy(zero_copy_only=False) for m in (twice, skipped)))


def floor_to_ms(moments: pa.Array) -> pa.Array:
    """Dates and times as Arrow's times in ms. A part of a millisecond is left out, before 1970 too: -1 µs lies in the
    millisecond -1, as `Instant.toEpochMilli` of Java has it."""
    cut = pc.cast(moments, pa.timestamp("ms", getattr(moments.type, "tz", None)), safe=False)
    # Arrow's cast cuts towards zero.
    if not pa.types.is_timestamp(moments.type) or moments.type.unit not in ("us", "ns"):
        return cut
    numbers = cut.cast(pa.int64())
    if (pc.min(numbers).as_py() or 0) > 0:
        return cut
    is_before = pc.greater(cut.cast(moments.type), moments)
    return pc.if_else(is_before, pc.subtract(numbers, 1), numbers).cast(cut.type)


BY_DEFAULT = TimeFormat()
"""Milliseconds since 1970, or ISO 8601 in UTC."""


def looks_wrong(times: Array) -> str | None:
    """Warning for a feed whose event times (ms) lie in 1970; None if they do not."""
    if not len(times) or int(times.max()) not in _SECONDS:
        return None
    return "The events' times lie in 1970. If they are seconds, feed them with time_format='s' (--time-format s)."


_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d", "%d %b %Y", "%d.%m.%y", "%b %d %Y")
_TIMES = (" %H:%M:%S", " %H:%M", " %H:%M:%S.%f", "T%H:%M:%S", " %I:%M:%S %p", "")
_USUAL_FORMATS = tuple(f"{date}{time}" for date in _DATES for time in _TIMES)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")


def guess_format(*texts: str) -> str | None:
    """The format in which most of the texts are times: "" for ISO 8601, which is read without one; None if they look
    like none."""
    best, most = None, sum(_ISO.fullmatch(text) is not None for text in texts)
    if most:
        best = ""
    for format in _USUAL_FORMATS:
        count = sum(_is_time(text, format) for text in texts)
        if count > most:
            best, most = format, count
    return best


def _is_time(text: str, format: str) -> bool:
    try:
        dt.datetime.strptime(text, format)
    except ValueError:
        return False
    return True


def _unknown(format: str) -> Misuse:
    return Misuse(
        f"{shown(format)} is no format of times: write one such as '%d.%m.%Y %H:%M:%S', as Python's strptime takes it, "
        "or s, ms, us or ns for numbers since 1970"
    )

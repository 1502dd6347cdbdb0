"""The calendar of aggregations: bucket boundaries of each duration, and parsing of times.

Buckets follow the zone's real calendar: leap years by the Gregorian rule, a repeated hour of daylight saving
makes two buckets, a day at a change has 23 or 25 hours, a day without midnight begins with its first instant. Times
before 1970 are floored downwards. Every bucket is the union of the buckets of a smaller duration that begin in it, so
coarse buckets can be made of finer ones. The buckets of a duration are intervals, with one exception: where clocks go
back over a midnight that has passed (America/St_Johns did at 00:01), the two days at it share that hour.
"""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from ...errors import SiddhiRuntimeError, SparkStreamError
from ...plan.binding.query_inputs import per_duration
from ...plan.nodes import AggDuration
from ..columnar.column_data import Array
from ..notation.kernels import kernel

FIXED: dict[AggDuration, int] = {"sec": 1000, "min": 60_000, "hour": 3_600_000, "day": 86_400_000}
"""Length in ms of the durations that are equally long everywhere on a calendar without changes of offset."""

EARLIEST = -62135596800000
LATEST = 253402300799999
"""The times that a bucket can have: years 1 to 9999."""

_STEP = 7 * 86400
_UTC = frozenset({"GMT", "UTC", "Etc/GMT", "Etc/UTC", "Z", "Zulu", "Greenwich", "UCT", "Universal"})


@kernel
def floors(t: Array, size: int) -> Array:
    """Multiples (int64[n]) of `size` at or below `t`; quick where neighbours share a bucket."""
    out = np.empty(len(t), np.int64)
    low = np.int64(0)
    high = np.int64(0)
    for i in range(len(t)):
        v = t[i]
        if v < low or v >= high:
            low = v - v % size  # numba's % is Python's: never negative
            high = low + size
        out[i] = low
    return out


class Calendar:
    """The calendar of one time zone, such as `GMT` or `Asia/Kolkata` (Siddhi's property `aggTimeZone`).

    Changes of the UTC offset are found by checking every seventh day, so two changes within a week that cancel out are
    missed. Raises SparkStreamError for an unknown zone.
    """

    def __init__(self, zone: str = "GMT") -> None:
        self.zone = zone
        self._info: ZoneInfo | None = None
        if zone not in _UTC:
            try:
                self._info = ZoneInfo(zone)
            except (ZoneInfoNotFoundError, ValueError, OSError) as e:
                raise SparkStreamError(
                    f"'{zone}' is not a valid time zone for aggregations; give one such as 'GMT' or 'Asia/Kolkata'."
                ) from e
        self._years = (0, 0)
        self._starts = self._offsets = np.zeros(0, np.int64)
        self._whole_minutes = True

    def floor(self, duration: AggDuration, t: Array) -> Array:
        """int64[n] starts (ms) of the buckets of `duration` that hold the times `t` (ms, years 1 to 9999)."""
        if duration == "sec" or (self._info is None and duration in FIXED):
            return np.asarray(floors(t, FIXED[duration]))
        if self._info is None:
            return _calendar_floor(duration, t)
        self._cover(t)
        if duration == "min" and self._whole_minutes:
            return np.asarray(floors(t, FIXED["min"]))
        at = np.searchsorted(self._starts, t, side="right") - 1
        local = t + self._offsets[at]
        if duration in ("min", "hour"):
            start = local - local % FIXED[duration] - self._offsets[at]
            out: Array = np.maximum(start, self._starts[at])
            return out
        floor = local - local % FIXED["day"] if duration == "day" else _calendar_floor(duration, local)
        return self._instant(floor)

    def _instant(self, local: Array) -> Array:
        """The first instants at which clocks show `local` (ms) or later."""
        self._cover(local)
        ends = np.append(self._starts[1:] + self._offsets[:-1], np.iinfo(np.int64).max)
        at = np.searchsorted(ends, local, side="right")
        return np.maximum(self._starts[at], local - self._offsets[at])

    def _cover(self, t: Array) -> None:
        """Makes the table of offsets reach over the times `t` and a year to either side."""
        if len(t) == 0:
            return
        low = max(1, dt.date(1970, 1, 1).year + int(t.min()) // 31_556_952_000 - 2)
        high = min(9999, dt.date(1970, 1, 1).year + int(t.max()) // 31_556_952_000 + 2)
        if self._years[0] <= low and high <= self._years[1] and len(self._starts):
            return
        if len(self._starts):
            low, high = min(low, self._years[0]), max(high, self._years[1])
        self._years = (low, high)
        first = int(dt.datetime(low, 1, 1, tzinfo=dt.UTC).timestamp())
        last = int(dt.datetime(high, 12, 31, tzinfo=dt.UTC).timestamp())
        starts, offsets = [np.iinfo(np.int64).min // 2], [self._offset(first)]
        before = first
        for second in range(first + _STEP, last + _STEP, _STEP):
            offset = self._offset(second)
            if offset != offsets[-1]:
                a, b = before, second  # the offset changes in a < s <= b
                while b - a > 1:
                    middle = (a + b) // 2
                    if self._offset(middle) == offsets[-1]:
                        a = middle
                    else:
                        b = middle
                starts.append(b * 1000)
                offsets.append(offset)
            before = second
        self._starts = np.array(starts, np.int64)
        self._offsets = np.array(offsets, np.int64)
        # Local mean times, such as Monrovia's until 1972, are not.
        self._whole_minutes = not (self._offsets % FIXED["min"]).any() and not (self._starts[1:] % FIXED["min"]).any()

    def _offset(self, second: int) -> int:
        """The zone's offset from UTC (ms) at `second` of the epoch."""
        assert self._info is not None
        # Local time must lie in the years that datetime knows; no zone changes on their first or last day.
        inside = min(max(second, EARLIEST // 1000 + 86_400), LATEST // 1000 - 86_400)
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=inside)
        delta = self._info.utcoffset(moment.astimezone(self._info))
        assert delta is not None
        return int(delta.total_seconds() * 1000)


def _calendar_floor(duration: AggDuration, local: Array) -> Array:
    """Starts of months or years of a calendar without offset, ms."""
    unit = "datetime64[M]" if duration == "month" else "datetime64[Y]"
    out: Array = local.astype("datetime64[ms]").astype(unit).astype("datetime64[ms]").astype(np.int64)
    return out


# ------------------------------------------------------------------------------------------------ times as texts

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)\s(\d\d):(\d\d):(\d\d)(?:\s([+-])(\d\d):(\d\d))?")
_WITHIN = re.compile(
    r"(?P<year>\d{4})-(?:"
    r"(?P<month>\d\d)-(?:"
    r"(?P<day>\d\d)\s(?:"
    r"(?P<hour>\d\d):(?:"
    r"(?P<min>\d\d):(?:(?P<sec>\d\d)|\*\*)"
    r"|\*\*:\*\*)"
    r"|\*\*:\*\*:\*\*)"
    r"|\*\*\s\*\*:\*\*:\*\*)"
    r"|\*\*-\*\*\s\*\*:\*\*:\*\*)"
    r"(?:\s(?P<zone>[+-]\d\d:\d\d))?"
)

PLURAL: dict[AggDuration, str] = {
    "sec": "seconds", "min": "minutes", "hour": "hours", "day": "days", "month": "months", "year": "years",
}  # fmt: skip


def parse_time(text: str) -> int:
    """Milliseconds of `yyyy-MM-dd HH:mm:ss` (GMT) or `yyyy-MM-dd HH:mm:ss +05:30`.

    Siddhi's `IncrementalUnixTimeFunctionExecutor`. Raises SiddhiRuntimeError for anything else.
    """
    m = _TIME.fullmatch(text.strip())
    if m:
        year, month, day, hour, minute, second = map(int, m.groups()[:6])
        try:
            moment = dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC)
        except ValueError as e:
            raise SiddhiRuntimeError(f"'{text}' is not a valid time: {e}.") from e
        offset = 0
        if m[7]:
            if int(m[8]) * 60 + int(m[9]) > 18 * 60 or int(m[9]) > 59:
                raise SiddhiRuntimeError(f"'{text}' is not a valid time: offsets go from -18:00 to +18:00.")
            offset = (int(m[8]) * 60 + int(m[9])) * (-60_000 if m[7] == "-" else 60_000)
        return int((moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(milliseconds=1)) - offset
    raise SiddhiRuntimeError(
        f"'{text}' is not a time. Write 'yyyy-MM-dd HH:mm:ss' for GMT, or 'yyyy-MM-dd HH:mm:ss +05:30'."
    )


def parse_within(text: str) -> tuple[int, int]:
    """The range (start, end) in ms, end exclusive, of one wildcard text such as `2014-02-** **:**:**`.

    Siddhi's `IncrementalStartTimeEndTimeFunctionExecutor`. Raises SiddhiRuntimeError for any other form.
    """
    m = _WITHIN.fullmatch(text.strip())
    if m is None:
        raise SiddhiRuntimeError(
            f"'within' cannot read '{text}'. Write yyyy-MM-dd HH:mm:ss with ** for the parts left open at the end, "
            "such as '2014-02-** **:**:**'; an offset such as +05:30 may follow."
        )
    parts = [m["year"], m["month"] or "01", m["day"] or "01", m["hour"] or "00", m["min"] or "00", m["sec"] or "00"]
    zone = f" {m['zone']}" if m["zone"] else ""
    start = parse_time("{}-{}-{} {}:{}:{}".format(*parts) + zone)
    for group, duration in (("sec", "sec"), ("min", "min"), ("hour", "hour"), ("day", "day")):
        if m[group] is not None:
            return start, start + FIXED[duration]  # type: ignore[index]
    year, month = int(parts[0]), int(parts[1])
    first = np.datetime64((year - 1970) * 12 + month - 1, "M")
    length = first + (1 if m["month"] else 12) - first.astype("datetime64[ms]")
    return start, start + int(length.astype(np.int64))


def within_range(bounds: tuple[int | str, ...]) -> tuple[int, int]:
    """The range (start, end) in ms of `within`: one wildcard text, or two bounds, each a text or milliseconds.

    Raises SiddhiRuntimeError if a bound cannot be parsed or start is not before end.
    """
    if len(bounds) == 1:
        if not isinstance(bounds[0], str):
            raise SiddhiRuntimeError("'within' with one value takes a string such as '2014-02-** **:**:**'.")
        return parse_within(bounds[0])
    start, end = (parse_time(b) if isinstance(b, str) else int(b) for b in bounds)
    if start >= end:
        raise SiddhiRuntimeError(f"The start of 'within' must be before its end; found {start} and {end} ms.")
    return start, end


def duration_of(text: str, aggregation: str, durations: tuple[AggDuration, ...]) -> AggDuration:
    """The duration that the text after `per` names, one of the aggregation's. Raises SiddhiRuntimeError."""
    duration = per_duration(text)
    have = ", ".join(PLURAL[d] for d in durations)
    if duration is None:
        raise SiddhiRuntimeError(f"'{text}' is not a valid duration; '{aggregation}' has {have}.")
    if duration not in durations:
        raise SiddhiRuntimeError(f"Aggregation '{aggregation}' has no {PLURAL[duration]}; it has {have}.")
    return duration

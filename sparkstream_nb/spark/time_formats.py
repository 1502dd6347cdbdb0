"""How the event times of a feed are written: their format, and the zone of those that name none."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.columns import Array
from ..errors import Misuse, shown

UNITS = {"s": 1000.0, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
"""Milliseconds of a unit in which times are counted since 1970."""
_SECONDS = range(10**8, 32 * 10**9)
"""Times (ms) that lie in 1970, but for the first day, in which made-up data often are. As seconds these are the times
from 1973 on."""


@dataclass(frozen=True)
class TimeFormat:
    """`format` is that of texts, as Python's `strptime` takes it, or the unit of numbers: s, ms, us or ns since 1970.
    `zone` is the time zone of times that name none, by default UTC."""

    format: str | None = None
    zone: str | None = None

    @staticmethod
    def of(format: str | None, zone: str | None) -> TimeFormat:
        """As a person gave them. Raises `Misuse` for a format or a zone that there is not."""
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
        """Whether times are as they are by default."""
        return self.format is None and self.zone is None

    def expected(self) -> str:
        """What a time looks like, for a message."""
        if self.format is None:
            zone = self.zone or "UTC"
            return f"a time is ms since 1970, or as 2024-06-01 10:00:00 ({zone}) or 2024-06-01T10:00:00+02:00"
        if self.format in UNITS:
            return f"a time is a number of {self.format} since 1970"
        return f"a time is as {dt.datetime(2024, 6, 1, 10, tzinfo=dt.UTC).strftime(self.format)}"

    def counted(self, numbers: Array) -> Array:
        """Numbers of the unit as ms."""
        return np.rint(numbers * UNITS[str(self.format)]).astype(np.int64)

    def parsed(self, texts: pa.Array) -> tuple[pa.Array, Array]:
        """Texts of the format as int64 ms, and a mask of those that are none."""
        import pandas as pd

        aware = "%z" in str(self.format)
        found = pd.to_datetime(texts.to_pandas(), format=self.format, errors="coerce", utc=aware)
        failed = found.isna().to_numpy()
        moments = pa.Array.from_pandas(found).cast(pa.timestamp("ms", "UTC" if aware else None), safe=False)
        return self.placed(moments), failed

    def placed(self, moments: pa.Array) -> pa.Array:
        """Arrow's times as int64 ms since 1970; those without a zone are in `zone`. One that its clocks showed twice is
        the earlier, one that they left out is the first after the gap."""
        if self.zone is not None and moments.type.tz is None:
            moments = pc.assume_timezone(moments, self.zone, ambiguous="earliest", nonexistent="latest")
        return moments.cast(pa.int64())

    def at(self, moment: dt.datetime) -> dt.datetime:
        """A time with its zone."""
        if moment.tzinfo is not None:
            return moment
        return moment.replace(tzinfo=dt.UTC if self.zone is None else ZoneInfo(self.zone))


BY_DEFAULT = TimeFormat()
"""Milliseconds since 1970, or ISO 8601 in UTC."""


def looks_wrong(times: Array) -> str | None:
    """What a person should know of the event times (ms) of a feed that lie in 1970; None where they do not."""
    if not len(times) or int(times.max()) not in _SECONDS:
        return None
    return "The events' times lie in 1970. If they are seconds, feed them with time_format='s' (--time-format s)."


def _unknown(format: str) -> Misuse:
    return Misuse(
        f"{shown(format)} is no format of times: write one such as '%d.%m.%Y %H:%M:%S', as Python's strptime takes it, "
        "or s, ms, us or ns for numbers since 1970"
    )

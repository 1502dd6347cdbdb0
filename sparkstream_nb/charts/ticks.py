"""Round numbers and moments for the ticks of axes, and their labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from .picture import Unit
from .value_texts import EARLIEST, LATEST

DAY_MS = 86_400_000
UNIT_MS: dict[Unit, int] = {"ms": 1, "sec": 1000, "min": 60_000, "hour": 3_600_000, "day": DAY_MS}
"""Units of a fixed length."""


def at(ms: int) -> datetime:
    """A moment in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def bucket_end(ms: int, per: Unit) -> int:
    """The end (ms, exclusive) of a bucket that starts at `ms`."""
    if per in UNIT_MS:
        return ms + UNIT_MS[per]
    start = at(ms)
    months = start.year * 12 + start.month - 1 + (1 if per == "month" else 12)
    if months // 12 > 9999:
        return ms + 31 * DAY_MS
    end = start.replace(year=months // 12, month=months % 12 + 1)
    return ms + (end - start) // timedelta(milliseconds=1)


# -------------------------------------------------------------------------------------------------------------- numbers


def number_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that cover `low` to `high`."""
    if not high > low:
        high = low + 1
    raw = (high - low) / about
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= raw)
    return [round(i * step, 12) for i in range(math.floor(low / step), math.ceil(high / step) + 1)]


def short(value: float, of: float | None = None) -> str:
    """A number for a label: `0.546`, `12`, `1.5k`, `3M`. `of`: the largest number of its axis, which gives the unit."""
    size = abs(value if of is None or not value else of)
    for limit, unit, sign in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= limit:
            return f"{value / unit:.{3 if of is None else 4}g}{sign}"
    return f"{value:.4g}"


# --------------------------------------------------------------------------------------------------------------- times


def short_duration(ms: float) -> str:
    """`1.5 s`, `2 min`, `1 h 30 min`; the unit fits the duration."""
    if abs(ms) < 60_000:
        return f"{ms / 1000:g} s"
    hours, rest = divmod(ms, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    parts = [(hours, "h"), (minutes, "min"), (rest / 1000, "s")]
    return " ".join(f"{n:g} {unit}" for n, unit in parts if n)


_STEPS: tuple[tuple[Unit, int, int], ...] = (
    *(("ms", n, n) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(("sec", n, n * 1000) for n in (1, 2, 5, 10, 15, 30)),
    *(("min", n, n * 60_000) for n in (1, 2, 5, 10, 15, 30)),
    *(("hour", n, n * 3_600_000) for n in (1, 2, 3, 6, 12)),
    *(("day", n, n * DAY_MS) for n in (1, 2, 5, 10)),
    *(("month", n, n * 30 * DAY_MS) for n in (1, 2, 3, 6)),
    *(("year", n, n * 365 * DAY_MS) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)  # fmt: skip
_UNITS: tuple[Unit, ...] = ("ms", "sec", "min", "hour", "day", "month", "year")
_LABELS: dict[Unit, Callable[[datetime], str]] = {
    "ms": lambda t: f"{t:%H:%M:%S}.{t.microsecond // 1000:03d}",
    "sec": lambda t: t.strftime("%H:%M:%S"),
    "min": lambda t: t.strftime("%H:%M"),
    "hour": lambda t: t.strftime("%H:%M"),
    "day": lambda t: f"{t.day} {t:%b}",
    "month": lambda t: t.strftime("%b"),
    "year": lambda t: str(t.year),
}


@dataclass(frozen=True)
class TimeTick:
    """A labelled moment; `context` is the day or the year of its label, where the label does not say it."""

    ms: int
    label: str
    context: str = ""


def time_ticks(start: int, end: int, finest: Unit, most: float) -> list[TimeTick]:
    """Round moments with start ≤ moment < end (ms): about `most` at most, and none closer than one `finest`. None
    outside of the calendar."""
    if not EARLIEST <= start <= end <= LATEST:
        return []
    steps = [s for s in _STEPS if _UNITS.index(s[0]) >= _UNITS.index(finest)]
    unit, n, _ = next((s for s in steps if (end - start) / s[2] <= max(1.0, most)), steps[-1])
    out = []
    for ms in _moments(start, end, unit, n):
        t = at(ms)
        context = "" if unit == "year" else str(t.year) if unit in ("day", "month") else f"{t.day} {t:%b} {t.year}"
        out.append(TimeTick(ms, _LABELS[unit](t), context))
    return out


_DURATION_STEPS = (
    *(s for unit, _, s in _STEPS if unit in ("ms", "sec", "min", "hour")),
    *(DAY_MS * d for d in (1, 2, 7, 14, 28, 91, 182, 365)),
)  # fmt: skip


def duration_ticks(start: int, end: int, most: float) -> list[TimeTick]:
    """Round durations with start ≤ duration ≤ end (ms), about `most` at most."""
    span = max(1, end - start)
    step = next((s for s in _DURATION_STEPS if span / s <= max(2.0, most)), _DURATION_STEPS[-1])
    return [TimeTick(ms, short_duration(ms)) for ms in range(-(-start // step) * step, end + 1, step)]


def _moments(start: int, end: int, unit: Unit, n: int) -> list[int]:
    if unit in ("ms", "sec", "min", "hour"):
        step = n * UNIT_MS[unit]
        return list(range(-(-start // step) * step, end, step))
    kind: Unit = "day" if unit == "day" else "month" if unit == "month" else "year"
    t = at(start).replace(hour=0, minute=0, second=0, microsecond=0)
    t = t if unit == "day" else t.replace(day=1) if unit == "month" else t.replace(day=1, month=1)
    ms = round((t - at(0)) / timedelta(milliseconds=1))
    out = []
    while ms < end:
        t = at(ms)
        # Every fifth day of a month, but not so near its end that the next first crowds it.
        fits = {"day": (t.day - 1) % n == 0 and t.day - 1 + n <= max(n, 30), "month": (t.month - 1) % n == 0}
        if ms >= start and fits.get(unit, t.year % n == 0):
            out.append(ms)
        ms = bucket_end(ms, kind)
    return out

"""Times of a cron expression in Quartz's form (second minute hour day-of-month month day-of-week [year]) and a zone."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from zoneinfo import ZoneInfo

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LAST_YEAR = 2199
_END = int(dt.datetime(9999, 12, 31, tzinfo=dt.UTC).timestamp())
"""The second (since the epoch) from which on there are no times: calendars of Python end a day later."""


def _values(text: str, low: int, high: int, words: tuple[str, ...] = ()) -> tuple[int, ...]:
    """The numbers that a field without `L`, `W` and `#` names, in order. A range may run over the end: `FRI-MON`."""

    def number(word: str) -> int:
        return words.index(word) + 1 if word in words else int(word)

    out: set[int] = set()
    for item in text.upper().split(","):
        body, _, step = item.partition("/")
        if body in ("*", "?", ""):
            a, b = low, high
        elif "-" in body:
            a, b = (number(w) for w in body.split("-", 1))
        else:
            a = number(body)
            b = high if step else a
        if a > b:
            b += high - low + 1
        out.update((v - low) % (high - low + 1) + low for v in range(a, b + 1, int(step or 1)))
    return tuple(sorted(out))


class CronTimes:
    """The times of one cron expression in the time zone `zone`, both of which the binder has validated.

    As in Quartz, a time that the change to daylight saving time leaves out comes as much later, and one that the change
    back repeats comes once.
    """

    def __init__(self, text: str, zone: str = "UTC") -> None:
        self._zone = ZoneInfo(zone)
        fields = text.split()
        self._seconds, self._minutes = _values(fields[0], 0, 59), _values(fields[1], 0, 59)
        self._hours = _values(fields[2], 0, 23)
        self._month_day, self._week_day = fields[3].upper(), fields[5].upper()
        self._months = set(_values(fields[4], 1, 12, _MONTHS))
        self._years = set(_values(fields[6], 1970, _LAST_YEAR)) if len(fields) > 6 else None

    @property
    def times_a_day(self) -> int:
        """Times on a day on which there are any."""
        return len(self._seconds) * len(self._minutes) * len(self._hours)

    def after(self, ms: int) -> int | None:
        """The first time (ms since the epoch) later than `ms`; None if there is none."""
        start = max(ms // 1000 + 1, 0)
        if start >= _END:
            return None
        moment = dt.datetime.fromtimestamp(start, self._zone)
        day = moment.date()
        first = (moment.hour, moment.minute, moment.second)
        while day.year <= _LAST_YEAR:
            if self._years is not None and day.year not in self._years:
                later = [y for y in self._years if y > day.year]
                if not later:
                    return None
                day, first = dt.date(min(later), 1, 1), (0, 0, 0)
                continue
            if day.month not in self._months:
                day = dt.date(day.year + day.month // 12, day.month % 12 + 1, 1)
                first = (0, 0, 0)
                continue
            if self._on(day):
                time = self._time(first)
                if time is not None:
                    moment = dt.datetime(day.year, day.month, day.day, *time, tzinfo=self._zone)
                    if moment.timestamp() < start:  # in the hour that comes a second time
                        moment = moment.replace(fold=1)
                    return int(moment.timestamp()) * 1000
            day, first = day + dt.timedelta(days=1), (0, 0, 0)
        return None

    def _time(self, first: tuple[int, int, int]) -> tuple[int, int, int] | None:
        """The first time of a day that is not before `first`."""
        for h in self._hours:
            if h < first[0]:
                continue
            for m in self._minutes:
                if (h, m) < first[:2]:
                    continue
                for s in self._seconds:
                    if (h, m, s) >= first:
                        return h, m, s
        return None

    def _on(self, day: dt.date) -> bool:
        return self._on_week_day(day) if self._month_day == "?" else self._on_month_day(day)

    def _on_month_day(self, day: dt.date) -> bool:
        last = calendar.monthrange(day.year, day.month)[1]
        for item in self._month_day.split(","):
            if item == "LW":
                if day.day == _nearest(day, last):
                    return True
            elif item.startswith("L"):
                if day.day == last - int(item[2:] or 0):
                    return True
            elif item.endswith("W"):
                if day.day == _nearest(day, min(int(item[:-1]), last)):
                    return True
            elif day.day in _values(item, 1, 31):
                return True
        return False

    def _on_week_day(self, day: dt.date) -> bool:
        today = (day.weekday() + 1) % 7 + 1
        last = calendar.monthrange(day.year, day.month)[1]
        for item in self._week_day.split(","):
            if item == "L":
                is_named = today == 7
            elif "#" in item:
                name, _, nth = item.partition("#")
                is_named = today in _values(name, 1, 7, _DAYS) and (day.day - 1) // 7 + 1 == int(nth)
            elif re.fullmatch(r"\w+L", item):
                is_named = today in _values(item[:-1], 1, 7, _DAYS) and day.day > last - 7
            else:
                is_named = today in _values(item, 1, 7, _DAYS)
            if is_named:
                return True
        return False


def _nearest(day: dt.date, target: int) -> int:
    """The weekday nearest to day `target` of the month, within the month."""
    last = calendar.monthrange(day.year, day.month)[1]
    weekday = dt.date(day.year, day.month, target).weekday()
    if weekday == 5:
        return target - 1 if target > 1 else target + 2
    if weekday == 6:
        return target + 1 if target < last else target - 2
    return target

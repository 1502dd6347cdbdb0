"""Values of columns as siddhi-io-cdc gives them in mode listening: as Debezium's connectors represent them by default.

A date is a number of days since 1970, a time of day a number of microseconds (of milliseconds with three decimals or
fewer), and so is a timestamp without a zone, since 1970 in UTC. One with a zone is a text in UTC. Sources: the pages
"Data type mappings" of Debezium's connectors for PostgreSQL and MySQL, with the defaults `time.precision.mode=adaptive`
and `interval.handling.mode=numeric`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_DATE = re.compile(r"(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)(?P<rest>.*?)(?P<bc> BC)?")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?P<zone>[+-]\d\d(?::\d\d){0,2})?")
_INTERVAL = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(?P<sign>-?)(\d+)(?:\.(\d{1,6}))?S)?)?"
)
_MONTH_DAYS = 30.4375
"""Days of a month in Debezium's intervals: 365.25 / 12."""
_SECOND, _DAY = 1_000_000, 86_400_000_000
"""Microseconds."""
_MS_DIGITS = 3


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date of the proleptic Gregorian calendar, for any year; year 0 is 1 BC."""
    march_year = year - (month <= 2)
    era, of_era = divmod(march_year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """The date (year, month, day) of a number of days since 1970; the inverse of `days_of`."""
    era, of_era = divmod(days + 719_468, 146_097)
    years = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return years + era * 400 + (month <= 2), month, day


def read_date(text: str) -> int:
    """Days since 1970 of a date as `2024-01-31` or `0044-03-15 BC`."""
    days, rest = _split_date(text)
    if rest:
        raise ValueError(f"{text} is not a date")
    return days


def read_time(text: str) -> int:
    """Microseconds since midnight of a time as `10:00:00.5`."""
    micros, zone = _split_time(text)
    if zone:
        raise ValueError(f"{text} has a zone")
    return micros


def read_timestamp(text: str) -> int:
    """Microseconds since 1970 of a timestamp as `2024-01-31 10:00:00.5`."""
    micros, zone = _split_timestamp(text)
    if zone:
        raise ValueError(f"{text} has a zone")
    return micros


def reader_in_ms(read: Callable[[str], int], digits: int) -> Callable[[str], int]:
    """`read`, which gives microseconds, for a column with this number of decimals: with three or fewer it gives ms."""
    return (lambda text: read(text) // 1_000) if digits <= _MS_DIGITS else read


def read_zoned_timestamp(text: str) -> str:
    """The ISO text in UTC of a timestamp with a zone, as `2024-01-31 10:00:00.5+01`."""
    micros, zone = _split_timestamp(text)
    return iso_of(micros - _offset(zone))


def iso_of(micros: int, digits: int | None = None) -> str:
    """The ISO text of microseconds since 1970, in UTC, with `digits` decimals; None: without zeros at the end."""
    days, of_day = divmod(micros, _DAY)
    year, month, day = date_of(days)
    if 0 <= year <= 9_999:
        year_text = f"{year:04}"
    else:
        year_text = f"{'-' if year < 0 else '+'}{abs(year):04}"
    return f"{year_text}-{month:02}-{day:02}T{_clock(of_day, digits)}Z"


def read_zoned_time(text: str) -> str:
    """The ISO text in UTC of a time with a zone, as `10:00:00+01`."""
    micros, zone = _split_time(text)
    return f"{_clock((micros - _offset(zone)) % _DAY)}Z"


def read_interval(text: str) -> int:
    """Microseconds of an interval in ISO 8601, as `P1Y2M3DT4H5M6.7S`, with months of 30.4375 days."""
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not an interval")
    years, months, days, hours, minutes = (int(part or 0) for part in match.groups()[:5])
    sign, seconds, fraction = match["sign"], int(match[7] or 0), (match[8] or "").ljust(6, "0")
    micros = (hours * 3_600 + minutes * 60) * _SECOND + (-1 if sign else 1) * (seconds * _SECOND + int(fraction))
    return int(((years * 12 + months) * _MONTH_DAYS + days) * _DAY) + micros


def read_money(text: str) -> Decimal:
    """An amount of money as the locale C has it, `-$1,000.50`."""
    return Decimal(re.sub(r"[^0-9.\-]", "", text))


def _split_date(text: str) -> tuple[int, str]:
    """(days since 1970, what follows the date) of a text."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} has no number")
    year = int(match["year"])
    return days_of(1 - year if match["bc"] else year, int(match["month"]), int(match["day"])), match["rest"]


def _split_timestamp(text: str) -> tuple[int, str]:
    """(microseconds since 1970 as written, the zone) of a text."""
    days, rest = _split_date(text)
    micros, zone = _split_time(rest.lstrip(" T"))
    return days * _DAY + micros, zone


def _split_time(text: str) -> tuple[int, str]:
    """(microseconds since midnight as written, the zone) of a text."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a time")
    hours, minutes, seconds = (int(match[i]) for i in (1, 2, 3))
    fraction = int((match[4] or "").ljust(6, "0"))
    return (hours * 3_600 + minutes * 60 + seconds) * _SECOND + fraction, match["zone"] or ""


def _offset(zone: str) -> int:
    """Microseconds of a zone, as `+05:30`."""
    if not zone:
        return 0
    hours, minutes, seconds = (int(part) for part in [*zone[1:].split(":"), "0", "0"][:3])
    return (-1 if zone[0] == "-" else 1) * (hours * 3_600 + minutes * 60 + seconds) * _SECOND


def _clock(of_day: int, digits: int | None = None) -> str:
    seconds, micros = divmod(of_day, _SECOND)
    fraction = f"{micros:06}"
    fraction = fraction.rstrip("0") if digits is None else fraction[:digits]
    clock = f"{seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{fraction}" if fraction else clock


def read_whatever(value: Any) -> Any:
    """A value as it is."""
    return value

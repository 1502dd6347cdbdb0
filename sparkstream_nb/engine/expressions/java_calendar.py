"""Java's `GregorianCalendar` in UTC or a zone: from an instant to fields, and from (lenient) fields to an instant.

Days before 15 October 1582 are Julian, as in Java. Instants are int milliseconds since 1970.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

from .java_values import RowFailure

DAY = 86_400_000
CUTOVER = -141_427  # 15 October 1582, in days since 1970
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _gregorian(year: int, month: int, day: int) -> int:
    """Days since 1970 of a proleptic Gregorian date; `month` 1..12."""
    y = year - (month <= 2)
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719_468


def _julian(year: int, month: int, day: int) -> int:
    y = year - (month <= 2)
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return y * 365 + y // 4 + doy - 719_470


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date; month and day may lie outside their range and roll over."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    days = _gregorian(year, month, 1) + day - 1
    return days if days >= CUTOVER else _julian(year, month, 1) + day - 1


def date_of(days: int) -> tuple[int, int, int]:
    """(year, month, day) of days since 1970; the year before 1 is 0."""
    if days >= CUTOVER:
        z = days + 719_468
        era = z // 146_097
        doe = z - era * 146_097
        yoe = (doe - doe // 1460 + doe // 36_524 - doe // 146_096) // 365
        year, doy = yoe + era * 400, doe - (365 * yoe + yoe // 4 - yoe // 100)
    else:
        z = days + 719_470
        year = (4 * z + 3) // 1461
        doy = z - (year * 365 + year // 4)
    mp = (5 * doy + 2) // 153
    month = mp + (3 if mp < 10 else -9)
    return year + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1


def month_length(year: int, month: int) -> int:
    """Days of a month."""
    following = days_of(year, month + 1, 1)
    return date_of(following - 1)[2]


@dataclass(frozen=True)
class Weeks:
    """A locale's week numbering: `first` day (0 = Sunday) and the least number of days in a year's first week."""

    first: int
    least: int

    def number(self, days: int, start: int) -> int:
        """The week of `days` counted from the period (year or month) that begins at `start`; 0: before its first."""
        lead = ((start + 4) % 7 - self.first) % 7
        week = (days - start + lead) // 7
        return week + 1 if 7 - lead >= self.least else week

    def of_year(self, days: int) -> int:
        """`Calendar.WEEK_OF_YEAR`."""
        year = date_of(days)[0]
        week = self.number(days, days_of(year, 1, 1))
        if week == 0:
            return self.number(days, days_of(year - 1, 1, 1))
        if week >= 52 and self.number(days, days_of(year + 1, 1, 1)) >= 1:
            return 1
        return week


SUNDAY = Weeks(0, 1)
"""The weeks of the United States, and of a locale without a country."""

# Territories of CLDR 39 whose weeks differ from those of the United States.
_SATURDAY = "AE AF BH DJ DZ EG IQ IR JO KW LY OM QA SD SY"
_ISO = (
    "AD AN AT AX BE BG CH CZ DE DK EE ES FI FJ FO FR GB GF GG GI GP GR HU IE IM IS IT JE LI LT LU MC MQ NL NO PL RE "
    "RU SE SJ SK SM VA"
)
_MONDAY = (
    "AI AL AM AR AZ BA BM BN BY CL CM CR CY EC GE HR KG KZ LB LK LV MD ME MK MN MV MY NZ RO RS SI TJ "
    "TM TR UA UY UZ VN XK"
)
_WEEKS = {
    **dict.fromkeys(_SATURDAY.split(), Weeks(6, 1)),
    **dict.fromkeys(_ISO.split(), Weeks(1, 4)),
    **dict.fromkeys(_MONDAY.split(), Weeks(1, 1)),
    "PT": Weeks(0, 4),
}


def weeks_of(locale: str | None) -> Weeks:
    """The weeks of a locale such as `fr_FR`. Raises RowFailure if the string is not a locale."""
    if locale is None:
        return SUNDAY
    parts = locale.split("_")
    language, country = parts[0], parts[1] if len(parts) > 1 else ""
    if not (language.isalpha() and language.islower() and len(language) in (2, 3)) or (
        country and not (country.isalpha() and country.isupper() and len(country) == 2)
    ):
        raise RowFailure(f"'{locale}' is not a locale, such as en_US")
    return _WEEKS.get(country, SUNDAY)


# ------------------------------------------------------------------------------------------------------------ zones

# `java.time.ZoneId.SHORT_IDS`.
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip


@lru_cache(maxsize=256)
def zone(name: str) -> datetime.tzinfo:
    """The zone of `ZoneId.of(name, SHORT_IDS)`. Raises RowFailure for an unknown zone."""
    name = _SHORT.get(name, name)
    offset = name
    for prefix in ("UTC", "GMT", "UT"):
        if name == prefix or name == "Z":
            return datetime.UTC
        if name.startswith(prefix) and name[len(prefix)] in "+-":
            offset = name[len(prefix) :]
            break
    if offset[:1] in ("+", "-"):
        digits = offset[1:].replace(":", "")
        if digits.isdigit() and len(digits) in (1, 2, 4, 6):
            six_digits = digits.zfill(2).ljust(6, "0")
            seconds = int(six_digits[:2]) * 3600 + int(six_digits[2:4]) * 60 + int(six_digits[4:])
            if seconds <= 18 * 3600:
                return datetime.timezone(datetime.timedelta(seconds=-seconds if offset[0] == "-" else seconds))
    else:
        try:
            return ZoneInfo(name)
        except (KeyError, OSError, ValueError):  # unknown, a folder of zones, an odd name
            pass
    raise RowFailure(f"'{name}' is not a time zone")


def offset_at(instant: int, tz: datetime.tzinfo) -> int:
    """The zone's distance from UTC (ms) at an instant."""
    if tz is datetime.UTC:
        return 0
    try:
        moment = _EPOCH + datetime.timedelta(milliseconds=instant)
        distance = moment.astimezone(tz).utcoffset()
    except OverflowError:
        raise RowFailure(f"time {instant} is out of range for a time zone") from None
    assert distance is not None
    return round(distance.total_seconds() * 1000)


def instant_at(local: int, tz: datetime.tzinfo) -> int:
    """The instant of a local time (ms): as `LocalDateTime.atZone` reads gaps (later) and overlaps (earlier)."""
    before, after = offset_at(local - DAY, tz), offset_at(local + DAY, tz)
    if offset_at(local - before, tz) == before:
        return local - before
    if offset_at(local - after, tz) == after:
        return local - after
    return local - before


# ------------------------------------------------------------------------------------------------------- arithmetic


STEPS = {"SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": DAY, "WEEK": 7 * DAY}
"""Milliseconds of a unit."""
MONTHS_OF = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def add(instant: int, unit: str, amount: int) -> int:
    """`Calendar.add` in UTC: months and years keep the day, or take the month's last. Unknown units add nothing."""
    step = STEPS.get(unit)
    if step is not None:
        return instant + step * amount
    months = MONTHS_OF.get(unit)
    if months is None:
        return instant
    days, rest = divmod(instant, DAY)
    year, month, day = date_of(days)
    total = year * 12 + month - 1 + months * amount
    year, month = total // 12, total % 12 + 1
    return days_of(year, month, min(day, month_length(year, month))) * DAY + rest


def field(instant: int, unit: str, weeks: Weeks) -> int:
    """`Calendar.get` in UTC of the field that `time:extract` calls `unit`; 0 for an unknown one."""
    days, rest = divmod(instant, DAY)
    year, month, day = date_of(days)
    values = {
        "YEAR": year if year > 0 else 1 - year,
        "MONTH": month,
        "QUARTER": (month - 1) // 3 + 1,
        "DAY": day,
        "HOUR": rest // 3_600_000,
        "MINUTE": rest // 60_000 % 60,
        "SECOND": rest // 1000 % 60,
    }
    return weeks.of_year(days) if unit == "WEEK" else values.get(unit, 0)

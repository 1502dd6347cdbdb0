"""Date patterns with Java's `SimpleDateFormat` letters, formatted and parsed as by `FastDateFormat` of commons-lang 3.

Parsing is lenient: numbers out of range roll over, and text after the last field is ignored. But every literal must
match, and names of months and days are case-sensitive. Times without a zone are UTC.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from .java_calendar import DAY, SUNDAY, date_of, days_of, instant_at, month_length, offset_at, zone
from .java_values import RowFailure

DEFAULT = "yyyy-MM-dd HH:mm:ss.SSS"
"""The format of dates where a function is given none."""

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

_NUMBERS = frozenset("yMdDhHkKmsSFwW")
_LETTERS = _NUMBERS | frozenset("EaGzZ")

# Zone names that are read; names that sound the same follow Java's English names.
_ZONES = {
    "UTC": "UTC", "GMT": "UTC", "Coordinated Universal Time": "UTC", "Greenwich Mean Time": "UTC",
    "EST": "America/New_York", "EDT": "America/New_York", "CST": "America/Chicago", "CDT": "America/Chicago",
    "MST": "America/Denver", "MDT": "America/Denver", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
    "AKST": "America/Anchorage", "AKDT": "America/Anchorage", "HST": "Pacific/Honolulu",
    "WET": "Europe/Lisbon", "WEST": "Europe/Lisbon", "CET": "Europe/Paris", "CEST": "Europe/Paris",
    "EET": "Europe/Athens", "EEST": "Europe/Athens", "MSK": "Europe/Moscow", "BST": "Europe/London",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "KST": "Asia/Seoul", "SGT": "Asia/Singapore", "HKT": "Asia/Hong_Kong",
    "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney", "NZST": "Pacific/Auckland", "NZDT": "Pacific/Auckland",
    "BRT": "America/Sao_Paulo", "ART": "America/Argentina/Buenos_Aires", "SAST": "Africa/Johannesburg",
    "EAT": "Africa/Nairobi", "WAT": "Africa/Lagos", "PKT": "Asia/Karachi", "WIB": "Asia/Jakarta",
}  # fmt: skip


@dataclass(frozen=True)
class FormatPart:
    """A literal text, or a letter repeated `width` times."""

    kind: Literal["text", "field"]
    text: str
    width: int = 0

    @property
    def number(self) -> bool:
        """True if the field is written in digits."""
        return self.kind == "field" and self.text in _NUMBERS and not (self.text == "M" and self.width >= 3)


@lru_cache(maxsize=512)
def parts_of(pattern: str) -> tuple[FormatPart, ...]:
    """Splits a pattern into parts. Raises RowFailure for a letter that has no meaning."""
    out: list[FormatPart] = []
    for match in re.finditer(r"''|'((?:[^']|'')*)'|(([a-zA-Z])\3*)|([^a-zA-Z'])|'", pattern):
        literal, run, letter, other = match.groups()
        if run:
            if letter not in _LETTERS:
                raise RowFailure(f"'{letter}' has no meaning in the date pattern '{pattern}'")
            out.append(FormatPart("field", letter, len(run)))
        elif other is not None:
            out.append(FormatPart("text", other))
        elif match.group() == "''":
            out.append(FormatPart("text", "'"))
        elif literal is not None:
            out.append(FormatPart("text", literal.replace("''", "'")))
        else:
            raise RowFailure(f"unclosed quote in the date pattern '{pattern}'")
    return tuple(out)


# ---------------------------------------------------------------------------------------------------------- writing


def format_instant(instant: int, pattern: str, tz: datetime.tzinfo = datetime.UTC) -> str:
    """The text of an instant (ms) in a zone."""
    distance = offset_at(instant, tz)
    days, rest = divmod(instant + distance, DAY)
    year, month, day = date_of(days)
    hour = rest // 3_600_000
    out = []
    for part in parts_of(pattern):
        if part.kind == "text":
            out.append(part.text)
            continue
        letter, width = part.text, part.width
        if letter == "y":
            era_year = year if year > 0 else 1 - year
            out.append(
                f"{era_year % 100:02d}"
                if width == 2
                else str(era_year).zfill(max(width, 4))
                if width > 2
                else str(era_year).zfill(4)
            )
        elif letter == "M" and width >= 3:
            out.append(MONTHS[month - 1] if width >= 4 else MONTHS[month - 1][:3])
        elif letter == "E":
            name = WEEKDAYS[(days + 4) % 7]
            out.append(name if width >= 4 else name[:3])
        elif letter == "a":
            out.append("AM" if hour < 12 else "PM")
        elif letter == "G":
            out.append("AD" if year > 0 else "BC")
        elif letter == "z":
            out.append(_zone_name(instant, tz, width))
        elif letter == "Z":
            out.append(_offset(distance, ":" if width > 1 else ""))
        else:
            out.append(str(_value(letter, days, rest, year, month, day)).zfill(width))
    return "".join(out)


def _value(letter: str, days: int, rest: int, year: int, month: int, day: int) -> int:
    hour = rest // 3_600_000
    match letter:
        case "M":
            return month
        case "d":
            return day
        case "D":
            return days - days_of(year, 1, 1) + 1
        case "H":
            return hour
        case "k":
            return hour or 24
        case "K":
            return hour % 12
        case "h":
            return hour % 12 or 12
        case "m":
            return rest // 60_000 % 60
        case "s":
            return rest // 1000 % 60
        case "S":
            return rest % 1000
        case "F":
            return (day - 1) // 7 + 1
        case "w":
            return SUNDAY.of_year(days)
        case "W":
            return SUNDAY.number(days, days_of(year, month, 1))
    raise AssertionError(letter)


def _offset(distance: int, separator: str) -> str:
    minutes = abs(distance) // 60_000
    return f"{'-' if distance < 0 else '+'}{minutes // 60:02d}{separator}{minutes % 60:02d}"


def _zone_name(instant: int, tz: datetime.tzinfo, width: int) -> str:
    if tz is datetime.UTC:
        return "Coordinated Universal Time" if width >= 4 else "UTC"
    moment = datetime.datetime.fromtimestamp(instant / 1000, tz)
    name = moment.tzname() or ""
    return name if name.isalpha() else "GMT" + _offset(offset_at(instant, tz), ":")


# ---------------------------------------------------------------------------------------------------------- reading


@lru_cache(maxsize=512)
def _reader(pattern: str) -> tuple[re.Pattern[str], tuple[FormatPart, ...]]:
    parts = parts_of(pattern)
    out = []
    for i, part in enumerate(parts):
        if part.kind == "text":
            out.append(re.escape(part.text))
        elif part.number:
            follows = i + 1 < len(parts) and parts[i + 1].number
            out.append(rf"(\d{{{part.width}}})" if follows else r"(\d++)")
        else:
            out.append(f"({_words(part.text)})")
    return re.compile("".join(out)), tuple(p for p in parts if p.kind == "field")


def _words(letter: str) -> str:
    names: tuple[str, ...]
    if letter == "M":
        names = (*MONTHS, *(m[:3] for m in MONTHS))
    elif letter == "E":
        names = (*WEEKDAYS, *(w[:3] for w in WEEKDAYS))
    elif letter == "a":
        return "(?i:AM|PM)"
    elif letter == "G":
        names = ("Before Christ", "Anno Domini", "BC", "AD")
    else:
        names = tuple(sorted(_ZONES, key=len, reverse=True))
        return r"GMT[+-]\d{0,1}\d{2}|[+-]\d{2}:?\d{2}|" + "|".join(map(re.escape, names))
    return "|".join(map(re.escape, names))


def parse_instant(text: str, pattern: str) -> int:
    """Parses an instant (ms). Raises RowFailure if the string does not start with the pattern."""
    reader, fields = _reader(pattern)
    match = reader.match(text)
    if match is None:
        raise RowFailure(f"'{text}' does not match the date pattern '{pattern}'")
    values: dict[str, int] = {}
    order: list[str] = []
    tz: datetime.tzinfo | int = 0
    for part, field_text in zip(fields, match.groups(), strict=True):
        letter = part.text
        if letter in ("z", "Z"):
            tz = _zone(field_text)
            continue
        value = _read(part, field_text)
        if letter in "Hk":  # 24 o'clock is midnight to `H`, and the next day to `k`
            letter, value = "H", value % 24 if letter == "H" else value
        elif letter in "Kh":
            letter, value = "K", value % 12 if letter == "h" else value
        values[letter] = value
        order = [o for o in order if o != letter] + [letter]
    local = _days(values, order) * DAY + _clock(values, order)
    return local - tz if isinstance(tz, int) else instant_at(local, tz)


def _read(part: FormatPart, field_text: str) -> int:
    if part.number:
        value = int(field_text)
        return _two_digits(value) if part.text == "y" and part.width <= 2 and value < 100 else value
    if part.text == "M":
        return next(i for i, m in enumerate(MONTHS, 1) if m.startswith(field_text[:3]))
    if part.text == "E":
        return next(i for i, w in enumerate(WEEKDAYS) if w.startswith(field_text[:3]))
    if part.text == "a":
        return int(field_text.upper() == "PM")
    return int(field_text in ("AD", "Anno Domini"))


def _two_digits(value: int) -> int:
    """The year within 80 years before and 20 after now, as `SimpleDateFormat` takes two digits."""
    now = datetime.datetime.now(datetime.UTC).year
    century = now - now % 100
    return next(y for y in (century + 100 + value, century + value, century - 100 + value) if y < now + 20)


def _zone(zone_text: str) -> datetime.tzinfo | int:
    """A zone, or a fixed distance from UTC in ms."""
    if zone_text[0] in "+-":
        return _minutes(zone_text[0], zone_text[1:3], zone_text[-2:])
    if zone_text.startswith("GMT") and len(zone_text) > 3:
        digits = zone_text[4:]
        hours, minutes = (digits, "0") if len(digits) == 2 else (digits[:-2], digits[-2:])
        return _minutes(zone_text[3], hours, minutes)
    return zone(_ZONES[zone_text])  # the date says whether it is summer there, not the name


def _minutes(sign: str, hours: str, minutes: str) -> int:
    distance = (int(hours) * 60 + int(minutes)) * 60_000
    return -distance if sign == "-" else distance


def _days(values: dict[str, int], order: list[str]) -> int:
    """Days since 1970 of the fields read, where several could decide the last one read (`Calendar.selectFields`)."""
    year = values.get("y", 1970)
    if values.get("G") == 0:
        year = 1 - year
    month, weekday = values.get("M", 1), values.get("E")
    stamp = {letter: i + 1 for i, letter in enumerate(order)}
    candidates = {letter: stamp[letter] for letter in "dD" if letter in stamp}
    for letter in "WFw":
        if letter in stamp and weekday is not None:
            candidates[letter] = max(stamp[letter], stamp["E"])
    if not candidates:
        candidates = {letter: stamp[letter] for letter in "WFw" if letter in stamp}
    by = max(candidates, key=lambda c: candidates[c]) if candidates else "d"
    if by == "d":
        return days_of(year, month, values.get("d", 1))
    if by == "D":
        return days_of(year, 1, 1) + values["D"] - 1
    start = days_of(year, 1, 1) if by == "w" else days_of(year, month, 1)
    if by == "F":
        target_day = weekday if weekday is not None else 0
        return start + (target_day - (start + 4)) % 7 + 7 * (values["F"] - 1)
    first = start - (start + 4) % 7  # the Sunday of the period's first week
    return first + 7 * (values[by] - 1) + (weekday or 0)


def _clock(values: dict[str, int], order: list[str]) -> int:
    hour = values.get("H", 0)
    if "K" in values and ("H" not in values or order.index("K") > order.index("H")):
        hour = values["K"] + 12 * values.get("a", 0)
    return ((hour * 60 + values.get("m", 0)) * 60 + values.get("s", 0)) * 1000 + values.get("S", 0)


# ------------------------------------------------------------------------------------------------- strict local times

_LIMITS = {
    "M": (1, 12),
    "d": (1, 31),
    "H": (0, 23),
    "h": (1, 12),
    "K": (0, 11),
    "k": (1, 24),
    "m": (0, 59),
    "s": (0, 59),
}


def parse_local(text: str, pattern: str) -> int:
    """A local time (ms) as `LocalDateTime.parse` with `DateTimeFormatter.ofPattern` reads it: strict, the whole text.

    Raises RowFailure if the string does not match.
    """
    out = []
    parts = parts_of(pattern)
    for part in parts:
        if part.kind == "text":
            out.append(re.escape(part.text))
        elif part.text == "S":
            out.append(rf"(\d{{{part.width}}})")
        elif part.number:
            widest = 19 if part.width == 1 or (part.text == "y" and part.width >= 4) else part.width
            out.append(rf"(\d{{{part.width},{widest}}})")
        elif part.text == "M":
            out.append("(" + "|".join(MONTHS if part.width == 4 else (m[:3] for m in MONTHS)) + ")")
        elif part.text == "E":
            out.append("(?:" + "|".join(WEEKDAYS if part.width == 4 else (w[:3] for w in WEEKDAYS)) + ")")
        else:
            out.append(f"({_words(part.text)})")
    fields = [p for p in parts if p.kind == "field" and p.text != "E"]
    match = re.fullmatch("".join(out), text)
    if match is None:
        raise RowFailure(f"'{text}' does not match the date and time pattern '{pattern}'")
    values: dict[str, int] = {}
    for part, field_text in zip(fields, match.groups(), strict=True):
        value = int(field_text.ljust(3, "0")[:3]) if part.text == "S" else _read(part, field_text)
        if part.text == "y" and part.width == 2:
            value = 2000 + value % 100
        low, high = _LIMITS.get(part.text, (value, value))
        if not low <= value <= high:
            raise RowFailure(f"{value} is out of range in '{text}'")
        values[part.text] = value
    if not {"y", "M", "d"} <= values.keys() or not values.keys() & set("HhKk"):
        raise RowFailure(f"the pattern '{pattern}' does not give a date and a time")
    day = min(values["d"], month_length(values["y"], values["M"]))
    hour = values.get("H", values.get("k", 0) % 24)
    if "h" in values or "K" in values:
        if "a" not in values:
            raise RowFailure(f"the pattern '{pattern}' does not distinguish AM from PM")
        hour = values.get("h", values.get("K", 0)) % 12 + 12 * values["a"]
    rest = ((hour * 60 + values.get("m", 0)) * 60 + values.get("s", 0)) * 1000 + values.get("S", 0)
    return days_of(values["y"], values["M"], day) * DAY + rest

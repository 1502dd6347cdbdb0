"""Whole-column forms (`rowwise.Whole`) of date functions over milliseconds in UTC.

The loops handle the years 1583 (the first wholly in the Gregorian calendar) to 9999, and leave other instants and nulls
to the functions on single values (`calendar`, `dateformat`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...plan.nodes import Call, Const
from ...types import Type
from ..columnar.column_data import DTYPES, Array, Column, Mask, StringPool, Texts
from ..columnar.string_dictionary import string_array
from ..notation.kernels import compiled, inlined, kernel, struct
from .dateformat import MONTHS, WEEKDAYS, FormatPart, parts_of
from .format_numbers import number_texts
from .java_calendar import DAY, MONTHS_OF, STEPS, days_of
from .java_values import RowFailure
from .rowwise import Whole

_FAR = 4 * 10**18
"""Sums of instants and steps that are nearer to 0 do not leave a long."""

_FIRST, _LAST = days_of(1583, 1, 1) * DAY, days_of(10_000, 1, 1) * DAY


def _left(*columns: Column) -> Mask:
    """Rows with a null or with an instant (first column) beyond `_FAR`."""
    instants = columns[0].values
    out: Mask = (instants < -_FAR) | (instants > _FAR)
    for c in columns:
        if c.null is not None:
            out = out | c.null
    return out


def days_between(call: Call) -> Whole | None:
    """`time:dateDiff`: whole days, counted toward zero."""

    def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
        a, b = columns[:2]
        distance = a.values - b.values
        days = distance // DAY
        days += (distance < 0) & (days * DAY != distance)
        return Column(call.type, days.astype(DTYPES[call.type])), _left(a, b) | _left(b)

    return whole if [a.type for a in call.args] == [Type.LONG, Type.LONG] else None


# --------------------------------------------------------------------------------------------------------- calendar


@inlined
def _date(days: Any) -> Any:
    """Year, month and day of days since 1970, as year << 9 | month << 5 | day (`java_calendar.date_of`)."""
    z = days + 719_468
    era = z // 146_097
    doe = z - era * 146_097
    yoe = (doe - doe // 1460 + doe // 36_524 - doe // 146_096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + (3 if mp < 10 else -9)
    return (yoe + era * 400 + (month <= 2)) << 9 | month << 5 | (doy - (153 * mp + 2) // 5 + 1)


@inlined
def _first_of(year: Any, month: Any) -> Any:
    """Days since 1970 of a month's first (`java_calendar.days_of`)."""
    y = year - (month <= 2)
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5
    return era * 146_097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719_468


@kernel
def _add_months(instants: Array, months: Array, first: int, last: int, left: Mask, out: Array) -> None:
    """Add months to instants; the day stays, or becomes the month's last."""
    for i in range(len(instants)):
        t = instants[i]
        if left[i] or t < first or t >= last:
            left[i] = True
            continue
        days = t // 86_400_000
        rest = t - days * 86_400_000
        date = _date(days)
        total = (date >> 9) * 12 + (date >> 5 & 15) - 1 + months[i]
        year = total // 12
        month = total - year * 12 + 1
        begin = _first_of(year, month)
        following = year + (month == 12)
        next_month = 1 if month == 12 else month + 1
        end = _first_of(following, next_month)
        then = (begin + min(date & 31, end - begin) - 1) * 86_400_000 + rest
        left[i] = then < first or then >= last
        out[i] = then


def shift_dates(sign: int, call: Call) -> Whole | None:
    """`time:dateAdd` (sign 1) and `time:dateSub` (-1) of milliseconds, which return strings."""
    if len(call.args) != 3 or not isinstance(call.args[2], Const):
        return None
    unit = str(call.args[2].value)
    unit = unit if sign > 0 else unit.upper()

    def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
        instants, amounts = columns[:2]
        left = _left(instants) | _left(amounts)
        by = (sign * amounts.values.astype(np.int64)).astype(np.int32).astype(np.int64)
        if unit in MONTHS_OF:
            out = np.zeros(len(instants), np.int64)
            values = np.ascontiguousarray(instants.values)
            _add_months(values, by * MONTHS_OF[unit], _FIRST, _LAST, left, out)
        else:
            out = instants.values + STEPS.get(unit, 0) * by
        return Texts(number_texts(Column(Type.LONG, out)), strings, many=True), left

    return whole


_UNITS = ("YEAR", "MONTH", "QUARTER", "DAY", "HOUR", "MINUTE", "SECOND")


@kernel
def _fields(instants: Array, unit: int, first: int, last: int, left: Mask, out: Array) -> None:
    """The field of instants that has number `unit` among `_UNITS`."""
    for i in range(len(instants)):
        t = instants[i]
        if left[i] or t < first or t >= last:
            left[i] = True
            continue
        days = t // 86_400_000
        rest = t - days * 86_400_000
        date = _date(days)
        month = date >> 5 & 15
        if unit == 0:
            out[i] = date >> 9
        elif unit == 1:
            out[i] = month
        elif unit == 2:
            out[i] = (month + 2) // 3
        elif unit == 3:
            out[i] = date & 31
        elif unit == 4:
            out[i] = rest // 3_600_000
        elif unit == 5:
            out[i] = rest // 60_000 % 60
        else:
            out[i] = rest // 1000 % 60


def extract_field(call: Call) -> Whole | None:
    """`time:extract` of milliseconds; not weeks."""
    unit = call.args[1]
    if call.args[0].type is not Type.LONG or not isinstance(unit, Const) or str(unit.value).upper() not in _UNITS:
        return None
    number = _UNITS.index(str(unit.value).upper())

    def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
        left, out = _left(columns[0]), np.zeros(len(columns[0]), DTYPES[call.type])
        _fields(np.ascontiguousarray(columns[0].values), number, _FIRST, _LAST, left, out)
        return Column(call.type, out), left

    return whole


# ---------------------------------------------------------------------------------------------------------- formats

_WORD, _YEAR, _YEAR_2, _MONTH, _DAY, _DAY_OF_YEAR, _HOUR, _MINUTE, _SECOND, _MILLI = range(10)
_HOUR_1, _HOUR_12, _HOUR_12_1, _WEEK, _MONTH_NAME, _WEEKDAY_NAME, _HALF = range(10, 17)
_NUMBERS = {
    "d": _DAY, "D": _DAY_OF_YEAR, "H": _HOUR, "m": _MINUTE, "s": _SECOND, "S": _MILLI, "k": _HOUR_1, "K": _HOUR_12,
    "h": _HOUR_12_1, "F": _WEEK,
}  # fmt: skip


@inlined
def _number(op: Any, date: Any, days: Any, rest: Any) -> Any:
    """The number that an instruction writes, of a day (as `_date` has it, and as days since 1970) and its ms."""
    hour = rest // 3_600_000
    value: Any = np.int64(0)
    if op == _YEAR:
        value = date >> 9
    elif op == _YEAR_2:
        value = (date >> 9) % 100
    elif op == _MONTH:
        value = date >> 5 & 15
    elif op == _DAY:
        value = date & 31
    elif op == _HOUR:
        value = hour
    elif op == _MINUTE:
        value = rest // 60_000 % 60
    elif op == _SECOND:
        value = rest // 1000 % 60
    elif op == _MILLI:
        value = rest % 1000
    elif op == _HOUR_1:
        value = hour if hour > 0 else 24
    elif op == _HOUR_12:
        value = hour % 12
    elif op == _HOUR_12_1:
        value = hour % 12 if hour % 12 > 0 else 12
    elif op == _WEEK:
        value = ((date & 31) - 1) // 7 + 1
    elif op == _DAY_OF_YEAR:
        year = date >> 9
        begin = _first_of(year, 1)
        value = days - begin + 1
    return value


@inlined
def _put_digits(value: Any, width: Any, data: Array, at: Any) -> Any:
    """Writes a number of at least `width` digits from byte `at` on; returns the byte behind it."""
    size: Any = 1
    more = value // 10
    while more > 0:
        size += 1
        more //= 10
    size = max(size, width)
    for j in range(size):
        tenth = value // 10
        data[at + size - 1 - j] = np.uint8(48 + (value - tenth * 10))
        value = tenth
    return at + size


@struct
class _FormatProgram:
    """A pattern as instructions, in order: `ops`, each with the least number of digits or the index of the first of its
    words. The words are in `text`; `begins` has the first byte of each, and the end of the last.
    """

    def __init__(self, parts: Sequence[FormatPart]) -> None:
        """Raises KeyError for a letter that it does not know."""
        self._words: list[bytes] = []
        ops = [self._op(p) for p in parts]
        self.ops = np.array(ops, np.int64).reshape(-1, 2)
        self.begins = np.cumsum([0, *map(len, self._words)])
        self.text = np.frombuffer(b"".join(self._words) + b" ", np.uint8).copy()
        longest = max(map(len, self._words), default=0)
        self.size = sum(max(longest, width, 4) for _, width in ops)

    def _op(self, part: FormatPart) -> tuple[int, int]:
        letter, width = part.text, part.width
        if part.kind == "text":
            return self._say(_WORD, [letter])
        if letter == "y":
            return (_YEAR_2, 2) if width == 2 else (_YEAR, max(width, 4))
        if letter == "M":
            names = [m if width >= 4 else m[:3] for m in MONTHS]
            return self._say(_MONTH_NAME, names) if width >= 3 else (_MONTH, width)
        if letter == "E":
            return self._say(_WEEKDAY_NAME, [w if width >= 4 else w[:3] for w in WEEKDAYS])
        if letter == "a":
            return self._say(_HALF, ["AM", "PM"])
        return _NUMBERS[letter], width

    def _say(self, op: int, words: Sequence[str]) -> tuple[int, int]:
        self._words += [w.encode() for w in words]
        return op, len(self._words) - len(words)

    @compiled
    def write(self, instants: Array, left: Mask, ends: Array, data: Array) -> None:
        """Writes the texts of instants into `data`, one after the other, and where each ends into `ends[1:]`. Those out
        of range are marked in `left`."""
        at = np.int64(0)
        for i in range(len(instants)):
            t = instants[i]
            if left[i] or t < _FIRST or t >= _LAST:
                left[i] = True
                ends[i + 1] = at
                continue
            days = t // 86_400_000
            rest = t - days * 86_400_000
            date = _date(days)
            for k in range(len(self.ops)):
                op, width = self.ops[k, 0], self.ops[k, 1]
                if op != _WORD and op <= _WEEK:
                    value = _number(op, date, days, rest)
                    at = _put_digits(value, width, data, at)
                    continue
                word = width
                if op == _MONTH_NAME:
                    word += (date >> 5 & 15) - 1
                elif op == _WEEKDAY_NAME:
                    word += (days + 4) % 7
                elif op == _HALF:
                    word += rest >= 43_200_000
                for j in range(self.begins[word], self.begins[word + 1]):
                    data[at] = self.text[j]
                    at += 1
            ends[i + 1] = at


def format_dates(call: Call) -> Whole | None:
    """`time:dateFormat` of milliseconds by a constant pattern."""
    if len(call.args) != 2 or not isinstance(call.args[1], Const):
        return None
    try:
        program = _FormatProgram(parts_of(str(call.args[1].value)))
    except (RowFailure, KeyError):
        return None

    def whole(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
        n, left = len(columns[0]), _left(columns[0])
        ends, data = np.zeros(n + 1, np.int32), np.empty(program.size * n + 1, np.uint8)
        instants = np.ascontiguousarray(columns[0].values)
        program.write(instants, left, ends, data)
        return Texts(string_array(ends, data), strings, many=True), left

    return whole

"""Rows in the binary log of MySQL and MariaDB, as bytes, and their values.

The encoding of each type: "Rows_event" and "Table_map_event" in MySQL's source documentation
(`libs/mysql/binlog/event/rows_event.h`). A value is decoded when it is needed, so that one which cannot be read is an
error of its row alone.
"""

from __future__ import annotations

import ipaddress
import json
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pymysqlreplication.json_binary import parse_json

from . import debezium_values as values
from .change_log import NOT_LOGGED, LogColumn

_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes of a group of decimal digits, by their number."""
_NINE = 9
_SECOND, _MINUTE, _HOUR = 1_000_000, 60_000_000, 3_600_000_000
"""Microseconds."""
_ENCODINGS = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "latin1": "cp1252", "ascii": "ascii", "ucs2": "utf-16-be",
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "koi8r": "koi8_r", "koi8u": "koi8_u",
    "sjis": "cp932", "eucjpms": "euc_jp", "ujis": "euc_jp", "euckr": "euc_kr", "gb18030": "gb18030",
}  # fmt: skip
"""Python's names of MySQL's character sets, where they differ."""
BINARY = "binary"


@dataclass(frozen=True)
class BinlogColumn:
    """A column as the log describes it: the code of its type; `size`, bytes of a length or of a number; digits of a
    decimal and its digits behind the point; decimals of seconds. `charset` is MySQL's or Python's name of an encoding,
    `BINARY`, or one of `ADDRESSES`; `members` are the texts of an enum or a set."""

    name: str
    code: int
    size: int = 0
    digits: int = 0
    decimals: int = 0
    is_unsigned: bool = False
    charset: str = BINARY
    members: tuple[str, ...] = ()


Take = Callable[[bytes, int], tuple[Any, int]]
"""(bytes, position) → (the encoded value there, the position behind it)."""


@dataclass(frozen=True)
class ColumnReader:
    """A column of the log: `take` finds its value in a row, `column` reads it."""

    take: Take
    column: LogColumn


def column_reader(column: BinlogColumn) -> ColumnReader:
    """The reader of a column. Raises ValueError for a type that is not known."""
    make = _TYPES.get(column.code)
    if make is None:
        raise ValueError(f"column '{column.name}' has the type {column.code}, which is not known here")
    take, read, default = make(column)
    return ColumnReader(take, LogColumn(column.name, read, default))


def read_rows(data: bytes, readers: Sequence[ColumnReader], images: Sequence[bytes]) -> list[tuple[list[Any], ...]]:
    """The rows of an event, each with as many images as there are bitmaps of present columns: one, or the one before
    and the one after an update. Values are as the log has them, null as None."""
    present = [[i for i in range(len(readers)) if bitmap[i >> 3] >> (i & 7) & 1] for bitmap in images]
    rows: list[tuple[list[Any], ...]] = []
    at = 0
    while at < len(data):
        row = []
        for columns in present:
            nulls = data[at : at + (len(columns) + 7) // 8]
            at += len(nulls)
            image: list[Any] = [NOT_LOGGED] * len(readers)
            for n, i in enumerate(columns):
                if nulls[n >> 3] >> (n & 7) & 1:
                    image[i] = None
                else:
                    image[i], at = readers[i].take(data, at)
            row.append(image)
        rows.append(tuple(row))
    return rows


# --------------------------------------------------------------------------------------------------- lengths of values


def _take_fixed(size: int) -> Take:
    return lambda data, at: (data[at : at + size], at + size)


def _take_prefixed(size: int) -> Take:
    def take(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size + int.from_bytes(data[at : at + size], "little")
        return data[at + size : end], end

    return take


def _fraction_size(decimals: int) -> int:
    return (decimals + 1) // 2


def _decimal_size(digits: int, decimals: int) -> int:
    integer_digits = digits - decimals
    groups = integer_digits // _NINE + decimals // _NINE
    return groups * 4 + _DIGIT_BYTES[integer_digits % _NINE] + _DIGIT_BYTES[decimals % _NINE]


# -------------------------------------------------------------------------------------------------------------- values

_Made = tuple[Take, Callable[[Any], Any], Any]
"""(length, reader, default) of a column."""


def _integer(size: int) -> Callable[[BinlogColumn], _Made]:
    def make(column: BinlogColumn) -> _Made:
        return _take_fixed(size), lambda data: int.from_bytes(data, "little", signed=not column.is_unsigned), 0

    return make


def _read_float(data: bytes) -> float:
    """A float as the shortest number that is stored so, as MySQL shows it: 0.1, not 0.10000000149."""
    (value,) = struct.unpack("<f", data)
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        if struct.pack("<f", short) == data:
            return short
    return float(value)


def _decimal(column: BinlogColumn) -> _Made:
    integer_digits, decimals = column.digits - column.decimals, column.decimals
    sizes = [_DIGIT_BYTES[integer_digits % _NINE], *[4] * (integer_digits // _NINE)]
    fraction_sizes = [*[4] * (decimals // _NINE), _DIGIT_BYTES[decimals % _NINE]]
    counts = [
        integer_digits % _NINE,
        *[_NINE] * (integer_digits // _NINE),
        *[_NINE] * (decimals // _NINE),
        decimals % _NINE,
    ]

    def read(data: bytes) -> Decimal:
        negative = not data[0] & 0x80
        magnitude = bytes([data[0] ^ 0x80, *data[1:]])
        if negative:
            magnitude = bytes(byte ^ 0xFF for byte in magnitude)
        at, digits = 0, ""
        for size, count in zip([*sizes, *fraction_sizes], counts, strict=True):
            if count:
                digits += str(int.from_bytes(magnitude[at : at + size], "big")).zfill(count)
                at += size
        text = f"{digits[:integer_digits] or '0'}.{digits[integer_digits:]}" if decimals else digits
        return Decimal(f"-{text}" if negative else text)

    return _take_fixed(_decimal_size(column.digits, decimals)), read, 0


_ADDRESSES: Mapping[str, tuple[int, Callable[[bytes], str]]] = {
    "uuid": (16, lambda data: str(uuid.UUID(bytes=data))),
    "inet6": (16, lambda data: str(ipaddress.IPv6Address(data))),
    "inet4": (4, lambda data: str(ipaddress.IPv4Address(data))),
}
"""Types of MariaDB's that the log has as bytes, without the zeros at their end: their length and their text."""
ADDRESSES = frozenset(_ADDRESSES)


def _text(prefix: int) -> Callable[[BinlogColumn], _Made]:
    def make(column: BinlogColumn) -> _Made:
        size = prefix or column.size
        if column.charset in _ADDRESSES:
            length, text_of = _ADDRESSES[column.charset]
            return _take_prefixed(size), lambda data: text_of(data.ljust(length, b"\0")), ""
        if column.charset == BINARY:
            return _take_prefixed(size), values.read_whatever, 0
        encoding = _ENCODINGS.get(column.charset, column.charset)

        def read(data: bytes) -> str:
            try:
                return data.decode(encoding)
            except LookupError:
                raise ValueError(f"the character set {column.charset} is not known here") from None

        return _take_prefixed(size), read, ""

    return make


def _read_day(value: int) -> int | None:
    """Days since 1970 of a date in three bytes; None for 0000-00-00."""
    return _days(value >> 9, value >> 5 & 15, value & 31) if value else None


def _days(year: int, month: int, day: int) -> int:
    if not 1 <= month <= 12 or values.date_of(days := values.days_of(year, month, day)) != (year, month, day):
        raise ValueError(f"{year:04}-{month:02}-{day:02} is no date")
    return days


def _read_date(data: bytes) -> int | None:
    return _read_day(int.from_bytes(data, "little"))


def _micros_of(data: bytes, decimals: int) -> int:
    """Microseconds of the decimals of seconds."""
    return int.from_bytes(data, "big") * 10 ** (6 - 2 * len(data)) if decimals else 0


def _datetime(column: BinlogColumn) -> _Made:
    in_ms = column.decimals <= 3

    def read(data: bytes) -> int | None:
        packed_datetime = int.from_bytes(data[:5], "big") - 0x8000000000
        if not packed_datetime:
            return None
        month, clock = packed_datetime >> 22, packed_datetime & 0x1FFFF
        micros = _days(month // 13, month % 13, packed_datetime >> 17 & 31) * 24 * _HOUR + (clock >> 12) * _HOUR
        micros += (clock >> 6 & 63) * _MINUTE + (clock & 63) * _SECOND + _micros_of(data[5:], column.decimals)
        return micros // 1_000 if in_ms else micros

    return _take_fixed(5 + _fraction_size(column.decimals)), read, 0


def _time(column: BinlogColumn) -> _Made:
    bits = 8 * _fraction_size(column.decimals)

    def read(data: bytes) -> int:
        packed_time = int.from_bytes(data, "big") - (0x800000 << bits)
        sign, packed_time = (-1, -packed_time) if packed_time < 0 else (1, packed_time)
        clock, fraction = packed_time >> bits, packed_time & ((1 << bits) - 1)
        micros = (clock >> 12 & 0x3FF) * _HOUR + (clock >> 6 & 63) * _MINUTE + (clock & 63) * _SECOND
        return sign * int(micros + fraction * 10 ** (6 - bits // 4))

    return _take_fixed(3 + bits // 8), read, 0


def _timestamp(column: BinlogColumn) -> _Made:
    def read(data: bytes) -> str | None:
        seconds = int.from_bytes(data[:4], "big")
        micros = _micros_of(data[4:], column.decimals)
        return values.iso_of(seconds * _SECOND + micros, column.decimals) if seconds or micros else None

    return _take_fixed(4 + _fraction_size(column.decimals)), read, ""


def _old_datetime(column: BinlogColumn) -> _Made:
    def read(data: bytes) -> int | None:
        date, clock = divmod(int.from_bytes(data, "little"), 1_000_000)
        if not date:
            return None
        seconds = clock // 10_000 * 3_600 + clock // 100 % 100 * 60 + clock % 100
        return _days(date // 10_000, date // 100 % 100, date % 100) * 86_400_000 + seconds * 1_000

    return _take_fixed(8), read, 0


def _old_time(column: BinlogColumn) -> _Made:
    def read(data: bytes) -> int:
        value = int.from_bytes(data, "little", signed=True)
        clock = abs(value)
        micros = (clock // 10_000 * 3_600 + clock // 100 % 100 * 60 + clock % 100) * _SECOND
        return -micros if value < 0 else micros

    return _take_fixed(3), read, 0


def _old_timestamp(column: BinlogColumn) -> _Made:
    def read(data: bytes) -> str | None:
        seconds = int.from_bytes(data, "little")
        return values.iso_of(seconds * _SECOND) if seconds else None

    return _take_fixed(4), read, ""


def _enum(column: BinlogColumn) -> _Made:
    def read(data: bytes) -> str:
        number = int.from_bytes(data, "little")
        if not number:
            return ""
        if number > len(column.members):
            raise ValueError(f"the column has no member {number}")
        return column.members[number - 1]

    return _take_fixed(column.size), read, ""


def _set(column: BinlogColumn) -> _Made:
    def read(data: bytes) -> str:
        bits = int.from_bytes(data, "little")
        if bits >> len(column.members):
            raise ValueError(f"the column has no member {bits.bit_length()}")
        return ",".join(member for i, member in enumerate(column.members) if bits >> i & 1)

    return _take_fixed(column.size), read, ""


def _bit(column: BinlogColumn) -> _Made:
    if column.digits == 1:
        return _take_fixed(1), lambda data: data != b"\0", False
    return _take_fixed((column.digits + 7) // 8), lambda data: int.from_bytes(data, "big"), 0


def _json(column: BinlogColumn) -> _Made:
    def read(data: bytes) -> str:
        try:
            value = _plain(parse_json(data[0], data[1:])) if data else None
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
        except Exception as error:  # the library raises several kinds
            raise ValueError(f"its JSON is not known here: {type(error).__name__}") from None

    return _take_prefixed(column.size), read, ""


def _plain(value: Any) -> Any:
    """A JSON value of the library's, whose texts may be bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_plain(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


def _year(column: BinlogColumn) -> _Made:
    return _take_fixed(1), lambda data: data[0] + 1900 if data[0] else 0, 0


_TYPES: Mapping[int, Callable[[BinlogColumn], _Made]] = {
    1: _integer(1), 2: _integer(2), 9: _integer(3), 3: _integer(4), 8: _integer(8),
    4: lambda column: (_take_fixed(4), _read_float, 0.0),
    5: lambda column: (_take_fixed(8), lambda data: struct.unpack("<d", data)[0], 0.0),
    6: lambda column: (_take_fixed(0), lambda data: None, 0),
    7: _old_timestamp, 10: lambda column: (_take_fixed(3), _read_date, 0), 11: _old_time, 12: _old_datetime, 13: _year,
    14: lambda column: (_take_fixed(3), _read_date, 0),
    15: _text(0), 16: _bit, 17: _timestamp, 18: _datetime, 19: _time,
    245: _json, 246: _decimal, 247: _enum, 248: _set, 252: _text(0), 253: _text(0), 254: _text(0),
    255: lambda column: (_take_prefixed(column.size), values.read_whatever, 0),
}  # fmt: skip
"""By the code of a type (`enum_field_types`)."""

"""Values in the binary log as bytes, of types that no server of the tests writes, and laws of dates."""

from __future__ import annotations

import datetime as dt
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.stores import debezium_values as values
from sparkstream_nb.stores.binlog_rows import BinlogColumn, column_reader, read_rows
from sparkstream_nb.stores.change_log import NOT_LOGGED


def value_of(data: bytes, code: int, **column: Any) -> Any:
    reader = column_reader(BinlogColumn("v", code, **column))
    encoded, end = reader.take(data, 0)
    assert end == len(data)
    return reader.column.read(encoded)


@pytest.mark.parametrize(
    ("data", "code", "column", "value"),
    [
        # From before MySQL 5.6, of tables that were made then.
        (struct.pack("<Q", 19691231235959), 12, {}, -1_000),
        (struct.pack("<Q", 0), 12, {}, None),
        (struct.pack("<i", -8385959)[:3], 11, {}, -3_020_399_000_000),
        (struct.pack("<I", 1_706_695_200), 7, {}, "2024-01-31T10:00:00Z"),
        # JSON of MySQL: {"a": [1, null, "x"]}, a text, a number of 64 bits.
        (bytes.fromhex("1c00 00 01001b00 0b000100 020c00 61 03000f00 050100 040000 0c0d00 0178"), 245, {"size": 2},
         '{"a":[1,null,"x"]}'),
        (b"\x04\x00\x0c\x02\xc3\xa9", 245, {"size": 2}, '"é"'),
        (b"\x09\x00\x09" + struct.pack("<q", -(2**62)), 245, {"size": 2}, str(-(2**62))),
        (b"\x00\x00", 245, {"size": 2}, "null"),
        (b"\x00", 13, {}, 0),
        (b"\x00", 247, {"size": 1, "members": ("a",)}, ""),
    ],
)  # fmt: skip
def test_values(data: bytes, code: int, column: dict[str, Any], value: Any) -> None:
    assert value_of(data, code, **column) == value


@pytest.mark.parametrize(
    ("data", "code", "column", "message"),
    [
        (b"\x02", 247, {"size": 1, "members": ("a",)}, "the column has no member 2"),
        (b"\x02", 248, {"size": 1, "members": ("a",)}, "the column has no member 2"),
        (b"\x01\xff", 254, {"size": 1, "charset": "utf8mb4"}, "can't decode"),
        (b"\x01\xff", 254, {"size": 1, "charset": "swe7"}, "the character set swe7 is not known here"),
        (b"\x02\x00\x77\x00", 245, {"size": 2}, "its JSON is not known here"),
    ],
)
def test_values_that_cannot_be_read(data: bytes, code: int, column: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        value_of(data, code, **column)


def test_a_type_that_is_not_known() -> None:
    with pytest.raises(ValueError, match="column 'v' has the type 242, which is not known here"):
        column_reader(BinlogColumn("v", 242))


def test_images_without_all_columns() -> None:
    readers = [column_reader(BinlogColumn(name, 1)) for name in "abc"]
    data = b"\x00\x01" + b"\x02\x02" + b"\x00\x05" + b"\x00\x06\x07"
    assert read_rows(data, readers, [b"\x01", b"\x06"]) == [
        ([b"\x01", NOT_LOGGED, NOT_LOGGED], [NOT_LOGGED, b"\x02", None]),
        ([b"\x05", NOT_LOGGED, NOT_LOGGED], [NOT_LOGGED, b"\x06", b"\x07"]),
    ]


@given(st.integers(-4_000_000, 4_000_000))
def test_dates_and_days(days: int) -> None:
    assert values.days_of(*values.date_of(days)) == days
    if dt.date.min.toordinal() <= days + 719_163 <= dt.date.max.toordinal():
        date = dt.date.fromordinal(days + 719_163)
        assert values.date_of(days) == (date.year, date.month, date.day)
        assert values.read_date(date.isoformat()) == days


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_times_with_zones(time: dt.datetime) -> None:
    text = values.read_zoned_timestamp(time.isoformat(" "))
    assert dt.datetime.fromisoformat(text) == time
    assert values.read_timestamp(time.replace(tzinfo=None).isoformat(" ")) == values.read_timestamp(
        text.removesuffix("Z").replace("T", " ")
    )


@given(st.decimals(min_value=-(10**30), max_value=10**30, places=7, allow_nan=False))
def test_decimals(number: Any) -> None:
    """Written as MySQL does: groups of nine digits, in as many bytes as they need, with all bits changed below zero."""
    whole, fraction = f"{number.copy_abs():039.7f}".split(".")
    size = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4]
    parts = [whole[:4], *(whole[i : i + 9] for i in range(4, 31, 9)), fraction]
    data = b"".join(int(p).to_bytes(size[len(p)], "big") for p in parts)
    if number < 0:
        data = bytes(b ^ 0xFF for b in data)
    data = bytes([data[0] ^ 0x80]) + data[1:]
    assert value_of(data, 246, digits=38, decimals=7) == number

"""Values as people read them: in cells of tables, in pictures, in messages."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

# Columns that hold milliseconds and read better as a time.
TIME_COLUMNS = frozenset(
    {"AGG_TIMESTAMP", "AGG_EVENT_TIMESTAMP", "AGG_LAST_EVENT_TIMESTAMP", "timestamp", "event_timestamp"}
)
# A value longer than this is cut; the whole of it is in the data frame.
CELL_WIDTH = 60
EARLIEST, LATEST = -62_135_596_800_000, 253_402_300_799_999
"""The first and the last moment (ms) of a calendar: years 1 to 9999."""


class CountCell(int):
    """A number of things, shown with thousands separators; other whole numbers may be years or identifiers."""


def when(ms: int) -> str:
    """Milliseconds since 1970 as a UTC time, without fractional seconds if they are zero."""
    if not EARLIEST <= ms <= LATEST:
        return str(ms)
    seconds, rest = divmod(ms, 1000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{rest:03d}" if rest else text


def size(n: int) -> str:
    """A number of bytes in the unit that suits it: `512 B`, `1.5 KB`, `20.0 MB` (of 1,000 bytes each)."""
    if n < 1000:
        return f"{n} B"
    value, units = n / 1000, ["KB", "MB", "GB", "TB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:,.1f} {units[0]}"


def format_count(n: int, one: str, several: str | None = None) -> str:
    """`1 event`, `1,200 events`."""
    return f"{n:,} {one if n == 1 else several or f'{one}s'}"


def time_of_day(seconds: float) -> str:
    """`10:31:02 UTC` of seconds since 1970."""
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S} UTC"


def text_of(value: Any, column: str = "") -> str:
    """One value as a cell: null for None, at most four decimals, a time for the columns of `TIME_COLUMNS`."""
    if is_missing(value):
        return "null"
    if isinstance(value, CountCell):
        return f"{value:,}"
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return when(value) if column in TIME_COLUMNS else str(value)
    if isinstance(value, float):
        return number(value)
    text = str(value).replace("\r", "\\r").replace("\n", "\\n")
    return text if len(text) <= CELL_WIDTH or isinstance(value, WholeText) else text[: CELL_WIDTH - 1] + "…"


def row_text(values: Iterable[Any]) -> str:
    """The values of an event in brackets."""
    return "(" + ", ".join(map(text_of, values)) + ")"


def is_missing(value: Any) -> bool:
    """True if a cell is null: None, pandas' NA or NaT. NaN is a number."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def number(value: float) -> str:
    """A float with at most four decimals, or with six significant digits for small numbers."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value and not 1e-3 <= abs(value) < 1e15:
        return f"{value:.6g}"
    text = f"{value:.4f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


class Figure(str):
    """A figure as it is to be read, with separators or a unit: aligned to the right."""

    __slots__ = ()


class WholeText(str):
    """A text that is shown whole, however long."""

    __slots__ = ()


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Figure)) or hasattr(value, "item")

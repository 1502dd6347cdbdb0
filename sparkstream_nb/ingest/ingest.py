"""From the columns of a feed to the attributes of a stream: typed whole columns at a time, bad rows rejected.

The same code runs in Spark's workers over Spark's rows and in the driver over frames that are there already.
Conversions of values: a number to any number that holds it exactly (floats: nearly), a text to a number, a time or a
boolean if it reads as one, anything to a text. A null stays a null.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..durations import describe_time
from ..engine.columnar.column_data import ARROW, Array
from ..engine.state.node_batch import UnreadAttribute
from ..errors import SparkStreamError, near_to, shown
from ..limits import Limits
from ..types import Schema, Type
from .time_formats import BY_DEFAULT, UNITS, Doubts, TimeFormat, floor_to_ms

_COLUMNS_SHOWN = 20
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
TEXT_OF_ROW = "row"
"""The name of a row's text in the values of an error, where the row is not whole."""
BETWEEN_FAULTS = "; "
"""Between the faults of one row, in its reason."""

MAX_AHEAD = "(max_ahead)"
"""The end of the reason for a time that is too far ahead: the argument of `deploy` and `siddhi`."""


def too_late(ts: int, latest: int) -> str:
    """Why an event of a time (ms) is not taken where `latest` is the last that is."""
    return f"the time {describe_time(ts)} is too far ahead: after {describe_time(latest)} no event is taken {MAX_AHEAD}"


SPOILT = "the text is not valid UTF-8"
"""The reason for a text that Python cannot decode."""


def valid(column: pa.Array | pa.ChunkedArray) -> bool:
    """True if all strings of a column are valid UTF-8. Arrow accepts any bytes; Python fails to decode them."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def readable(source: pa.Array, type: Type | None = None) -> tuple[pa.Array, Array | None, pa.Array]:
    """The column, of an attribute of a type, with null for strings that are not valid UTF-8; their mask, None if all
    are valid; and the original values, as bytes if the column is textual."""
    source = _bytes_as_texts(source, type)
    if valid(source):
        return source, None, source
    if is_textual(source.type):
        raw = source.cast(pa.large_binary())
        spoilt = np.array([not _is_utf8(v) for v in raw.to_pylist()], np.bool_)
        return pc.if_else(pa.array(spoilt), None, raw).cast(pa.large_string()), spoilt, raw
    all_values: list[Any] = []
    for i in range(len(source)):
        try:
            all_values.append(source[i].as_py())
        except UnicodeDecodeError:
            all_values.append(SPOILT)
    spoilt = np.array([v is SPOILT for v in all_values], np.bool_)
    readable = pa.array([None if v is SPOILT else v for v in all_values], source.type)
    return readable, spoilt, readable


def _bytes_as_texts(source: pa.Array, type: Type | None) -> pa.Array:
    """Bytes for an attribute of type string, as some writers of parquet declare their texts, as texts, of which some
    may not be valid UTF-8. Any other column as it is."""
    kind = source.type
    if type is not Type.STRING or not any(is_bytes(kind) for is_bytes in _BYTES):
        return source
    return source.cast(pa.large_binary()).view(pa.large_string())


def _is_utf8(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def one(column: Any) -> pa.Array:
    """One array of a column, without a dictionary."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def mask_of(values: Any) -> Array:
    """Truth values of Arrow's as a mask; null is false."""
    array = one(values)
    out: Array = array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return out


def is_textual(type: pa.DataType) -> bool:
    """True for a type of strings."""
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


# ------------------------------------------------------------------------------------------------------------ values


def convert(source: pa.Array, type: Type) -> tuple[pa.Array, Array | None]:
    """`source` as a column of `type`, and a mask of the values that are none (null there); None if all are."""
    n = len(source)
    if type is Type.OBJECT or pa.types.is_null(source.type):
        return (source if type is Type.OBJECT else pa.nulls(n, ARROW[type])), None
    target = ARROW[type]
    if source.type == target:
        return source, None
    if type is Type.STRING:
        return _text_of_times(source) if pa.types.is_temporal(source.type) else (_as_text(source), None)
    if is_textual(source.type):
        return _from_text(source.cast(pa.string()), type)
    if type is Type.BOOL or pa.types.is_boolean(source.type) or pa.types.is_nested(source.type):
        return pa.nulls(n, target), mask_of(pc.is_valid(source))
    if type is Type.LONG and (pa.types.is_timestamp(source.type) or pa.types.is_date(source.type)):
        # A time as a long is ms since the epoch, as `aggregate by` and every function of times take it.
        return BY_DEFAULT.place_moments(floor_to_ms(source))[0], None
    try:
        if type in (Type.FLOAT, Type.DOUBLE):
            return source.cast(target, safe=False), None
        return source.cast(target), None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _each(source, type, _number)


def _as_text(source: pa.Array) -> pa.Array:
    try:
        return source.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([None if v is None else str(plain(v)) for v in python_values(source)], pa.string())


def _text_of_times(source: pa.Array) -> tuple[pa.Array, Array | None]:
    """Times as texts; Arrow writes no more of one beyond the year 32767 than that it is."""
    texts = _as_text(source)
    odd = mask_of(pc.starts_with(texts, "<value out of range"))
    return (pc.if_else(pa.array(odd), None, texts), odd) if odd.any() else (texts, None)


def _from_text(source: pa.Array, type: Type) -> tuple[pa.Array, Array | None]:
    try:
        if type is not Type.BOOL:
            return pc.utf8_trim_whitespace(source).cast(ARROW[type]), None
    except pa.ArrowInvalid:
        pass
    return _each(source, type, _parse)


def _each(source: pa.Array, type: Type, one: Callable[[Any, Type], Any]) -> tuple[pa.Array, Array | None]:
    """Distinct values one by one: only the way for columns that hold something bad or odd."""
    try:
        distinct = source.dictionary_encode()
    except pa.ArrowNotImplementedError:  # a type of pandas', such as its intervals
        return pa.nulls(len(source), ARROW[type]), mask_of(pc.is_valid(source))
    values, misfits = [], []
    for value in python_values(distinct.dictionary):
        try:
            values.append(one(value, type))
            misfits.append(False)
        except (ValueError, OverflowError, TypeError, ArithmeticError):
            values.append(None)
            misfits.append(True)
    index = distinct.indices
    typed_values = pa.array(values, ARROW[type]).take(index)
    bad = mask_of(pa.array(misfits, pa.bool_()).take(index))
    return typed_values, bad if bad.any() else None


def python_values(column: Any) -> list[Any]:
    """A column as Python values; one that Python does not have, as a date after year 9999, as Arrow writes it; bytes
    that are no UTF-8 become replacement characters."""
    try:
        return list(column.to_pylist())
    except (ValueError, ArithmeticError):
        return [python_value(v) for v in one(column)]


def values_by_row(columns: Sequence[Any]) -> list[list[Any]]:
    """The values of each event of `StreamRows`, as Python data; None for an attribute that is not read."""
    value_lists = [
        [None] * len(c) if isinstance(c, UnreadAttribute) else c if isinstance(c, list) else python_values(c)
        for c in columns
    ]
    return [list(row) for row in zip(*value_lists, strict=True)]


def python_value(value: Any) -> Any:
    """A value of Arrow's as Python has it, or its text where Python has none such."""
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return value.as_buffer().to_pybytes().decode(errors="backslashreplace") if is_textual(value.type) else SPOILT
    except (ValueError, ArithmeticError):
        pass
    try:
        return value.cast(pa.string()).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):  # a list or a struct
        return "<value out of range>"


_RANGES = {Type.INT: 2**31, Type.LONG: 2**63}


def _number(value: Any, type: Type) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    if type in (Type.FLOAT, Type.DOUBLE):
        return float(value)
    integer = int(value)
    if integer != value:
        raise ValueError("a fraction")
    if not -_RANGES[type] <= integer < _RANGES[type]:
        raise OverflowError("out of range")
    return integer


def _parse(text: Any, type: Type) -> Any:
    text = str(text).strip()
    if type is Type.BOOL:
        if text.lower() not in ("true", "false"):
            raise ValueError("neither true nor false")
        return text.lower() == "true"
    if "_" in text:
        raise ValueError("no number")
    return _number(float(text), type) if type in (Type.FLOAT, Type.DOUBLE) else _number(int(text), type)


def fits(source: pa.DataType, type: Type) -> bool:
    """True if every value of an Arrow type becomes one of `type`, or null, so that no row can be rejected for it."""
    if pa.types.is_dictionary(source):
        source = source.value_type
    if type is Type.STRING:
        return is_textual(source)
    if type in (Type.OBJECT, Type.BOOL):
        return type is Type.BOOL and bool(pa.types.is_boolean(source))
    if type in (Type.FLOAT, Type.DOUBLE):
        return bool(pa.types.is_floating(source) or pa.types.is_integer(source))
    if not pa.types.is_signed_integer(source):
        return False
    return source.bit_width <= (32 if type is Type.INT else 64)


def fits_time(source: pa.DataType) -> bool:
    """True if every value of an Arrow type that is not null is an event time."""
    return bool(pa.types.is_signed_integer(source) or pa.types.is_timestamp(source) or pa.types.is_date(source))


# ------------------------------------------------------------------------------------------------------------- times

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Times:
    """A column of event times: int64 ms since the epoch, a mask of values that are none (None: all are times), and
    which the clocks of their zone did not show once."""

    values: Array
    misfits: Array | None
    doubts: Doubts | None = None


def times(source: pa.Array, time_format: TimeFormat = BY_DEFAULT) -> tuple[Array, Array | None]:
    """The values of `read_times`, and the mask of the failed ones."""
    parsed_times = read_times(source, time_format)
    return parsed_times.values, parsed_times.misfits


def read_times(source: pa.Array, time_format: TimeFormat = BY_DEFAULT) -> Times:
    """Event times; nulls are none.

    Takes whole numbers (ms), dates and times of day with date (UTC where they have no zone), and texts that are either
    a number or ISO 8601, such as `2013-01-01 05:17:00` or `2013-01-01T05:17:00+01:00`; or what `time_format` says.
    """
    kind = source.type
    if kind == pa.int64() and source.null_count == 0 and time_format.format is None:
        return Times(source.to_numpy(), None)
    null = mask_of(pc.is_null(source))
    misfits: Array | None = None
    doubts: Doubts | None = None
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        moments, doubts = time_format.place_moments(floor_to_ms(source))
    elif time_format.format in UNITS:
        numbers, misfits = convert(source, Type.DOUBLE)
        filled_numbers = numbers.fill_null(0).to_numpy(zero_copy_only=False)
        out_of_range = ~(np.abs(filled_numbers) * UNITS[str(time_format.format)] < 2**63)
        misfits = out_of_range if misfits is None else misfits | out_of_range
        moments = pa.array(time_format.numbers_to_ms(np.where(misfits, 0, filled_numbers)))
    elif pa.types.is_integer(kind):
        moments, misfits = convert(source, Type.LONG)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        moments, misfits = _each(source, Type.LONG, _number)
    elif is_textual(kind):
        text = source.cast(pa.string())
        if time_format.format is None:
            moments, misfits, doubts = _written_as_iso(text, time_format)
        else:
            moments, misfits, doubts = time_format.parse_texts(text)
    else:
        moments, misfits = pa.nulls(len(source), pa.int64()), np.ones(len(source), np.bool_)
    bad = null if misfits is None else null | misfits
    values = np.asarray(moments.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    return Times(values, bad if bad.any() else None, doubts)


def _written_as_iso(text: pa.Array, time_format: TimeFormat) -> tuple[pa.Array, Array | None, Doubts | None]:
    """Texts that are a number or ISO 8601 as int64 ms, a mask of the others, and doubts as in `Times`."""
    try:
        return text.cast(pa.int64()), None, None
    except pa.ArrowInvalid:
        pass
    try:
        local_moments, doubts = time_format.place_moments(text.cast(pa.timestamp("ms")))
        return local_moments, None, doubts
    except pa.ArrowInvalid:
        moments, misfits = _each(text, Type.LONG, lambda value, _: _moment(value))
    local = mask_of(_each(text, Type.BOOL, lambda value, _: _is_local(value))[0])
    local_moments, doubts = time_format.place_moments(
        pc.if_else(pa.array(local), moments, None).cast(pa.timestamp("ms"))
    )
    return pc.if_else(pa.array(local), local_moments, moments), misfits, doubts


def event_times(column: Any, latest: int | None) -> tuple[Array, dict[int, str]]:
    """The event times (int64 ms) in a column, and by row why one is not taken: none, no time, or after `latest`."""
    texts = column if isinstance(column, pa.Array) else pa.array(column)
    ts, misfits = times(texts)
    bad: dict[int, str] = {}
    for i in [] if misfits is None else np.flatnonzero(misfits).tolist():
        value = texts[i].as_py()
        bad[i] = "it has no time" if value is None else f"{value!r} is not a time"
    if latest is not None:
        for i in np.flatnonzero(ts > latest).tolist():
            bad.setdefault(i, too_late(int(ts[i]), latest))
    return ts, bad


def _moment(value: Any) -> int:
    """A number, or ISO 8601, as ms; a time that names no zone as if it were UTC."""
    text = str(value).strip()
    if text.lstrip("+-").isdecimal():
        return int(text)
    moment = dt.datetime.fromisoformat(text)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)) - _EPOCH) // dt.timedelta(milliseconds=1)


def _is_local(value: Any) -> bool:
    """True if a text that `_moment` takes is a time that names no zone."""
    text = str(value).strip()
    return not text.lstrip("+-").isdecimal() and dt.datetime.fromisoformat(text).tzinfo is None


def time_of(value: Any) -> int:
    """One event time as ms. Raises SparkStreamError for other values."""
    ms, misfits = times(pa.array([value]))
    if misfits is not None:
        raise SparkStreamError(f"{shown(value)} is not a time: give ms since 1970, a datetime, or an ISO 8601 text.")
    return int(ms[0])


# -------------------------------------------------------------------------------------------------------- single rows


def columns_of(schema: Schema, rows: Sequence[Sequence[Any]], stream: str, limits: Limits) -> list[Any]:
    """Rows of Python values as input columns. Raises SparkStreamError for the first value that does not fit."""
    out: list[Any] = []
    for row in rows:
        if len(row) != len(schema):
            raise SparkStreamError(f"{stream} takes {len(schema)} values {schema}, and {len(row)} were given.")
    for k, attribute in enumerate(schema):
        values = [row[k] for row in rows]
        if attribute.type is Type.OBJECT:
            for value in values:
                check_object(value, f"{stream}.{attribute.name}", limits)
            out.append(values)
            continue
        typed_values = []
        for value in values:
            try:
                typed_values.append(_value(value, attribute.type))
            except Exception:  # whatever somebody's class raises
                article = "an" if attribute.type is Type.INT else "a"
                raise SparkStreamError(
                    f"{stream}.{attribute.name}: {shown(value)} is not {article} {attribute.type}."
                ) from None
        out.append(pa.array(typed_values, ARROW[attribute.type]))
    return out


def _value(value: Any, type: Type) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None:
        return None
    if type is Type.STRING or type is Type.BOOL:
        if not isinstance(value, str if type is Type.STRING else bool):
            raise TypeError
        if isinstance(value, str):
            value.encode()  # raises for half of a surrogate pair
        return value
    if isinstance(value, str | bytes):
        raise TypeError
    return _number(value, type)


def check_object(value: Any, place: str, limits: Limits) -> None:
    """Raise SparkStreamError for values that are not plain data, and for objects nested too deep, or in themselves."""
    left = [(value, 0)]
    while left:  # depth first: the levels of an object that is in itself twice grow without bound
        one, depth = left.pop()
        if isinstance(one, np.ndarray | np.generic):
            one = one.tolist()
        if depth > limits.nesting:
            raise SparkStreamError(f"{place}: the object is nested deeper than {limits.nesting} levels, or in itself.")
        if isinstance(one, Mapping):
            left += [(part, depth + 1) for pair in one.items() for part in pair]
        elif isinstance(one, list | tuple | set | frozenset):
            left += [(part, depth + 1) for part in one]
        elif isinstance(one, int) and not -(2**63) <= one < 2**63:
            raise SparkStreamError(f"{place}: {shown(one)} is more than a long holds.")
        elif one is not None and not isinstance(one, bool | int | float | str | bytes):
            raise SparkStreamError(f"{place}: a {type(one).__name__} is no plain data, which an object holds.")


def columns_for(name: str, columns: Sequence[str]) -> str:
    """A hint for a missing column `name`: the columns of the source, the closest match first."""
    near = near_to(name, columns)
    within = [c for c in columns if c not in near and name.casefold() in c.casefold()]
    sorted_columns = [*near, *within, *(c for c in columns if c not in near and c not in within)]
    names = ", ".join(sorted_columns[:_COLUMNS_SHOWN]) + (", ..." if len(sorted_columns) > _COLUMNS_SHOWN else "")
    guess = f"Did you mean '{near[0]}'? " if near else ""
    return f"{guess}Its columns: {names}."

"""Rows of a database's driver as events of a stream."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.columnar.column_data import ARROW, Array
from ..errors import shown
from ..ingest import ingest
from ..mapping.attribute_values import misfit
from ..mapping.decoding import Decoded, RejectedMessage, cut
from ..plan.connectors.mapping import SourceMapping
from ..stores.unread import UnreadValue
from ..types import Schema, Type

WhyNull = Callable[[int, int], str]
"""(number of a row, number of an attribute) → the reason for which the row has no value there."""


class RowDecoder:
    """Makes events of rows that have a value for each attribute of `schema`, as a driver gives it.

    `mapping` names the columns of the attributes; by default they have the attributes' names. Where it says so, a row
    with a null is rejected.
    """

    def __init__(self, schema: Schema, mapping: SourceMapping) -> None:
        self._schema = schema
        self.fails_on_null = mapping.fail_on_missing
        places = schema.names if mapping.places is None else mapping.places
        self.keys = tuple(str(p) for p in places)
        """The column of each attribute."""

    def empty(self) -> Decoded:
        """No events."""
        return Decoded([pa.array([], ARROW[a.type]) for a in self._schema], np.empty(0, np.int64), ())

    def decode(self, rows: Sequence[Sequence[Any]], why_null: WhyNull | None = None) -> Decoded:
        """Rows as events, those that do not fit rejected. An exception for a row is its error alone."""
        try:
            return self._decode_rows(rows, why_null)
        except Exception:  # a value of a kind that nothing here foresees
            decoded_rows = [self._decode_alone(i, row, why_null) for i, row in enumerate(rows)]
        columns = [pa.concat_arrays(parts) for parts in zip(*(f.columns for f in decoded_rows), strict=True)]
        message = np.concatenate([f.message for f in decoded_rows])
        return Decoded(columns, message, tuple(r for f in decoded_rows for r in f.rejected))

    def text(self, row: Sequence[Any]) -> str:
        """A row as JSON: fitting values as in the event, the rest as a text."""
        return self._text(
            [typed_column([v], a.type)[0][0].as_py() for a, v in zip(self._schema, row, strict=True)], row
        )

    def _decode_alone(self, number: int, row: Sequence[Any], why_null: WhyNull | None) -> Decoded:
        why = None if why_null is None else (lambda _, attribute: why_null(number, attribute))
        try:
            events = self._decode_rows([row], why)
        except Exception as error:
            reason = f"the row cannot be read: {type(error).__name__}: {' '.join(str(error).split())}"
            empty = self.empty()
            return Decoded(empty.columns, empty.message, (RejectedMessage(number, reason, cut(repr(row))),))
        return Decoded(
            events.columns, events.message + number, tuple(replace(r, message=number) for r in events.rejected)
        )

    def _decode_rows(self, rows: Sequence[Sequence[Any]], why_null: WhyNull | None) -> Decoded:
        """Rows as events. One that has a null, unless that is allowed, or a value that does not fit is rejected; its
        text is the JSON of its attributes, without one that is null and must not be."""
        values = list(zip(*rows, strict=True))
        columns: list[Any] = []
        wrong: dict[int, str] = {}
        for n, (a, name, column) in enumerate(zip(self._schema, self.keys, values, strict=True)):
            if self.fails_on_null:
                for i in [i for i, v in enumerate(column) if v is None]:
                    missing = f"it has no value in column '{name}' for {a.name}"
                    wrong.setdefault(i, missing if why_null is None else why_null(i, n))
            typed_values, misfits = typed_column(column, a.type)
            columns.append(typed_values)
            for i in [] if misfits is None else np.flatnonzero(misfits).tolist():
                wrong.setdefault(i, _misfit(a.name, a.type, column[i]))
        message = np.arange(len(rows), dtype=np.int64)
        if not wrong:
            return Decoded(columns, message, ())
        rejects = tuple(
            RejectedMessage(i, wrong[i], cut(self._text([c[i].as_py() for c in columns], rows[i])))
            for i in sorted(wrong)
        )
        left = np.setdiff1d(message, np.fromiter(wrong, np.int64))
        return Decoded([c.take(pa.array(left)) for c in columns], left, rejects)

    def _text(self, typed_values: Sequence[Any], row: Sequence[Any]) -> str:
        values = {
            a.name: as_text(original) if value is None and original is not None else value
            for a, value, original in zip(self._schema, typed_values, row, strict=True)
            if original is not None or not self.fails_on_null
        }
        return json.dumps(values, ensure_ascii=False)


def typed_column(values: Sequence[Any], type: Type) -> tuple[pa.Array, Array | None]:
    """A driver's values as a column, and a mask of the values that do not fit (null there); None if all do.

    Values are converted as in feeds (`ingest.convert`). A truth value may be a number, as in MySQL, and a
    text is written as Java's `toString` writes it.
    """
    if type is Type.STRING:
        bad = np.array([isinstance(v, bytes | UnreadValue) for v in values], np.bool_)
        texts = [None if v is None or isinstance(v, bytes | UnreadValue) else as_text(v) for v in values]
        return pa.array(texts, pa.string()), bad if bad.any() else None
    if type is Type.BOOL:
        values = [_TRUTH.get(v, v) if isinstance(v, int | bytes) else v for v in values]
    try:
        return _convert_values(values, type)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):  # values of several kinds, or too large ones
        typed_values = [_alone(v, type) for v in values]
    bad = np.array([f is None and v is not None for f, v in zip(typed_values, values, strict=True)], np.bool_)
    return pa.array(typed_values, ARROW[type]), bad if bad.any() else None


_TRUTH: Mapping[Any, bool] = {0: False, 1: True, b"\0": False, b"\1": True}
"""Truth values of MySQL's TINYINT and BIT(1)."""


def _convert_values(values: Sequence[Any], type: Type) -> tuple[pa.Array, Array | None]:
    source = pa.array(values)
    kind = source.type
    if pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_binary(kind):  # these are no numbers
        return pa.nulls(len(source), ARROW[type]), ~np.asarray(source.is_null())
    return ingest.convert(source, type)


def _misfit(name: str, type: Type, value: Any) -> str:
    """Why a value is none of the attribute `name`."""
    if isinstance(value, UnreadValue):
        return f"{name}: {shown(value.text)} cannot be read: {value.why}"
    return misfit(name, type, value)


def _alone(value: Any, type: Type) -> Any:
    """One value as one of `type`; None if it does not fit."""
    try:
        typed_values, _ = _convert_values([value], type)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        return None
    return typed_values[0].as_py()


def as_text(value: Any) -> str:
    """A value as the text that JDBC's class for it gives: a time as `2024-01-31 10:00:00.0`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        fraction = f"{value.microsecond:06}".rstrip("0") or "0"
        return f"{value.replace(tzinfo=None).isoformat(' ', 'seconds')}.{fraction}"
    if isinstance(value, dt.timedelta):  # MySQL's TIME
        return str(value).zfill(8)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)

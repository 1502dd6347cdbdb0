"""Stateless stream functions: they drop an event or turn it into several, and add attributes.

A stream function is a row of `STREAM_FUNCTIONS`: called with the rows, its evaluated arguments, the dictionary and a
callable that marks failing rows, it returns the rows that continue (an index that may repeat rows; None: all, each
once), the columns it adds to them, and lines for the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...types import Type
from ..columnar.column_data import Array, Column, Mask, StringPool
from ..columnar.rows import Rows
from ..expressions.distinct_rows import distinct
from ..expressions.function_checks import reason_of
from ..expressions.functions.jsons import find
from ..expressions.java_texts import object_text, text
from ..expressions.java_values import RowFailure, boxes
from ..expressions.javaregex import split
from ..expressions.jsonpath import NotFound
from ..expressions.jsontext import write_gson
from ..expressions.objects import walk

Fail = Callable[[Mask, str], None]
Result = tuple[Array | None, list[Column], list[str]]

PRIORITIES = ("INFO", "DEBUG", "WARN", "FATAL", "ERROR", "OFF", "TRACE")


class FailedRow(Exception):
    """Raised if failing rows cannot be recorded."""


def _raise(mask: Mask, message: str) -> None:
    raise FailedRow(message)


class StreamFunction(Protocol):
    """See the module; `fail` is called with a mask over the rows that came in."""

    def __call__(self, rows: Rows, args: Sequence[Column], strings: StringPool, fail: Fail = _raise) -> Result: ...


def _mark_rows(n: int, rows: list[int]) -> Mask:
    mask = np.zeros(n, np.bool_)
    mask[rows] = True
    return mask


def _values(columns: Sequence[Column], strings: StringPool) -> list[tuple[Any, ...]]:
    """The arguments row by row, boxed."""
    lists = [boxes(c.type, c.to_list(strings)) for c in columns]
    return list(zip(*lists, strict=True))


# --------------------------------------------------------------------------------------------------------- pol2Cart


def _pol2cart(rows: Rows, args: Sequence[Column], strings: StringPool, fail: Fail = _raise) -> Result:
    """x and y of the angle theta (degrees) and the distance rho, and z as it is (`Pol2CartStreamFunctionProcessor`)."""
    theta, rho = args[:2]
    index = None
    null = theta.nulls() | rho.nulls()
    if null.any():
        fail(null, "an angle or a distance of pol2Cart() is null")
        index = np.flatnonzero(~null)
        args = [a.take(index) for a in args]
        theta, rho = args[:2]
    angle = np.radians(theta.values)
    x, y = rho.values * np.cos(angle), rho.values * np.sin(angle)
    return index, [Column(Type.DOUBLE, x), Column(Type.DOUBLE, y), *args[2:]], []


# --------------------------------------------------------------------------------------------------------- tokenize


def _tokenizer(types: tuple[Type, ...], tokens: Callable[..., list[tuple[Any, ...]]]) -> StreamFunction:
    """A function that makes one event of each of an event's tokens; `tokens` answers the appended values of each."""

    def run(rows: Rows, args: Sequence[Column], strings: StringPool, fail: Fail = _raise) -> Result:
        first, inverse = distinct(args, strings, len(rows))
        all_tokens: list[tuple[Any, ...]] = []
        counts = np.zeros(len(first), np.int64)
        failures: dict[str, list[int]] = {}
        for i, values in enumerate(_values([a.take(first) for a in args], strings)):
            try:
                row_tokens = tokens(*values)
            except Exception as e:  # whatever one event raises is that event's error
                failures.setdefault(reason_of(e), []).append(i)
                continue
            counts[i] = len(row_tokens)
            all_tokens.extend(row_tokens)
        which = np.arange(len(rows)) if inverse is None else inverse
        for message, where in failures.items():
            fail(np.isin(which, where), message)
        index = np.repeat(np.arange(len(rows)), counts[which])
        # The tokens of a row lie together; where they begin, less how many came out before, tells each one's place.
        begins, before = np.cumsum(counts) - counts, np.cumsum(counts[which]) - counts[which]
        place = np.arange(len(index)) + (begins[which] - before)[index]
        columns = [Column.of(t, [m[k] for m in all_tokens], strings).take(place) for k, t in enumerate(types)]
        return index, columns, []

    return run


def _words(value: str | None, pattern: str, distinct: bool = False) -> list[tuple[Any, ...]]:
    if value is None:
        raise RowFailure("the string of str:tokenize() is null")
    words = split(value, pattern)
    return [(w,) for w in (dict.fromkeys(words) if distinct else words)]


def _elements(json: Any, path: str | None, is_required: bool) -> tuple[list[Any], bool]:
    """Values that a path finds, item by item, and whether it found a list. A number or a boolean alone is no token; a
    path without a value gives a null unless `is_required`.
    """
    try:
        value = find(json, path)
    except NotFound:
        value = None
    if value is None or value == []:
        return [] if is_required else [None], False
    if isinstance(value, list):
        return value, True
    return [value] if isinstance(value, dict | str) else [], False


def _json_text(json: Any, path: str | None, is_required: bool = True) -> list[tuple[Any, ...]]:
    """A text or null found alone stays as it is; all else is written as JSON."""
    elements, several = _elements(json, path, is_required)
    return [(e if not several and (e is None or isinstance(e, str)) else write_gson(e),) for e in elements]


def _json_object(json: Any, path: str | None, is_required: bool = True) -> list[tuple[Any, ...]]:
    return [(e,) for e in _elements(json, path, is_required)[0]]


def _entries(*maps: Any) -> list[tuple[Any, ...]]:
    for i, m in enumerate(maps):
        if not isinstance(m, dict):
            raise RowFailure(f"argument {i + 1} of map:tokenize() is not a map but {object_text(m)}")
    if len(maps) == 1:
        return [(k, maps[0][k]) for k in walk(maps[0])]
    keys = dict.fromkeys(k for m in maps for k in walk(m))
    return [(k, [m.get(k) for m in maps]) for k in keys]


def _items(*lists: Any) -> list[tuple[Any, ...]]:
    for i, items in enumerate(lists):
        if not isinstance(items, list):
            raise RowFailure(f"argument {i + 1} of list:tokenize() is not a list but {object_text(items)}")
    if len(lists) == 1:
        return list(enumerate(lists[0]))
    longest = max(map(len, lists))
    return [(i, [items[i] if i < len(items) else None for items in lists]) for i in range(longest)]


# -------------------------------------------------------------------------------------------------------------- log


def _log(rows: Rows, args: Sequence[Column], strings: StringPool, fail: Fail = _raise) -> Result:
    """A line an event: `[priority,] [message][, whether the event is shown]` (`LogStreamProcessor`)."""
    texts = [a for a in args if a.type is Type.STRING]
    show_column = next((a for a in args if a.type is Type.BOOL), None)
    data = [c.to_list(strings) for c in rows.columns]
    kinds = [c.type for c in rows.columns]
    stamps = rows.ts.tolist()
    priorities = texts[0].to_list(strings) if len(texts) == 2 else ["INFO"] * len(rows)
    messages = texts[-1].to_list(strings) if texts else None
    show = show_column.values.tolist() if show_column is not None else [True] * len(rows)
    lines, bad_rows = [], []
    for i, stamp in enumerate(stamps):
        priority = (priorities[i] or "").upper()
        if priority not in PRIORITIES:
            bad_rows.append(i)
            continue
        if priority == "OFF":
            continue
        parts = [] if messages is None else [text(Type.STRING, messages[i])]
        if show[i]:
            event = ", ".join(text(k, column[i]) for k, column in zip(kinds, data, strict=True))
            parts.append(f"Event{{timestamp={stamp}, data=[{event}]}}")
        lines.append(f"{priority}: {', '.join(parts) or 'Event Arrived'}")
    if not bad_rows:
        return None, [], lines
    bad = _mark_rows(len(rows), bad_rows)
    fail(bad, f"the priority of log() must be one of {', '.join(PRIORITIES)}")
    return np.flatnonzero(~bad), [], lines


# ------------------------------------------------------------------------------------------------------- throughput


def _pass_on(rows: Rows, args: Sequence[Column], strings: StringPool, fail: Fail = _raise) -> Result:
    """Every event as it is (`CalculatePerformanceStreamProcessorExtension`, which also writes files of figures)."""
    return None, [], []


STREAM_FUNCTIONS: Mapping[str, StreamFunction] = {
    "json:tokenize": _tokenizer((Type.STRING,), _json_text),
    "json:tokenizeAsObject": _tokenizer((Type.OBJECT,), _json_object),
    "list:tokenize": _tokenizer((Type.INT, Type.OBJECT), _items),
    "log": _log,
    "map:tokenize": _tokenizer((Type.OBJECT, Type.OBJECT), _entries),
    "pol2Cart": _pol2cart,
    "str:tokenize": _tokenizer((Type.STRING,), _words),
    "throughput:throughput": _pass_on,
}

"""The choice of what a frame's figure shows: the columns of both axes, and the column that parts its lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types as dtypes

from ..errors import Misuse, nearest, shown
from .point_store import MOST_SERIES, looks_like_time

ChartKind = Literal["line", "bar", "points"]
CHART_KINDS: tuple[ChartKind, ...] = ("line", "bar", "points")
_TIMES = ("AGG_TIMESTAMP", "AGG_EVENT_TIMESTAMP", "AGG_LAST_EVENT_TIMESTAMP", "event_timestamp", "timestamp")
"""Columns of times in ms that answers have, the first one that is there first."""
_OWNERS = ("SHARD_ID", "event_node", "node")
"""Columns that name a shard or a node."""


@dataclass(frozen=True)
class FramePlot:
    """The columns of a figure: `y` over `x`, a line for each value of `by`; None: chosen by `resolve`."""

    y: str | Sequence[str] | None = None
    by: str | None = None
    x: str | None = None
    kind: ChartKind = "line"


@dataclass(frozen=True)
class ChosenColumns:
    """The columns of a figure. `x` None: the number of the row. `over_time`: `x` has datetimes, or ms since 1970."""

    y: tuple[str, ...]
    by: str | None
    x: str | None
    over_time: bool


def resolve(frame: pd.DataFrame, plot: FramePlot) -> ChosenColumns:
    """The columns asked for. By default x is the time of the events or buckets, y all other numbers, and there is a
    line for each shard or node, or for each value of the only column of texts.

    Raises `Misuse` for an unknown column, a y that is no number, and a frame without rows or numbers.
    """
    names = [str(c) for c in frame.columns]
    if plot.kind not in CHART_KINDS:
        raise Misuse(f"kind is 'line', 'bar' or 'points', not {shown(plot.kind)}")
    y_names = [plot.y] if isinstance(plot.y, str) else list(plot.y or ())
    for what, name in (("x", plot.x), ("by", plot.by), *(("y", n) for n in y_names)):
        if name is not None and name not in names:
            raise Misuse(nearest(f"{what}: there is no column '{name}'", name, names))
    if not len(frame):
        raise Misuse("there is nothing to draw: no rows")
    x = plot.x if plot.x is not None else _time_column(frame, {plot.by, *y_names})
    numeric = [n for n in names if is_number_column(frame[n])]
    for name in y_names:
        if name not in numeric:
            numbers_hint = f"the numbers are {', '.join(numeric)}" if numeric else "there are no numbers"
            raise Misuse(f"y: the column '{name}' has no numbers; {numbers_hint}")
    by = plot.by if plot.by is not None else _grouping_column(frame, {x, *y_names})
    y = y_names or [n for n in numeric if n not in (x, by, *_TIMES)]
    if not y:
        raise Misuse(f"there is no column of numbers to draw: the columns are {', '.join(names)}")
    return ChosenColumns(tuple(dict.fromkeys(y)), by, x, x is not None and is_time_column(frame[x]))


def numbers_of(column: pd.Series[Any]) -> NDArray[np.float64]:
    """A column of numbers as float64, NaN for null."""
    numbers: NDArray[np.float64] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def is_number_column(column: pd.Series[Any]) -> bool:
    """True if a column holds numbers, and nulls perhaps."""
    if dtypes.is_bool_dtype(column.dtype):
        return False
    if dtypes.is_numeric_dtype(column.dtype):
        return True
    if column.dtype != object:
        return False
    values = [v for v in column.tolist() if v is not None]
    return bool(values) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def is_time_column(column: pd.Series[Any]) -> bool:
    """True for datetimes, for the columns of times that answers have, and for whole numbers that look like ms."""
    if dtypes.is_datetime64_any_dtype(column.dtype):
        return True
    if not is_number_column(column):
        return False
    values = numbers_of(column)
    has_integers = dtypes.is_integer_dtype(column.dtype) or column.name in _TIMES
    return has_integers and (column.name in _TIMES or looks_like_time(values[np.isfinite(values)]))


def _time_column(frame: pd.DataFrame, others: set[str | None]) -> str | None:
    names = [str(c) for c in frame.columns if c not in others]
    time_names = [n for n in _TIMES if n in names and is_number_column(frame[n])]
    return next(iter([*time_names, *(n for n in names if is_time_column(frame[n]))]), None)


def _grouping_column(frame: pd.DataFrame, others: set[str | None]) -> str | None:
    for name in _OWNERS:
        if name in frame.columns and name not in others and frame[name].nunique() > 1:
            return name
    texts = [
        str(c)
        for c in frame.columns
        if c not in (*_OWNERS, *others)
        and (dtypes.is_string_dtype(frame[c].dtype) or frame[c].dtype == object)
        and frame[c].map(lambda v: v is None or isinstance(v, str)).all()
    ]
    return texts[0] if len(texts) == 1 and frame[texts[0]].nunique() <= MOST_SERIES else None

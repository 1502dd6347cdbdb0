"""Rows and events that an app could not take: read from its store, and made into events once more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..engine.batch import InputBatch, StreamRows
from ..errors import Misuse, SparkStreamError, shown
from ..limits import Limits
from ..spark.ingest import columns_of
from ..stores import Store
from ..types import Schema
from .answers import NULLABLE, Errors

ID = "id"


def errors_of(app: str, store: Store) -> Errors:
    """The errors of an app, the oldest first."""
    found = store.errors(app)
    frame = found.to_pandas(types_mapper=NULLABLE.get if found.column("ts").null_count else None)
    frame.columns = pd.Index([ID, "stream", "timestamp", "values", "reason"])
    frame["values"] = [json.loads(v) for v in frame["values"]]
    return Errors(app, frame.set_index(ID))


@dataclass(frozen=True)
class Rejected:
    """A row or an event that was not taken: `at` is its time (ms), None where it has none."""

    id: int
    stream: str
    at: int | None
    values: list[Any]


@dataclass(frozen=True, eq=False)
class Again:
    """The event of an error, as it is sent once more at the time `at` (ms)."""

    id: int
    at: int
    batch: InputBatch


def chosen(known: Errors, errors: pd.DataFrame | Sequence[int] | None, streams: Mapping[str, Schema]) -> list[Rejected]:
    """The errors that are to be sent again: all of streams, those of some ids, or the rows of a frame. Raises `Misuse`
    for others than there are, and for what came in on no stream."""
    frame = known.frame
    if isinstance(errors, pd.DataFrame):
        missing = {"stream", "timestamp", "values"} - set(errors.columns)
        if missing:
            raise Misuse(f"errors lacks the column {min(missing)}: give rows of app.errors.frame")
        wanted = errors
    elif errors is None:
        wanted = frame[frame["stream"].isin(streams)]
    elif isinstance(errors, str) or not all(isinstance(e, int | np.integer) for e in errors):
        raise Misuse(f"errors is a frame, or ids of app.errors.frame, not {shown(errors)}")
    else:
        wanted = frame.loc[[e for e in errors if e in frame.index]]
    asked = list(wanted.index if isinstance(errors, pd.DataFrame) or errors is None else errors)
    for id in asked:
        if id not in frame.index:
            raise Misuse(f"there is no error {id}: %siddhi errors {known.app} shows their ids")
    out = []
    columns = (wanted[name] for name in ("stream", "timestamp", "values"))
    for id, stream, at, values in zip(wanted.index, *columns, strict=True):
        if stream not in streams:
            raise Misuse(f"error {id} is of {stream}, which is no stream: there is no event to be sent again")
        out.append(Rejected(int(id), stream, None if pd.isna(at) else int(at), list(values)))
    return out


def again(error: Rejected, schema: Schema, now: int, limits: Limits) -> Again:
    """An error as an event of its stream; one without a time has `now` (ms). Raises SparkStreamError where its values
    do not fit."""
    at = now if error.at is None else error.at
    values = [*error.values, *[None] * (len(schema) - len(error.values))]
    try:
        columns = columns_of(schema, [values], error.stream, limits)
    except SparkStreamError as e:
        raise SparkStreamError(f"error {error.id}: {e}") from None
    step = np.zeros(1, np.int64)
    times = np.array([at], np.int64)
    return Again(error.id, at, InputBatch(times, {error.stream: StreamRows(step, times, columns)}))

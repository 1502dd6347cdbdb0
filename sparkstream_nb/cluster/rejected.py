"""Rows and events that an app could not take: read from its store, and made into events once more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..engine.batch import InputBatch, StreamRows
from ..engine.columns import Array
from ..errors import Misuse, SparkStreamError, shown
from ..limits import Limits
from ..mapping.decoding import KEPT
from ..spark.ingest import columns_of
from ..spark.sources.intake import event_times
from ..stores import Store
from ..types import Schema
from .answers import NULLABLE, Errors
from .sources import MessageReader

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
    """A row, an event or a message that was not taken: `at` is its time (ms), None where it has none. `values` of a
    message are its `source` and its text, `message`."""

    id: int
    stream: str
    at: int | None
    values: list[Any] | dict[str, str]


@dataclass(frozen=True)
class Given:
    """What an error needs to be sent again: the time of `now` (ms), limits, and what reads a source's messages."""

    now: int
    limits: Limits
    messages_of: Callable[[str], MessageReader | None]


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
        kept = values if isinstance(values, dict) else list(values)
        out.append(Rejected(int(id), stream, None if pd.isna(at) else int(at), kept))
    return out


def again(error: Rejected, schema: Schema, given: Given) -> Again:
    """An error as an event of its stream, or as those of its message; one without a time has that of now. Raises
    SparkStreamError where its values do not fit."""
    at = given.now if error.at is None else error.at
    if isinstance(error.values, dict):
        columns, times = _read_again(error, error.values, given, at)
    else:
        values = [*error.values, *[None] * (len(schema) - len(error.values))]
        try:
            columns = columns_of(schema, [values], error.stream, given.limits)
        except SparkStreamError as e:
            raise SparkStreamError(f"error {error.id}: {e}") from None
        times = np.full(1, at, np.int64)
    step = np.zeros(len(times), np.int64)
    return Again(error.id, int(times[-1]), InputBatch(times[-1:], {error.stream: StreamRows(step, times, columns)}))


def _read_again(error: Rejected, values: dict[str, str], given: Given, at: int) -> tuple[list[Any], Array]:
    """The columns and times of a message's events. Raises SparkStreamError where it still cannot be read."""
    source = values.get("source", "")
    reader = given.messages_of(source)
    if reader is None:
        raise SparkStreamError(f"error {error.id}: the app has no source {source} now, which read this message")
    message = str(values.get("message", ""))
    if len(message) == KEPT and message.endswith("…"):
        raise SparkStreamError(f"error {error.id}: {KEPT:,} characters of the message are kept: give it whole")
    found = reader.decoder.decode([message.encode("utf-8", "replace")])
    if found.rejected or not len(found):
        reason = found.rejected[0].reason if found.rejected else "it has no event"
        raise SparkStreamError(f"error {error.id}: {reason}")
    if reader.time is None:
        return found.columns, np.full(len(found), at, np.int64)
    times, bad = event_times(found.columns[reader.time], None)
    if bad:
        raise SparkStreamError(f"error {error.id}: {next(iter(bad.values()))}")
    return found.columns, times

"""Rows and events that an app could not take: read from its store, and made into events once more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...durations import describe_time
from ...engine.columnar.column_data import Array
from ...engine.state.node_batch import InputBatch, StreamRows
from ...errors import Misuse, SparkStreamError, shown
from ...ingest.ingest import TEXT_OF_ROW, columns_of, event_times, too_late
from ...ingest.value_formats import AS_WRITTEN, ValueFormat
from ...limits import Limits
from ...mapping.decoding import KEPT, message_of
from ...outputs.output_files import series_of
from ...sources.feeds import NOT_KEPT
from ...stores import Store
from ...types import Schema
from ...wording import choose_words
from ..connectors.sources import MessageReader
from ..deployment.deployment import milliseconds
from .answers import Errors

ID = "id"
_SHOWN = 10
"""Reasons that are written out."""


def errors_of(app: str, store: Store) -> Errors:
    """The errors of an app, the oldest first."""
    error_table = store.errors(app)
    names = [ID, "stream", "timestamp", "values", "reason"]
    frame = pd.DataFrame(dict(zip(names, map(series_of, error_table.columns), strict=True)))
    frame["values"] = [json.loads(v) for v in frame["values"]]
    return Errors(app, frame.set_index(ID))


@dataclass(frozen=True)
class Rejected:
    """A row, an event or a message that was not taken: `at` is its time (ms), None if it has none. `values` of a
    message are its `source`, its text, `message`, and the transport properties that its mapping reads, `properties`;
    of a row of a file that is not whole, its text, `row`."""

    id: int
    stream: str
    at: int | None
    values: list[Any] | dict[str, Any]


@dataclass(frozen=True)
class ReplayContext:
    """The context for sending an error again: the time of `now` and the latest accepted time (ms; None: all are
    accepted), limits, and the decoders of a source's messages.
    """

    now: int
    latest: int | None
    limits: Limits
    messages_of: Callable[[str], MessageReader | None]
    value_format: ValueFormat = AS_WRITTEN


@dataclass(frozen=True)
class Replayed:
    """The outcome of replayed errors: the number sent, and why others are still on the list, by id.
    `timeless` of them had no time, and got `now` (ms)."""

    app: str
    sent: int
    left: Mapping[int, str]
    timeless: int = 0
    now: int = 0

    def __repr__(self) -> str:
        lines = [f"{self.sent:,} of the errors of {self.app} sent again"]
        if self.left:
            lines[0] += f", {len(self.left):,} cannot be and {'stays' if len(self.left) == 1 else 'stay'} on the list:"
            lines += [f"  error {id}: {why}" for id, why in [*self.left.items()][:_SHOWN]]
            if len(self.left) > _SHOWN:
                lines.append(f"  and {len(self.left) - _SHOWN:,} more")
        if self.timeless:
            has = "has" if self.timeless == 1 else "have"
            lines.append(
                f"{self.timeless:,} had no time, and {has} that of the app's clock, {describe_time(self.now)}: give a "
                "time in the column timestamp"
            )
        return "\n".join(lines)


def select_errors(
    all_errors: Errors, errors: pd.DataFrame | Sequence[int] | None, streams: Mapping[str, Schema]
) -> list[Rejected]:
    """The errors that are to be sent again: all of streams, the ones with some ids, or the rows of a frame. Raises
    `Misuse` for unknown ids, and for errors whose events came in on no stream.
    """
    frame = all_errors.frame
    if isinstance(errors, pd.DataFrame):
        missing = {"stream", "timestamp", "values"} - set(errors.columns)
        if missing:
            raise Misuse(f"errors lacks the column {min(missing)}: give rows of app.errors.frame")
        selection = errors
    elif errors is None:
        selection = frame[frame["stream"].isin(streams)]
    elif isinstance(errors, str) or not all(isinstance(e, int | np.integer) for e in errors):
        raise Misuse(f"errors is a frame, or ids of app.errors.frame, not {shown(errors)}")
    else:
        selection = frame.loc[[e for e in errors if e in frame.index]]
    numbers = list(selection.index if isinstance(errors, pd.DataFrame) or errors is None else errors)
    for id in numbers:
        if id not in frame.index:
            where = choose_words(f"%siddhi errors {all_errors.app}", "app.errors")
            raise Misuse(f"there is no error {id}: {where} shows their ids")
    out = []
    columns = (selection[name] for name in ("stream", "timestamp", "values"))
    for id, stream, at, values in zip(selection.index, *columns, strict=True):
        if stream not in streams:
            raise Misuse(f"error {id} is of {stream}, which is no stream: there is no event to be sent again")
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            each = f"a list, one for each attribute of {stream}"
            raise Misuse(f"the values of error {id} are {each}, not {shown(values)}")
        values_copy = values if isinstance(values, dict) else list(values)
        out.append(Rejected(int(id), stream, _time_of(int(id), at), values_copy))
    return out


def _time_of(id: int, at: Any) -> int | None:
    """The time (ms) in a frame of errors, also as a text or a pandas timestamp. Raises `Misuse` for anything else."""
    if at is None or pd.isna(at):
        return None
    plain = at.to_pydatetime() if isinstance(at, pd.Timestamp) else int(at) if isinstance(at, np.integer) else at
    return milliseconds(int(plain) if isinstance(plain, float) else plain, f"the timestamp of error {id}")


def to_events(error: Rejected, schema: Schema, context: ReplayContext) -> InputBatch:
    """An error as an event of its stream, or as the events of its message; one without a time gets the present time.
    Raises SparkStreamError if its values do not fit."""
    at = context.now if error.at is None else error.at
    if isinstance(error.values, dict):
        _check_event(error.values)
        columns, times = _read_again(error.values, context, at)
    else:
        values = [*error.values, *[None] * (len(schema) - len(error.values))]
        if len(values) == len(schema):
            values = [
                context.value_format.value(v, a.type) if isinstance(v, str) else v
                for v, a in zip(values, schema, strict=True)
            ]
        columns, times = columns_of(schema, [values], error.stream, context.limits), np.full(1, at, np.int64)
    if context.latest is not None and times[-1] > context.latest:
        raise SparkStreamError(too_late(int(times[-1]), context.latest))
    step = np.zeros(len(times), np.int64)
    return InputBatch(times[-1:], {error.stream: StreamRows(step, times, columns)})


def _check_event(values: Mapping[str, Any]) -> None:
    """Raises SparkStreamError for an error that is no event, but counts rows, or has the text of one."""
    if NOT_KEPT in values:
        raise SparkStreamError("these rows are not kept: mend them in their file or frame, and feed them again")
    if TEXT_OF_ROW in values:
        raise SparkStreamError("it is the text of a row that is not whole: give its values as a list")


def _read_again(values: dict[str, Any], context: ReplayContext, at: int) -> tuple[list[Any], Array]:
    """The columns and times of a message's events. Raises SparkStreamError if it still cannot be read."""
    source = str(values.get("source", ""))
    reader = context.messages_of(source)
    if reader is None:
        raise SparkStreamError(f"the app has no source {source} now, which read this message")
    message = str(values.get("message", ""))
    if len(message) == KEPT and message.endswith("…"):
        raise SparkStreamError(f"{KEPT:,} characters of the message are kept: give it whole")
    properties = values.get("properties") or {}
    if not isinstance(properties, dict):
        raise SparkStreamError(f"its properties are a dict, not {shown(properties)}")
    headers = {str(k): str(v) for k, v in properties.items()}
    decoded_rows = reader.decoder.decode([message_of(message)], [headers])
    if decoded_rows.rejected or not len(decoded_rows):
        raise SparkStreamError(decoded_rows.rejected[0].reason if decoded_rows.rejected else "it has no event")
    if reader.time is None:
        return decoded_rows.columns, np.full(len(decoded_rows), at, np.int64)
    times, bad = event_times(decoded_rows.columns[reader.time], None)
    if bad:
        raise SparkStreamError(next(iter(bad.values())))
    return decoded_rows.columns, times

"""Parts of input batches, by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import InputBatch, StreamRows, UnreadAttribute


def between(batch: InputBatch, first: int, end: int) -> InputBatch:
    """The steps from number `first` to before `end`."""
    rows = {}
    for stream, r in batch.rows.items():
        low, high = np.searchsorted(r.step, [first, end]).tolist()
        if low < high:
            rows[stream] = StreamRows(r.step[low:high] - first, r.ts[low:high], [c[low:high] for c in r.columns])
    return InputBatch(batch.clock[first:end], rows)


def mask_events(batch: InputBatch, mask: Array) -> InputBatch:
    """All steps, with the events of those alone that the `mask` (bool, one for each step) has."""
    if mask.all():
        return batch
    rows = {}
    for stream, r in batch.rows.items():
        index = np.flatnonzero(mask[r.step])
        if len(index):
            rows[stream] = r.take(index)
    return InputBatch(batch.clock, rows)


def pick_steps(batch: InputBatch, steps: Array) -> InputBatch:
    """Select `steps` (bool, one for each) with their events."""
    masked_batch = mask_events(batch, steps)
    place = np.cumsum(steps) - 1
    rows = {s: StreamRows(place[r.step], r.ts, r.columns) for s, r in masked_batch.rows.items()}
    return InputBatch(batch.clock[steps], rows)


def events_by_step(batch: InputBatch) -> Array:
    """Number of events of each step, int64."""
    counts = np.zeros(len(batch.clock), np.int64)
    for r in batch.rows.values():
        counts += np.bincount(r.step, minlength=len(counts))
    return counts


def rows_in_order(parts: Sequence[StreamRows]) -> StreamRows:
    """Rows of one stream in order of their steps; rows of equal steps in the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    step = np.concatenate([p.step for p in parts])
    ts = np.concatenate([p.ts for p in parts])
    columns = [concat_coded(cs) for cs in zip(*(p.columns for p in parts), strict=True)]
    return StreamRows(step, ts, columns).take(np.argsort(step, kind="stable"))


def concat_coded(columns: Sequence[Any]) -> Any:
    """Columns one after the other, with one dictionary where each has one: to reorder codes costs less than texts."""
    if all(isinstance(c, pa.DictionaryArray) for c in columns) and len({c.type for c in columns}) == 1:
        return pa.concat_arrays(pa.chunked_array(columns).unify_dictionaries().chunks)
    return concat_columns(columns)


def concat_columns(columns: Sequence[Any]) -> Any:
    """Columns of `StreamRows` one after the other: arrays as an array; lists of objects, and arrays of different types,
    as a list. An attribute left out of one of them is left out.
    """
    if any(isinstance(c, UnreadAttribute) for c in columns):
        return UnreadAttribute(sum(map(len, columns)))
    if all(isinstance(c, pa.Array) for c in columns):
        plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns]
        if len({c.type for c in plain}) == 1:
            return pa.concat_arrays(plain)
        columns = plain
    return [v for c in columns for v in (c if isinstance(c, list) else c.to_pylist())]

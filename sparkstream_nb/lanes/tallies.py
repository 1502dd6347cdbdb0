"""Outputs of nodes, counted against those of one node that takes everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.batch import Emitted


@dataclass(frozen=True)
class Tally:
    """How the outputs of a stream compare with one node's."""

    same: int = 0
    lost: int = 0
    spurious: int = 0
    duplicated: int = 0


def _plain(column: Any) -> pa.Array:
    """A column without a dictionary of its own; objects as texts that are equal where they are."""
    if isinstance(column, list):
        return pa.array([None if v is None else repr(v) for v in column], pa.string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_floating(column.type):
        return pc.add(column, pa.scalar(0.0, column.type))  # -0.0 is 0.0
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def table_of(emitted: Emitted) -> pa.Table:
    """A row for each output: its own time `ts` (ms), its values as v0, v1 ..."""
    columns = [pa.array(emitted.ts), *map(_plain, emitted.columns)]
    return pa.table(columns, ["ts", *(f"v{i}" for i in range(len(emitted.columns)))])


def tally(truth: pa.Table | None, found: pa.Table | None) -> Tally:
    """Counts two bags of outputs against each other, row by row."""
    if truth is None or found is None:
        return Tally(lost=0 if truth is None else len(truth), spurious=0 if found is None else len(found))
    both = pa.concat_tables([_marked(truth, 1, 0), _marked(found, 0, 1)])
    keys = [n for n in both.column_names if n not in ("true", "found")]
    counts = both.group_by(keys, use_threads=False).aggregate([("true", "sum"), ("found", "sum")])
    t, f = (counts.column(f"{n}_sum").to_numpy() for n in ("true", "found"))
    more = np.maximum(f - t, 0)
    return Tally(
        same=int(np.minimum(t, f).sum()),
        lost=int(np.maximum(t - f, 0).sum()),
        spurious=int(more[t == 0].sum()),
        duplicated=int(more[t > 0].sum()),
    )


def _marked(table: pa.Table, true: int, found: int) -> pa.Table:
    one, other = (pa.array(np.full(len(table), v, np.int64)) for v in (true, found))
    return table.append_column("true", one).append_column("found", other)

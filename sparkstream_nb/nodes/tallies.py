"""Outputs of nodes, compared with the outputs of one node that takes everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import Emitted


@dataclass(frozen=True)
class Tally:
    """Comparison of a stream's outputs with one node's."""

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


def table_of(events: Emitted) -> pa.Table:
    """A row for each output: its own time `ts` (ms), its values as v0, v1 ..."""
    columns = [pa.array(events.ts), *map(_plain, events.columns)]
    return pa.table(columns, ["ts", *(f"v{i}" for i in range(len(events.columns)))])


def tally(truth: pa.Table | None, outputs: pa.Table | None) -> Tally:
    """Counts two bags of outputs against each other, row by row."""
    if truth is None or outputs is None:
        return Tally(lost=0 if truth is None else len(truth), spurious=0 if outputs is None else len(outputs))
    return _tally_counts(_counts(pa.concat_tables([_mark_found(truth, 1, 0), _mark_found(outputs, 0, 1)])))


def tally_close(truth: pa.Table | None, outputs: pa.Table | None) -> Tally:
    """The same, where doubles are equal up to the order in which they were added: a node that has other events behind
    it adds in another order. Two that differ by much less than 1e-9 of their size fall on one point of a grid, or,
    where a border is between them, on one of a second grid that is half a step further on."""
    if truth is None or outputs is None or not any(map(pa.types.is_floating, truth.schema.types)):
        return tally(truth, outputs)
    rest = _counts(pa.concat_tables([_mark_found(truth, 1, 0), _mark_found(outputs, 0, 1)]))
    matches = []
    for shift in (0.0, 0.5):
        t, f = _columns(rest)
        matches.append(rest.filter(pa.array(t == f)).select(["true", "found"]))
        rest = _join_counts(rest.filter(pa.array(t != f)), shift)
    return _tally_counts(pa.concat_tables([*matches, rest.select(["true", "found"])]))


def _counts(both: pa.Table) -> pa.Table:
    """Equal rows as one: how many of them one node has, `true`, and how many the others, `found`."""
    keys = [n for n in both.column_names if n not in ("true", "found")]
    counts = both.group_by(keys, use_threads=False).aggregate([("true", "sum"), ("found", "sum")])
    return counts.select([*keys, "true_sum", "found_sum"]).rename_columns([*keys, "true", "found"])


def _join_counts(counts: pa.Table, shift: float) -> pa.Table:
    """Rows whose doubles share their points of a grid as one, with the doubles of the first of them."""
    doubles = [n for n, t in zip(counts.column_names, counts.schema.types, strict=True) if pa.types.is_floating(t)]
    others = [n for n in counts.column_names if n not in (*doubles, "true", "found")]
    points = [f"point {n}" for n in doubles]
    for name, point in zip(doubles, points, strict=True):
        counts = counts.append_column(point, _on_grid(counts.column(name), shift))
    aggregations = [(n, "first") for n in doubles] + [("true", "sum"), ("found", "sum")]
    sums = counts.group_by([*others, *points], use_threads=False).aggregate(aggregations)
    names = [*others, *(f"{n}_first" for n in doubles), "true_sum", "found_sum"]
    return sums.select(names).rename_columns([*others, *doubles, "true", "found"])


def _on_grid(column: pa.ChunkedArray, shift: float) -> pa.Array:
    """Doubles rounded to thirty bits; nulls and infinite values do not change."""
    values = column.to_numpy().astype(np.float64)
    mantissa, exponent = np.frexp(values)
    points = np.ldexp(np.floor(np.ldexp(mantissa, 30) + shift), exponent - 30)
    points = np.where(np.isfinite(values), points, values)
    return pa.array(points, mask=column.is_null().to_numpy())


def _columns(counts: pa.Table) -> tuple[Array, Array]:
    return counts.column("true").to_numpy(), counts.column("found").to_numpy()


def _tally_counts(counts: pa.Table) -> Tally:
    t, f = _columns(counts)
    more = np.maximum(f - t, 0)
    return Tally(
        same=int(np.minimum(t, f).sum()),
        lost=int(np.maximum(t - f, 0).sum()),
        spurious=int(more[t == 0].sum()),
        duplicated=int(more[t > 0].sum()),
    )


def _mark_found(table: pa.Table, true: int, output: int) -> pa.Table:
    one, other = (pa.array(np.full(len(table), v, np.int64)) for v in (true, output))
    return table.append_column("true", one).append_column("found", other)

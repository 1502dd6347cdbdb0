"""The figures of an app as Arrow tables, for SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from ...journal.throughput import BatchFigures
from ...sinks.delivery import SinkFigures
from ...sources.intake import SourceFigures
from .answers import NodeStats, PartStats, Stats

_TYPES = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


@dataclass(frozen=True)
class MetricTable:
    """Figures of an app: their columns, and their rows by `Stats`."""

    columns: pa.Schema
    rows: Callable[[Stats], Iterable[Sequence[Any]]]

    @staticmethod
    def of(row: type, objects: Callable[[Stats], Iterable[Any]]) -> MetricTable:
        """A row for each of some objects of the dataclass `row`, with its numbers and texts."""
        types = {f.name: _TYPES.get(str(f.type).removesuffix(" | None")) for f in fields(row)}
        columns = pa.schema([(name, type) for name, type in types.items() if type is not None])
        return MetricTable(columns, lambda stats: ([getattr(x, n) for n in columns.names] for x in objects(stats)))

    def read(self, stats: Stats) -> pa.Table:
        """The figures."""
        rows = [dict(zip(self.columns.names, row, strict=True)) for row in self.rows(stats)]
        return pa.Table.from_pylist(rows, self.columns)


METRICS: Mapping[str, MetricTable] = {
    "nodes": MetricTable.of(NodeStats, lambda stats: stats.nodes.values()),
    "state": MetricTable(
        pa.schema({"node": pa.string(), "name": pa.string(), "bytes": pa.int64(), "rows": pa.int64()}),
        lambda stats: (
            [node.shard, name, size.bytes, size.rows]
            for node in stats.nodes.values()
            for name, size in node.held.items()
        ),
    ),
    "parts": MetricTable.of(PartStats, lambda stats: stats.parts),
    "sources": MetricTable.of(SourceFigures, lambda stats: stats.sources),
    "sinks": MetricTable.of(SinkFigures, lambda stats: stats.sinks),
    "micro_batches": MetricTable.of(BatchFigures, lambda stats: stats.recent),
}
"""The relations of the schema `metrics`, by name."""

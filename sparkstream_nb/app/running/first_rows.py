"""A look at the first rows of a file before it is fed: a wrong format is seen in a moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ...errors import SparkStreamError
from ...ingest.feed_files import tables_of
from ...ingest.row_typing import RejectedRow, type_rows
from ...sources.feeds import Shape
from ..results.reasons import group_reasons

FIRST_ROWS = 1000
"""Rows that are looked at."""
_MOST_REASONS = 5


def check_first_rows(path: Path, shape: Shape) -> None:
    """Raises SparkStreamError, with the reasons, if none of the first rows of a file fits the stream of `shape`."""
    table = next((t for t in tables_of(path, shape.names) if t.num_rows), None)
    if table is None:
        return
    table = table.slice(0, FIRST_ROWS)
    stream_rows = type_rows(table, shape.schema, shape.row_reading, keep=0)
    if len(stream_rows):
        return
    n = table.num_rows
    rows = "its first row does not fit" if n == 1 else f"none of its first {n:,} rows fits"
    raise SparkStreamError(f"{path.name}: {rows} {shape.stream}. {describe_reasons(stream_rows.rejected, shape)}")


def describe_reasons(rejected_rows: Sequence[RejectedRow], shape: Shape) -> str:
    """The reasons of rejected rows: `ts is not a long: ... (1,000 rows); ...`."""
    counts = Counter(reason for _, _, reason in rejected_rows)
    groups = group_reasons(counts, shape.time_format.example(), shape.columns)
    sentences = [f"{g.words} ({g.count:,} row{'' if g.count == 1 else 's'})" for g in groups[:_MOST_REASONS]]
    more = [f"{len(groups) - _MOST_REASONS} more reasons"] if len(groups) > _MOST_REASONS else []
    return "; ".join([*sentences, *more])

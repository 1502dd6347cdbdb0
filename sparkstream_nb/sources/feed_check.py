"""Checks of a feed before any of it is read: whether there is such a source, and its columns.

A feed that passes may still have rows that do not fit; those are rejected one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import SparkStreamError, near_to
from ..ingest.feed_files import columns_of_file
from ..ingest.ingest import columns_for
from .feeds import Shape


def check_source(source: Any, shape: Shape) -> None:
    """Raise SparkStreamError if `source` cannot be read as a feed of `shape`: no such file or an unreadable one,
    no frame, or one without a column of the stream or the column of event times.
    """
    name = Path(source).name if isinstance(source, str | Path) else "The frame"
    columns = columns_of_source(source, shape.names)
    if shape.time is not None:
        _check_column(name, columns, shape.time, "of event times")
    wanted = {a.name: shape.columns.get(a.name, a.name) for a in shape.schema}
    missing = {attribute: column for attribute, column in wanted.items() if column not in columns}
    if len(missing) > 1 and len(set(columns)) == len(columns) and any(near_to(c, columns) for c in missing.values()):
        raise SparkStreamError(_several(name, columns, missing, shape.stream))
    for attribute in shape.schema:
        column = wanted[attribute.name]
        near = near_to(column, columns)
        hint = _describe_mapping(attribute.name, near[0]) if near else ""
        _check_column(name, columns, column, f"for stream {shape.stream}", hint)


def columns_of_source(source: Any, wanted: Sequence[str] = ()) -> list[str]:
    """The column names of a frame or file; `wanted` are the relevant ones. Raises SparkStreamError if there are none
    to read.
    """
    if isinstance(source, str | Path):
        return columns_of_file(Path(source), wanted)
    if isinstance(source, pa.Table | pa.RecordBatch):
        return list(source.schema.names)
    if isinstance(source, pd.DataFrame) or hasattr(source, "mapInArrow"):
        return [str(c) for c in source.columns]
    raise SparkStreamError(
        f"An object of type {type(source).__name__} cannot be fed: give a pandas, Arrow or Spark frame, "
        "or the path of a .csv or .parquet file."
    )


def _describe_mapping(attribute: str, column: str) -> str:
    return f' Write --map {attribute}="{column}", or columns={{{attribute!r}: {column!r}}}.'


def _several(source: str, columns: list[str], missing: Mapping[str, str], stream: str) -> str:
    """The message for several columns of a stream's attributes that a source lacks, with the probable ones."""
    first = next(iter(missing.values()))
    near = {attribute: near_to(column, columns) for attribute, column in missing.items()}
    maps = [f'--map {a}="{found[0]}"' if found else f"--map {a}=COLUMN" for a, found in near.items()]
    named = ", ".join(f"'{column}'" for column in missing.values())
    listed = columns_for(first, columns)
    return (
        f"{source} has no columns {named} for stream {stream}. {listed[listed.index('Its columns') :]} Write "
        f"{' '.join(maps)}, or columns={{ATTRIBUTE: COLUMN}} in Python."
    )


def _check_column(source: str, columns: list[str], name: str, purpose: str, hint: str = "") -> None:
    if columns.count(name) > 1:
        raise SparkStreamError(f"{source} has {columns.count(name)} columns '{name}': rename all but one.")
    if name not in columns:
        raise SparkStreamError(f"{source} has no column '{name}' {purpose}. {columns_for(name, columns)}{hint}")

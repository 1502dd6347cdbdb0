"""What can be told of a feed before anything of it is read: whether there is such a source, and its columns.

A feed that passes may still have rows that do not fit; those are rejected one by one.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset

from ..errors import SparkStreamError, did_you_mean
from .feeds import Shape

_COLUMNS_SHOWN = 20


def check_source(source: Any, shape: Shape) -> None:
    """Raises SparkStreamError where `source` cannot be read as a feed of `shape`: no such file or an unreadable one,
    no frame, or one that lacks a column of the stream or that of the event times."""
    name = Path(source).name if isinstance(source, str | Path) else "The frame"
    columns = columns_of_source(source)
    if shape.time is not None:
        _check_column(name, columns, shape.time, "of event times")
    for attribute in shape.schema:
        _check_column(name, columns, shape.columns.get(attribute.name, attribute.name), f"for stream {shape.stream}")


def columns_of_source(source: Any) -> list[str]:
    """The column names of a frame or file. Raises SparkStreamError where there are none to read."""
    if isinstance(source, str | Path):
        return _columns_of_file(Path(source))
    if isinstance(source, pa.Table | pa.RecordBatch):
        return list(source.schema.names)
    if isinstance(source, pd.DataFrame) or hasattr(source, "mapInArrow"):
        return [str(c) for c in source.columns]
    raise SparkStreamError(
        f"An object of type {type(source).__name__} cannot be fed: give a pandas, Arrow or Spark frame, "
        "or the path of a .csv or .parquet file."
    )


def _columns_of_file(path: Path) -> list[str]:
    if path.suffix not in (".csv", ".parquet"):
        raise SparkStreamError(f"{path.name} cannot be fed: give a .csv or a .parquet file.")
    try:
        return _parquet_columns(path) if path.suffix == ".parquet" else _csv_columns(path)
    except FileNotFoundError:
        near = did_you_mean(path.name, (p.name for p in path.parent.iterdir())) if path.parent.is_dir() else None
        raise SparkStreamError(f"file not found: {path}" + (f". {near}" if near else "")) from None
    except IsADirectoryError:
        raise SparkStreamError(f"{path} is a folder: name a file in it.") from None
    except OSError as e:
        raise SparkStreamError(f"{path} cannot be read: {e.strerror or e}.") from None


def _parquet_columns(path: Path) -> list[str]:
    try:
        if path.is_dir():  # as Spark writes it
            return list(dataset.dataset(path, format="parquet", partitioning="hive").schema.names)
        with path.open("rb") as file:
            return list(pq.read_schema(file).names)
    except pa.ArrowInvalid:
        raise SparkStreamError(f"{path.name} is not a parquet file, or it is not complete.") from None


def _csv_columns(path: Path) -> list[str]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file), [])
    except UnicodeDecodeError:
        raise SparkStreamError(f"{path.name} is not UTF-8 text: save it as UTF-8.") from None
    except csv.Error as e:
        raise SparkStreamError(f"{path.name}, line 1 is not CSV: {e}.") from None
    if not header:
        raise SparkStreamError(f"{path.name} is empty: its first line must name the columns.")
    return header


def _check_column(source: str, columns: list[str], name: str, purpose: str) -> None:
    if columns.count(name) > 1:
        raise SparkStreamError(f"{source} has {columns.count(name)} columns '{name}': rename all but one.")
    if name not in columns:
        shown = ", ".join(columns[:_COLUMNS_SHOWN]) + (", ..." if len(columns) > _COLUMNS_SHOWN else "")
        hint = did_you_mean(name, columns) or f"Its columns: {shown}."
        raise SparkStreamError(f"{source} has no column '{name}' {purpose}. {hint}")

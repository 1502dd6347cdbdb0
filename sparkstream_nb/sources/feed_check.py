"""Checks of a feed before any of it is read: whether there is such a source, and its columns.

A feed that passes may still have rows that do not fit; those are rejected one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import SparkStreamError, near_to
from ..ingest.column_matching import NO_COLUMN
from ..ingest.feed_files import columns_of_file
from ..ingest.ingest import columns_for
from ..types import Type
from ..wording import choose_words
from .feeds import Shape


def check_source(source: Any, shape: Shape) -> Shape:
    """The shape for the columns of `source`, of which some may be named otherwise (`Shape.fit_columns`).

    Raises SparkStreamError if it cannot be read as a feed: no such file or an unreadable one, no frame, or one without
    a column of the stream or the column of event times.
    """
    name = Path(source).name if isinstance(source, str | Path) else "The frame"
    columns = columns_of_source(source, shape.names)
    shape = shape.fit_columns(columns)
    if shape.time is not None:
        _check_column(name, columns, _Purpose(shape.time, "of event times"))
    columns_by_attribute = {a.name: shape.columns.get(a.name, a.name) for a in shape.schema}
    missing = {a: column for a, column in columns_by_attribute.items() if column not in columns and column != NO_COLUMN}
    probable = {a: _find_probable(a, column, columns, shape) for a, column in missing.items()}
    if len(missing) > 1 and len(set(columns)) == len(columns) and any(probable.values()):
        raise SparkStreamError(_describe_several(name, columns, missing, probable, shape.stream))
    for attribute, column in columns_by_attribute.items():
        if column != NO_COLUMN:
            if attribute in columns and column not in columns and attribute in shape.columns:
                raise SparkStreamError(_describe_other_stream(name, columns, attribute, column, shape.stream))
            purpose = _Purpose(column, f"for stream {shape.stream}", attribute, probable.get(attribute))
            _check_column(name, columns, purpose)
    return shape


def _find_probable(attribute: str, column: str, columns: Sequence[str], shape: Shape) -> str | None:
    """The column that a missing one probably is: of a near name, or for a long that of event times."""
    used_columns = [c for a in shape.schema if (c := shape.columns.get(a.name, a.name)) in columns]
    near = near_to(column, [c for c in columns if c not in used_columns])
    if near:
        return near[0]
    is_long = any(a.name == attribute and a.type is Type.LONG for a in shape.schema)
    return shape.time if is_long and shape.time in columns and shape.time not in used_columns else None


def columns_of_source(source: Any, relevant: Sequence[str] = ()) -> list[str]:
    """The column names of a frame or file, of which the `relevant` ones are enough. Raises SparkStreamError if
    there are none to read.
    """
    if isinstance(source, str | Path):
        return columns_of_file(Path(source), relevant)
    if isinstance(source, pa.Table | pa.RecordBatch):
        return list(source.schema.names)
    if isinstance(source, pd.DataFrame) or hasattr(source, "mapInArrow"):
        return [str(c) for c in source.columns]
    raise SparkStreamError(
        f"An object of type {type(source).__name__} cannot be fed: give a pandas, Arrow or Spark frame, "
        "or the path of a .csv or .parquet file."
    )


def _describe_mapping(attribute: str, column: str | None) -> str:
    null = choose_words(f"--map {attribute}= (without a column)", f"columns={{{attribute!r}: None}}")
    if column is None:
        return f"To feed null: {null}."
    mapping = choose_words(f'--map {attribute}="{column}"', f"columns={{{attribute!r}: {column!r}}}")
    return f"Write {mapping}; {null} feeds null."


def _describe_other_stream(source: str, columns: list[str], attribute: str, column: str, stream: str) -> str:
    """The message for an attribute whose column was named, where the source has one of the attribute's own name."""
    one = choose_words(f'--map STREAM.{attribute}="{column}"', f"columns={{'STREAM.{attribute}': {column!r}}}")
    return (
        f"{source} has no column '{column}' for stream {stream}. {columns_for(column, columns)} It has '{attribute}': "
        f"to name the column for another stream alone, write {one}."
    )


def _describe_several(
    source: str, columns: list[str], missing: Mapping[str, str], probable: Mapping[str, str | None], stream: str
) -> str:
    """The message for several columns of a stream's attributes that a source lacks, with the probable ones."""
    names = ", ".join(f"'{column}'" for column in missing.values())
    maps = " ".join(f'--map {a}="{c}"' if c else f"--map {a}=COLUMN" for a, c in probable.items())
    pairs = ", ".join(f"{a!r}: {c!r}" if c else f"{a!r}: COLUMN" for a, c in probable.items())
    null = choose_words("--map ATTRIBUTE= (without a column)", "None in place of a column")
    return (
        f"{source} has no columns {names} for stream {stream}. {columns_for('', columns)} Write "
        f"{choose_words(maps, f'columns={{{pairs}}}')}; {null} feeds null."
    )


@dataclass(frozen=True)
class _Purpose:
    """A column that is looked for, and what it is for, in words: for an `attribute`, or for event times. `probable`:
    the column that it probably is."""

    name: str
    words: str
    attribute: str | None = None
    probable: str | None = None


def _check_column(source: str, columns: list[str], purpose: _Purpose) -> None:
    name, attribute, probable = purpose.name, purpose.attribute, purpose.probable
    if columns.count(name) > 1:
        raise SparkStreamError(f"{source} has {columns.count(name)} columns '{name}': rename all but one.")
    if name not in columns:
        hint = "" if attribute is None else f" {_describe_mapping(attribute, probable)}"
        nearest_first = name if probable is None or near_to(name, columns)[:1] == [probable] else probable
        candidates = columns_for(nearest_first, columns)
        raise SparkStreamError(f"{source} has no column '{name}' {purpose.words}. {candidates}{hint}")

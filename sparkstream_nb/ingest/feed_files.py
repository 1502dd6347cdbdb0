"""Files as feeds: their columns, their parts, and the rows of a part. Read with pyarrow, in whichever process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset

from ..argument_checks import optional_str
from ..errors import SparkStreamError, did_you_mean
from .csvfile import CsvFile

PART_ROWS = 1_000_000
"""Rows of a parquet file that one task reads, unless one row group is larger."""


@dataclass(frozen=True)
class FilePart:
    """Part of a file that one task reads: all of a CSV file, or consecutive row groups of a parquet file or folder,
    numbered `first` to before `end` through all its files.
    """

    first: int = 0
    end: int | None = None


def columns_of_file(path: Path, column_names: Sequence[str] = ()) -> list[str]:
    """The names of a file's columns. `column_names` decide the separator of a CSV file. Raises SparkStreamError, with
    the path and the cause, if it cannot be read.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise SparkStreamError(f"{path.name} cannot be fed: give a .csv or a .parquet file.{_suggest_name(path)}")
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise SparkStreamError(f"{path} is a pipe or a device: name a file.")
        return list(CsvFile.of(path, column_names).header) if path.suffix == ".csv" else _columns_of_parquet(path)
    except FileNotFoundError:
        others = [p.name for p in path.parent.iterdir() if p.name != path.name] if path.parent.is_dir() else []
        near = did_you_mean(path.name, others)
        raise SparkStreamError(f"file not found: {path}" + (f". {near}" if near else "")) from None
    except IsADirectoryError:
        raise SparkStreamError(f"{path} is a folder: name a file in it.") from None
    except (OSError, pa.ArrowException) as e:
        if isinstance(e, OSError) and e.strerror:
            raise SparkStreamError(f"{path} cannot be read: {e.strerror}.") from None
        raise SparkStreamError(f"{path.name} is not a parquet file, or it is not complete.") from None
    except ValueError:  # NUL, or half of a surrogate pair
        raise SparkStreamError(f"{path} is not the name of a file.") from None


def _columns_of_parquet(path: Path) -> list[str]:
    try:
        return list(_dataset(path).schema.names)
    except pa.ArrowInvalid:  # for columns of one name as well
        names = pq.read_schema(path).names if path.is_file() else []
        name = next((n for n in names if names.count(n) > 1), None)
        if name is None:
            raise
        raise SparkStreamError(
            f"{path.name} has {names.count(name)} columns '{name}': rename all but one."
        ) from None


def _suggest_name(path: Path) -> str:
    """The way out for a file of another kind; empty if none is known."""
    if path.suffix == ".gz":
        return f" It is compressed: gunzip {path.name} first."
    if path.is_file() and path.suffix in ("", ".dat", ".log", ".tab", ".tsv", ".txt"):
        return f" A table as text, with , ; | or tabs between its columns, is read as {path.stem}.csv."
    return ""


def header_of_file(path: Path) -> list[str]:
    """The names of a file's columns, at a glance: for a CSV file the first MiB decides the encoding. Empty if it cannot
    be read.
    """
    try:
        if path.suffix == ".csv":
            return list(CsvFile.of(path, looked_at=1 << 20).header)
        return list(_dataset(path).schema.names) if path.suffix == ".parquet" else []
    except (SparkStreamError, OSError, ValueError, pa.ArrowException):
        return []


def parts_of(path: Path) -> list[FilePart]:
    """Parts that can be read side by side, in order."""
    if path.suffix == ".csv":
        return [FilePart()]
    out: list[FilePart] = []
    first = rows = at = 0
    with refuse_damaged(path):
        for at, group in enumerate(_groups(path)):
            size = sum(g.num_rows for g in group.row_groups)
            if rows and rows + size > PART_ROWS:
                out.append(FilePart(first, at))
                first, rows = at, 0
            rows += size
    return [*out, FilePart(first, at + 1)] if rows else out


def tables_of(path: Path, column_names: Sequence[str], part: FilePart | None = None) -> Iterator[pa.Table]:
    """The rows of a part, or of all, some at a time: those `column_names` that the file has; of a CSV file with
    `csvfile.MALFORMED` and `csvfile.ROW` behind. Raises SparkStreamError for a file that is damaged, and `Misuse` for
    half of a surrogate pair in its path."""
    optional_str("the feed", str(path))
    if path.suffix == ".csv":
        file = CsvFile.of(path, column_names)
        yield from file.tables([n for n in dict.fromkeys(column_names) if n in file.header])
        return
    part = part or FilePart()
    with refuse_damaged(path):
        files = _dataset(path)
        names = [n for n in dict.fromkeys(column_names) if n in files.schema.names]
        for group in _groups(path)[part.first : part.end]:
            for batch in group.to_batches(columns=names, schema=files.schema):
                yield pa.Table.from_batches([batch])


@contextlib.contextmanager
def refuse_damaged(path: Path) -> Iterator[None]:
    """Turn Arrow's error for a damaged parquet file into a SparkStreamError of one line."""
    try:
        yield
    except UnicodeDecodeError:
        raise SparkStreamError(f"{path.name} cannot be read as parquet: a name in it is not UTF-8") from None
    except (pa.ArrowException, OSError) as e:
        raise SparkStreamError(f"{path.name} cannot be read as parquet: {str(e).splitlines()[0]}") from None


def _dataset(path: Path) -> dataset.Dataset:
    if path.is_dir():  # as Spark writes it
        return dataset.dataset(path, format="parquet", partitioning="hive")
    with path.open("rb"):
        return dataset.dataset(path, format="parquet")


def _groups(path: Path) -> list[dataset.Fragment]:
    """The row groups of all files of a parquet file or folder, in order."""
    return [group for file_part in _dataset(path).get_fragments() for group in file_part.split_by_row_group()]

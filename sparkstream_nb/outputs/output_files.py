"""Outputs of derived streams, kept as Arrow files in a folder for each stream.

`<batch>-<part>-<node>.arrows` has a node's output in a micro-batch: `step`, `ts`, then the attributes, as an Arrow
IPC stream. The parts of a node follow one another. A micro-batch that is replayed overwrites its files with the same
content; files of a micro-batch that was never committed are not read. `<first>-<last>.arrows` has all of the
micro-batches `first`..`last`, with `node` before the other columns (`merging.py`): such files take the place of many
small ones. Files are sealed by checksums (`checksums.py`), which are checked where rows are read.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..checksums import add_seal, check_sealed, is_sealed, read_json, seal, to_json
from ..errors import DamagedFile, SparkStreamError
from ..journal import result_codec
from ..journal.private import private_file, private_folder, write_private
from ..journal.result_rows import StreamEvents
from ..system import put_in_place
from .spill import UNTAKEN

_DROPPED = "dropped.json"
_DROPPED_UP_TO = "dropped-up-to.json"
WRITTEN = "written.json"
"""The file of the number of outputs, in their folder."""
_NAME = re.compile(r"\d+-\d+(-\d+)?", re.ASCII)
"""Names of files, without their suffix; a file of another name is somebody else's."""
_SIZES = b"micro-batches"
"""The key of the metadata in which a merged file has its micro-batches' numbers of rows."""


@dataclass(frozen=True)
class OutputFile:
    """A file of a stream's outputs in the micro-batches `first`..`last`. `node` is None if it has all nodes' outputs.
    """

    first: int
    part: int
    last: int
    node: int | None
    path: Path

    @staticmethod
    def of(path: Path) -> OutputFile:
        """Parse a file's name."""
        numbers = [int(n) for n in path.stem.split("-")]
        if len(numbers) == 2:
            return OutputFile(numbers[0], 0, numbers[1], None, path)
        return OutputFile(numbers[0], numbers[1], numbers[0], numbers[2], path)


@dataclass(frozen=True, eq=False)
class OutputPortion:
    """Outputs of a stream in micro-batch `batch`, from row number `first` of it on, in the order of `OutputFiles.read`,
    with its columns."""

    batch: int
    first: int
    table: pa.Table


@dataclass(frozen=True)
class _Written:
    """Number of outputs by stream, including dropped ones, up to micro-batch `batch`."""

    batch: int
    rows: Mapping[str, int]


class OutputsMoved(Exception):
    """Files were merged or dropped while they were read: ask again from where you are."""


class Follower(Protocol):
    """One that reads a stream's outputs in order, micro-batch by micro-batch, from a position of its own."""

    stream: str

    def lose(self, last: int) -> None:
        """The outputs up to micro-batch `last` are about to be dropped. `OutputFiles.tidying` is held."""
        ...


class OutputFiles:
    """The folder of an app's outputs. `shards` names the nodes. `followers` are notified before outputs are dropped."""

    def __init__(self, folder: Path, shards: Sequence[str]) -> None:
        self.folder, self.shards = folder, list(shards)
        self.tidying = threading.Lock()
        """Held while files are merged or dropped."""
        self.followers: list[Follower] = []

    def clear(self) -> None:
        """Removes the files that workers wrote and no commit took. Only while nothing runs."""
        shutil.rmtree(self.folder / UNTAKEN, ignore_errors=True)

    def write(self, batch: int, events_by_stream: Mapping[str, Sequence[StreamEvents]]) -> None:
        """Keep the output of a micro-batch, by stream."""
        for stream, parts in events_by_stream.items():
            folder = self.stream_folder(stream)
            private_folder(folder)
            for part, row in enumerate(parts):
                new, target = Path(row.file or folder / ".new"), folder / f"{batch:012d}-{part:06d}-{row.node}.arrows"
                if not row.file:
                    write_private(new, add_seal(row.blob))
                elif not new.exists() and target.exists():
                    continue  # the commit was cut off after this
                elif not is_sealed(new):
                    seal(new)
                put_in_place(new, target)

    def read(self, stream: str, last_batch: int, last: int | None = None) -> pa.Table | None:
        """The events of a stream in order of step and node, up to micro-batch `last_batch`; with `last`, only that many
        of the newest.

        Columns: the number of the node, `step`, `ts`, then the attributes. `tidying` must be held if an app runs.
        """
        tables: list[pa.Table] = []
        rows = 0
        several = len(self.shards) > 1
        files = [f for f in self.files(stream) if f.last <= last_batch]
        # Parts of one node follow one another; parts of several must be put in order, a micro-batch at a time.
        for _, group in groupby(reversed(files), key=lambda f: f.first if several else (f.first, f.part)):
            most = None if last is None else last - rows
            # The last rows of all nodes are among the last rows of each.
            table = in_order([table_of(f, most) for f in group][::-1])
            tables.append(table if most is None else table.slice(max(0, table.num_rows - most)))
            rows += tables[-1].num_rows
            if last is not None and rows >= last:
                break
        if not tables:
            return None
        events = pa.concat_tables(reversed(tables))
        return events if last is None else events.slice(max(0, events.num_rows - last))

    def after(self, stream: str, batch: int, row: int, last_batch: int) -> Iterator[OutputPortion]:
        """Output of a stream from row `row` of micro-batch `batch` on, up to micro-batch `last_batch`.

        Takes `tidying` while it opens files. Raises OutputsMoved if files were merged or dropped meanwhile.
        """
        with self.tidying:
            stream_files = [f for f in self.files(stream) if f.last >= batch and f.last <= last_batch]
        for _, group in groupby(stream_files, key=lambda f: f.first):
            files = list(group)
            try:
                with self.tidying:
                    sizes, tables = sizes_of(files), [table_of(f) for f in files]
            except FileNotFoundError:
                raise OutputsMoved from None
            at, table = 0, in_order(tables)
            for number, rows in sizes:
                first_row = row if number == batch else 0
                if number >= batch and rows > first_row:
                    yield OutputPortion(number, first_row, table.slice(at + first_row, rows - first_row))
                at += rows

    def count_after(self, stream: str, batch: int, row: int, last_batch: int) -> int:
        """Number of rows of `after`. `tidying` must be held if an app runs."""
        out = 0
        files = (f for f in self.files(stream) if batch <= f.last <= last_batch)
        for _, group in groupby(files, key=lambda f: f.first):
            for number, rows in sizes_of(list(group)):
                out += rows if number > batch else max(0, rows - row) if number == batch else 0
        return out

    def frame(self, stream: str, names: Sequence[str], last_batch: int, last: int | None = None) -> pd.DataFrame:
        """`read` as a frame: `node` (shard id), `timestamp` (ms), then the attributes called `names`; beside an
        attribute of that name, `event_node` and `event_timestamp`."""
        return self._as_frame(self.read(stream, last_batch, last), names)

    def latest(self, stream: str, names: Sequence[str], last_batch: int, last: int, key: str) -> pd.DataFrame:
        """The last event for each value of the attribute `key`, among the `last` events of `frame`."""
        table = self.read(stream, last_batch, last)
        if table is not None:
            keys = table.column(3 + list(names).index(key)).to_pandas()
            table = table.take(pa.array(np.flatnonzero(~keys.duplicated(keep="last").to_numpy())))
        return self._as_frame(table, names)

    def _as_frame(self, table: pa.Table | None, names: Sequence[str]) -> pd.DataFrame:
        columns = [*stamps(names), *names]
        if table is None:
            return pd.DataFrame(columns=columns)
        shards = pa.array(self.shards, pa.string())
        data: list[object] = [
            pc.take(shards, table.column(0).combine_chunks()).to_pandas(),
            table.column(2).to_pandas(),
        ]
        for field, column in zip(list(table.schema)[3:], table.columns[3:], strict=True):
            if result_codec.is_object(field):
                data.append(pd.Series(result_codec.column_values(column, field), dtype=object))
            else:
                data.append(series_of(column))
        return pd.DataFrame(dict(zip(columns, data, strict=True)))

    def account(self, batch: int, rows: Mapping[str, int]) -> None:
        """Note that micro-batch `batch` is committed, with `rows` rows of output by stream: counts them for
        `describe_lacking`. A micro-batch that is repeated counts once.
        """
        account = self._read_account()
        if account.batch >= batch or not any(rows.values()):
            return
        totals = dict(account.rows)
        for stream, count in rows.items():
            totals[stream] = totals[stream] + count if stream in totals else self._there(stream, batch)
        self._write(WRITTEN, {"batch": batch, "rows": totals})

    @property
    def accounted_batch(self) -> int:
        """The last committed micro-batch that has outputs; -1 if there is none. The folder says so to other
        processes."""
        return self._read_account().batch

    def note_committed(self, batch: int) -> None:
        """Note that `batch` is the last committed micro-batch, in a folder of an earlier version, which lacks that."""
        if batch >= 0 and not (self.folder / WRITTEN).exists():
            self._write(WRITTEN, {"batch": batch, "rows": {}})

    def totals(self) -> dict[str, int]:
        """Number of outputs by stream in all committed micro-batches, dropped ones included."""
        return dict(self._read_account().rows)

    def describe_lacking(self) -> str | None:
        """Missing parts of the written outputs, in words; None if all are there. Reads the heads of all files.
        `tidying` must be held if an app runs.
        """
        try:
            account = self._read_account()
            for stream, rows_written in account.rows.items():
                rows_present = self._there(stream, account.batch)
                if rows_present < rows_written:
                    return f"{rows_written - rows_present:,} of the {rows_written:,} outputs of {stream} are gone"
        except SparkStreamError as error:
            return f"of its outputs, {error}"
        return None

    def forget(self, stream: str) -> None:
        """Count the outputs of a stream from its present files, from the next micro-batch on: files are about to be
        moved.
        """
        account = self._read_account()
        if stream in account.rows:
            others = {s: n for s, n in account.rows.items() if s != stream}
            self._write(WRITTEN, {"batch": account.batch, "rows": others})

    def _there(self, stream: str, batch: int) -> int:
        """Number of outputs of a stream up to a micro-batch, dropped ones included. Raises SparkStreamError
        for a file that is damaged.
        """
        return self.dropped_events.get(stream, 0) + sum(rows_of(f.path) for f in self.files(stream) if f.last <= batch)

    def _read_account(self) -> _Written:
        path = self.folder / WRITTEN
        members = _read_members(path)
        batch = _checked_counts(path, {"batch": members.get("batch", -1)})["batch"]
        return _Written(batch, _checked_counts(path, members.get("rows", {})))

    def _write(self, name: str, what: Mapping[str, Any]) -> None:
        new = private_file(self.folder / f"{name}.new")
        new.write_text(to_json(what), encoding="utf-8")
        put_in_place(new, self.folder / name)

    @property
    def dropped_events(self) -> Mapping[str, int]:
        """Number of events of each stream that are no longer kept, the oldest of them."""
        return dropped_events(self.folder)

    def drop(self, counts: Mapping[str, int], files: Sequence[Path]) -> None:
        """Drop `files`, which have these `counts` of events by stream."""
        earlier_drops = dropped_events(self.folder)
        up_to = self._dropped_up_to()
        for output_file in map(OutputFile.of, files):
            stream = unquote(output_file.path.parent.name)
            up_to[stream] = max(up_to.get(stream, -1), output_file.last)
        self._write(_DROPPED_UP_TO, up_to)
        self._write(_DROPPED, {s: earlier_drops.get(s, 0) + counts.get(s, 0) for s in {**earlier_drops, **counts}})
        for file in files:
            file.unlink()

    def last_dropped(self, stream: str) -> int:
        """The last micro-batch some of whose outputs of a stream were dropped; -1 if there is none."""
        batches = self._dropped_up_to()
        if stream not in batches and self.dropped_events.get(stream):  # by an earlier version, which did not note it
            return min((f.first for f in self.files(stream)), default=self.accounted_batch + 1) - 1
        return batches.get(stream, -1)

    def _dropped_up_to(self) -> dict[str, int]:
        return _read_counts(self.folder / _DROPPED_UP_TO)

    def commit_steps(self) -> list[int]:
        """The last step with an output of each micro-batch whose outputs are kept, ascending. `tidying` must be held if
        an app runs. Raises SparkStreamError for a damaged file."""
        steps: dict[int, int] = {}
        for folder in self.folder.glob("[!.]*/"):
            for _, group in groupby(self.files(unquote(folder.name)), key=lambda f: f.first):
                files = list(group)
                sizes = sizes_of(files)
                for file in files:
                    file_steps = _steps_of(file)
                    ends = accumulate(rows for _, rows in sizes) if file.node is None else [len(file_steps)]
                    for (batch, _), end in zip(sizes, ends, strict=True):
                        if end:
                            steps[batch] = max(steps.get(batch, -1), int(file_steps[end - 1]))
        return sorted(steps.values())

    def stream_folder(self, stream: str) -> Path:
        """Folder of a stream's files."""
        return self.folder / quote(stream, safe="")

    def files(self, stream: str) -> list[OutputFile]:
        """A stream's files in order; without those that were merged and are still there, as a crash leaves them."""
        paths = self.stream_folder(stream).glob("*.arrows")
        all_files = [OutputFile.of(path) for path in paths if _NAME.fullmatch(path.stem)]
        stream_files: list[OutputFile] = []
        last_batch = -1  # by a file of all nodes
        # A file that begins first and reaches furthest comes before the files contained in it.
        for file in sorted(all_files, key=lambda f: (f.first, -f.last, f.part)):
            if file.last > last_batch:
                stream_files.append(file)
                last_batch = last_batch if file.node is not None else file.last
        return stream_files


def dropped_events(folder: Path) -> Mapping[str, int]:
    """`OutputFiles.dropped_events` of a folder of outputs."""
    return _read_counts(folder / _DROPPED)


def _read_members(path: Path) -> dict[str, Any]:
    """The members of a file of `OutputFiles`, empty if there is none. Raises DamagedFile."""
    try:
        return read_json(path)
    except FileNotFoundError:
        return {}


def _read_counts(path: Path) -> dict[str, int]:
    """Numbers by stream, of a file of `OutputFiles`. Raises DamagedFile."""
    return _checked_counts(path, _read_members(path))


def _checked_counts(path: Path, counts: object) -> dict[str, int]:
    """`counts`, read from a file: numbers by stream. Raises DamagedFile if they are something else."""
    if not isinstance(counts, dict) or not all(isinstance(n, int) for n in counts.values()):
        raise DamagedFile(path, "not what was written: no numbers by stream")
    return counts


def stamps(names: Sequence[str]) -> list[str]:
    """Names of the columns of node and time beside attributes called `names`."""
    return [f"event_{name}" if name in names else name for name in ("node", "timestamp")]


def sizes_of(files: Sequence[OutputFile]) -> list[tuple[int, int]]:
    """The micro-batches of the files that begin with one micro-batch, each with its number of rows, in order."""
    if files[0].node is not None:
        return [(files[0].first, sum(rows_of(f.path) for f in files))]
    with _open_file(files[0].path) as reader:
        sizes_json = (reader.schema.metadata or {}).get(_SIZES)
        if sizes_json is None:  # merged by an earlier version, before there were followers
            return [(files[0].last, sum(b.num_rows for b in reader))]
    return [(int(number), int(rows)) for number, rows in json.loads(sizes_json)]


def with_sizes(table: pa.Table, sizes: Sequence[tuple[int, int]]) -> pa.Table:
    """A table of several micro-batches that notes how many rows each has, for `sizes_of`."""
    metadata = {**(table.schema.metadata or {}), _SIZES: json.dumps(sizes).encode()}
    return table.replace_schema_metadata(metadata)


def rows_of(path: Path) -> int:
    """Number of rows in a file."""
    with _open_file(path) as reader:
        return sum(batch.num_rows for batch in reader)


def _steps_of(file: OutputFile) -> NDArray[np.int64]:
    """The step of each row of a file; an attribute may have the name of that column."""
    with _open_file(file.path) as reader:
        steps: NDArray[np.int64] = reader.read_all().column(1 if file.node is None else 0).to_numpy()
    return steps


@contextlib.contextmanager
def _open_file(path: Path) -> Iterator[pa.RecordBatchReader]:
    """A file of outputs. Raises SparkStreamError if it is damaged, and FileNotFoundError if it does not exist."""
    try:
        with pa.memory_map(str(path)) as source:
            yield pa.ipc.open_stream(source)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        check_sealed(path)  # it knows the place
        raise DamagedFile(path, str(error)) from None


def in_order(parts: Sequence[pa.Table]) -> pa.Table:
    """Output of the nodes in a micro-batch, in order of step and node. The first two columns are node and step."""
    table = pa.concat_tables(parts)
    if len(parts) == 1:
        return table
    return table.take(pa.array(np.lexsort((table.column(0).to_numpy(), table.column(1).to_numpy()))))


def table_of(file: OutputFile, last: int | None = None) -> pa.Table:
    """A file's events, only the newest `last` if given, with the node first; dictionaries spelt out.

    Raises DamagedFile, and FileNotFoundError if it does not exist.
    """
    check_sealed(file.path)
    with _open_file(file.path) as reader:
        table = reader.read_all()
    if last is not None:
        table = table.slice(max(0, table.num_rows - last))
    table = spell_out(table)
    if file.node is None:
        return table
    return table.add_column(0, "node", pa.array(np.full(table.num_rows, file.node, np.int32)))


def spell_out(table: pa.Table) -> pa.Table:
    """The table without dictionaries."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = field.with_type(field.type.value_type)
            table = table.set_column(i, plain, table.column(i).cast(plain.type))
    return table


_NULLABLE = {
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.float32(): pd.Float32Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def series_of(column: pa.Array | pa.ChunkedArray) -> pd.Series[Any]:
    """An Arrow column as a pandas series that keeps null and NaN apart. With nulls it has a nullable pandas type, since
    plain types turn integers into floats and null into NaN. Nullable floats treat NaN as null, so that a float column
    with both has type object. A dictionary's values are as in a plain column."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not column.null_count:
        return column.to_pandas()
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return pd.Series(column.to_pylist(), dtype=object)
    return column.to_pandas(types_mapper=_NULLABLE.get)


def frame_rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows of a frame, with None for null. NaN stays NaN in float and object columns."""
    columns = []
    for i, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, i]
        values = column.tolist()
        if isinstance(dtype, pd.api.extensions.ExtensionDtype) or dtype.kind not in "fO":
            values = [None if null else v for v, null in zip(values, column.isna().tolist(), strict=True)]
        columns.append(values)
    return list(zip(*columns, strict=True))

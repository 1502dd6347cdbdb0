"""What derived streams put out, kept as Arrow files: `<stream>/<batch>-<part>-<node>.arrows`.

A file is an Arrow IPC stream: `step`, `ts`, then the attributes. The parts of a node follow one another. A micro-batch
that is replayed overwrites its files with the same content; files of a micro-batch that was never committed are not
read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from . import results
from .private import private_file, private_folder
from .rows import StreamEvents
from .spill import UNTAKEN


class OutputFiles:
    """The folder of an app's outputs. `shards` names the nodes."""

    def __init__(self, folder: Path, shards: Sequence[str]) -> None:
        self.folder, self.shards = folder, list(shards)

    def clear(self) -> None:
        """Removes the files that workers wrote and no commit took. Only while nothing runs."""
        shutil.rmtree(self.folder / UNTAKEN, ignore_errors=True)

    def write(self, batch: int, found: Mapping[str, Sequence[StreamEvents]]) -> None:
        """Keeps what a micro-batch put out, by stream."""
        for stream, parts in found.items():
            folder = self.folder / quote(stream, safe="")
            private_folder(folder)
            for part, row in enumerate(parts):
                new, kept = Path(row.file or folder / ".new"), folder / f"{batch:012d}-{part:06d}-{row.node}.arrows"
                if not row.file:
                    private_file(new).write_bytes(row.blob)
                elif not new.exists() and kept.exists():
                    continue  # the commit was cut off after this
                new.replace(kept)

    def read(self, stream: str, committed: int, last: int | None = None) -> pa.Table | None:
        """The events of a stream in order of step and node, up to micro-batch `committed`; only the `last` so many."""
        tables: list[pa.Table] = []
        rows = 0
        several = len(self.shards) > 1
        files = ((f.stem.split("-"), f) for f in self._files(stream, committed))
        # Parts of one node follow one another; those of several must be put in order, a micro-batch at a time.
        for _, group in groupby(files, key=lambda f: f[0][0] if several else f[0]):
            wanted = None if last is None or several else last - rows
            parts = [_read(file, int(name[-1]), wanted) for name, file in group]
            table = pa.concat_tables(reversed(parts))
            if several and table.num_rows > 1:
                step, node = table["step"].to_numpy(), table["node"].to_numpy()
                table = table.take(pa.array(np.lexsort((node, step))))
            tables.append(table)
            rows += table.num_rows
            if last is not None and rows >= last:
                break
        if not tables:
            return None
        whole = pa.concat_tables(reversed(tables))
        return whole if last is None else whole.slice(max(0, whole.num_rows - last))

    def frame(self, stream: str, names: Sequence[str], committed: int, last: int | None = None) -> pd.DataFrame:
        """`read` as a frame: `node` (shard id), `timestamp` (ms; `event_timestamp` beside an attribute of that name),
        then the attributes called `names`."""
        stamp = "event_timestamp" if "timestamp" in names else "timestamp"
        table = self.read(stream, committed, last)
        if table is None:
            return pd.DataFrame(columns=["node", stamp, *names])
        shards = pa.array(self.shards, pa.string())
        data: dict[str, object] = {"node": pc.take(shards, table["node"].combine_chunks()).to_pandas()}
        data[stamp] = table["ts"].to_pandas()
        for field, column in zip(list(table.schema)[3:], table.columns[3:], strict=True):
            if results.is_object(field):
                data[field.name] = pd.Series(results.column_values(column, field), dtype=object)
            else:
                data[field.name] = column.to_pandas(types_mapper=nullable if column.null_count else None)
        return pd.DataFrame(data)

    def _files(self, stream: str, committed: int) -> Iterator[Path]:
        """Files of committed micro-batches, newest first."""
        folder = self.folder / quote(stream, safe="")
        for file in sorted(folder.glob("*.arrows"), reverse=True):
            if int(file.stem.split("-")[0]) <= committed:
                yield file


def _read(file: Path, node: int, last: int | None) -> pa.Table:
    """A file's events, only the `last` so many; dictionaries spelt out."""
    with pa.memory_map(str(file)) as source:
        table = pa.ipc.open_stream(source).read_all()
    if last is not None:
        table = table.slice(max(0, table.num_rows - last))
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table.add_column(0, "node", pa.array(np.full(table.num_rows, node, np.int32)))


_NULLABLE = {
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def nullable(type: pa.DataType) -> object:
    """pandas' nullable type where its plain one would turn integers with nulls into floats."""
    return _NULLABLE.get(type)

"""What derived streams put out, kept as Arrow files: one per stream and micro-batch, `<stream>/<batch>.arrows`.

A file is an Arrow IPC stream with a record batch per node: `node`, `step`, `ts`, then the attributes. A micro-batch
that is replayed overwrites its files with the same content; files of a micro-batch that was never committed are not
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from . import results


class OutputFiles:
    """The folder of an app's outputs. `shards` names the nodes."""

    def __init__(self, folder: Path, shards: Sequence[str]) -> None:
        self.folder, self.shards = folder, list(shards)

    def write(self, batch: int, found: Mapping[str, Sequence[tuple[int, bytes]]]) -> None:
        """Writes what a micro-batch put out: per stream (node, IPC stream of `results.emitted_table`)."""
        for stream, parts in found.items():
            folder = self.folder / quote(stream, safe="")
            folder.mkdir(parents=True, exist_ok=True)
            new = folder / f".{batch:012d}.new"
            with pa.OSFile(str(new), "wb") as sink:
                writer = None
                for node, blob in parts:
                    table = results.from_ipc(blob)
                    table = table.add_column(0, "node", pa.array(np.full(table.num_rows, node, np.int32)))
                    writer = writer or pa.ipc.new_stream(sink, table.schema)
                    writer.write_table(table)
                if writer is not None:
                    writer.close()
            new.replace(folder / f"{batch:012d}.arrows")

    def read(self, stream: str, committed: int, last: int | None = None) -> pa.Table | None:
        """The events of a stream in order of step and node, up to micro-batch `committed`; only the `last` so many."""
        tables: list[pa.Table] = []
        rows = 0
        for file in self._files(stream, committed):
            with pa.memory_map(str(file)) as source:
                table = pa.ipc.open_stream(source).read_all()
            if len(self.shards) > 1 and table.num_rows > 1:
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
                data[field.name] = column.to_pandas(types_mapper=_nullable if column.null_count else None)
        return pd.DataFrame(data)

    def _files(self, stream: str, committed: int) -> Iterator[Path]:
        """Files of committed micro-batches, newest first."""
        folder = self.folder / quote(stream, safe="")
        for file in sorted(folder.glob("*.arrows"), reverse=True):
            if int(file.stem) <= committed:
                yield file


_NULLABLE = {
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def _nullable(type: pa.DataType) -> object:
    """pandas' nullable type where its plain one would turn integers with nulls into floats."""
    return _NULLABLE.get(type)

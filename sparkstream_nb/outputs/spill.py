"""Encodes a node's output, piece after piece, as rows; large output is written to files meanwhile."""

from __future__ import annotations

import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..engine.state.node_batch import ElementRows, Emitted, Outputs
from ..journal.private import private_file, private_folder
from ..journal.result_codec import emitted_table, error_lines, to_ipc
from ..journal.result_rows import CurrentEvents, Errors, ExpiredEvents, Logs, Partial, Row, RowCounts, StreamEvents
from ..journal.segments import StepsOfNode

INLINE_ROWS = 20_000
"""Rows of one kind up to which they pass through Spark themselves."""
UNTAKEN = ".new"
"""The folder, among an app's outputs, of files that wait for their commit."""


class Spill:
    """Turns a node's output, piece after piece, into rows. Large output goes to files under `folder`, if there is one:
    a file per node and stream, written while the node continues. `close` gives the rows of the files, and
    the numbers of rows that queries put out.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder, UNTAKEN)
        self._files: dict[tuple[int, str], _File] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._row_counts: dict[int, RowCounts] = {}
        """By node."""

    def encode(self, outputs: Outputs, node: int, piece: StepsOfNode) -> list[Row]:
        """The rows of one `NodeEngine.step`."""
        out: list[Row] = []
        where = (node, piece.seq, piece.last)
        for stream, events in outputs.streams.items():
            if (node, stream) in self._files or (self.folder is not None and len(events) > INLINE_ROWS):
                self._append(stream, events, node, piece)
            elif len(events):
                out.append(StreamEvents(*where, stream, len(events), _blob(events, piece)))
        for query, (current, expired_events) in outputs.queries.items():
            if len(current):
                out.append(CurrentEvents(*where, query, len(current), _blob(current, piece)))
            if len(expired_events):
                out.append(ExpiredEvents(*where, query, len(expired_events), _blob(expired_events, piece)))
        for aggregation, table in outputs.partials.items():
            if self.folder is not None and table.num_rows > INLINE_ROWS:
                file = self._new()
                with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write(table)
                out.append(Partial(*where, aggregation, table.num_rows, file=str(file)))
            elif table.num_rows:
                out.append(Partial(*where, aggregation, table.num_rows, to_ipc(table)))
        if outputs.errors:
            error_rows = [[e.stream, e.ts, e.values, f"{e.query}: {e.message}"] for e in outputs.errors]
            out.append(Errors(*where, len(error_rows), error_lines(error_rows)))
        if outputs.element_rows:
            self._row_counts.setdefault(node, RowCounts(*where, ElementRows())).rows.add(outputs.element_rows)
        if outputs.logs:
            out.append(Logs(*where, tuple(outputs.logs)))
        return out

    def _append(self, stream: str, events: Emitted, node: int, piece: StepsOfNode) -> None:
        self._pool = self._pool or ThreadPoolExecutor(1)
        file = self._files.get((node, stream))
        if file is None:
            file = self._files[node, stream] = _File(self._new(), node, piece.seq)
        if file.writing is not None:
            file.writing.result()
        file.last, file.rows = piece.last, file.rows + len(events)
        file.writing = self._pool.submit(file.write, events, piece.step)

    def _new(self) -> Path:
        assert self.folder is not None
        return private_file(private_folder(self.folder) / uuid.uuid4().hex)

    def close(self) -> list[Row]:
        """Ends the files; their rows."""
        out: list[Row] = []
        for (_, stream), f in self._files.items():
            f.close()
            out.append(StreamEvents(f.node, f.seq, f.last, stream, f.rows, file=str(f.path)))
        if self._pool is not None:
            self._pool.shutdown()
        return [*out, *self._row_counts.values()]


def _blob(events: Emitted, piece: StepsOfNode) -> bytes:
    return to_ipc(emitted_table(events, piece.step))


@dataclass
class _File:
    """A stream's events on their way to a file."""

    path: Path
    node: int
    seq: int
    last: int = -1
    rows: int = 0
    writing: Future[None] | None = None
    sink: Any = None
    writer: Any = None

    def write(self, events: Emitted, base: int) -> None:
        if len(events) == 0:
            return
        batch = emitted_table(events, base, dictionary_encoded=True)
        if self.writer is None:
            self.sink = pa.OSFile(str(self.path), "wb")
            self.writer = pa.ipc.new_stream(self.sink, batch.schema)
        self.writer.write_batch(batch)

    def close(self) -> None:
        if self.writing is not None:
            self.writing.result()
        self.writer.close()
        self.sink.close()

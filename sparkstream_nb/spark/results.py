"""What nodes put out, as rows of Spark: encoded in the workers, decoded where the micro-batch is committed.

One row is (node, seq, last, kind, name, rows, blob, file). Kinds: `stream`, `in` and `out` (a traced query's current
and expired events), `partial` (of an aggregation), `error`, `log`, `answer`, and one `mark` per node, which tells how
far the node is. What is large lies in a `file` that the worker wrote, and only its name passes through Spark; a file
that no commit takes means nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..engine.batch import Answer, Emitted, Outputs
from ..engine.columns import Strings
from ..engine.snapshot import pack, unpack
from ..errors import SparkStreamError
from .segments import Piece

ARROW_SCHEMA = pa.schema(
    [
        ("node", pa.int32()),
        ("seq", pa.int64()),
        ("last", pa.int64()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("rows", pa.int64()),
        ("blob", pa.binary()),
        ("file", pa.string()),
    ]
)
COLUMNS = tuple(ARROW_SCHEMA.names)
INLINE_ROWS = 20_000
"""Rows of one kind up to which they pass through Spark themselves."""
UNTAKEN = ".new"
"""The folder, among an app's outputs, of files that wait for their commit."""

Row = tuple[int, int, int, str, str, int, bytes, str]

_OBJECT = {b"type": b"object"}


def to_ipc(table: pa.RecordBatch | pa.Table) -> bytes:
    """An Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    out: bytes = sink.getvalue().to_pybytes()
    return out


def from_ipc(blob: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()


def table_of(blob: bytes, file: str) -> pa.Table:
    """The table in a row's blob, or in its file."""
    if not file:
        return from_ipc(blob)
    with pa.memory_map(file) as source:
        return pa.ipc.open_stream(source).read_all()


def emitted_table(emitted: Emitted, base: int, *, coded: bool = False) -> pa.RecordBatch:
    """Columns `step` (numbered through the app's life), `ts`, then the attributes under their names.

    Strings are spelt out, as a node's dictionary may hold far more than one output uses, unless they are to be `coded`;
    objects are packed one by one.
    """
    arrays = [pa.array(emitted.step + base, pa.int64()), pa.array(emitted.ts, pa.int64())]
    fields = [pa.field("step", pa.int64()), pa.field("ts", pa.int64())]
    for name, column in zip(emitted.names, emitted.columns, strict=True):
        metadata = None
        if isinstance(column, list):
            strings = Strings()
            column = pa.array([None if v is None else pack(v, strings) for v in column], pa.binary())
            metadata = _OBJECT
        elif pa.types.is_dictionary(column.type) and not (coded and len(column.dictionary) <= len(column)):
            column = column.dictionary_decode()
        if coded and column.type == pa.string():
            column = column.dictionary_encode()
        arrays.append(column)
        fields.append(pa.field(name, column.type, metadata=metadata))
    return pa.record_batch(arrays, schema=pa.schema(fields))


def column_values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """Python values of a column of `emitted_table`."""
    values = column.to_pylist()
    if field.metadata == _OBJECT:
        strings = Strings()
        return [None if v is None else unpack(v, strings) for v in values]
    return list(values)


def is_object(field: pa.Field) -> bool:
    """Whether the column holds packed objects."""
    return bool(field.metadata == _OBJECT)


def emitted_of(blob: bytes) -> Emitted:
    """The inverse of `emitted_table` and `to_ipc`; `step` stays numbered through the app's life."""
    table = from_ipc(blob)
    columns: list[Any] = []
    for field, column in zip(list(table.schema)[2:], table.columns[2:], strict=True):
        columns.append(column_values(column, field) if is_object(field) else column.combine_chunks())
    return Emitted(tuple(table.schema.names[2:]), table.column(0).to_numpy(), table.column(1).to_numpy(), columns)


class Spill:
    """Turns what a node puts out, piece after piece, into rows. What is large goes to files under `folder`, where there
    is one: a file per stream, written while the node goes on. `close` gives the rows of the files.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder = None if folder is None else Path(folder, UNTAKEN)
        self._files: dict[str, _File] = {}
        self._pool: ThreadPoolExecutor | None = None

    def encode(self, outputs: Outputs, node: int, piece: Piece) -> list[Row]:
        """The rows of one `NodeEngine.step`."""
        out: list[Row] = []

        def add(kind: str, name: str, rows: int, blob: bytes, file: str = "") -> None:
            out.append((node, piece.seq, piece.last, kind, name, rows, blob, file))

        for stream, emitted in outputs.streams.items():
            if stream in self._files or (self.folder is not None and len(emitted) > INLINE_ROWS):
                self._append(stream, emitted, node, piece)
            elif len(emitted):
                add("stream", stream, len(emitted), to_ipc(emitted_table(emitted, piece.step)))
        for query, (current, expired) in outputs.queries.items():
            for kind, emitted in (("in", current), ("out", expired)):
                if len(emitted):
                    add(kind, query, len(emitted), to_ipc(emitted_table(emitted, piece.step)))
        for aggregation, table in outputs.partials.items():
            if self.folder is not None and table.num_rows > INLINE_ROWS:
                file = self._new()
                with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write(table)
                add("partial", aggregation, table.num_rows, b"", str(file))
            elif table.num_rows:
                add("partial", aggregation, table.num_rows, to_ipc(table))
        if outputs.errors:
            found = [[e.stream, e.ts, e.values, f"{e.query}: {e.message}"] for e in outputs.errors]
            add("error", "", len(found), error_lines(found))
        if outputs.logs:
            add("log", "", len(outputs.logs), json.dumps(outputs.logs).encode())
        return out

    def _append(self, stream: str, emitted: Emitted, node: int, piece: Piece) -> None:
        self._pool = self._pool or ThreadPoolExecutor(1)
        file = self._files.get(stream)
        if file is None:
            file = self._files[stream] = _File(self._new(), node, piece.seq)
        if file.writing is not None:
            file.writing.result()
        file.last, file.rows = piece.last, file.rows + len(emitted)
        file.writing = self._pool.submit(file.write, emitted, piece.step)

    def _new(self) -> Path:
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / uuid.uuid4().hex

    def close(self) -> list[Row]:
        """Ends the files; their rows."""
        out: list[Row] = []
        for stream, f in self._files.items():
            f.close()
            out.append((f.node, f.seq, f.last, "stream", stream, f.rows, b"", str(f.path)))
        if self._pool is not None:
            self._pool.shutdown()
        return out


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

    def write(self, emitted: Emitted, base: int) -> None:
        if len(emitted) == 0:
            return
        batch = emitted_table(emitted, base, coded=True)
        if self.writer is None:
            self.sink = pa.OSFile(str(self.path), "wb")
            self.writer = pa.ipc.new_stream(self.sink, batch.schema)
        self.writer.write_batch(batch)

    def close(self) -> None:
        if self.writing is not None:
            self.writing.result()
        self.writer.close()
        self.sink.close()


def error_lines(errors: Sequence[Sequence[Any]]) -> bytes:
    """Errors (stream, timestamp, values, reason) as JSON lines; what JSON lacks becomes text."""
    return b"".join(json.dumps(e, default=str).encode() + b"\n" for e in errors)


def errors_of(blob: bytes) -> list[list[Any]]:
    """The inverse of `error_lines`."""
    return [json.loads(line) for line in blob.splitlines()]


@dataclass(frozen=True)
class Failed:
    """An on-demand query that failed: the class of the error, and its message."""

    kind: str
    message: str


def encode_answer(answer: Answer | SparkStreamError) -> bytes:
    """An answer to an on-demand query, or its failure."""
    if isinstance(answer, SparkStreamError):
        return json.dumps({"kind": type(answer).__name__, "message": str(answer)}).encode()
    return pack({"columns": [list(c) for c in answer.columns], "rows": answer.rows}, Strings())


def answer_of(blob: bytes) -> Answer | Failed:
    """The inverse of `encode_answer`."""
    if blob.startswith(b"{"):
        return Failed(**json.loads(blob))
    found = unpack(blob, Strings())
    return Answer([(n, t) for n, t in found["columns"]], found["rows"])

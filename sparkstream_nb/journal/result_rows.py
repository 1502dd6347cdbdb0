"""Rows that pass through Spark between the inbox and the commit: one frozen class for each kind, and their codec.

A row of Spark is (node, seq, last, kind, name, rows, blob, file), the columns of `journal.SCHEMA`. A new kind is a
class with a `kind` of its own, `_pack` and `_unpack`, named in `KINDS`. Large data is in a `file` that a worker wrote,
and only its name passes through Spark; a file that no commit takes means nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from ..engine.state.node_batch import ElementRows, RetrievalAnswer
from ..plan.nodes import BatchClock
from . import result_codec
from .entries import Entry, from_json
from .journal import COLUMNS

Raw = tuple[int, int, int, str, str, int, bytes, str]
"""A row in the order of `journal.COLUMNS`."""
Packed = tuple[str, int, bytes, str]
"""Values of a kind for the columns `name`, `rows`, `blob` and `file`."""

_ARROW = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "binary": pa.binary()}
ARROW_SCHEMA = pa.schema([(name, _ARROW[type]) for name, type in COLUMNS.items()])


@dataclass(frozen=True, slots=True)
class Row:
    """Base of all rows: the number of the node, and the journal entries `seq`..`last` that the row comes from."""

    kind: ClassVar[str] = ""

    node: int
    seq: int
    last: int

    def _pack(self) -> Packed:
        raise NotImplementedError

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class TableRow(Row):
    """Base of rows that hold a table of `rows` rows: an Arrow IPC stream in `blob`, or in the file `file`."""

    name: str
    rows: int
    blob: bytes = b""
    file: str = ""

    def table(self) -> pa.Table:
        """The table, from the blob or the file."""
        if not self.file:
            return result_codec.from_ipc(self.blob)
        with pa.memory_map(self.file) as source:
            return pa.ipc.open_stream(source).read_all()

    def _pack(self) -> Packed:
        return self.name, self.rows, self.blob, self.file

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        return cls(node, seq, last, *columns)


class StreamEvents(TableRow):
    """Output of the stream `name`, as `results.emitted_table`."""

    __slots__ = ()
    kind = "stream"


class CurrentEvents(TableRow):
    """Current events of the traced query `name`, as `results.emitted_table`."""

    __slots__ = ()
    kind = "in"


class ExpiredEvents(TableRow):
    """Expired events of the traced query `name`, as `results.emitted_table`."""

    __slots__ = ()
    kind = "out"


class Partial(TableRow):
    """Additions to the buckets of the aggregation `name`, as the store takes them."""

    __slots__ = ()
    kind = "partial"


@dataclass(frozen=True, slots=True)
class Errors(Row):
    """Errors of `count` rows and events that the app could not process: `results.error_lines`."""

    kind = "error"

    count: int
    lines: bytes

    def _pack(self) -> Packed:
        return "", self.count, self.lines, ""

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        _, count, lines, _ = columns
        return cls(node, seq, last, count, lines)


@dataclass(frozen=True, slots=True)
class Logs(Row):
    """Lines that `#log` and `log` sinks wrote."""

    kind = "log"

    lines: tuple[str, ...]

    def _pack(self) -> Packed:
        return "", len(self.lines), json.dumps(self.lines).encode(), ""

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        return cls(node, seq, last, tuple(json.loads(columns[2])))


@dataclass(frozen=True, slots=True)
class RowCounts(Row):
    """The numbers of rows that queries and named windows put out."""

    kind = "counts"

    rows: ElementRows

    def _pack(self) -> Packed:
        rows = {"queries": self.rows.queries, "windows": self.rows.windows}
        return "", 1, json.dumps(rows).encode(), ""

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        rows = json.loads(columns[2])
        return cls(node, seq, last, ElementRows(Counter(rows["queries"]), Counter(rows["windows"])))


@dataclass(frozen=True, slots=True)
class Answered(Row):
    """A node's answer to the on-demand query of entry `seq`."""

    kind = "answer"

    answer: RetrievalAnswer | result_codec.QueryFailed

    def _pack(self) -> Packed:
        return "", 1, result_codec.encode_answer(self.answer), ""

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        return cls(node, seq, last, result_codec.answer_of(columns[2]))


@dataclass(frozen=True, slots=True)
class NodeReport:
    """State and costs of a node after a micro-batch: `ms` of time, whether the state was `restored` from
    Spark's, the state's size in bytes, the engine's own figures (`NodeEngine.stats`), and the node's clock (None before
    its first step). `events`: number of events in the micro-batch. `due`: when its next timer is
    (`NodeEngine.next_due`); `rests`: whether it may be left out until then, while no event reaches it (`resting`).
    """

    shard: str
    ms: float
    restored: bool
    state_bytes: int
    engine: Mapping[str, Any]
    clock: BatchClock | None = None
    events: int = 0
    due: int | None = None
    rests: bool = False

    def to_json(self) -> bytes:
        """Encode as JSON."""
        return json.dumps(asdict(self), default=str).encode()

    @classmethod
    def of_json(cls, text: bytes) -> Self:
        """The inverse of `to_json`."""
        members = json.loads(text)
        clock = members.pop("clock")
        return cls(**members, clock=None if clock is None else BatchClock(**clock))


@dataclass(frozen=True, slots=True)
class NodeDone(Row):
    """One for each node and micro-batch: the node has finished the entries up to `last`, with `steps` steps."""

    kind = "mark"

    steps: int
    report: NodeReport

    def _pack(self) -> Packed:
        return "", self.steps, self.report.to_json(), ""

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        return cls(node, seq, last, columns[1], NodeReport.of_json(columns[2]))


@dataclass(frozen=True, slots=True)
class NodeFailure(Row):
    """An error of the engine: the class of it, and its message. Only where a node's failure is to stop no other one."""

    kind = "failure"

    error: str
    message: str

    @classmethod
    def of(cls, node: int, error: Exception) -> NodeFailure:
        """Belongs to no entry: the micro-batch is not carried through."""
        return cls(node, 0, -1, type(error).__name__, str(error))

    def _pack(self) -> Packed:
        return self.error, 1, self.message.encode(), ""

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        return cls(node, seq, last, columns[0], columns[2].decode())


@dataclass(frozen=True, slots=True)
class Entries(Row):
    """Entries of the journal on their way to a node: `entries.to_json`, made once for all nodes. `events` of them are
    the node's, if a task has counted them.
    """

    kind = "entries"

    text: bytes
    events: int = 0

    def entries(self) -> list[Entry]:
        """The entries. Raises SparkStreamError for a kind of entry that this version does not know."""
        return from_json(self.text)

    def _pack(self) -> Packed:
        return "", self.events, self.text, ""

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        return cls(node, seq, last, columns[2], columns[1])


@dataclass(frozen=True, slots=True)
class NodePart(Row):
    """A node's part of entries of events, with `events` events: an `InputBatch`, in `blob`, or its rows in the file
    `file` of the inbox (none if it has no rows) and its clock in the file `clock`.
    """

    kind = "part"

    events: int
    blob: bytes
    file: str = ""
    clock: str = ""

    def _pack(self) -> Packed:
        return self.clock, self.events, self.blob, self.file

    @classmethod
    def _unpack(cls, node: int, seq: int, last: int, columns: Packed) -> Self:
        clock, events, blob, file = columns
        return cls(node, seq, last, events, blob, file, clock)


KINDS: dict[str, type[Row]] = {
    c.kind: c
    for c in (
        StreamEvents, CurrentEvents, ExpiredEvents, Partial, Errors, Logs, RowCounts, Answered, NodeDone, NodeFailure,
        Entries, NodePart,
    )
}  # fmt: skip


def encode(row: Row) -> Raw:
    """The row as Spark carries it."""
    if type(row) not in KINDS.values():
        raise TypeError(f"{type(row).__name__} is not among the kinds of rows")
    name, rows, blob, file = row._pack()
    return row.node, row.seq, row.last, row.kind, name, rows, blob, file


def decode(raw: Raw) -> Row:
    """The inverse of `encode`. Raises ValueError for an unknown kind."""
    node, seq, last, kind, name, rows, blob, file = raw
    if kind not in KINDS:
        raise ValueError(f"a row of kind '{kind}' came through Spark, and there is no such kind")
    return KINDS[kind]._unpack(node, seq, last, (name, rows, blob, file))


def from_columns(columns: Mapping[str, Any]) -> list[Row]:
    """Rows from columns (Arrow's or pandas') by the names of `journal.COLUMNS`."""
    return [decode(raw) for raw in zip(*(_values(columns[c]) for c in COLUMNS), strict=True)]


def to_columns(rows: Iterable[Row]) -> dict[str, list[Any]]:
    """The inverse of `from_columns`."""
    raw = [encode(row) for row in rows]
    return {name: [r[i] for r in raw] for i, name in enumerate(COLUMNS)}


def from_table(table: pa.Table) -> list[Row]:
    """Rows of an Arrow table, in the order of node and entry."""
    return sorted(from_columns(table), key=lambda r: (r.node, r.seq))


def _values(column: Any) -> Iterable[Any]:
    return column.to_pylist() if isinstance(column, pa.ChunkedArray) else column

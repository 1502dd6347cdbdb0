"""The events of a micro-batch, divided by node once, by the task that reads them: a node reads its own part alone.

Small parts pass through Spark in a row (`result_rows.NodePart`). Otherwise each node's rows are in a file, and the
clock of all steps in one for all nodes. The files lie in the folder `parts` of the inbox until the micro-batch is done.
"""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import InputBatch, StreamRows
from .entries import EventsEntry
from .parts import PARTS
from .private import private_folder, write_private
from .result_rows import NodePart
from .segments import StepsOfNode, events_of, join

INLINE_STEPS = 2_000
"""Steps up to which the part of a node passes through Spark itself."""
JOINED_EVENTS, JOINED_STEPS = 250_000, 4_000_000
"""Maximum numbers of a node's events, and of steps, that are processed at once, unless one part is larger."""


def divide_entries(folder: Path, nodes: Sequence[int], pieces: Sequence[StepsOfNode]) -> Iterator[NodePart | None]:
    """The part for each of the `nodes` of consecutive entries, given their pieces; None for a node that
    gets nothing, not even the time.
    """
    clock = ""
    where = f"{pieces[0].seq}-{pieces[0].last}-{os.urandom(6).hex()}"
    for node, piece in zip(nodes, pieces, strict=True):
        steps, events = len(piece.batch.clock), events_of(piece.batch)
        if not steps:
            yield None
        elif steps <= INLINE_STEPS:
            yield NodePart(node, piece.seq, piece.last, events, piece.batch.to_bytes())
        else:
            private_folder(folder / PARTS)
            if not clock:
                clock = f"{PARTS}/{where}.clock"
                write_private(folder / clock, np.ascontiguousarray(piece.batch.clock).data)
            rows_file = f"{PARTS}/{where}.{node}" if events else ""
            if rows_file:
                write_private(folder / rows_file, InputBatch(_NONE, _lean(piece.batch.rows)).to_bytes())
            yield NodePart(node, piece.seq, piece.last, events, b"", rows_file, clock)


_NONE = np.empty(0, np.int64)
_clocks: OrderedDict[tuple[str, ...], Array] = OrderedDict()
"""Clocks that `_clock` read last."""


def _lean(rows: Mapping[str, StreamRows]) -> dict[str, StreamRows]:
    """Rows whose dictionaries have no more values than there are rows."""
    return {s: StreamRows(r.step, r.ts, [lean_column(c) for c in r.columns]) for s, r in rows.items()}


def lean_column(column: pa.Array | list[object]) -> pa.Array | list[object]:
    """The column without its dictionary, if that has more values than there are rows."""
    if isinstance(column, pa.DictionaryArray) and len(column.dictionary) > len(column):
        return column.dictionary_decode()
    return column


def files_of(parts: Iterable[NodePart]) -> list[str]:
    """The files of the inbox that have these parts."""
    return list(dict.fromkeys(name for p in parts for name in (p.clock, p.file) if name))


Whole = Callable[[Sequence[EventsEntry]], InputBatch]
"""Reads consecutive entries for a node, with all columns."""


def pieces_of(
    folder: Path, entries: Sequence[EventsEntry], parts: Mapping[int, NodePart], read_whole: Whole | None = None
) -> Iterator[StepsOfNode]:
    """Read the steps of consecutive entries for the node to which these `parts` came, by their first entry. With
    `read_whole`, parts with columns left out are read again.
    """
    read = _PartReading(folder, entries, read_whole)
    joined_parts: list[tuple[EventsEntry, NodePart]] = []
    events = steps = 0
    for entry in entries:
        part = parts.get(entry.seq)
        if part is not None:
            if joined_parts and (events + part.events > JOINED_EVENTS or steps + entry.steps > JOINED_STEPS):
                yield read.join_parts(joined_parts)
                joined_parts, events, steps = [], 0, 0
            joined_parts.append((entry, part))
            events += part.events
        steps += entry.steps  # including those of a part that began before
    if joined_parts:
        yield read.join_parts(joined_parts)


@dataclass(frozen=True)
class _PartReading:
    folder: Path
    entries: Sequence[EventsEntry]
    read_whole: Whole | None

    def join_parts(self, entry_parts: Sequence[tuple[EventsEntry, NodePart]]) -> StepsOfNode:
        """Consecutive parts as one piece."""
        clocks = [_clock(self.folder, (p.clock,)) if p.clock else None for _, p in entry_parts]
        batches = [self._batch(part, clock) for (_, part), clock in zip(entry_parts, clocks, strict=True)]
        names = tuple(p.clock for _, p in entry_parts)
        batch = join(batches, _clock(self.folder, names) if all(names) and len(names) > 1 else None)
        first, last = entry_parts[0][0], entry_parts[-1][1].last
        return StepsOfNode(first.seq, last, first.step, first.before, batch)

    def _batch(self, part: NodePart, clock: Array | None) -> InputBatch:
        if clock is None:
            batch = InputBatch.from_bytes(part.blob)
        else:
            blob = (self.folder / part.file).read_bytes() if part.file else b""
            batch = InputBatch(clock, InputBatch.from_bytes(blob).rows if blob else {})
        if self.read_whole is None or all(r.whole for r in batch.rows.values()):
            return batch
        return self.read_whole([e for e in self.entries if part.seq <= e.seq <= part.last])


def _clock(folder: Path, names: tuple[str, ...]) -> Array:
    """The clock in files of the inbox, one after the other. The nodes of a process share it."""
    clock = _clocks.get(names)
    if clock is None:
        if len(names) > 1:
            clock = np.concatenate([_clock(folder, (name,)) for name in names])
        else:
            clock = np.fromfile(folder / names[0], np.int64)
        clock.flags.writeable = False
        _clocks[names] = clock
        while sum(c.size for c in list(_clocks.values())) > 2 * JOINED_STEPS:
            with contextlib.suppress(KeyError):  # another thread was faster
                _clocks.popitem(last=False)
    return clock

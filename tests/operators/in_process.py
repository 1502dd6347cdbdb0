"""An operator without Spark: its tasks one after the other, as Spark would run them, with its state in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sparkstream_nb.runners.node_host import HostedNode
from sparkstream_nb.runners.operator.operator_spec import ERRORS, LATE, OperatorSpec
from sparkstream_nb.runners.operator.operator_tasks import work_batch, work_micro_batch, work_stateless
from sparkstream_nb.runners.operator.output_rows import as_batch, struct_types, unpack_all
from sparkstream_nb.runners.operator.packing import NO_TIME, PackedRows, pack_rows

Tasks = Sequence[Sequence[pa.RecordBatch]]
"""The rows of a frame by task."""


def run_batch(spec: OperatorSpec, frames: Mapping[str, Tasks]) -> list[pa.RecordBatch]:
    """The rows of all outputs over batch frames."""
    if spec.stateless:
        found = (b for i, tasks in enumerate(frames.values()) for t in tasks for b in work_stateless(spec, i, t))
        return _unpack(spec, found)
    packed = [*_pack(spec, frames, clock=True)]
    names = ["node", "first", "task", "number"] if spec.in_order else ["node", "task", "number"]
    table = pa.Table.from_batches(packed).sort_by([(name, "ascending") for name in names])
    return _unpack(spec, work_batch(spec, table.to_batches(max_chunksize=3)))


def _unpack(spec: OperatorSpec, messages: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    outputs = [*(o for o, _ in spec.outputs), LATE, ERRORS]
    return [*unpack_all(outputs, struct_types(spec, outputs), messages)]


def _pack(spec: OperatorSpec, frames: Mapping[str, Tasks], *, clock: bool = False) -> Iterator[pa.RecordBatch]:
    task = 0
    for i, tasks in enumerate(frames.values()):
        for batches in tasks:
            yield from pack_rows(spec, i, task, batches, clock=clock)
            task += 1


@dataclass
class MemoryState:
    """A node's state in memory."""

    note: tuple[str, str] | None = None
    pieces: dict[str, bytes] = field(default_factory=dict)

    def version(self) -> tuple[str, str] | None:
        return self.note

    def set_version(self, version: str, digests: str) -> None:
        self.note = version, digests

    def piece(self, digest: str) -> bytes | None:
        return self.pieces.get(digest)

    def put_piece(self, digest: str, piece: bytes) -> None:
        self.pieces[digest] = piece

    def remove_piece(self, digest: str) -> None:
        del self.pieces[digest]


@dataclass
class RunningOperator:
    """An operator over streams: its states by node, its timers, and the watermark (ms) of the next micro-batch."""

    spec: OperatorSpec
    states: dict[int, MemoryState] = field(default_factory=dict)
    timers: dict[int, int] = field(default_factory=dict)
    watermark: int = 0

    def micro_batch(self, frames: Mapping[str, Tasks], *, restart: bool = False) -> list[pa.RecordBatch]:
        """The rows of a micro-batch's outputs. With `restart`, nothing is left in memory of the one before."""
        if restart:
            HostedNode._in_memory.clear()
        messages: dict[int, list[PackedRows]] = {}
        latest = NO_TIME
        for batch in _pack(self.spec, frames):
            for key, *rest in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                messages.setdefault(key, []).append(PackedRows(*rest))
                latest = max(latest, rest[4])
        out = [b for key, own in messages.items() for b in self._work(key, own)]
        for key, time in list(self.timers.items()):
            if time <= self.watermark and key not in messages:
                out += self._work(key, [])
        return out

    def _work(self, key: int, messages: Sequence[PackedRows]) -> list[pa.RecordBatch]:
        found = work_micro_batch(self.spec, self.states.setdefault(key, MemoryState()), key, messages, self.watermark)
        assert found.former_timer == self.timers.pop(key, None)
        if found.timer is not None:
            self.timers[key] = found.timer
        return _unpack(self.spec, [as_batch(found.messages)])

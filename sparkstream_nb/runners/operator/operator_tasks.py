"""The work of an operator's tasks, for a stream and for a batch: packed rows in, rows of the operator's frame out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...engine.aggregation.bucket_calendar import LATEST
from ...journal.routing import spark_hash
from ..node_spec import NodeState
from .operator_node import OperatorNode
from .operator_spec import OperatorSpec
from .output_rows import OutputRows, as_batch
from .packing import NO_TIME, PackedRows, events_of, read_attributes, read_input
from .waiting_rows import join_as_they_come

STEP_ROWS = 1 << 18
"""Rows of a node that a batch processes at a time."""


@dataclass(frozen=True)
class MicroBatchResult:
    """Messages of a node's outputs (`output_rows.MESSAGES`), and the times (ms) of the watermark at which the node has
    something to do (None: when a row comes): the former time of its timer, and the new one. `state_bytes`: the size of
    its state."""

    messages: list[tuple[str, int, bytes]]
    former_timer: int | None
    timer: int | None
    state_bytes: int


def work_micro_batch(
    spec: OperatorSpec, state: NodeState, key: int, messages: Sequence[PackedRows], watermark: int
) -> MicroBatchResult:
    """Runs a node over the messages of a micro-batch, at a watermark (ms; 0: there is none yet), and stores its state.
    """
    number = spark_hash(key)
    effective_watermark = watermark if watermark > 0 else NO_TIME
    node = OperatorNode.open(spec, number, state)
    out = OutputRows(spec, number + 1)
    try:
        _take(node, messages, effective_watermark, out)
    except Exception:  # again from the stored state, setting aside the events that fail
        node, out = OperatorNode.open(spec, number, state, careful=True), OutputRows(spec, number + 1)
        _take(node, messages, effective_watermark, out)
        node.careful = False
    former_timer = node.set_timer(watermark)
    size = node.save(state, in_memory=True)
    return MicroBatchResult(out.take(), former_timer, node.timer, size)


def _take(node: OperatorNode, messages: Sequence[PackedRows], watermark: int, out: OutputRows) -> None:
    node.add(messages, watermark, out)
    if not node.spec.in_order:
        node.advance(None, out)
        return
    node.advance(max(watermark, node.find_complete() - 1), out)
    # The clock moves by itself only as far as the watermark, which is the time of some row where the delay is 0.
    node.tick(watermark, out)
    if watermark > NO_TIME:
        node.put_buckets(watermark, out)


def work_batch(spec: OperatorSpec, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The messages of all nodes of a partition: `batches` are packed rows in the order of nodes, and within a node of
    their first times, or, in order of arrival, as they came."""
    working: _BatchNode | None = None
    for key, message in _messages(batches):
        if working is None or working.number != spark_hash(key):
            if working is not None:
                yield from working.end()
            working = _BatchNode(spec, spark_hash(key))
        yield from working.take(message)
    if working is not None:
        yield from working.end()


def _messages(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, PackedRows]]:
    for batch in batches:
        *columns, rows = batch.columns
        for (key, stream, task, number, first, last), data in zip(
            zip(*(c.to_pylist() for c in columns), strict=True), rows, strict=True
        ):
            yield key, PackedRows(stream, task, number, first, last, data.as_py())


class _BatchNode:
    """A node that takes all its rows: those before the next message's first time as soon as there are many."""

    def __init__(self, spec: OperatorSpec, number: int) -> None:
        self.number = number
        self._node = OperatorNode(spec, number, careful=True)
        self._out = OutputRows(spec, number + 1)
        self._last = NO_TIME

    def take(self, message: PackedRows) -> Iterator[pa.RecordBatch]:
        """Takes a message in; the messages that are known by then."""
        self._last = max(self._last, message.last)
        if message.first > NO_TIME and self._node.rows_waiting >= STEP_ROWS:
            self._advance(message.first - 1)
        self._node.add([message], None, self._out)
        yield as_batch(self._out.take())

    def _advance(self, until: int | None) -> None:
        self._node.waiting.sort(key=lambda run: run.came)
        self._node.advance(until, self._out)

    def end(self) -> Iterator[pa.RecordBatch]:
        """The outputs of all that is left, up to the last time of all rows of the frames."""
        self._advance(None)
        if self._node.spec.in_order and self._node.engine.started:
            self._node.tick(self._last, self._out)
            self._node.put_buckets(LATEST, self._out)
        yield as_batch(self._out.take())


def work_stateless(spec: OperatorSpec, stream: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The outputs of an input's rows where each depends on its row alone: they need no node, and no order."""
    node = OperatorNode(spec, 0, careful=True)
    out = OutputRows(spec, 1)
    input_stream = spec.inputs[stream]
    for rows in read_input(spec, stream, batches):
        out.put_errors(rows.errors)
        events = events_of(spec, stream, rows.ts, read_attributes(spec, stream), rows.columns)
        node.process(join_as_they_come([(input_stream.stream, events)]), out)
        yield as_batch(out.take())

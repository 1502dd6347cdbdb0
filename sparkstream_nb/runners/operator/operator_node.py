"""A node of an operator: an engine, and the rows that wait until the watermark has passed their times.

A row is taken when no row of an earlier time can come in time any more, and is late if it comes when the watermark is
after it. So a node takes its rows in the order of their times, and of equal times those that came first. Spark tells a
micro-batch the watermark that follows from the rows before it. What follows from the micro-batch's own rows is at least
their last time less the delay, of several inputs the least: rows before that need not wait for the next micro-batch.
The clock moves with the rows; where none comes and something is due, such as the end of a `not ... for`, with the
watermark.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping

import numpy as np

from ...checksums import from_json, to_json
from ...engine.aggregation.bucket_calendar import EARLIEST, FIXED
from ...engine.columnar.blocks import digest_of
from ...engine.node import NodeEngine
from ...engine.state.node_batch import Emitted, InputBatch, OutputOptions, Outputs, StreamRows, UnreadAttribute
from ...errors import SparkStreamError
from ...ingest.ingest import values_by_row
from ...journal.segments import StepsOfNode
from ...plan.state_units import aggregations_read
from ..node_host import HostedNode
from ..node_spec import NodeState, PieceStore
from ..node_state import damaged_state, read_piece
from .operator_spec import OperatorSpec
from .output_rows import LateRow, OutputRows, unpack_errors
from .packing import CLOCK, NO_TIME, REJECTED, PackedRows, pack_again, unpack_rows
from .piece_bundles import Bundles, PieceBundles, digests_of
from .waiting_rows import WaitingRun, join_as_they_come, merge_by_time

_SHORTEST_MONTH = 28 * 86_400_000
"""In ms. Months and years end no earlier after their beginning."""


class OperatorNode(HostedNode[OperatorSpec, NodeEngine]):
    """Node `number` of an operator.

    `waiting`: its rows that wait. `timer`: the time (ms) of the watermark for which the runner's timer is set; None: it
    is not. `last_times`: by input, the last time (ms) of rows that the node knows of, its own and other nodes'.
    `complete`: all rows of earlier times (ms) were taken, and those that come now are late. `bucket_ends`: by output of
    an aggregation, the time (ms) before which its buckets were put out. `careful`: events that fail are set aside, at
    the price of a snapshot before each step.
    """

    def __init__(self, spec: OperatorSpec, number: int, *, careful: bool = False) -> None:
        self.number, self.careful = number, careful
        super().__init__((spec.id, number), spec)
        self.bundles: Bundles = {}
        self.timer: int | None = None
        self.waiting: list[WaitingRun] = []
        self.stored_runs: frozenset[str] = frozenset()
        self.last_times: dict[str, int] = {}
        self.complete = NO_TIME
        self.bucket_ends: dict[str, int] = {}

    @staticmethod
    def open(spec: OperatorSpec, number: int, state: NodeState, *, careful: bool = False) -> OperatorNode:
        """The node whose state a runner has: from memory where its version is there, else restored.

        Raises SparkStreamError if the state belongs to an operator with other inputs or another number of nodes.
        """
        node = OperatorNode.from_memory((spec.id, number), spec, state.version())
        if node is None or careful:
            node = OperatorNode(spec, number, careful=careful)
            node.restore(state)
        return node

    def make_engine(self) -> NodeEngine:
        return NodeEngine(
            self.spec.bound_plan,
            shard=f"node-{self.number + 1}",
            allow_scripts=self.spec.scripts,
            tokens=self.spec.tokens,
            # else buckets that are no output, and that no query reads, would be kept for ever
            outputs=OutputOptions(stored=not self.spec.buckets),
        )

    def is_of(self, spec: OperatorSpec) -> bool:
        return self.spec.id == spec.id

    # ------------------------------------------------------------------------------------------------------- rows

    def add(self, messages: Iterable[PackedRows], watermark: int | None, out: OutputRows) -> None:
        """Takes messages in: rows that the watermark (ms; None: there is none) has passed are late."""
        if watermark is not None:
            watermark = max(watermark, self.complete)
        for message in sorted(messages, key=lambda m: (m.task, m.number)):
            if message.stream == REJECTED:
                out.put_errors(unpack_errors(message.rows))
            elif message.stream != CLOCK:
                self._add_rows(message, watermark, out)

    def _add_rows(self, message: PackedRows, watermark: int | None, out: OutputRows) -> None:
        stream = self.spec.inputs[message.stream].stream
        self.last_times[stream] = max(message.last, self.last_times.get(stream, NO_TIME))
        rows = unpack_rows(self.spec, message.stream, message.rows)
        run = WaitingRun(stream, rows, message=message.rows, came=(message.task, message.number))
        if self.spec.in_order and watermark is not None and message.first < watermark:
            late = run.take_until(watermark - 1)
            assert late is not None
            values = values_by_row(late.columns) or [[]] * len(late.ts)
            out.put_late([LateRow(stream, t, v) for t, v in zip(late.ts.tolist(), values, strict=True)])
        if not run.is_done:
            self.waiting.append(run)

    def advance(self, watermark: int | None, out: OutputRows) -> None:
        """Process the rows up to the watermark (ms), that time included; None: all rows."""
        if self.spec.in_order:
            by_place = sorted(self.waiting, key=lambda r: self._place(r.stream))
            rows = [(r.stream, part) for r in by_place if (part := r.take_until(watermark)) is not None]
            self.process(merge_by_time(rows), out)
        else:
            rows = [(r.stream, part) for r in self.waiting if (part := r.take_until(None)) is not None]
            self.process(join_as_they_come(rows), out)
        self.waiting = [r for r in self.waiting if not r.is_done]

    def find_complete(self) -> int:
        """Notes and returns the time (ms) before which no row will come in time: what the next watermark is at least.
        """
        delays, inputs = self.spec.delays, self.spec.inputs
        if delays is not None and len(self.last_times) == len(inputs):
            earliest = min(self.last_times[i.stream] - delay for i, delay in zip(inputs, delays, strict=True))
            self.complete = max(self.complete, earliest)
        return self.complete

    def put_buckets(self, now: int, out: OutputRows) -> None:
        """Gives the rows of aggregations whose buckets have ended by `now` (ms). The node forgets those that no query
        reads, and buckets of durations that are no output."""
        if not self.spec.buckets:
            return
        plan = self.spec.bound_plan
        read_by_queries = aggregations_read(plan)
        put_out = {(output.aggregation, output.per) for output in self.spec.buckets}
        for output in self.spec.buckets:
            aggregation = self.engine.parts.aggregations[output.aggregation]
            end = int(aggregation.calendar.floor(output.per, np.array([now]))[0])
            columns = aggregation.rows(output.per, self.bucket_ends.get(output.name, EARLIEST), end)
            self.bucket_ends[output.name] = end
            if len(columns[0]):
                strings = self.engine.services.strings
                ts, names = columns[0].values, plan.schema(output.aggregation).names
                arrays = [c.to_arrow(strings) for c in columns]
                out.put_events(output.name, Emitted(names, np.zeros(len(ts), np.int64), ts, arrays))
            if output.aggregation not in read_by_queries:
                for per in plan.aggregations[output.aggregation].durations:
                    if per == output.per or (output.aggregation, per) not in put_out:
                        aggregation.forget_until(per, end)

    def tick(self, now: int, out: OutputRows) -> None:
        """Moves the clock to `now` (ms) if something is due by then."""
        due = self.engine.next_due()
        if due is not None and due <= now and now > self.engine.now:
            self.process(InputBatch(np.array([now], np.int64)), out)

    def set_timer(self, watermark: int) -> int | None:
        """Sets `timer`, at a watermark (ms): the earliest time at which the node has something to do, and later than
        the watermark; None if nothing waits. Returns the former one."""
        former_timer = self.timer
        time = self._next_time() if self.spec.in_order else None
        self.timer = None if time is None else max(time, watermark + 1, 1)
        return former_timer

    def _next_time(self) -> int | None:
        times = [r.first for r in self.waiting]
        due = self.engine.next_due()
        if due is not None:
            times.append(due)
        for output in self.spec.buckets:
            begins = self.engine.parts.aggregations[output.aggregation].first_bucket(output.per)
            if begins is not None and begins >= self.bucket_ends.get(output.name, EARLIEST):
                times.append(begins + FIXED.get(output.per, _SHORTEST_MONTH))
        return min(times, default=None)

    @property
    def rows_waiting(self) -> int:
        """The number of rows that wait."""
        return sum(map(len, self.waiting))

    def _place(self, stream: str) -> int:
        return next(i for i, stream_input in enumerate(self.spec.inputs) if stream_input.stream == stream)

    def process(self, batch: InputBatch | None, out: OutputRows) -> None:
        """Lets the engine take a batch. If it fails, the steps that fail by themselves are set aside as errors."""
        if batch is None:
            return
        piece = StepsOfNode(0, 0, 0, self.engine.now, batch)
        parts = self.step_carefully(piece) if self.careful else [(piece, self.step(piece))]
        for _, outputs in parts:
            self._put(outputs, out)

    def _put(self, outputs: Outputs, out: OutputRows) -> None:
        for name, _ in self.spec.outputs:
            if name in outputs.streams:
                out.put_events(name, outputs.streams[name])
        out.put_errors(outputs.errors)
        for line in outputs.logs:  # of the stream function `log`: into the log of Spark's worker
            print(line, file=sys.stderr)

    # ------------------------------------------------------------------------------------------------------ state

    def open_store(self, state: NodeState) -> PieceBundles:
        return PieceBundles(state, self.bundles)

    def write_note(self, store: PieceStore) -> str:
        assert isinstance(store, PieceBundles)
        for run in self.waiting:
            if run.message:
                if 2 * run.start > len(run.rows.ts):
                    run.rows, run.start = run.rest, 0
                    run.message = pack_again(run.rows)
                run.digest = digest_of(run.message)
                store.put_piece(run.digest, run.message)
                run.message = b""
        runs = frozenset(run.digest for run in self.waiting)
        for digest in self.stored_runs - runs - set(self.pieces):
            store.remove_piece(digest)
        self.stored_runs = runs
        self.bundles = store.write()
        places = {digest: i for i, digest in enumerate(digests_of(self.bundles))}
        note = {
            "bytes": self.state_bytes,
            "bundles": self.bundles,
            "pieces": [places[digest] for digest in self.pieces],
            "waiting": [[run.stream, run.digest, run.start] for run in self.waiting],
            "layout": self.spec.layout,
            "reached": self.last_times,
            "complete": self.complete,
            "given": self.bucket_ends,
            "timer": self.timer,
        }
        return to_json(note)

    def read_note(self, note: str, state: NodeState) -> PieceStore:
        try:
            data = from_json(note)
            layout, waiting = data["layout"], data["waiting"]
            self.bucket_ends, self.timer = data["given"], data["timer"]
            self.last_times, self.complete = data["reached"], data["complete"]
            self.bundles = {key: [(digest, size) for digest, size in pieces] for key, pieces in data["bundles"].items()}
            digests = digests_of(self.bundles)
            self.pieces = [digests[i] for i in data["pieces"]]
        except (ValueError, KeyError, TypeError, IndexError) as error:
            reason = error if isinstance(error, ValueError) else "not what was written"
            raise damaged_state(f"the list of its pieces: {reason}") from None
        _check_layout(self.spec, layout)
        store = PieceBundles(state, self.bundles)
        for stream, digest, start in waiting:
            place = self._place(stream)
            rows = unpack_rows(self.spec, place, read_piece(store, digest))
            _check_columns(self.spec, place, rows)
            self.waiting.append(WaitingRun(stream, rows, digest, start=start))
        self.stored_runs = frozenset(run.digest for run in self.waiting)
        return store


def _check_columns(spec: OperatorSpec, stream: int, rows: StreamRows) -> None:
    """Raises SparkStreamError if rows that waited in a checkpoint lack a column that the text reads."""
    stream_input = spec.inputs[stream]
    for place in sorted(spec.read_by_text[stream_input.stream]):
        if isinstance(rows.columns[place], UnreadAttribute):
            attribute = f"{stream_input.stream}.{stream_input.schema.names[place]}"
            raise SparkStreamError(
                f"The checkpoint does not fit this siddhi(): its text reads '{attribute}', which "
                "the former text did not read, and rows that wait in the checkpoint were kept without it. Restore the "
                "former text, or start the query with a new checkpointLocation. With late=True all columns are kept"
            )


def _check_layout(spec: OperatorSpec, stored_layout: Mapping[str, object]) -> None:
    """Raises SparkStreamError if a checkpoint belongs to another operator."""
    for name, now in spec.layout.items():
        before = stored_layout.get(name)
        if before != now:
            raise SparkStreamError(
                f"The checkpoint does not fit this siddhi(): {name} was {json.dumps(before)}, and is {json.dumps(now)} "
                "now. Restore that, or start the query with a new checkpointLocation"
            )

"""A private node for a trace: it takes one step at a time, and a tick of the clock whenever a timer is due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...engine.columnar.rows import CURRENT
from ...engine.node import NodeEngine
from ...engine.state.node_batch import Emitted, InputBatch, OutputOptions, Outputs, StreamRows
from ...engine.state.watching import Watching
from ...errors import Misuse
from ...ingest.ingest import columns_of
from ...limits import Limits
from ...plan import nodes
from ...plan.connectors.without_connections import disconnect_streams, move_stores_to_memory
from ..results.traces import TracedOutput
from .trace_feed import FeedStep, TraceFeed

IsBusy = Callable[[], bool]
"""True while a trace waits for the clock: a window holds events, or a partial match waits for the absence of one."""
_TICKS_AT_ONCE = 64
"""Ticks at one moment after which the next event comes: instances of a partition may need one each."""
_TICKS_AFTER = 200
"""Ticks after the last event at most."""
_MOST_TICKS = 5_000
"""Ticks before the last event at most."""
_SPANS_AFTER = 5
"""Lengths of the feed that the trace continues after the last event at most."""


@dataclass(frozen=True)
class Moment:
    """A step that the node took: the clock (ms) after it, whether only the clock moved, and the query's outputs."""

    time: int
    timer: bool
    outputs: list[TracedOutput]


class TracedNode:
    """A node that runs the app of a plan, without sources, sinks and stores, with the query or window `watched`; it
    keeps the outputs of `query`. `start`: when its clock starts (ms; None: with the first event)."""

    def __init__(
        self, plan: nodes.Plan, element_id: str, query: str, *, start: int | None = None, allow_scripts: bool = False
    ) -> None:
        self.plan = _name_query(disconnect_streams(move_stores_to_memory(plan)), query)
        self.watching = Watching(element_id)
        self._query = query
        self._limits, self._tick_count = Limits(), 0
        outputs = OutputOptions(trace=True, watching=self.watching)
        self.engine = NodeEngine(self.plan, allow_scripts=allow_scripts, start=start, outputs=outputs)
        self._names = next((q.select.schema.names for q in self.plan.queries if q.name == query), ())
        self.keys = self._partition_keys(query)

    def _partition_keys(self, query: str) -> dict[str, int] | None:
        """The instances of the query's partition by their keys; None outside partitions."""
        for element in self.plan.elements:
            if isinstance(element, nodes.Partition) and any(q.name == query for q in element.queries):
                return self.engine.parts.instances[element.id].numbers
        return None

    def key_of(self, instance: int) -> str:
        """The key of a partition instance; "" outside partitions."""
        return next((key for key, number in (self.keys or {}).items() if number == instance), "")

    def moments(self, feed: TraceFeed, is_busy: IsBusy) -> Iterator[Moment]:
        """Takes the steps of the feed, with the timers between them, and those after the last: up to its end, or for
        some time as long as `is_busy` says so. Raises `Misuse` if far too many timers are due."""
        steps, until = feed.steps, feed.until
        if feed.start < steps[0].time:
            yield self._step(feed.start, None)
        for step in steps:
            yield from self._ticks(step.time - 1)
            yield self._step(step.time, step)
        if until is not None:
            yield from self._ticks(until)
            if until > self.engine.now:
                yield self._step(until, None)
        else:
            last, first = steps[-1].time, steps[0].time
            limit = last + _SPANS_AFTER * (last - first) if last > first else 1 << 62
            for _ in range(_TICKS_AFTER):
                tick = next(self._ticks(limit), None) if is_busy() else None
                if tick is None:
                    return
                yield tick

    def _ticks(self, until: int) -> Iterator[Moment]:
        """A step at each moment up to `until` (ms) at which a timer is due."""
        same = 0
        while (due := self._due()) is not None and max(due, self.engine.now) <= until:
            same = same + 1 if due <= self.engine.now else 0
            if same > _TICKS_AT_ONCE:
                return
            self._tick_count += 1
            if self._tick_count > _MOST_TICKS:
                raise Misuse(f"more than {_MOST_TICKS:,} timers are due over this feed: trace a shorter one")
            yield self._step(max(due, self.engine.now), None)

    def _due(self) -> int | None:
        """When the next timer is due: of the node, and of watched windows, whose events may leave unseen."""
        due_times = [self.engine.next_due(), *(w.next_due() for w in self.watching.windows)]
        return min((int(t) for t in due_times if t is not None), default=None)

    def _step(self, time: int, step: FeedStep | None) -> Moment:
        batch = InputBatch(np.array([time], np.int64))
        if step is not None:
            n = len(step.rows)
            columns = columns_of(self.plan.schema(step.stream), step.rows, step.stream, self._limits)
            batch.rows[step.stream] = StreamRows(np.zeros(n, np.int64), np.full(n, time, np.int64), columns)
        return Moment(max(time, self.engine.now), step is None, self._take(self.engine.step(batch), time))

    def _take(self, outputs: Outputs, time: int) -> list[TracedOutput]:
        if self._query not in outputs.queries:
            return []
        current, expired_rows = outputs.queries[self._query]
        time = max(time, self.engine.now)

        def rows(emission: Emitted, is_expired: bool) -> Iterator[TracedOutput]:
            for _, values in emission.rows():
                yield TracedOutput(time, dict(zip(self._names, values, strict=True)), is_expired)

        by_kind = {True: rows(current, False), False: rows(expired_rows, True)}
        return [next(by_kind[kind == CURRENT]) for kind in self.watching.kinds[self._query]]


def _name_query(plan: nodes.Plan, name: str) -> nodes.Plan:
    """The plan in which the query counts as named by its author, so that the node tells its outputs."""

    def with_name(query: nodes.Query) -> nodes.Query:
        return replace(query, named=True) if query.name == name else query

    elements = tuple(
        replace(e, queries=tuple(map(with_name, e.queries))) if isinstance(e, nodes.Partition) else with_name(e)
        for e in plan.elements
    )
    return replace(plan, elements=elements)

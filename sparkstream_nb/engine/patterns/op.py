"""The operator of a pattern or sequence: rows of its streams in, matches out (`StateStreamRuntime` and its
receivers)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...plan import nodes as n
from ...types import Type
from ..columnar.column_data import Array, Column, Mask
from ..columnar.rows import Clock, Rows
from ..expressions import Env, compile_condition, compile_expr
from ..state.declared import DeclaredState, part, plain_value
from ..state.saving import Form, by_change
from ..state.services import Services
from .between_runs import candidates
from .filter_program import Filters
from .log import Key, PatternLog
from .machine_layout import lay_out, table
from .machine_memory import EVENTS, FAILURE, Cell, Link, MatchColumns, Partial, Scheduler, StateLists
from .matches import Matches, Partials, SentMatches, attribute_key
from .pattern_loop import DONE, NEED_EVENTS, NEED_MUCH, NEED_REPORT, NEED_ROOM, NEED_ROWS, run
from .pools import Pools
from .processors import FREE_TRIES
from .records import columns_of, dtype_of, offset_of
from .timed import run_timed

_FIRST_DUE = offset_of(Scheduler, "heap")

TRIM_FROM = 4096
"""The log is trimmed when it holds this many events, and twice as many as after the last trim."""


class StateOp(DeclaredState):
    """One pattern. `inputs`: the ids of the streams that it reads; `schedulers`: how many timer phases it uses, from
    `scheduler` on. `select` gives the attributes of matches that are read. `query` names it in errors.
    """

    pools: Pools = part(saved_as="machine")
    _whole: bool | None = plain_value()
    _chunks: int = plain_value(0)
    _begun: int = plain_value(0)
    """Number of partition instances that were seen here."""

    def __init__(
        self, input: n.StateInput, services: Services, scheduler: int, select: n.Select, query: str = ""
    ) -> None:
        self.services = services
        self._create()
        self.query = query
        self.layout = lay_out(input, scheduler)
        self.inputs = list(self.layout.streams)
        self.tie: Sequence[str] = self.inputs
        """The streams in the order in which rows of one order key reach the pattern."""
        self.schedulers = len(self.layout.timers)
        ps = self.layout.processors
        filters = Filters(self.layout, table(self.layout), services.strings)
        for p, processor in enumerate(ps):
            filters.add(p, [s.condition for s in processor.state.input.steps if isinstance(s, n.FilterStep)])
        context = services.context
        self._current = [[compile_condition(e, context) for e in x] for x in filters.current]
        self._slow = [[compile_condition(e, context) for e in x] for x in filters.slow]
        # Attributes that a stream function appends are null in a pattern, as they are in Siddhi.
        self._appended_types = [
            [t for step in x.state.input.steps if isinstance(step, n.FunctionStep) for t in step.appends.types]
            for x in ps
        ]
        self._evaluators = [compile_expr(d.expr, context) for d in filters.derived_columns]
        self._reason = "a filter of the pattern failed"
        exprs = [*(i.expr for i in select.items), *select.group_by, *select.unselected]
        exprs += [e for x in filters.slow for e in x]
        if select.having is not None:
            exprs.append(select.having)
        kept_types = self._kept(e for x in exprs for e in n.walk(x))
        self.log = PatternLog(len(self.inputs), filters.derived_columns, self._special(), kept_types)
        self.pools = Pools(self.layout, filters, self.log)
        expressions = filters.all_expressions
        reads_clock = n.Call | n.ScriptCall | n.InTable
        self._reads_clock = any(isinstance(x, reads_clock) for d in expressions for x in n.walk(d))
        self._trim_at = TRIM_FROM
        self._rate = self._events_rate = 0.125  # matches, and events of counted states, a row to make room for

    # -------------------------------------------------------------------------------------------------------- set-up

    def _kept(self, instances: Iterable[n.Expr]) -> dict[Key, Type]:
        """The columns of the log that references need."""
        out: dict[Key, Type] = {}
        for e in instances:
            if isinstance(e, n.Ref) and e.slot in self.layout.slots:
                p = self.layout.slots[e.slot]
                schema = self.layout.processors[p].state.input.schema
                out[attribute_key(self.layout, p, e.attr)] = schema[e.attr].type
        if self.services.describes:
            for p, processor in enumerate(self.layout.processors):
                for attr, type_ in enumerate(processor.state.input.source.schema.types):
                    out[attribute_key(self.layout, p, attr)] = type_
        return out

    def _special(self) -> list[Column]:
        """The derived columns of no event and of an event without values."""
        rows = 2
        zeros = np.zeros(rows, np.int64)

        def resolve(ref: n.Ref | n.EventRef) -> Column:
            if isinstance(ref, n.EventRef):
                return Column(Type.BOOL, np.zeros(rows, np.bool_), np.array([True, False]))
            return Column.all_null(ref.type, rows)

        def event_time(ref: n.EventRef) -> Column:
            return Column.all_null(Type.LONG, rows)

        env = Env(rows, self.services.strings, zeros, zeros, resolve, event_time=event_time)
        return [evaluate(env) for evaluate in self._evaluators]

    # ------------------------------------------------------------------------------------------------------- running

    def run(self, inputs: Sequence[tuple[str, Rows]], clock: Clock) -> Matches:
        """Takes the rows of each stream (in any order of streams; a stream without rows may be left out) and the timers
        of the clock's steps, and returns the matches. A partition instance begins with its first row here."""
        by_stream = {s: r for s, r in inputs if len(r)}
        rows = [by_stream.get(s) for s in self.inputs]
        merged_rows = _Merged(rows, [self.inputs.index(s) for s in self.tie])
        if self._whole is None:
            self._whole = not self.services.is_partitioned
        pools, x = self.pools, self.pools.machine
        pools.need_instances(max(merged_rows.instances, self.services.instances))
        if self.schedulers:
            pools.hashes(self.services.partition.hashes())
        x.is_partitioned = self.services.is_partitioned
        if self.layout.begins_alone and self.services.is_partitioned and self._begun < self.services.instances:
            # Siddhi begins an instance in all queries of the partition when an event of any stream makes it.
            fresh = np.setdiff1d(np.arange(self._begun, self.services.instances), merged_rows.instance)
            pools.begin(fresh, self.services.partition.born())
            self._begun = self.services.instances
        if merged_rows.n == 0 and (self.schedulers == 0 or clock.last == clock.first):
            return self._matches(np.empty((x.match_columns, 0), np.int64), np.empty(0, np.int64))
        masks = self._append(rows, merged_rows, clock)
        out = np.empty((x.match_columns, 64 + int(merged_rows.n * self._rate)), np.int64)
        events = np.empty(64 + int(merged_rows.n * self._events_rate) if x.counted_states else 1, np.int64)
        times = np.ascontiguousarray(clock.now, np.int64)
        may_fire = np.ascontiguousarray(clock.may_fire).astype(np.uint8)
        for name, array in (
            ("row_streams", merged_rows.stream), ("row_instances", merged_rows.instance),
            ("row_order_keys", merged_rows.order_key), ("row_masks", masks), ("clock_times", times),
            ("clock_may_fire", may_fire), ("row_continues", merged_rows.more), ("matches", out),
            ("match_events", events),
        ):  # fmt: skip
            pools.hold(name, array)
        x.match_capacity, x.match_event_capacity, x.match_count, x.match_event_count = out.shape[1], len(events), 0, 0
        x.row, x.row_count, x.log_base = 0, merged_rows.n, merged_rows.base
        x.first_step, x.step, x.step_end = clock.base, clock.base + clock.first, clock.base + clock.last
        x.timer = x.marked_from = x.late = 0
        x.is_clock_current = False
        self._loop(rows, merged_rows, clock)
        out = pools.array("matches")[:, : x.match_count]
        events = pools.array("match_events")[: x.match_event_count]
        matches = self._matches(out, events)
        if merged_rows.n:
            self._rate = max(1.25 * len(matches) / merged_rows.n, self._rate / 2)
            self._events_rate = max(1.25 * len(events) / merged_rows.n, self._events_rate / 2)
        if self.log.n > self._trim_at:
            pools.trim()
            self._trim_at = max(TRIM_FROM, 2 * self.log.n)
        pools.fit_index()
        return matches

    def next_due(self) -> int | None:
        """The first scheduled time (ms) of the absent states; None if there is none. Of instances that have not begun
        here, the time at which the first was made: they schedule theirs in the next run."""
        heaps = self.pools.schedulers if self.schedulers else ()
        due = [int(heap[_FIRST_DUE]) for heap in heaps if heap[Scheduler.size]]
        if self.layout.begins_alone and self.services.is_partitioned and self._begun < self.services.instances:
            due.append(int(self.services.partition.born()[self._begun :].min()))
        return min(due, default=None)

    def _loop(self, rows: Sequence[Rows | None], merged_rows: _Merged, clock: Clock) -> None:
        """Run the compiled loop to its end, serving each request that it returns with."""
        pools, x = self.pools, self.pools.machine
        address, n = pools.header.ctypes.data, len(self.layout.processors)
        loop = run_timed if self.schedulers else run
        while True:
            status = loop(address, int(bool(self._whole)), self.services.clock.start)
            if status == DONE:
                return
            if status == NEED_ROOM:
                pools.reserve_records((4 * n + 8) * (FREE_TRIES * n + 1))
            elif status == NEED_MUCH:
                pools.reserve_records(x.room_needed)
            elif status == NEED_ROWS:
                out = pools.array("matches")
                more = np.empty((len(out), 2 * out.shape[1]), np.int64)
                more[:, : out.shape[1]] = out
                pools.hold("matches", more)
                x.match_capacity = more.shape[1]
            elif status == NEED_EVENTS:
                events = pools.array("match_events")
                longer = np.empty(2 * len(events) + x.room_needed, np.int64)
                longer[: len(events)] = events
                pools.hold("match_events", longer)
                x.match_event_capacity = len(longer)
            elif status == NEED_REPORT:
                self._report(rows, merged_rows, clock)
            else:
                self._judge(merged_rows, clock)
                x.has_verdicts = True

    def _append(self, rows: Sequence[Rows | None], merged_rows: _Merged, clock: Clock) -> Array:
        """Puts the rows into the log; returns which rows pass the filters that need no other event.
        uint8[rows, processors]."""
        derived_values: dict[int, Column] = {}
        failed_masks: dict[int, Mask] = {}
        kept_values: dict[Key, Column] = {}
        ps = self.layout.processors
        masks = np.ones((merged_rows.n, len(ps)), np.uint8)
        for s, r in enumerate(rows):
            if r is None:
                continue
            now = clock.at(r.order_key) if self._reads_clock else r.ts
            place = merged_rows.places[s]
            for p in self.layout.receivers[s]:
                columns = [*r.columns, *(Column.all_null(t, len(r)) for t in self._appended_types[p])]
                env = self._row_env(r, now, columns)
                if self._current[p]:
                    mask = _passing_rows(self._current[p], env)
                    if env.failed_rows is not None:
                        self._reason = env.reasons[-1][1]
                    if place is None:
                        masks[:, p] = mask
                    else:
                        masks[place, p] = mask
                for i, d in enumerate(self.log.derived_columns):
                    if d.stream == s and (d.processor == p or (d.processor < 0 and i not in derived_values)):
                        env = self._row_env(r, now, columns)
                        derived_values[i] = self._evaluators[i](env)
                        if env.failed_rows is not None:
                            failed_masks[i], self._reason = env.failed_rows, env.reasons[-1][1]
                for key in self.log.columns:
                    if key[0] == s and (key[1] == p or (key[1] < 0 and key not in kept_values)):
                        kept_values[key] = columns[key[2]]
        merged_rows.base = self.log.append(
            merged_rows.ts,
            merged_rows.stream,
            merged_rows.places,
            [0 if r is None else len(r) for r in rows],
            derived_values,
            kept_values,
            failed_masks,
        )
        self.pools.bind_log()
        return masks

    def _row_env(self, rows: Rows, now: Array, columns: Sequence[Column]) -> Env:
        def resolve(ref: n.Ref | n.EventRef) -> Column:
            if isinstance(ref, n.EventRef):
                return Column(Type.BOOL, np.zeros(len(rows), np.bool_))
            return columns[ref.attr]

        def event_time(ref: n.EventRef) -> Column:
            return Column(Type.LONG, rows.ts)

        return Env(
            len(rows), self.services.strings, rows.ts, now, resolve,
            tables=self.services.in_table, event_time=event_time,
        )  # fmt: skip

    def _report(self, rows: Sequence[Rows | None], merged_rows: _Merged, clock: Clock) -> None:
        """The event at hand failed in a filter: it goes where the errors of its stream go."""
        i = self.pools.machine.row
        stream = int(merged_rows.stream[i])
        place, r = merged_rows.places[stream], rows[stream]
        assert r is not None
        one = np.array([i if place is None else int(np.searchsorted(place, i))])
        columns = [c.take(one) for c in r.columns]
        env = self._row_env(r.take(one), clock.at(r.order_key[one]), columns)
        env.fail(np.ones(1, np.bool_), self._reason)
        self.services.route_failed(self.query, self.inputs[stream], env, columns, r.order_key[one])

    def _judge(self, merged_rows: _Merged, clock: Clock) -> None:
        """Evaluate filters that only Python can, for one event and all partials that it may meet, and leave the
        verdicts in their list entries.
        """
        pools, x = self.pools, self.pools.machine
        i = x.row
        stream = int(merged_rows.stream[i])
        receivers = self.layout.receivers[stream]
        p = receivers[len(receivers) - 1 - x.ordinal]
        instance, n = int(merged_rows.instance[i]), len(self.layout.processors)
        lists = pools.array("lists").view(dtype_of(StateLists))
        cells = np.empty(int(lists["pending_count"][instance * n + p]), np.int64)
        cells = cells[: candidates(pools.header.ctypes.data, p, cells)]
        if len(cells) == 0:
            return
        entries, partials, links = pools.array("cells"), pools.array("partials"), pools.array("links")
        g = merged_rows.base + i
        places = entries[cells + Cell.partial]
        slots = partials[places[:, None] + EVENTS + np.arange(n)]
        first, count, events = slots.copy(), (slots != 0).astype(np.int64), np.empty(0, np.int64)
        first[:, p], count[:, p] = g, 1
        for q, processor in enumerate(self.layout.processors):
            if processor.is_counted:
                chains: list[int] = []
                for k, chain in enumerate(slots[:, q].tolist()):
                    start = len(chains)
                    while chain:
                        chains.append(int(links[chain + Link.event]))
                        chain = int(links[chain + Link.next])
                    if q == p:
                        chains.append(g)
                    first[k, q], count[k, q] = len(events) + start, len(chains) - start
                events = np.concatenate([events, np.array(chains, np.int64)])
        view = Partials.over(self.layout, self.services.strings, self.log, first.T, count.T, events)
        filter_slot = self.layout.processors[p].state.slot
        env = Env(
            len(cells), self.services.strings, partials[places + Partial.time],
            np.full(len(cells), clock.at(merged_rows.order_key[i : i + 1])[0]),
            lambda ref: view.resolve(ref, filter_slot),
            tables=self.services.in_table, event_time=lambda ref: view.event_time(ref, filter_slot),
        )  # fmt: skip
        entries[cells + Cell.verdict] = _passing_rows(self._slow[p], env)
        pools.touch("cells", cells + Cell.verdict)
        if env.failed_rows is not None:
            self._reason = env.reasons[-1][1]

    def _matches(self, out: Array, events: Array) -> Matches:
        """The matches of the columns `out`, and `events` of their counted states."""
        n, x, columns = len(self.layout.processors), self.pools.machine, columns_of(MatchColumns, out)
        first = columns.events[:n]
        counts = columns.events[n:] if x.counted_states else first
        slots = Partials.over(self.layout, self.services.strings, self.log, first, counts, events)
        chunk = np.arange(self._chunks, self._chunks + out.shape[1])
        group = columns.group + self._chunks
        self._chunks += out.shape[1]
        instance = None if self._whole else columns.instance.astype(np.int32)
        if x.marked_from:
            columns.kind[: x.marked_from - 1] = 0
        kind = columns.kind.astype(np.int8) if x.marked_from else None
        sent_matches = None
        if x.late:
            early = x.late - 1
            columns.partial[:early] = np.arange(early)
            columns.sent_time[:early] = columns.time[:early]
            columns.sent_kind[:early] = 0 if kind is None else kind[:early]
            sent_matches = SentMatches(columns.sent_time, columns.sent_kind.astype(np.int8), columns.partial)
        return Matches(columns.time, columns.order_key, chunk, kind, instance, group, slots, sent_matches)

    # --------------------------------------------------------------------------------------------------------- state

    def _state(self, form: Form) -> dict[str, Any]:
        """By change, with all of the machine's memory."""
        state = super()._state(form)
        return {**state, "trim": self._trim_at} if form is by_change else state

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self._trim_at = state.get("trim", max(TRIM_FROM, 2 * self.log.n))

    def forget(self, instances: Array) -> None:
        """Drops the state of partition instances; they restart with their next row."""
        self.pools.forget(instances[instances < self.pools.instances])

    @property
    def bytes(self) -> int:
        """Bytes of partials, their list entries and events."""
        return self.pools.bytes

    @property
    def rows(self) -> int:
        """Partial matches that wait at a state."""
        return self.pools.waiting_matches


def _passing_rows(conditions: Sequence[Callable[[Env], Mask]], env: Env) -> Array:
    """uint8[n]: which rows fulfil all conditions; `FAILURE` where the first that does not hold failed."""
    mask = conditions[0](env)
    for condition in conditions[1:]:
        env.narrow(mask)
        mask = mask & condition(env)
    out = mask.astype(np.uint8)
    if env.failed_rows is not None:
        out[env.failed_rows] = FAILURE
    return out


class _Merged:
    """The rows of all streams in one order: int64[n] each; `places[s]`: positions of the rows of stream s (None: all);
    `more` uint8: whether the next row belongs to the same chunk.
    """

    def __init__(self, rows: Sequence[Rows | None], tie: Sequence[int]) -> None:
        self.base = 0
        present = [(s, r) for s in tie if (r := rows[s]) is not None]
        self.places: list[Array | None] = [None] * len(rows)
        if len(present) == 1:
            s, r = present[0]
            self.order_key, self.ts = np.ascontiguousarray(r.order_key, np.int64), r.ts
            self.stream = np.full(len(r), s, np.int64)
            self.instance = np.zeros(len(r), np.int64) if r.instance is None else r.instance.astype(np.int64)
            chunk = r.chunk
        else:
            none = np.empty(0, np.int64)
            order_key = np.concatenate([none, *(r.order_key for _, r in present)])
            order = np.argsort(order_key, kind="stable")
            self.order_key = order_key[order]
            self.ts = np.concatenate([none, *(r.ts for _, r in present)])[order]
            self.instance = np.concatenate([none, *(r.instances() for _, r in present)]).astype(np.int64)[order]
            self.stream = np.repeat([s for s, _ in present], [len(r) for _, r in present])[order].astype(np.int64)
            chunk = np.concatenate([none, *(r.chunk for _, r in present)])[order]
            where = np.empty(len(order), np.int64)
            where[order] = np.arange(len(order))
            start = 0
            for s, r in present:
                self.places[s] = where[start : start + len(r)]
                start += len(r)
        self.n = len(self.order_key)
        self.more = np.zeros(self.n + 1, np.uint8)
        if self.n:
            same = chunk[1:] == chunk[:-1]
            if same.any():
                same &= (self.stream[1:] == self.stream[:-1]) & (self.instance[1:] == self.instance[:-1])
                self.more[: self.n - 1] = same
        self.instances = int(self.instance.max()) + 1 if self.n else 0

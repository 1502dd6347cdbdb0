"""`define aggregation` inside a node: events into buckets, buckets into larger ones (`IncrementalExecutor`).

An event enters the bucket of its own time where the aggregation says `aggregate by`, else the bucket of the app's
clock, in every duration at once. Siddhi passes a bucket up only when it closes, and keeps late events in separate rows
until they are read; the result of a read is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import SiddhiRuntimeError
from ...plan.nodes import Agg, AggDuration, AggregationDef, Expr, walk
from ...types import Type
from ..aggregators import make_aggregator
from ..columnar.column_data import Array, Column
from ..columnar.frame import frame_of
from ..columnar.key_ids import IdTable, Keys, key_numbers
from ..columnar.rows import CURRENT, Clock, Rows
from ..expressions import Env, compile_expr
from ..state.services import Services
from .bucket_calendar import EARLIEST, LATEST, Calendar, parse_time
from .partials import (
    PartialRows,
    count_rows,
    empty_part,
    extreme,
    gather_sets,
    group_rows,
    join_parts,
    latest_rows,
    merge,
    part_bytes,
    set_elements,
    sum_values,
)
from .stored_buckets import Stored, keeps_last, to_table, view

_NO_TIME = np.iinfo(np.int64).min


class AggregationOp:
    """One aggregation of one node.

    `keep`: the node itself holds all buckets, for joins and retrievals. Not needed if a store takes the partials and
    nothing in the app reads the aggregation; its state then stays small.
    """

    def __init__(self, definition: AggregationDef, services: Services, *, zone: str = "GMT", keep: bool = True) -> None:
        self.definition = definition
        self.services = services
        self.keep = keep
        self.calendar = Calendar(zone)
        self._lasts = keeps_last(definition)
        context = services.context
        self._by = None if definition.by is None else compile_expr(definition.by, context)
        self._groups = [compile_expr(g, context) for g in definition.select.group_by]
        exprs = list(dict.fromkeys(b.arg for b in definition.base if b.arg is not None))
        self._args = {e: compile_expr(e, context) for e in exprs}
        # An aggregator inside a larger expression runs over all events of the stream, whatever bucket or group.
        self._running = [
            (
                a,
                make_aggregator(a, False, services.strings),
                [compile_expr(x, context) for x in a.args],
            )
            for a in dict.fromkeys(a for e in exprs for a in walk(e) if isinstance(a, Agg))
        ]
        types = [g.type for g in definition.select.group_by]
        self._keys = Keys(types, services.strings, null_is_text=False) if types else None
        self._times = np.empty(0, np.int64)  # of texts, by code; where `aggregate by` is a text
        self._fresh: dict[AggDuration, list[PartialRows]] = {d: [] for d in definition.durations}
        self._rows_by_duration: dict[AggDuration, _DurationRows] = {
            d: _DurationRows(definition, self._lasts) for d in definition.durations
        }

    # ------------------------------------------------------------------------------------------------------- events

    def run(self, rows: Rows, clock: Clock) -> None:
        """Adds events: the input's rows after its steps. An event whose time or values fail is recorded as an error."""
        if rows.kind is not None:
            rows = rows.where(rows.kind == CURRENT)
        if len(rows) == 0:
            return
        env = Env(len(rows), self.services.strings, rows.ts, lambda: clock.at(rows.order_key), frame_of(rows).resolve)
        times = self._event_times(env)
        keys = [g(env) for g in self._groups]
        if self._running:
            env.aggs = self._run_aggregators(env)
        values = {e: arg(env) for e, arg in self._args.items()}
        if env.failed_rows is not None:
            source = self.definition.input.source
            columns = list(rows.columns[: len(source.schema)])
            self.services.route_failed(self.definition.id, source.id, env, columns, rows.order_key)
            keep = np.flatnonzero(~env.failed_rows)
            if len(keep) == 0:
                return
            times, keys = times[keep], [k.take(keep) for k in keys]
            values = {e: c.take(keep) for e, c in values.items()}
        group = np.zeros(len(times), np.int32) if self._keys is None else self._keys.ids(keys)
        durations = self.definition.durations
        part = self._first(self.calendar.floor(durations[0], times), group, times, values)
        self._add(durations[0], part)
        for d in durations[1:]:
            up = PartialRows(self.calendar.floor(d, part.bucket), part.group, part.columns, part.last)
            part = merge(up, self.definition.base)
            self._add(d, part)

    def _add(self, duration: AggDuration, part: PartialRows) -> None:
        self._fresh[duration].append(part)
        if self.keep:
            self._rows_by_duration[duration].add(part)

    def _event_times(self, env: Env) -> Array:
        """int64[n] ms; rows without a usable time are marked as failed."""
        if self._by is None:
            times = env.clock()
        else:
            column = self._by(env)
            times = column.values if column.type is Type.LONG else self._parse_times(column.values, env)
            if column.null is not None and column.null.any():
                env.fail(column.null, "the event has no time to aggregate by")
        if len(times) and (times.min() < EARLIEST or times.max() > LATEST):
            outside = (times < EARLIEST) | (times > LATEST)
            env.fail(outside, "the event's time lies outside the years 1 to 9999")
            times = np.where(outside, 0, times)
        return times

    def _parse_times(self, codes: Array, env: Env) -> Array:
        """Times of texts, each distinct text read once."""
        strings = self.services.strings
        if len(self._times) < len(strings):
            unread = np.full(len(strings), np.iinfo(np.int64).max)
            unread[: len(self._times)] = self._times
            self._times = unread
        code_times = np.where(codes < 0, _NO_TIME, self._times[codes])
        for code in np.unique(codes[code_times == np.iinfo(np.int64).max]).tolist():
            try:
                self._times[code] = parse_time(strings.texts[code])
            except SiddhiRuntimeError:
                self._times[code] = _NO_TIME
        times = np.where(codes < 0, _NO_TIME, self._times[codes])
        bad = (times == _NO_TIME) & (codes >= 0)
        if bad.any():
            for code in np.unique(codes[bad]).tolist():
                try:
                    parse_time(strings.texts[code])
                except SiddhiRuntimeError as e:
                    env.fail(codes == code, str(e))
        return times

    def _run_aggregators(self, env: Env) -> dict[Agg, Column]:
        args = [[a(env) for a in arg_list] for _, _, arg_list in self._running]
        ok = None if env.failed_rows is None else np.flatnonzero(~env.failed_rows)
        out = {}
        for (node, aggregator, _), columns in zip(self._running, args, strict=True):
            if ok is None:
                out[node] = aggregator.run(tuple(columns), None, np.zeros(env.n, np.int32), 1)
                continue
            some = aggregator.run(tuple(c.take(ok) for c in columns), None, np.zeros(len(ok), np.int32), 1)
            place = np.zeros(env.n, np.int64)
            place[ok] = np.arange(len(ok))
            out[node] = some.take(place) if len(ok) else Column.all_null(node.type, env.n)
        return out

    def _first(self, bucket: Array, group: Array, times: Array, values: dict[Expr, Column]) -> PartialRows:
        """Events as rows of the smallest duration."""
        ids, first = group_rows(bucket, group)
        n = len(first)
        latest = latest_rows(times, ids, n) if self._lasts else None
        columns = []
        for b in self.definition.base:
            column = None if b.arg is None else values[b.arg]
            if b.kind == "count":
                columns.append(count_rows(column, ids, n))
                continue
            assert column is not None
            if b.kind == "sum":
                columns.append(sum_values(column, b.type, ids, n))
            elif b.kind in ("min", "max"):
                columns.append(extreme(column, b.kind == "max", ids, n))
            elif b.kind == "set":
                numbers, null = key_numbers(column, self.services.strings, null_is_text=False)
                _, once = group_rows(numbers if null is None else IdTable().assign(numbers, null)[0], ids)
                elements = set_elements(column.take(once).to_list(self.services.strings))
                columns.append(gather_sets(elements, ids[once], n))
            else:
                assert latest is not None
                columns.append(column.take(latest))
        return PartialRows(bucket[first], group[first], columns, None if latest is None else times[latest])

    # -------------------------------------------------------------------------------------------------------- output

    def partials(self) -> pa.Table | None:
        """The partials since the last call, for all durations (see `node_batch.Outputs.partials`); None if there are
        none."""
        tables = []
        for d, parts in self._fresh.items():
            if parts:
                rows = self._to_stored(merge(join_parts(parts), self.definition.base))
                tables.append(to_table(rows, d, self.services))
                self._fresh[d] = []
        return pa.concat_tables(tables) if tables else None

    def read(self, per: AggDuration, start: int, end: int) -> Stored:
        """The rows of `per` whose buckets begin in start ≤ t < end (ms), by time. Needs `keep`."""
        if not self.keep:
            raise ValueError(f"aggregation '{self.definition.id}' keeps nothing in the node: read its store")
        part = self._rows_by_duration[per].merge_rows()
        inside = np.flatnonzero((part.bucket >= start) & (part.bucket < end))
        order = inside[np.argsort(part.bucket[inside], kind="stable")]
        return self._to_stored(part.take(order))

    def purge(self, due: int) -> None:
        """Deletes the buckets that the purge of time `due` (ms) does not keep."""
        assert self.definition.retention is not None
        for d, rows in self._rows_by_duration.items():
            begins = self.definition.retention.begins(d, due)
            if begins is not None:
                part = rows.merge_rows()
                keep = np.flatnonzero(part.bucket >= begins)
                if len(keep) < len(part):
                    rows.leave(keep)

    def forget_until(self, per: AggDuration, end: int) -> None:
        """Deletes the buckets of `per` that begin before `end` (ms)."""
        part = self._rows_by_duration[per].merge_rows()
        keep = np.flatnonzero(part.bucket >= end)
        if len(keep) < len(part):
            self._rows_by_duration[per].leave(keep)

    def first_bucket(self, per: AggDuration) -> int | None:
        """The time (ms) at which the first bucket of `per` begins that the node holds; None if it holds none."""
        part = self._rows_by_duration[per].merge_rows()
        return int(part.bucket.min()) if len(part.bucket) else None

    def newest_rows(self, per: AggDuration) -> list[Column]:
        """`rows` of the newest bucket of `per`; none before the first event."""
        bucket = self._rows_by_duration[per].merge_rows().bucket
        last = int(bucket.max()) if len(bucket) else 0
        return self.rows(per, last, last + 1)

    def rows(self, per: AggDuration, start: int, end: int) -> list[Column]:
        """The result of `read` in the columns of the aggregation's schema: AGG_TIMESTAMP, then the selected names."""
        return view(self.read(per, start, end), self.services)

    def _to_stored(self, part: PartialRows) -> Stored:
        keys = [] if self._keys is None else [c.take(part.group) for c in self._keys.columns()]
        return Stored(self.definition, part.bucket, keys, part.columns, part.last)

    # --------------------------------------------------------------------------------------------------------- state

    @property
    def bytes(self) -> int:
        """Bytes of the buckets that the node holds."""
        parts = [p for k in self._rows_by_duration.values() for p in k.parts] + [
            p for ps in self._fresh.values() for p in ps
        ]
        return sum(part_bytes(p) for p in parts)

    def state(self) -> dict[str, Any]:
        """Plain data that `load` takes back."""
        return {
            "keys": None if self._keys is None else self._keys.state(),
            "running": [a.state() for _, a, _ in self._running],
            "kept": {d: _plain(k.merge_rows()) for d, k in self._rows_by_duration.items()} if self.keep else {},
            "fresh": {d: [_plain(p) for p in parts] for d, parts in self._fresh.items()},
        }

    def load(self, state: dict[str, Any]) -> None:
        if self._keys is not None:
            self._keys.load(state["keys"])
        for (_, aggregator, _), s in zip(self._running, state["running"], strict=True):
            aggregator.load(s)
        for d, p in state["kept"].items():
            self._rows_by_duration[d] = _DurationRows(self.definition, self._lasts)
            self._rows_by_duration[d].add(_part(p))
        self._fresh = {d: [_part(p) for p in parts] for d, parts in state["fresh"].items()}


@dataclass(slots=True)
class _DurationRows:
    """All rows of one duration: merged ones first, then parts that wait until they are twice as many."""

    definition: AggregationDef
    lasts: bool
    parts: list[PartialRows]
    waiting: int

    def __init__(self, definition: AggregationDef, lasts: bool) -> None:
        self.definition = definition
        self.lasts = lasts
        self.parts = [empty_part(definition.base, lasts)]
        self.waiting = 0

    def add(self, part: PartialRows) -> None:
        self.parts.append(part)
        self.waiting += len(part)
        if self.waiting > max(4096, 2 * len(self.parts[0])):
            self.merge_rows()

    def merge_rows(self) -> PartialRows:
        if len(self.parts) > 1:
            self.parts = [merge(join_parts(self.parts), self.definition.base)]
            self.waiting = 0
        return self.parts[0]

    def leave(self, index: Array) -> None:
        """Drops all rows but those at `index`."""
        self.parts = [self.merge_rows().take(index)]


def _plain(part: PartialRows) -> dict[str, Any]:
    return {"bucket": part.bucket, "group": part.group, "columns": part.columns, "last": part.last}


def _part(state: dict[str, Any]) -> PartialRows:
    columns: Sequence[Column] = state["columns"]
    return PartialRows(state["bucket"], state["group"], list(columns), state["last"])

"""An incremental aggregation as a side of a join: `join A on ... within ... per ...`."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...errors import SiddhiRuntimeError
from ...plan import nodes
from ...plan.nodes import EventRef, Ref
from ...types import Type
from ..aggregation import AggregationOp, within_range
from ..aggregation.bucket_calendar import duration_of
from ..columnar.column_data import Array, Column, concat
from ..expressions import Env, compile_expr
from ..state.services import Services


class LookupInput(Protocol):
    """Supplies an aggregation with its buffered rows: `up_to` applies those before (`order_key`, `rank`)."""

    aggregation: AggregationOp

    def up_to(self, order_key: int, rank: int) -> bool: ...


class AggregationLookup:
    """Reads the buckets of each row's range, then evaluates the join's condition over them.

    `within` and `per` may name attributes of the row, so every distinct range is read once, until the aggregation gets
    new rows. The bounds of each row's range are the last attributes of the rows' side (`nodes.RANGE`), from
    `range_from` on.
    """

    rank = 0
    """The reader's place among the operators."""

    def __init__(self, feed: LookupInput, join: nodes.JoinInput, slot: int, services: Services) -> None:
        self.feed, self.aggregation, self.slot = feed, feed.aggregation, slot
        context = services.context
        assert join.per is not None
        self._range = [compile_expr(e, context) for e in join.within]
        self._per = compile_expr(join.per, context)
        self._on = None if join.on is None else compile_expr(join.on, context)
        self._columns: list[Column] = []
        other = join.left if slot == 1 else join.right
        self.range_from = len(other.schema) - len(nodes.RANGE)
        self.ranges: list[Column] = []
        """Starts and ends of the ranges, for the rows of the last `find`."""

    def find(self, env: Env, order_keys: Array) -> tuple[Array, Array]:
        n = len(order_keys)
        bounds = [e(env).to_list(env.strings) for e in self._range]
        pers = self._per(env).to_list(env.strings)
        ranges = np.zeros((len(nodes.RANGE), n), np.int64)
        self.ranges = [Column(Type.LONG, bound) for bound in ranges]
        read: dict[tuple[object, ...], tuple[int, int, tuple[int, int]]] = {}
        blocks: list[list[Column]] = []
        at, place, size = [], [], 0
        for i, order_key in enumerate(order_keys.tolist()):
            if self.feed.up_to(order_key, self.rank):
                read.clear()
            key = (*(b[i] for b in bounds), pers[i])
            if key not in read:
                try:
                    columns, within = self._read(key)
                except SiddhiRuntimeError as e:
                    bad = np.zeros(n, np.bool_)
                    bad[i] = True
                    env.fail(bad, str(e))
                    continue
                blocks.append(columns)
                read[key] = (size, size + len(columns[0]), within)
                size += len(columns[0])
            a, b, ranges[:, i] = read[key]
            at.append(np.full(b - a, i))
            place.append(np.arange(a, b))
        schema = self.aggregation.definition.source.schema
        self._columns = (
            [concat(list(p)) for p in zip(*blocks, strict=True)] if blocks else [Column.empty(t) for t in schema.types]
        )
        rows = np.concatenate(at).astype(np.int64) if at else np.empty(0, np.int64)
        places = np.concatenate(place).astype(np.int64) if place else np.empty(0, np.int64)
        return self._find_pairs(env, rows, places)

    def _read(self, key: tuple[object, ...]) -> tuple[list[Column], tuple[int, int]]:
        """The buckets, and the bounds of their range."""
        if any(k is None for k in key):
            raise SiddhiRuntimeError("'within' or 'per' is null.")
        *within, per = key
        start, end = within_range(tuple(within))  # type: ignore[arg-type]
        d = self.aggregation.definition
        return list(self.aggregation.rows(duration_of(str(per), d.id, d.durations), start, end)), (start, end)

    def _find_pairs(self, env: Env, at: Array, place: Array) -> tuple[Array, Array]:
        if self._on is None or len(at) == 0:
            return at, place
        slot, columns = self.slot, self._columns

        def resolve(ref: Ref | EventRef) -> Column:
            if ref.slot == slot:
                if isinstance(ref, EventRef):
                    return Column(Type.BOOL, np.ones(len(at), np.bool_))
                return columns[ref.attr].take(place)
            if isinstance(ref, Ref) and ref.attr >= self.range_from:
                return self.ranges[ref.attr - self.range_from].take(at)
            return env.resolve(ref).take(at)

        def times(ref: EventRef) -> Column:
            return Column(Type.LONG, self.times(place) if ref.slot == slot else env.ts[at])

        sub = Env(
            len(at), env.strings, env.ts[at], env.clock()[at], resolve, tables=env.tables, event_time=times
        )
        result = self._on(sub)
        mask = result.values if result.null is None else result.values & ~result.null
        keep = np.flatnonzero(mask if sub.failed_rows is None else mask & ~sub.failed_rows)
        return at[keep], place[keep]

    def column(self, attr: int, positions: Array) -> Column:
        return self._columns[attr].take(positions)

    def times(self, positions: Array) -> Array:
        """Zeros: Siddhi makes the events of an aggregation without a timestamp."""
        return np.zeros(len(positions), np.int64)

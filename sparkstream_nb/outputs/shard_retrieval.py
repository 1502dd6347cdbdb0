"""Retrievals over the shards: of aggregations that lie in a store, of the tables and windows that each node holds.

Store or nodes give rows; merging, output expressions and the select are the engine's own, so a retrieval means the
same here as in a node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ..engine.aggregation import Stored, answer_rows, bounds_of, from_table, merge_stored, view
from ..engine.columnar.column_data import Column, StringPool
from ..engine.expressions import Context
from ..engine.state.node_batch import RetrievalAnswer
from ..engine.state.services import Services
from ..errors import NotInThisBuild, SiddhiRuntimeError, did_you_mean
from ..lang.parser import parse_on_demand
from ..lang.printer import to_text
from ..plan.nodes import (
    AggDuration,
    AggregationDef,
    Compare,
    Const,
    InTable,
    OutputItem,
    Plan,
    Ref,
    Retrieval,
    Select,
    walk,
)
from ..plan.query_parts import conjuncts
from ..stores.store_protocol import BucketRange, GroupFilter, Store
from ..types import Type
from .open_buckets import ALIVE, SHARD, BucketRows, closed_rows, finest_rows

MERGED_HERE = 200_000
"""Stored rows that a retrieval reads by shard and merges itself. More are merged by the store, which is quicker; sums
of doubles may then differ in the last digit, as a database adds in any order."""


@dataclass(frozen=True)
class Retrieved:
    """The `answer`. `by_shard` is the same select over each shard's rows alone, SHARD_ID first; None if
    the rows belong to no shard. It is made when asked for; of more than `MERGED_HERE` stored rows it is read then."""

    answer: RetrievalAnswer
    read_by_shard: Callable[[], RetrievalAnswer] | None

    @cached_property
    def by_shard(self) -> RetrievalAnswer | None:
        return None if self.read_by_shard is None else self.read_by_shard()


def retrieve(
    plan: Plan, retrieval: Retrieval, store: Store, *, now: int | None = None, as_wso2: bool | str = False
) -> Retrieved:
    """Answers a retrieval over an aggregation of `plan` from `store`, which must be prepared for it.

    `now` (ms) is the clock that functions such as `currentTimeMillis()` see; None: that of this machine. `as_wso2`: of
    an aggregation that is partitioned by id, as the node of this shard answers there in playback, or, with True, the
    one with the latest event; "alive": as nodes whose clock is the wall's (`open_buckets`).
    Raises SiddhiRuntimeError if `within`, `per`, `on` or the select fail.
    """
    assert retrieval.source is not None
    definition = plan.aggregations[retrieval.source.id]
    services = Services(StringPool(), Context())
    clock = int(time.time() * 1000) if now is None else now
    per, start, end = bounds_of(retrieval, definition, services, clock)
    groups = GroupFilter(equal=_wanted_keys(retrieval, definition))
    if not definition.partitioned:
        rows = from_table(definition, store.read(definition.id, per, start, end, groups), services)
        return Retrieved(_answer(retrieval, rows, services, clock), None)

    def by_shard(table: pa.Table) -> RetrievalAnswer:
        out: list[list[object]] = []
        columns = [(SHARD, "string"), *((a.name, str(a.type)) for a in retrieval.select.schema)]
        for shard in pc.unique(table.column(SHARD)).sort().to_pylist():
            rows = from_table(definition, table.filter(pc.equal(table.column(SHARD), pa.scalar(shard))), services)
            shard_rows = merge_stored(rows, services) if as_wso2 else rows
            out += [[shard, *row] for row in _answer(retrieval, shard_rows, services, clock).rows]
        return RetrievalAnswer(columns, out)

    if as_wso2:
        selection, zone = BucketRows(per, (start, end), groups), plan.aggregation_zone
        if as_wso2 == ALIVE:
            table = finest_rows(store, definition, selection, zone)
        else:
            shard = as_wso2 if isinstance(as_wso2, str) else None
            table = closed_rows(store, definition, selection, zone, shard)
        merged_rows = merge_stored(from_table(definition, table, services), services)
        return Retrieved(_answer(retrieval, merged_rows, services, clock), lambda: by_shard(table))
    if store.count(definition.id, per, BucketRange(start, end, MERGED_HERE + 1), groups) > MERGED_HERE:
        rows = from_table(definition, store.read(definition.id, per, start, end, groups), services)
        later = lambda: by_shard(store.read_by_shard(definition.id, per, start, end, groups))  # noqa: E731
        return Retrieved(_answer(retrieval, rows, services, clock), later)
    table = store.read_by_shard(definition.id, per, start, end, groups)
    merged_rows = merge_stored(from_table(definition, table, services), services)
    return Retrieved(_answer(retrieval, merged_rows, services, clock), lambda: by_shard(table))


def _wanted_keys(retrieval: Retrieval, definition: AggregationDef) -> tuple[tuple[str, object], ...]:
    """(group-by attribute, value) pairs that `on` demands, from its comparisons with `==` that are joined by `and`.

    They only narrow down the rows to read; `on` is evaluated all the same.
    """
    names = {g.name: g.type for g in definition.select.group_by if isinstance(g, Ref)}
    names_by_alias = {i.name: i.expr.name for i in definition.select.items if isinstance(i.expr, Ref)}
    out: list[tuple[str, object]] = []
    for e in conjuncts(retrieval.on):
        if not isinstance(e, Compare) or e.op != "==":
            continue
        for ref, const in ((e.left, e.right), (e.right, e.left)):
            if isinstance(ref, Ref) and isinstance(const, Const) and const.value is not None:
                name = names_by_alias.get(ref.name, ref.name)
                # Numbers of other types, and texts with characters that a database folds, are left to the engine.
                if names.get(name) is const.type and const.type in (Type.STRING, Type.INT, Type.LONG):
                    out.append((name, const.value))
    return tuple(out)


def rows_wanted(text: str) -> str:
    """The on-demand query for the rows that the select of `text` works on."""
    return to_text(replace(parse_on_demand(text), select=None))


def merge_nodes(retrieval: Retrieval, answers: Mapping[str, RetrievalAnswer], context: Context, now: int) -> Retrieved:
    """The select of a retrieval over all rows of `answers`, each shard's answer to `rows_wanted`.

    The rows come in the order of the shards, each shard's in its own. Raises SiddhiRuntimeError if the select fails,
    NotInThisBuild where it looks into a table, of which every shard has its own.
    """
    tops = [i.expr for i in retrieval.select.items] + [x for x in (retrieval.select.having,) if x is not None]
    if any(isinstance(e, InTable) for top in tops for e in walk(top)):
        raise NotInThisBuild("on-demand:merge", "'in' a table in a select over several nodes")
    assert retrieval.source is not None
    types = retrieval.source.schema.types
    services = Services(StringPool(), context)
    without_condition = replace(retrieval, on=None)

    def select(rows: list[list[object]]) -> RetrievalAnswer:
        columns = [Column.of(t, [r[i] for r in rows], services.strings) for i, t in enumerate(types)]
        return answer_rows(without_condition, columns, services, now)

    by_shard = [[shard, *row] for shard, answer in answers.items() for row in select(answer.rows).rows]
    columns = [(SHARD, "string"), *((a.name, str(a.type)) for a in retrieval.columns)]
    merged_answer = select([row for answer in answers.values() for row in answer.rows])
    return Retrieved(merged_answer, lambda: RetrievalAnswer(columns, by_shard))


def _answer(retrieval: Retrieval, rows: Stored, services: Services, now: int) -> RetrievalAnswer:
    return answer_rows(retrieval, view(rows, services), services, now)


def select_all(plan: Plan, aggregation: str, per: AggDuration, within: tuple[int | str, ...]) -> Retrieval:
    """The retrieval `from AGGREGATION within ... per ... select *`.

    `within` is one wildcard text or two bounds (texts, or ms). Raises SiddhiRuntimeError for an unknown aggregation.
    """
    definition: AggregationDef | None = plan.aggregations.get(aggregation)
    if definition is None:
        hint = did_you_mean(aggregation, plan.aggregations)
        raise SiddhiRuntimeError(f"There is no aggregation '{aggregation}'." + (f" {hint}" if hint else ""))
    source = definition.source
    items = tuple(OutputItem(a.name, Ref(a.type, 0, i, a.name)) for i, a in enumerate(source.schema))
    bounds = tuple(Const(Type.STRING if isinstance(w, str) else Type.LONG, w) for w in within)
    text = f"from {aggregation} select *"
    return Retrieval(source, None, bounds, Const(Type.STRING, per), Select(items), None, text)

"""Retrievals over aggregations that lie in a store: merged over shards, and by shard.

The store gives base rows; merging, output expressions and the select are the engine's own, so a retrieval means the
same here as in a node.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..engine.aggregation import Stored, answer_rows, bounds_of, from_table, merge_stored, view
from ..engine.batch import Answer
from ..engine.columns import Strings
from ..engine.expressions import Context
from ..engine.services import Services
from ..errors import SiddhiRuntimeError, did_you_mean
from ..plan.nodes import AggDuration, AggregationDef, Const, OutputItem, Plan, Ref, Retrieval, Select
from ..stores.protocol import Store
from ..types import Type

SHARD = "SHARD_ID"


@dataclass(frozen=True)
class Retrieved:
    """`merged` is the answer. `by_shard` is the same select over each shard's rows alone, SHARD_ID first; None where
    the aggregation is not partitioned."""

    merged: Answer
    by_shard: Answer | None


def retrieve(plan: Plan, retrieval: Retrieval, store: Store, *, now: int | None = None) -> Retrieved:
    """Answers a retrieval over an aggregation of `plan` from `store`, which must be prepared for it.

    `now` (ms) is the clock that functions such as `currentTimeMillis()` see; None: that of this machine.
    Raises SiddhiRuntimeError where `within`, `per`, `on` or the select fail.
    """
    assert retrieval.source is not None
    definition = plan.aggregations[retrieval.source.id]
    services = Services(Strings(), Context())
    clock = int(time.time() * 1000) if now is None else now
    per, start, end = bounds_of(retrieval, definition, services, clock)
    if not definition.partitioned:
        rows = from_table(definition, store.read(definition.id, per, start, end), services)
        return Retrieved(_answer(retrieval, rows, services, clock), None)
    table = store.read_by_shard(definition.id, per, start, end)
    merged = merge_stored(from_table(definition, table, services), services)
    by_shard: list[list[object]] = []
    columns = [(SHARD, "string"), *((a.name, str(a.type)) for a in retrieval.select.schema)]
    for shard in pc.unique(table.column(SHARD)).sort().to_pylist():
        own = from_table(definition, table.filter(pc.equal(table.column(SHARD), pa.scalar(shard))), services)
        by_shard += [[shard, *row] for row in _answer(retrieval, own, services, clock).rows]
    return Retrieved(_answer(retrieval, merged, services, clock), Answer(columns, by_shard))


def _answer(retrieval: Retrieval, rows: Stored, services: Services, now: int) -> Answer:
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

"""Aggregators of a query's select, one class each, by their SiddhiQL name.

A CURRENT row adds, an EXPIRED row subtracts, a RESET row clears every group, and every row gets the value after it
(Siddhi's `AttributeAggregatorExecutor`).
"""

from __future__ import annotations

from collections.abc import Callable

from ...plan.nodes import Agg
from ...plan.plugins import WithExtensions
from ...types import Type
from ..columnar.column_data import StringPool
from .aggregator_base import Aggregator
from .collected import COLLECTED, UnionSet
from .deviations import StdDev
from .distinct import DistinctCount
from .extremes import MaxForever, MinForever, make_max, make_min
from .logic import AllTrue, AnyTrue
from .percentile import Percentile
from .running_totals import over_all, settle, share
from .sums import Avg, CountAggregate, Sum

_Factory = Callable[[tuple[Type, ...], bool], Aggregator]
_BUILT_IN: dict[str, _Factory] = {
    "sum": Sum,
    "avg": Avg,
    "count": CountAggregate,
    "stdDev": StdDev,
    "min": make_min,
    "max": make_max,
    "minForever": MinForever,
    "maxForever": MaxForever,
    "distinctCount": DistinctCount,
    "and": AllTrue,
    "or": AnyTrue,
    "math:percentile": Percentile,
}
AGGREGATORS: WithExtensions[_Factory] = WithExtensions(_BUILT_IN, "aggregator", "implementation")
"""Aggregator by its key in `plan.functions.AGGREGATORS`."""


def make_aggregator(node: Agg, sliding: bool, strings: StringPool, *, has_groups: bool = False) -> Aggregator:
    """The aggregator of `node`. `sliding`: rows of its query expire one by one, or expired rows are output.
    `has_groups`: it has a state per group or partition instance, which Siddhi drops when it is empty.
    """
    types = tuple(a.type for a in node.args)
    if node.function == "unionSet":
        return UnionSet(types, sliding, strings, has_groups)
    if node.function in COLLECTED:
        return COLLECTED[node.function](types, sliding, strings)
    if node.function not in AGGREGATORS:
        raise NotImplementedError(f"aggregator '{node.function}' has a signature and no class in engine/aggregators/")
    return AGGREGATORS[node.function](types, sliding)


__all__ = ["AGGREGATORS", "Aggregator", "make_aggregator", "over_all", "settle", "share"]

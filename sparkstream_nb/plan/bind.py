"""Binds a syntax tree to a typed plan: resolves names, infers types, checks the rules of the language.

The files of `plan/binding/`: symbols and scope (name resolution), expressions, definitions, inputs,
states, selection, outputs, queries, aggregations, ondemand.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import SHALLOWER, TOO_DEEP, SiddhiBindError
from ..lang import tree
from .binding.aggregations import bind_aggregation
from .binding.annotation_times import check_zone
from .binding.definitions import bind_app_annotations, bind_definition, bind_idle_clock
from .binding.ondemand import bind_retrieval
from .binding.queries import UniqueNames, bind_partition, bind_query
from .binding.query_inputs import PartitionPlace
from .binding.symbols import Symbols
from .nodes import Partition, Plan, Query
from .shard_safety.safety import with_safety

__all__ = ["bind", "bind_retrieval"]


def bind(app: tree.App, text: str = "", properties: Mapping[str, str] | None = None) -> Plan:
    """The plan of `app`. `text` is the app's source, kept in the plan; `properties` are the node's: `shardId`,
    `partitionById`, `aggTimeZone` of aggregations and `timezone` of cron texts.

    Raises SiddhiBindError at the first thing that is wrong; its `kind` is Siddhi's exception class for it.
    """
    symbols = Symbols(text, dict(properties or {}))
    check_zone(symbols.properties, "timezone")
    name = bind_app_annotations(app.annotations)
    for d in app.definitions:
        if not isinstance(d, tree.AggregationDefinition):
            bind_definition(d, symbols)
    for d in app.definitions:
        if isinstance(d, tree.AggregationDefinition):
            symbols.aggregations[d.id] = bind_aggregation(d, symbols)
    names = UniqueNames.of(app.elements)
    elements: list[Query | Partition] = []
    for element in app.elements:
        try:
            if isinstance(element, tree.Partition):
                elements.append(bind_partition(element, symbols, names))
            else:
                elements.append(bind_query(element, PartitionPlace(symbols), names))
        except RecursionError:
            raise SiddhiBindError(TOO_DEEP, element.span, hint=SHALLOWER) from None
    plan = Plan(
        name=name,
        text=text,
        streams=symbols.streams,
        tables=symbols.tables,
        windows=symbols.windows,
        triggers=symbols.triggers,
        functions=symbols.functions,
        aggregations=symbols.aggregations,
        elements=tuple(elements),
        properties=symbols.properties,
        annotations=app.annotations,
        idle_clock=bind_idle_clock(app.annotations),
        plugins=tuple(symbols.plugins.values()),
    )
    return with_safety(plan)

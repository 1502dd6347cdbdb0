"""`define aggregation` (Siddhi's `AggregationParser` and its incremental aggregators).

Stored columns are decomposed: `avg` is a sum and a count, so that partial results of buckets and shards can be merged.
Columns are named as Siddhi names them (`AGG_SUM_x`, `AGG_COUNT`, `AGG_MIN_x`, `AGG_MAX_x`, `AGG_SET_x`; a plain
attribute by its own name in the output).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from ...errors import SiddhiBindError
from ...lang import tree
from ...types import Attribute, Schema, Type
from ..functions import AGGREGATORS, INCREMENTAL, resolve
from ..nodes import (
    DURATIONS,
    Agg,
    AggDuration,
    AggregationDef,
    Arith,
    BaseColumn,
    Call,
    Const,
    Expr,
    OutputItem,
    PurgeRule,
    Ref,
    Select,
    Source,
)
from .annotation_times import check_zone, parse_time
from .connectors import check_store
from .expressions import bind_arguments, bind_expression
from .query_inputs import PartitionPlace, bind_stream
from .scope import Scope, VisibleEvent
from .single_annotations import single
from .symbols import Symbols

TIMESTAMP = "AGG_TIMESTAMP"


@dataclass
class _Columns:
    """Stored columns: the group-by attributes, then the base columns as they turn out to be needed."""

    groups: tuple[Attribute, ...]
    base: list[BaseColumn] = field(default_factory=list)

    def require_column(self, column: BaseColumn) -> Ref:
        """A reference to `column` of a stored row (slot 0), added where no equal one is there."""
        for i, c in enumerate(self.base):
            if c == column:
                return self._ref(i)
        column_names = {c.name for c in self.base} | {g.name for g in self.groups}
        name = column.name
        while name in column_names:
            name += "_"
        self.base.append(replace(column, name=name))
        return self._ref(len(self.base) - 1)

    def _ref(self, i: int) -> Ref:
        column = self.base[i]
        return Ref(column.type, 0, len(self.groups) + i, column.name)


def bind_aggregation(d: tree.AggregationDefinition, symbols: Symbols) -> AggregationDef:
    """One aggregation. Raises SiddhiBindError if a rule of incremental aggregation is broken."""
    previous = symbols.find(d.id)
    if previous is not None:
        raise SiddhiBindError(
            f"aggregation '{d.id}' cannot be defined: '{d.id}' is already defined as a {previous.kind}",
            d.span,
            kind="DuplicateDefinitionException",
        )
    _check_annotations(d, symbols.properties)
    check_zone(symbols.properties, "aggTimeZone", d.span)
    place = PartitionPlace(symbols)
    source = symbols.source(d.input.source, None, d.input.source.span)
    if source.kind != "stream":
        raise SiddhiBindError(f"an aggregation reads a stream, '{source.id}' is a {source.kind}", d.input.source.span)
    input_ = bind_stream(d.input, place, "aggregation")
    entry = VisibleEvent(0, str(d.input.source), input_.schema)
    scope = Scope(symbols, (entry,), "an aggregation", bare="first")
    group_by = tuple(replace(scope, place="group by").variable(v) for v in d.select.group_by)
    by = scope.variable(d.by) if d.by is not None else None
    if by is not None and by.type not in (Type.LONG, Type.STRING):
        raise SiddhiBindError(f"'aggregate by' needs a long (ms) or a string, found {by.type}", by.span)
    items, output, columns = _select(d, scope, group_by)
    is_sharded = _is_sharded(d, symbols)
    durations = _durations(d)
    schema = Schema.of((TIMESTAMP, Type.LONG), *((i.name, i.expr.type) for i in items))
    return AggregationDef(
        Source("aggregation", d.id, schema),
        input_,
        Select(items, group_by),
        tuple(columns.base),
        output,
        by,
        durations,
        is_sharded,
        d.annotations,
        _retention(d, durations),
        span=d.span,
    )


def _select(
    d: tree.AggregationDefinition, scope: Scope, group_by: tuple[Expr, ...]
) -> tuple[tuple[OutputItem, ...], tuple[OutputItem, ...], _Columns]:
    columns = _Columns(tuple(Attribute(g.name, g.type) for g in group_by if isinstance(g, Ref)))
    items: list[OutputItem] = []
    output: list[OutputItem] = []
    attributes = d.select.attributes or tuple(
        tree.OutputAttribute(tree.Variable(r.name, span=r.span), span=r.span)
        for r in scope.all_attributes(d.select.span)
    )
    for a in attributes:
        name = a.name or (a.expression.name if isinstance(a.expression, tree.Variable) else None)
        if name is None:
            raise SiddhiBindError("an expression in a select needs a name", a.span, hint="Add 'as name'.")
        if name == TIMESTAMP or any(i.name == name for i in items):
            raise SiddhiBindError(
                f"the aggregation has two attributes '{name}'", a.span, kind="DuplicateAttributeException"
            )
        _check_calls(a.expression)
        expression = _bind_item(a.expression, replace(scope, aggregators=True, place="an aggregation's select"))
        stored_expression = _bind_stored(expression, name, group_by, columns)
        items.append(OutputItem(name, expression))
        output.append(OutputItem(name, stored_expression))
    return tuple(items), tuple(output), columns


def _bind_item(e: tree.Expression, scope: Scope) -> Expr:
    """A select item. An aggregator that is kept takes more than it does in a query: distinctCount a bool, too."""
    if isinstance(e, tree.FunctionCall) and str(e) in INCREMENTAL and str(e) not in scope.symbols.functions:
        args = bind_arguments(e, scope)
        type = resolve(INCREMENTAL[str(e)], args, e.span, "aggregator")
        assert type is not None
        return Agg(type, str(e), args, span=e.span)
    return bind_expression(e, scope)


def _check_calls(e: tree.Expression) -> None:
    """Every call in `e` is a scalar function, or an aggregator that can be kept, over an attribute."""
    if isinstance(e, tree.FunctionCall):
        key = str(e)
        if key in INCREMENTAL:
            for a in e.args:
                if not isinstance(a, tree.Variable):
                    raise SiddhiBindError(
                        f"'{key}' in an aggregation takes an attribute, not an expression",
                        a.span,
                        hint="Compute it in a query before, and aggregate that query's output.",
                    )
        elif key in AGGREGATORS:
            hint = f"It supports {', '.join(INCREMENTAL)}."
            raise SiddhiBindError(f"an aggregation does not support '{key}'", e.span, hint=hint)
    for f in fields(e):
        v = getattr(e, f.name)
        for x in v if isinstance(v, tuple) else (v,):
            if isinstance(x, tree.Expression):
                _check_calls(x)


def _bind_stored(e: Expr, name: str, group_by: tuple[Expr, ...], columns: _Columns) -> Expr:
    """`e` over the stored columns: a group-by attribute, an aggregate, or else the latest value by event time.

    An aggregator inside of a larger expression is not decomposed: as in Siddhi
    (`AggregationParser.processAggregationSelectors`) it runs over all events of the stream, and the bucket keeps the
    expression's latest value.
    """
    if e in group_by:
        at = group_by.index(e)
        return Ref(e.type, 0, at, columns.groups[at].name, span=e.span)
    if isinstance(e, Agg):
        return _aggregate(e, columns)
    if isinstance(e, Const):
        return e
    return columns.require_column(BaseColumn(name, "last", e, e.type))


def _aggregate(e: Agg, columns: _Columns) -> Expr:
    """An aggregate, computed from stored columns that it may share with others."""
    arg = e.args[0] if e.args else None
    name = arg.name if isinstance(arg, Ref) else ""
    match e.function:
        case "count":
            return columns.require_column(BaseColumn("AGG_COUNT", "count", None, Type.LONG))
        case "sum":
            return columns.require_column(BaseColumn(f"AGG_SUM_{name}", "sum", arg, e.type))
        case "avg":
            assert arg is not None
            total = Type.LONG if arg.type in (Type.INT, Type.LONG) else Type.DOUBLE
            sum_ = columns.require_column(BaseColumn(f"AGG_SUM_{name}", "sum", arg, total))
            number = columns.require_column(BaseColumn(f"AGG_COUNT_{name}", "count", arg, Type.LONG))
            # Siddhi divides the stored values: two longs for int and long, whose average is a whole number.
            return Arith(total, "/", sum_, number, span=e.span)
        case "distinctCount":
            set_ = columns.require_column(BaseColumn(f"AGG_SET_{name}", "set", arg, Type.OBJECT))
            size = Call(Type.INT, "sizeOfSet", (set_,), span=e.span)
            return Call(Type.LONG, "convert", (size, Const(Type.STRING, "long")), span=e.span)
        case "min":
            return columns.require_column(BaseColumn(f"AGG_MIN_{name}", "min", arg, e.type))
        case "max":
            return columns.require_column(BaseColumn(f"AGG_MAX_{name}", "max", arg, e.type))
    raise KeyError(e.function)


def _durations(d: tree.AggregationDefinition) -> tuple[AggDuration, ...]:
    for name in d.durations:
        if name == "week":
            raise SiddhiBindError(
                "an aggregation cannot aggregate per week",
                d.span,
                hint="Use sec, min, hour, day, month or year.",
                kind="SiddhiParserException",
            )
    places = [DURATIONS.index(x) for x in d.durations if x != "week"]
    if d.is_range:
        low, high = places
        if low >= high:
            raise SiddhiBindError(
                f"the range {d.durations[0]} ... {d.durations[1]} must be ascending",
                d.span,
                hint=f"Write {d.durations[1]} ... {d.durations[0]}.",
            )
        return DURATIONS[low : high + 1]
    return tuple(DURATIONS[i] for i in sorted(set(places)))


def _is_sharded(d: tree.AggregationDefinition, symbols: Symbols) -> bool:
    """True if rows carry SHARD_ID. `@PartitionById(enable='false')` overrides the property, as the manual says."""
    a = tree.find_annotation(d.annotations, "PartitionById")
    if a is not None:
        on = (a.get("enable") or "true").lower() == "true"
    else:
        on = symbols.properties.get("partitionById", "false").lower() == "true"
    if on and not symbols.properties.get("shardId"):
        raise SiddhiBindError(
            f"aggregation '{d.id}' is partitioned by id, and the node has no 'shardId'",
            a.span if a is not None else d.span,
            hint="Give the node a property shardId, unique among the nodes.",
        )
    return on


_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
_ALL = None
# What stays unless @retentionPeriod says otherwise, and the least that it may say (`IncrementalDataPurger`), in ms.
_KEPT: dict[AggDuration, int | None] = {
    "sec": 2 * _MINUTE, "min": 24 * _HOUR, "hour": 30 * _DAY, "day": 365 * _DAY, "month": _ALL, "year": _ALL,
}  # fmt: skip
_LEAST: dict[AggDuration, int] = {
    "sec": 2 * _MINUTE, "min": 2 * _HOUR, "hour": 25 * _HOUR, "day": 32 * _DAY, "month": 390 * _DAY, "year": 0,
}  # fmt: skip
_NAMES: dict[str, AggDuration] = {
    "sec": "sec", "second": "sec", "seconds": "sec", "min": "min", "minute": "min", "minutes": "min",
    "hour": "hour", "hours": "hour", "day": "day", "days": "day", "month": "month", "months": "month",
    "year": "year", "years": "year",
}  # fmt: skip


def _check_annotations(d: tree.AggregationDefinition, properties: Mapping[str, str]) -> None:
    key = tree.find_annotation(d.annotations, "PrimaryKey")
    if key is not None:
        raise SiddhiBindError(
            "the tables of an aggregation have a key of their own, @PrimaryKey cannot change it", key.span
        )
    check_store(d.annotations, properties)
    annotation = single(d.annotations, "persistedAggregation")
    if annotation is not None and (annotation.get("enable") or "true").lower() == "true":
        for a in d.select.attributes:
            if isinstance(a.expression, tree.FunctionCall) and a.expression.name == "distinctCount":
                raise SiddhiBindError("a persisted aggregation does not support distinctCount", a.span)


def _retention(d: tree.AggregationDefinition, durations: tuple[AggDuration, ...]) -> PurgeRule | None:
    """The rule of `@purge`. Without it nothing is purged, so that a replay of old events keeps its results."""
    a = tree.find_annotation(d.annotations, "purge")
    if a is None:
        return None
    enable = a.get("enable") or "true"
    if enable.lower() not in ("true", "false"):
        raise SiddhiBindError(f"'enable' of @purge is 'true' or 'false', found '{enable}'", a.span)
    if enable.lower() == "false":
        return None
    interval = a.get("interval")
    every = 15 * _MINUTE if interval is None else parse_time(interval, a.span, "interval")
    kept_ms = {x: _KEPT[x] for x in durations}
    for e in next((n.elements for n in a.nested if n.name.lower() == "retentionperiod"), ()):
        duration = _NAMES.get((e.key or "").lower())
        if duration is None:
            raise SiddhiBindError(
                f"@retentionPeriod has no element '{e.key}'",
                e.span,
                hint="It takes sec, min, hours, days, months and years.",
            )
        if duration not in durations:
            raise SiddhiBindError(
                f"nothing is kept per {duration}, so '{e.key}' cannot be purged",
                e.span,
                hint=f"The aggregation is kept per {', '.join(durations)}.",
            )
        if e.value.strip().lower() == "all":
            kept_ms[duration] = _ALL
            continue
        kept_time = kept_ms[duration] = parse_time(e.value, e.span, duration)
        if kept_time < _LEAST[duration]:
            least = _LEAST[duration]
            raise SiddhiBindError(
                f"the retention of '{e.key}' must be at least {least} ms, found {kept_time} ms", e.span
            )
    return PurgeRule(max(every, 1), {x: ms for x, ms in kept_ms.items() if ms is not None})

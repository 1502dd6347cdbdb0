"""Plans whose outputs also carry their lineage.

`with_lineage` gives a plan in which every event, row and match carries one attribute more, `LINEAGE`: for an input
event its number, which the feed gives, and for everything else the list of the lineages of its inputs. The bound events
of a pattern, the two rows of a join, and the event that a filter or a window lets through are all there. An aggregate
over input events carries the first and the last event that it holds and their number (`HELD`), or all of them on
request; any other aggregate carries all. So lineage needs no support in the engine, and costs nothing if it is not
requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from ...types import Attribute, Schema, Type
from .. import nodes as n
from ..query_parts import inputs

_NOTHING = n.Call(Type.OBJECT, "list:create", (n.Const(Type.STRING, ""),) * 2)
"""The lineage of values that come from no event."""
LINEAGE = "$of"
"""The name of the attribute. No app can write it."""
HELD = "held"
"""The first element of a list of the events that an aggregate holds: then their count, the number of the
first, and the number of the last; with `every`, all their numbers.
"""


def with_lineage(plan: n.Plan, *, every: bool = False) -> n.Plan:
    """The same plan with lineage. Its streams that only come in take events with a LONG more, their number.

    `every`: aggregates name every event that they hold, which costs as much as they hold, for each output.
    """
    return _Rewriting(plan, every).plan()


def change_with_lineage(change: n.Retrieval, plan: n.Plan) -> n.Retrieval:
    """An on-demand query that changes a table, for `plan`, which has lineage: its rows come from no event.

    `change` is bound to the plan without lineage.
    """
    output, select, source = change.output, change.select, change.source
    assert output is not None
    target = plan.tables[output.target.id].source
    if select.items:
        items = len(select.items)
        select = replace(
            select,
            items=(*select.items, n.OutputItem(LINEAGE, _NOTHING)),
            order_by=tuple(replace(o, attr=o.attr + (o.attr >= items)) for o in select.order_by),
        )
    if source is not None:
        source = replace(source, schema=plan.schema(source.id))
    return replace(change, source=source, select=select, output=replace(output, target=target))


def events_of(lineage: Any) -> list[int]:
    """The numbers of the events that a lineage names, in order, each once; of held events the first and the last, or
    all."""
    return sorted(set(_numbers(lineage)))


def held_of(lineage: Any) -> int:
    """Number of events that the aggregates of a lineage hold; 0 if there is none."""
    if not isinstance(lineage, list | tuple):
        return 0
    if len(lineage) == 4 and lineage[0] == HELD:
        return int(lineage[1])
    return sum(map(held_of, lineage))


def _numbers(lineage: Any) -> Iterator[int]:
    if isinstance(lineage, list | tuple):
        for part in lineage[2:] if len(lineage) == 4 and lineage[0] == HELD else lineage:
            yield from _numbers(part)
    elif isinstance(lineage, int):
        yield lineage


@dataclass(frozen=True)
class _LineagePlaces:
    """By slot of a query, the place of the lineage among the attributes: those behind it move up by one."""

    by_slot: Mapping[int, int]

    def move_ref(self, ref: n.Ref) -> n.Ref:
        place = self.by_slot.get(ref.slot)
        return replace(ref, attr=ref.attr + 1) if place is not None and ref.attr >= place else ref


class _Rewriting:
    def __init__(self, plan: n.Plan, every: bool) -> None:
        self.source_plan, self.every = plan, every
        self.came_in = {s for s in plan.input_streams if plan.streams[s].source.kind == "stream"}

    def plan(self) -> n.Plan:
        source_plan = self.source_plan
        return replace(
            source_plan,
            streams={s: replace(d, source=self._source(d.source)) for s, d in source_plan.streams.items()},
            tables={t: replace(d, source=self._source(d.source)) for t, d in source_plan.tables.items()},
            windows={
                w: replace(d, source=self._source(d.source), window=self._window(d))
                for w, d in source_plan.windows.items()
            },
            aggregations={a: self._aggregation(d) for a, d in source_plan.aggregations.items()},
            elements=tuple(self._element(e) for e in source_plan.elements),
        )

    def _aggregation(self, d: n.AggregationDef) -> n.AggregationDef:
        places = _LineagePlaces({0: self._place(d.input.source)})
        read = {f: self._refs(getattr(d, f), places) for f in ("input", "select", "base", "by")}
        out: n.AggregationDef = self._sources(replace(d, **read))
        return out

    def _window(self, d: n.WindowDef) -> n.WindowStep:
        step: n.WindowStep = self._refs(d.window, self._own_slots(d.source))
        return step

    def _own_slots(self, source: n.Source) -> _LineagePlaces:
        """The slots of an expression window: all are events of its stream."""
        return _LineagePlaces(dict.fromkeys(range(3), self._place(source)))

    # -------------------------------------------------------------------------------------------------------- schemas

    def _is_extended(self, source: n.Source) -> bool:
        return source.kind != "aggregation" and source.id not in self.source_plan.triggers

    def _place(self, source: n.Source) -> int:
        """The place of the lineage among the attributes of a source; behind all where it has none. A fault stream has
        its error last."""
        size = len(source.schema)
        if not self._is_extended(source):
            return 1 << 30
        return size - 1 if source.id.startswith("!") else size

    def _type(self, source: n.Source) -> Type:
        return Type.LONG if source.id.removeprefix("!") in self.came_in else Type.OBJECT

    def _schema(self, source: n.Source, schema: Schema) -> Schema:
        """A schema that begins with a source's: with the lineage behind that."""
        if not self._is_extended(source):
            return schema
        at = self._place(source)
        attribute = Attribute(LINEAGE, self._type(source))
        return Schema((*schema.attributes[:at], attribute, *schema.attributes[at:]))

    def _source(self, source: n.Source) -> n.Source:
        return replace(source, schema=self._schema(source, source.schema))

    def _sources(self, node: Any) -> Any:
        """A part of a plan with the sources, and the schemas of inputs and slots, that it has with lineage."""

        def change(x: Any) -> Any:
            match x:
                case n.JoinInput():
                    on = self._sources(x.on)
                    return replace(x, left=self._input(x.left, 0), right=self._input(x.right, 1), on=on)
                case n.StreamInput():
                    return self._input(x, 0)
                case n.Slot():
                    return replace(x, source=self._source(x.source), schema=self._schema(x.source, x.schema))
                case n.Source():
                    return self._source(x)
            return None

        return _map_nodes(node, change)

    def _input(self, x: n.StreamInput, slot: int) -> n.StreamInput:
        source, schema = self._source(x.source), self._schema(x.source, x.schema)
        return replace(x, source=source, steps=self._steps(x, slot), schema=schema)

    def _steps(self, x: n.StreamInput, slot: int) -> tuple[n.Step, ...]:
        """The steps of an input. A window that counts equal events compares the attributes that they had before."""
        if not self._is_extended(x.source):
            return x.steps
        place = self._place(x.source)
        attributes = [a for i, a in enumerate(self._schema(x.source, x.schema)) if i != place]
        references: tuple[n.Expr, ...] = tuple(
            n.Ref(a.type, slot, i + (i >= place), a.name) for i, a in enumerate(attributes)
        )
        return tuple(
            replace(s, args=(*s.args, *references))
            if isinstance(s, n.WindowStep)
            and s.function in ("frequent", "lossyFrequent")
            and not any(isinstance(a, n.Ref) for a in s.args)
            else s
            for s in x.steps
        )

    def _refs(self, node: Any, places: _LineagePlaces) -> Any:
        """A part of a plan whose references are renumbered to name the same attributes."""
        return _map_nodes(node, lambda x: places.move_ref(x) if isinstance(x, n.Ref) else None)

    # -------------------------------------------------------------------------------------------------------- queries

    def _element(self, e: n.Query | n.Partition) -> n.Query | n.Partition:
        if isinstance(e, n.Query):
            return self._query(e)
        keys = tuple(
            self._refs(k, _LineagePlaces({0: self._place(self.source_plan.streams[k.stream].source)}))
            if k.stream in self.source_plan.streams
            else k
            for k in e.keys
        )  # fmt: skip
        return replace(
            e, keys=keys, queries=tuple(map(self._query, e.queries)), inner=tuple(map(self._source, e.inner))
        )

    def _query(self, q: n.Query) -> n.Query:
        sides = inputs(q.input)
        items = len(q.select.items)
        places = _LineagePlaces({i: self._place(s.source) for i, s in enumerate(sides)})
        select = self._refs(q.select, places)
        # The stream of a trigger has no lineage, also where a query writes it.
        if q.output.target.id not in self.source_plan.triggers:
            select = replace(
                select,
                items=(*select.items, n.OutputItem(LINEAGE, self._lineage(q, sides))),
                order_by=tuple(replace(o, attr=o.attr + (o.attr >= items)) for o in select.order_by),
            )
        # The target of a query has the lineage behind all attributes.
        output = self._refs(self._sources(q.output), _LineagePlaces({n.OUTPUT: items}))
        return replace(q, input=self._sources(self._read(q.input, places)), select=select, output=output)

    def _read(self, input_: n.Input, places: _LineagePlaces) -> n.Input:
        """The input of a query, with its references adjusted."""
        new_input: n.Input = self._refs(input_, places)
        match new_input, input_:
            case n.StreamInput(), n.StreamInput():
                return self._conditions(new_input, input_)
            case n.JoinInput(), n.JoinInput():
                left, right = (
                    self._conditions(new_input.left, input_.left),
                    self._conditions(new_input.right, input_.right),
                )
                return replace(new_input, left=left, right=right)
        return new_input

    def _conditions(self, new_input: n.StreamInput, before: n.StreamInput) -> n.StreamInput:
        """Adjusts the conditions of expression windows. Their slots are events of the window's own stream, independent
        of the slots of the query.
        """
        own_slots = self._own_slots(before.source)
        steps = tuple(
            replace(s, condition=self._refs(b.condition, own_slots))
            if isinstance(s, n.WindowStep) and isinstance(b, n.WindowStep) and b.condition is not None
            else s
            for s, b in zip(new_input.steps, before.steps, strict=True)
        )
        return replace(new_input, steps=steps)

    def _lineage(self, q: n.Query, sides: tuple[n.StreamInput, ...]) -> n.Expr:
        absent = set(_absent(q.input.state)) if isinstance(q.input, n.StateInput) else set()
        counted_flags = (
            [s.counted for s in q.input.slots] if isinstance(q.input, n.StateInput) else [False] * len(sides)
        )
        aggregates = q.select.aggregates
        if q.rate is not None and q.rate.kind == "snapshot":  # its output depends on which attributes are aggregates
            aggregates = all(isinstance(i.expr, n.Agg) for i in q.select.items)
        parts: list[n.Expr] = []
        for slot, side in enumerate(sides):
            if slot in absent or not self._is_extended(side.source):
                continue
            type_ = Type.OBJECT if counted_flags[slot] else self._type(side.source)
            ref = n.Ref(type_, slot, self._place(side.source), LINEAGE)
            if not aggregates:
                parts.append(ref)
            elif type_ is Type.LONG:
                arguments: tuple[n.Expr, ...] = (
                    n.Agg(Type.LONG, "count", ()), n.Agg(Type.LONG, "min", (ref,)), n.Agg(Type.LONG, "max", (ref,)),
                )  # fmt: skip
                if self.every:  # four, as the others
                    numbers = n.Agg(Type.OBJECT, "list:collect", (ref,))
                    arguments = (arguments[0], numbers, n.Const(Type.STRING, ""))
                parts.append(n.Call(Type.OBJECT, "list:create", (n.Const(Type.STRING, HELD), *arguments)))
            else:
                parts.append(n.Agg(Type.OBJECT, "list:collect", (ref,)))
        if aggregates and q.rate is not None and q.rate.kind == "snapshot":
            return n.Agg(Type.OBJECT, "list:collect", (ref,))
        # A list of two at least, as one of a single null would be empty.
        return n.Call(Type.OBJECT, "list:create", (*parts, *_NOTHING.args)[: max(2, len(parts))])


def _absent(state: n.State) -> Iterator[int]:
    """The slots of states that no event fills."""
    match state:
        case n.AbsentState():
            yield state.state.slot
        case n.LogicalState():
            yield from _absent(state.left)
            yield from _absent(state.right)
        case n.NextState():
            yield from _absent(state.first)
            yield from _absent(state.then)
        case n.EveryState() | n.CountState():
            yield from _absent(state.state)


def _map_nodes(node: Any, change: Callable[[Any], Any]) -> Any:
    """`node` with everything below it, and itself, in the form that `change` gives; None: look inside."""
    replacement = change(node)
    if replacement is not None:
        return replacement
    if isinstance(node, tuple):
        return tuple(_map_nodes(x, change) for x in node)
    if not is_dataclass(node) or isinstance(node, type | Schema):
        return node
    changes = {}
    for f in fields(node):
        value = getattr(node, f.name)
        new = _map_nodes(value, change) if is_dataclass(value) or isinstance(value, tuple) else value
        if new is not value:
            changes[f.name] = new
    return replace(node, **changes) if changes else node

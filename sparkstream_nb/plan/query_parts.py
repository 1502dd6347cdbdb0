"""Helpers over the parts of a query, shared by several plan analyses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..lang import tree
from ..types import Type
from . import nodes as n


def inputs(i: n.Input) -> tuple[n.StreamInput, ...]:
    """The stream inputs of `i`, by slot."""
    match i:
        case n.StreamInput():
            return (i,)
        case n.JoinInput():
            return (i.left, i.right)
        case n.StateInput():
            input_by_slot = {s.slot: s.input for s in stream_states(i.state)}
            return tuple(input_by_slot[k] for k in sorted(input_by_slot))
    raise TypeError(type(i))


def sources(q: n.Query) -> tuple[n.Source, ...]:
    """The sources of a query, by slot."""
    return tuple(i.source for i in inputs(q.input))


def stream_states(s: n.State) -> Iterator[n.StreamState]:
    """The stream states below `s`, in the order of the text."""
    while isinstance(s, n.NextState):
        yield from stream_states(s.first)
        s = s.then
    match s:
        case n.StreamState():
            yield s
        case n.CountState() | n.AbsentState():
            yield s.state
        case n.LogicalState():
            yield from stream_states(s.left)
            yield from stream_states(s.right)
        case n.EveryState():
            yield from stream_states(s.state)


def enclosing_state(state: n.State, stream_state: n.StreamState) -> n.State | None:
    """The state around a stream that counts it, or waits for its absence; the stream itself without such."""
    match state:
        case n.StreamState():
            return state if state is stream_state else None
        case n.CountState() | n.AbsentState():
            return state if state.state is stream_state else None
        case n.EveryState():
            return enclosing_state(state.state, stream_state)
        case n.NextState():
            return enclosing_state(state.first, stream_state) or enclosing_state(state.then, stream_state)
        case n.LogicalState():
            return enclosing_state(state.left, stream_state) or enclosing_state(state.right, stream_state)
    return None


def configured_options(ref: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The options that the deployment defines under the name `ref`; empty if it defines none.

    The one place where refs are looked up. So far they are properties of the node, `NAME.option`.
    """
    return {k.removeprefix(f"{ref}."): v for k, v in properties.items() if k.startswith(f"{ref}.")}


UNKNOWN_REF = "ref.unknown"
"""Option of a `ref` that is not defined yet, and whose checks are left to the deployment."""


def is_open(connector: tree.Annotation, properties: Mapping[str, str]) -> bool:
    """True if the `ref` of a `@source`, `@sink`, `@store` or `@destination` names options that are not known."""
    ref = connector.get("ref")
    return ref is not None and f"{ref}.{UNKNOWN_REF}" in properties


def connector_options(connector: tree.Annotation, properties: Mapping[str, str]) -> dict[str, str]:
    """The options of a `@source`, `@sink` or `@destination`: as its `ref` has them, and over these as written."""
    ref = connector.get("ref")
    ref_options = {} if ref is None else configured_options(ref, properties)
    ref_options.pop(UNKNOWN_REF, None)
    return ref_options | {e.key: e.value for e in connector.elements if e.key is not None and e.key.lower() != "ref"}


def connector_type(connector: tree.Annotation, properties: Mapping[str, str]) -> str:
    """The type of a `@source` or `@sink`; empty if none is given."""
    options = connector_options(connector, properties)
    return next((v for k, v in options.items() if k.lower() == "type"), "")


IN_MEMORY = "inMemory"
"""The type of sources and sinks of topics within an app."""


def has_event_topic(connector: tree.Annotation, properties: Mapping[str, str]) -> bool:
    """True for an `inMemory` source or sink whose topic carries events as they are, inside of a node. One with another
    mapping than passThrough has a topic of messages."""
    mapping = next((m for m in connector.nested if m.name.lower() == "map"), None)
    is_passed = mapping is None or (mapping.get("type") or "") == "passThrough"
    return is_passed and connector_type(connector, properties) == IN_MEMORY


_TEMPLATE = re.compile(r"\{\{([^{}]*)\}\}")


def template_parts(template: str) -> list[str]:
    """A text with `{{attribute}}` in it, cut up: texts at even places, attributes at odd ones."""
    return _TEMPLATE.split(template)


def template_attributes(template: str) -> list[str]:
    """The attributes that a text names as `{{attribute}}`."""
    return template_parts(template)[1::2]


def conjuncts(e: n.Expr | None) -> Iterator[n.Expr]:
    """The operands of the `and`s at the top of `e`."""
    if isinstance(e, n.Logic) and e.op == "and":
        yield from conjuncts(e.left)
        yield from conjuncts(e.right)
    elif e is not None:
        yield e


def expressions(q: n.Query) -> Iterator[n.Expr]:
    """The top-level expressions of a query."""
    for i in inputs(q.input):
        for step in i.steps:
            match step:
                case n.FilterStep():
                    yield step.condition
                case n.FunctionStep() | n.WindowStep():
                    yield from step.args
    if isinstance(q.input, n.JoinInput):
        yield from (e for e in (q.input.on, *q.input.within, q.input.per) if e is not None)
    yield from (i.expr for i in q.select.items)
    yield from q.select.group_by
    yield from q.select.unselected
    if q.select.having is not None:
        yield q.select.having
    match q.output:
        case n.Delete() if q.output.on is not None:
            yield q.output.on
        case n.Update() | n.Upsert():
            yield q.output.on
            yield from (s.value for s in q.output.set or ())


IS_LEADER = "coordination:isLeader"
"""The function that is true on one node of several."""
_UNREPEATABLE = frozenset(
    {"UUID", "math:rand", "time:currentDate", "time:currentTime", "time:currentTimestamp", "time:utcTimestamp"}
)
"""With a seed, `math:rand` starts over whenever the app is started."""
_UNREPEATABLE_SCRIPT = re.compile("random|Date")


def unrepeatable_functions(plan: n.Plan) -> list[str]:
    """The functions in a plan that give other values when it is run again over the same input: they ask for chance or
    the wall clock. A script may do so too."""
    tops = [e for q in plan.queries for e in expressions(q)]
    for aggregation in plan.aggregations.values():
        tops += [i.expr for i in aggregation.select.items]
    return sorted({_name(e) for top in tops for e in n.walk(top) if not _repeats(plan, e)})


def unrepeatable_attributes(plan: n.Plan) -> dict[tuple[str, str], list[str]]:
    """By stream and attribute, the functions that give it other values when the plan is run again over the same
    input."""
    out: dict[tuple[str, str], list[str]] = {}
    for q in plan.queries:
        for item in q.select.items:
            if functions := sorted({_name(e) for e in n.walk(item.expr) if not _repeats(plan, e)}):
                out[q.output.target.id, item.name] = functions
    return out


def _repeats(plan: n.Plan, e: n.Expr) -> bool:
    match e:
        case n.Call(function="time:timestampInMilliseconds", args=args) if len(args) < 2:
            return bool(args) and isinstance(args[0], n.Const)  # a null becomes the wall clock
        case n.Call(function="UUID" | "math:rand", args=(n.Const(type=Type.STRING), *_)):  # of `freeze_chance`
            return True
        case n.Call(function=name):
            return name not in _UNREPEATABLE
        case n.ScriptCall(function=name):
            return not _UNREPEATABLE_SCRIPT.search(plan.functions[name].body)
    return True


def _name(e: n.Expr) -> str:
    return str(getattr(e, "function", ""))


_SURE = frozenset(
    {"ifThenElse", "coalesce", "default", "maximum", "minimum", "UUID", "convert", "createSet", "sizeOfSet"}
    | {"eventTimestamp", "currentTimeMillis", IS_LEADER}
    | {f"instanceOf{t}" for t in ("Boolean", "Double", "Float", "Integer", "Long", "String")}
)
"""Functions that answer for every event."""


def may_fail(expr: n.Expr) -> bool:
    """True if evaluating the expression may raise an error for some event, judging by its functions."""
    return any(
        isinstance(e, n.InTable | n.ScriptCall) or (isinstance(e, n.Call) and e.function not in _SURE)
        for e in n.walk(expr)
    )


def inserts_into(q: n.Query, id_: str) -> bool:
    """True if a query inserts into the stream or window `id_`."""
    return isinstance(q.output, n.Insert) and q.output.target.id == id_ and q.output.target.kind in ("stream", "window")


def tables_of(q: n.Query, *, with_target: bool = True) -> tuple[str, ...]:
    """Tables that the query reads or, `with_target`, changes."""
    table_ids = [s.id for s in sources(q) if s.kind == "table"]
    table_ids += [e.table for top in expressions(q) for e in n.walk(top) if isinstance(e, n.InTable)]
    if with_target and q.output.target.kind == "table":
        table_ids.append(q.output.target.id)
    return tuple(dict.fromkeys(table_ids))


def only_adds(q: n.Query, table: str) -> bool:
    """True if a query inserts into a table and looks into none."""
    return isinstance(q.output, n.Insert) and q.output.target.id == table and not tables_of(q, with_target=False)


def tables_of_aggregation(a: n.AggregationDef) -> tuple[str, ...]:
    """Tables that an aggregation looks into."""
    tops = [s.condition for s in a.input.steps if isinstance(s, n.FilterStep)]
    tops += [x for s in a.input.steps if isinstance(s, n.FunctionStep) for x in s.args]
    tops += [c.arg for c in a.base if c.arg is not None]
    table_ids = [e.table for top in tops for e in n.walk(top) if isinstance(e, n.InTable)]
    return tuple(dict.fromkeys(table_ids))


def tables_of_retrieval(r: n.Retrieval) -> tuple[str, ...]:
    """Tables that an on-demand query looks into by `in`."""
    tops = [r.on, *r.within, r.per, *(i.expr for i in r.select.items), r.select.having]
    match r.output:
        case n.Delete(on=on):
            tops.append(on)
        case n.Update(on=on, set=set_) | n.Upsert(on=on, set=set_):
            tops += [on, *(s.value for s in set_ or ())]
    table_ids = [e.table for top in tops if top is not None for e in n.walk(top) if isinstance(e, n.InTable)]
    return tuple(dict.fromkeys(table_ids))


def puts_out_expired(q: n.Query) -> bool:
    """True if the query's output has expired events too, or alone."""
    return getattr(q.output, "event_type", "current") != "current"

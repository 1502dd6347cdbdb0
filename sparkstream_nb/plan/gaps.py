"""The declared gaps: valid SiddhiQL that can be bound and explained but not run yet.

One list, one gap per line: name and description. Remove the line when the gap is closed. A deployment that needs a gap
is refused with the gap's name and place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import NOWHERE, NotInThisBuild, Span
from ..lang import tree
from . import nodes as n
from .connectors import incoming
from .connectors.mappings import MAPPED
from .connectors.outside import is_outside, list_gaps
from .extensions import Kind, not_included, types
from .query_parts import connector_type, expressions, inputs, is_open

_LIST = """
script:r                          functions in R
script:scala                      functions in Scala
mapping                           mappings that the type of a source or sink does not have
sink                              sinks of types that do not run here
sink-option                       options of these sinks that this build does not have
source                            sources of types that do not run here
source-option                     options of these sources that this build does not have
store                             tables in stores of other types than rdbms
extension                         functions, windows and stream processors of WSO2's extensions that are not included
"""

GAPS: Mapping[str, str] = {
    name: what.strip() for name, _, what in (line.partition(" ") for line in _LIST.strip().splitlines())
}


@dataclass(frozen=True)
class GapUse:
    """A place of an app that needs the gap `name`; `what` describes it for the message. `extension`: WSO2's extension
    that includes it.
    """

    name: str
    what: str
    span: Span
    extension: str | None = None

    @property
    def owner(self) -> str:
        """Words about the extension; empty if it belongs to none."""
        return "" if self.extension is None else not_included("it", self.extension)


def find_gaps(plan: n.Plan) -> tuple[GapUse, ...]:
    """The gaps that `plan` needs, in the order of the text, each place once."""
    uses = {(u.name, u.span): u for u in _uses(plan) if u.name in GAPS}
    return tuple(sorted(uses.values(), key=lambda u: (u.span.start, u.name)))


def refuse(plan: n.Plan) -> None:
    """Raises NotInThisBuild for the first gap that `plan` needs; does nothing if it needs none."""
    _refuse(find_gaps(plan), plan.text)


def what_cannot_run(plan: n.Plan, lines_before: int = 0) -> str:
    """Parts of `plan` that this build cannot run, as words with their lines: `a partition (line 5)`; "" for nothing.

    Numbers of lines count the `lines_before` the app's text.
    """
    words = []
    for u in find_gaps(plan):
        more = [f"line {u.span.line + lines_before}"] * bool(u.span.end) + [u.owner] * bool(u.owner)
        words.append(f"{u.what} ({'; '.join(more)})" if more else u.what)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def found_so_far(error: NotInThisBuild, lines_before: int = 0) -> str:
    """Words on an app that could be checked only up to a gap: the gap, and that there may be more mistakes."""
    line = error.span.line + lines_before
    return f"no mistakes found before line {line}, where {error.message}; what follows was not checked"


def needed_by_retrieval(retrieval: n.Retrieval) -> tuple[GapUse, ...]:
    """The gaps that an on-demand query needs."""
    return tuple(u for u in _uses_of_retrieval(retrieval) if u.name in GAPS)


def refuse_retrieval(retrieval: n.Retrieval) -> None:
    """Raises NotInThisBuild for the first gap that an on-demand query needs."""
    _refuse(needed_by_retrieval(retrieval), retrieval.text)


def _refuse(uses: tuple[GapUse, ...], text: str) -> None:
    if uses:
        first = uses[0]
        owner = f": {first.owner}" if first.owner else ""
        error = NotInThisBuild(first.name, f"this build cannot run {first.what} yet{owner}", first.span)
        raise error.with_source(text) if text else error


# ------------------------------------------------------------------------------------------------------------ finding


def _uses(plan: n.Plan) -> Iterator[GapUse]:
    yield from _definitions(plan)
    for e in plan.elements:
        if isinstance(e, n.Partition):
            yield GapUse("partition", "a partition", e.span)
    for q in plan.queries:
        yield from _query(q)


def _definitions(plan: n.Plan) -> Iterator[GapUse]:
    for s in plan.streams.values():
        yield from _stream(s, plan.properties)
    for t in plan.tables.values():
        store = tree.find_annotation(t.annotations, "store")
        has_unknown_options = store is not None and is_open(store, plan.properties)
        if store is not None and not has_unknown_options and connector_type(store, plan.properties).lower() != "rdbms":
            type_ = connector_type(store, plan.properties)
            what = f"table '{t.source.id}' in a store of type '{type_}'"
            yield GapUse("store", what, store.span, _extension("store", type_))
        yield GapUse("table", f"table '{t.source.id}'", _place(t.annotations))
    for w in plan.windows.values():
        yield GapUse("named-window", f"window '{w.source.id}'", w.window.span)
        yield from _step(w.window)
    for trigger in plan.triggers.values():
        yield GapUse("trigger", f"trigger '{trigger.id}'", _place(plan.streams[trigger.id].annotations))
    for f in plan.functions.values():
        yield GapUse(f"script:{f.language.lower()}", f"function '{f.id}' in {f.language}", NOWHERE)
    for aggregation in plan.aggregations.values():
        for step in aggregation.input.steps:
            yield from _step(step)
        for item in aggregation.select.items:
            for e in n.walk(item.expr):
                if e is not item.expr or not isinstance(e, n.Agg):  # one inside of an expression runs as in a query
                    yield from _node(e)


def _connector_gap(a: tree.Annotation, gap: str, what: str) -> GapUse:
    """A gap of a source or sink; of a mapping that is not included, with its extension."""
    mapping = next((m.get("type") for m in a.nested if m.name.lower() == "map"), None)
    kind: Kind = "source-mapping" if a.name.lower() == "source" else "sink-mapping"
    extension = None if gap != "mapping" or mapping is None or mapping in MAPPED else _extension(kind, mapping)
    return GapUse(gap, what, a.span, extension)


def _extension(kind: Kind, type_: str) -> str | None:
    extension_type = types(kind).get(type_)
    return None if extension_type is None else extension_type.extension


def _place(annotations: tuple[tree.Annotation, ...]) -> Span:
    return annotations[0].span if annotations else NOWHERE


def _stream(s: n.StreamDef, properties: Mapping[str, str]) -> Iterator[GapUse]:
    for a in s.annotations:
        kind = a.name.lower()
        if kind in ("source", "sink"):
            type_ = connector_type(a, properties)
            if is_outside(a, properties):
                yield from (_connector_gap(a, gap, what) for gap, what in list_gaps(a, properties))
            elif incoming.is_incoming(a, properties):
                yield from (_connector_gap(a, gap, what) for gap, what in incoming.list_gaps(a, properties))
            elif type_ and type_ not in ("inMemory", "log"):
                extension = _extension("source" if kind == "source" else "sink", type_)
                yield GapUse(kind, f"a {kind} of type '{type_}'", a.span, extension)
            mapping = next((m.get("type") for m in a.nested if m.name.lower() == "map"), None)
            if type_ == "inMemory" and mapping not in (None, *MAPPED):
                yield _connector_gap(a, "mapping", f"a {kind} with mapping '{mapping}'")
        elif kind == "onerror" and s.on_error in ("STREAM", "STORE"):
            name = "fault-stream" if s.on_error == "STREAM" else "on-error-store"
            yield GapUse(name, f"@OnError(action='{s.on_error}')", a.span)


def _query(q: n.Query) -> Iterator[GapUse]:
    yield from _input(q)
    for i in inputs(q.input):
        for step in i.steps:
            yield from _step(step)
    for top in expressions(q):
        yield from _expression(top)
    if q.select.order_by:
        yield GapUse("order-by", "order by", q.span)
    if q.select.limit is not None or q.select.offset is not None:
        yield GapUse("limit", "limit and offset", q.span)
    if q.rate is not None:
        yield GapUse(f"rate:{q.rate.kind}", f"'output {q.rate.kind}'", q.span)
    if q.output.target.kind == "table":
        yield GapUse("table", f"table '{q.output.target.id}'", q.span)


def _input(q: n.Query) -> Iterator[GapUse]:
    match q.input:
        case n.JoinInput():
            yield GapUse("join", "a join", q.span)
            if "aggregation" in (q.input.left.source.kind, q.input.right.source.kind):
                yield GapUse("aggregation-join", "a join with an aggregation", q.span)
        case n.StateInput():
            if q.input.kind == "sequence":
                yield GapUse("sequence", "a sequence", q.span)
            yield from _state(q.input.state, q.span)
            for i in inputs(q.input):
                if any(isinstance(step, n.FunctionStep) for step in i.steps):
                    yield GapUse("pattern:stream-function", "a stream function in a pattern", q.span)
    for i in inputs(q.input):
        if i.source.id.startswith("!"):
            yield GapUse("fault-stream", f"fault stream '{i.source.id}'", q.span)


def _state(s: n.State, span: Span) -> Iterator[GapUse]:
    match s:
        case n.CountState():
            yield GapUse("pattern:count", "a counted state", span)
        case n.AbsentState():
            yield GapUse("pattern:absent", "an absent state (not ...)", span)
        case n.LogicalState():
            yield GapUse("pattern:logical", f"'{s.op}' of two states", span)
            yield from _state(s.left, span)
            yield from _state(s.right, span)
        case n.NextState():
            yield from _state(s.first, span)
            yield from _state(s.then, span)
        case n.EveryState():
            yield from _state(s.state, span)


def _step(step: n.Step) -> Iterator[GapUse]:
    match step:
        case n.FilterStep():
            if any(isinstance(e, n.Agg) for e in n.walk(step.condition)):
                yield GapUse("aggregate-in-filter", "an aggregator in a filter", step.span)
        case n.WindowStep():
            yield GapUse(f"window:{step.function}", f"window '{step.function}'", step.span)
        case n.FunctionStep():
            yield GapUse(f"stream-function:{step.function}", f"'#{step.function}'", step.span)


def _expression(top: n.Expr) -> Iterator[GapUse]:
    for e in n.walk(top):
        yield from _node(e)


def _node(e: n.Expr) -> Iterator[GapUse]:
    match e:
        case n.Agg():
            yield GapUse(f"aggregator:{e.function}", f"aggregator '{e.function}'", e.span)
        case n.Call():
            yield GapUse(f"function:{e.function}", f"function '{e.function}'", e.span)
        case n.InTable():
            yield GapUse("table", f"'in {e.table}'", e.span)


def _uses_of_retrieval(r: n.Retrieval) -> Iterator[GapUse]:
    if r.output is not None:
        yield GapUse("on-demand:change", "on-demand changes of a table", NOWHERE)
    if r.source is not None and r.source.kind in ("table", "window"):
        yield GapUse(f"on-demand:{r.source.kind}", f"on-demand queries over a {r.source.kind}", NOWHERE)
    tops = [i.expr for i in r.select.items] + [e for e in (r.on, r.select.having) if e is not None]
    for top in tops:
        yield from _expression(top)

"""Hypothesis strategies for trees of the whole language, as the parser makes them: chains lean to the right."""

from __future__ import annotations

import struct
from collections.abc import Callable

from hypothesis import strategies as st

from sparkstream_nb.lang import tree as t
from sparkstream_nb.lang.keywords import KEYWORDS, UNIT_MILLIS
from sparkstream_nb.types import Type

Strategy = st.SearchStrategy

plain = st.sampled_from(["a", "b", "price", "_x1", "Symbol", "count", "every2"])
keywords = st.sampled_from(sorted(KEYWORDS))
odd = st.sampled_from(["$any thing", "", "a.b", "ünï", "1st", "Select"])
names = st.one_of(plain, plain, keywords, odd)
ids = st.one_of(plain, odd, keywords)  # printed in back quotes where they are keywords
streams = st.one_of(st.sampled_from(["S", "R", "Trades"]), keywords)
texts = st.one_of(
    st.text(alphabet="ab 0$%}/*-;äλ", max_size=6),
    st.sampled_from(["it's", 'say "x" now', "a\nb", "'", "--", "/*", "'''", "\"' and \t", "${}"]),
)

sources = st.builds(
    lambda name, mark: t.SourceName(name, inner=mark == "#", fault=mark == "!"),
    streams,
    st.sampled_from(["", "", "", "#", "!"]),
)
outer_sources = st.builds(t.SourceName, streams)


def optional(strategy: Strategy) -> Strategy:
    return st.none() | strategy


def tuples(strategy: Strategy, least: int = 0, most: int = 3) -> Strategy:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


# ---------------------------------------------------------------------------------------------------- expressions

_SPELLINGS = {
    "year": ["year", "Years"], "month": ["month", "months"], "week": ["week", "WEEKS"], "day": ["day", "days"],
    "hour": ["hour", "hours"], "min": ["min", "minute", "minutes"], "sec": ["sec", "second", "Seconds"],
    "millisec": ["millisec", "millisecond", "milliseconds"],
}  # fmt: skip


@st.composite
def times(draw: Callable) -> t.TimeConstant:
    chosen = draw(st.sets(st.sampled_from(list(UNIT_MILLIS)), min_size=1, max_size=4))
    parts, millis = [], 0
    for unit in UNIT_MILLIS:
        if unit in chosen:
            count = draw(st.integers(0, 10_000))
            parts.append((count, draw(st.sampled_from(_SPELLINGS[unit]))))
            millis += count * UNIT_MILLIS[unit]
    return t.TimeConstant(millis, tuple(parts))


def _single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


constants = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda v: t.Constant(v, Type.INT)),
    st.integers(-(2**63), 2**63 - 1).map(lambda v: t.Constant(v, Type.LONG)),
    st.floats(allow_nan=False).map(lambda v: t.Constant(v, Type.DOUBLE)),
    st.floats(allow_nan=False, width=32).map(lambda v: t.Constant(_single(v), Type.FLOAT)),
    st.booleans().map(lambda v: t.Constant(v, Type.BOOL)),
    texts.map(lambda v: t.Constant(v, Type.STRING)),
)

indexes = st.builds(t.EventIndex, st.integers(0, 99), st.booleans())


@st.composite
def variables(draw: Callable) -> t.Variable:
    if draw(st.booleans()):
        return t.Variable(draw(names))
    inner = draw(optional(names))
    inner_index = draw(optional(indexes)) if inner is not None else None
    return t.Variable(draw(names), draw(sources), draw(optional(indexes)), inner, inner_index)


def _calls(args: Strategy) -> Strategy:
    return st.one_of(
        st.builds(t.FunctionCall, optional(names), names, tuples(args)),
        st.builds(lambda ns, n: t.FunctionCall(ns, n, star=True), optional(names), names),
    )


def _marked(reference: t.StreamReference) -> bool:
    """Whether the reference shows in the text that it is one, whatever is in sight."""
    return reference.index is not None or reference.source.inner or reference.source.fault


def _null_checks(args: Strategy) -> Strategy:
    # A plain name under `is null` is an attribute or an event by what is in sight: see test_scope in test_grammar.
    qualified = variables().filter(lambda v: v.source is not None)
    references = st.builds(t.StreamReference, sources, optional(indexes)).filter(_marked)
    unseen = st.just(t.Variable("nowhere_in_sight"))
    return st.builds(t.IsNull, st.one_of(qualified, references, unseen, _calls(args)))


def _not_times(pair: t.And) -> bool:
    return not (isinstance(pair.left, t.TimeConstant) and isinstance(pair.right, t.TimeConstant))


def _extend(inner: Strategy) -> Strategy:
    return st.one_of(
        st.builds(t.Arithmetic, st.sampled_from("+-*/%"), inner, inner),
        st.builds(t.Comparison, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner, inner),
        st.builds(t.And, inner, inner).filter(_not_times),
        st.builds(t.Or, inner, inner),
        st.builds(t.Not, inner),
        st.builds(t.In, inner, names),
        _null_checks(inner),
        _calls(inner),
    )


expressions = st.recursive(st.one_of(constants, times(), variables()), _extend, max_leaves=6)
calls = _calls(expressions)

# ---------------------------------------------------------------------------------------- annotations, definitions

keys = st.one_of(st.sampled_from(["type", "jdbc.url", "a-b:c", "on.error"]), texts.filter(lambda k: k != ""))
elements = st.builds(t.AnnotationElement, optional(keys), texts)
annotations = st.recursive(
    st.builds(t.Annotation, names, tuples(elements)),
    lambda inner: st.builds(t.Annotation, names, tuples(elements), tuples(inner, most=2)),
    max_leaves=3,
)
app_annotations = st.builds(lambda n, e: t.Annotation(n, e, app=True), names, tuples(elements))
notes = tuples(annotations, most=2)

types = st.sampled_from(list(Type))
attributes = st.lists(
    st.builds(t.AttributeDefinition, names, types), min_size=1, max_size=4, unique_by=lambda a: a.name
).map(tuple)
event_types = st.sampled_from(["current", "expired", "all"])

filters = st.builds(t.Filter, expressions)
functions = st.builds(t.StreamFunction, calls)
windows = st.builds(t.Window, calls)
handlers = tuples(st.one_of(filters, functions), most=2)
with_window = st.builds(lambda a, w, b: (*a, *w, *b), handlers, tuples(windows, most=1), handlers)

select_items = st.one_of(st.builds(t.OutputAttribute, expressions, names), st.builds(t.OutputAttribute, variables()))
durations = st.sampled_from(["sec", "min", "hour", "day", "month", "year"])


@st.composite
def aggregations(draw: Callable) -> t.AggregationDefinition:
    star = draw(st.booleans())
    select = t.Selection(() if star else draw(tuples(select_items, 1)), star, draw(tuples(variables(), most=2)))
    is_range = draw(st.booleans())
    kept = draw(tuples(durations, 2, 2) if is_range else tuples(durations, 1))
    stream = t.StandardStream(draw(sources), draw(handlers))
    return t.AggregationDefinition(draw(ids), stream, select, draw(optional(variables())), kept, is_range, draw(notes))


bodies = st.sampled_from([" return data[0]; ", "", "if (a) { return '}'; } // }\n", ' return "{"; /* } */', "i--; 'x'"])
definitions = st.one_of(
    st.builds(t.StreamDefinition, outer_sources, attributes, notes),
    st.builds(t.TableDefinition, outer_sources, attributes, notes),
    st.builds(t.WindowDefinition, outer_sources, attributes, calls, optional(event_types), notes),
    st.builds(lambda i, e: t.TriggerDefinition(i, every=e), ids, times()),
    st.builds(lambda i, a: t.TriggerDefinition(i, at=a), ids, texts),
    st.builds(t.FunctionDefinition, ids, ids, types, bodies),
    aggregations(),
)

# ---------------------------------------------------------------------------------------------------------- inputs

standard_streams = st.builds(t.StandardStream, sources, with_window)
join_handlers = st.builds(lambda a, w: (*a, *w), handlers, tuples(windows, most=1))
join_sides = st.builds(t.JoinSide, sources, join_handlers, optional(names))
within_per = st.one_of(
    st.just(((), None)),
    st.tuples(tuples(expressions, 1, 2), st.sampled_from(["days", "sec"]).map(lambda v: t.Constant(v, Type.STRING))),
)
joins = st.builds(
    lambda left, right, kind, one_way, on, wp: t.JoinStream(left, right, kind, one_way, on, *wp),
    join_sides,
    join_sides,
    st.sampled_from(["inner", "left outer", "right outer", "full outer"]),
    st.sampled_from([None, "left", "right"]),
    optional(expressions),
    within_per,
)

unnamed = st.builds(t.StreamState, sources, st.none(), handlers)
present = st.builds(t.StreamState, sources, optional(st.sampled_from(["e1", "e2", "first", "last"])), handlers)
absent = st.builds(t.AbsentState, unnamed, times())
counted = st.builds(
    t.CountState, present, st.integers(0, 3), st.one_of(st.just(t.UNBOUNDED), st.integers(3, 5), st.just(1))
)
logical = st.one_of(
    st.builds(t.LogicalState, st.sampled_from(["and", "or"]), present | absent, present | absent),
    st.builds(lambda p, a: t.LogicalState("and", p, a), present, st.builds(t.AbsentState, unnamed)),
    st.builds(lambda p, a: t.LogicalState("and", a, p), present, st.builds(t.AbsentState, unnamed)),
)
events = st.one_of(present, counted, logical)


def chained(states: list[t.StateElement]) -> t.StateElement:
    """The states as a chain that leans to the right."""
    out = states[-1]
    for state in reversed(states[:-1]):
        out = t.NextState(state, out)
    return out


@st.composite
def patterns(draw: Callable) -> t.StateStream:
    every_event = st.builds(t.EveryState, events)
    group = st.lists(events, min_size=2, max_size=3).map(chained).map(t.EveryState)
    states = draw(st.lists(st.one_of(events, every_event, group), min_size=1, max_size=3))
    if draw(st.booleans()):  # absent events, never two in a row
        waits = st.one_of(absent, st.builds(t.EveryState, absent))
        at = draw(st.integers(0, len(states)))
        states.insert(at, draw(waits))
    return t.StateStream("pattern", chained(states), draw(optional(times())))


@st.composite
def sequences(draw: Callable) -> t.StateStream:
    states = draw(st.lists(events, min_size=2, max_size=4))
    every = draw(st.booleans())
    if draw(st.booleans()):
        states.insert(draw(st.integers(0, len(states))), draw(absent))
    if every:
        at_end = isinstance(states[-1], t.AbsentState)
        inside = [i for i, s in enumerate(states) if isinstance(s, t.AbsentState)]
        extent = draw(st.integers(inside[0] + 1, len(states) - 1)) if inside and inside[0] > 0 and not at_end else 1
        states = [t.EveryState(chained(states[:extent])), *states[extent:]]
    return t.StateStream("sequence", chained(states), draw(optional(times())))


# ------------------------------------------------------------------------------------------------ queries and apps

limits = st.one_of(constants.filter(lambda c: c.type in (Type.INT, Type.LONG)), times())
selections = st.one_of(
    st.just(t.Selection()),
    st.builds(
        lambda items, group, having, order, limit, offset: t.Selection(
            items, not items, group, having, order, limit, offset
        ),
        tuples(select_items),
        tuples(variables(), most=2),
        optional(expressions),
        tuples(st.builds(t.OrderBy, variables(), st.booleans()), most=2),
        optional(limits),
        optional(limits),
    ),
)
full_selections = selections.filter(lambda s: s != t.Selection())
rates = st.one_of(
    st.builds(lambda k, n: t.OutputRate(k, events=n), st.sampled_from(["all", "first", "last"]), st.integers(0, 99)),
    st.builds(lambda k, n: t.OutputRate(k, time=n), st.sampled_from(["all", "first", "last", "snapshot"]), times()),
)
assignments = optional(tuples(st.builds(t.SetAssignment, variables(), expressions), 1, 2))
some_events = optional(event_types)
outputs = st.one_of(
    st.builds(t.InsertInto, sources, some_events),
    st.builds(t.DeleteFrom, outer_sources, some_events, optional(expressions)),
    st.builds(t.UpdateTable, outer_sources, expressions, some_events, assignments),
    st.builds(t.UpdateOrInsert, outer_sources, expressions, some_events, assignments),
    st.builds(t.Return, some_events),
)


def _query(inputs: Strategy, ends: Strategy, annotated: Strategy) -> Strategy:
    return st.builds(t.Query, inputs, selections, ends, optional(rates), annotated)


inputs = st.one_of(standard_streams, joins, patterns(), sequences())
anonymous = st.builds(t.AnonymousStream, _query(inputs, st.builds(t.Return, some_events), st.just(())))
queries = _query(st.one_of(inputs, inputs, inputs, anonymous), outputs, notes)

partition_keys = st.one_of(
    st.builds(t.ValuePartition, expressions, streams),
    st.builds(t.RangePartition, tuples(st.tuples(expressions, texts), 1, 2), streams),
)
partitions = st.builds(t.Partition, tuples(partition_keys, 1, 2), tuples(queries, 1, 2), notes)
apps = st.builds(
    t.App, tuples(app_annotations, most=2), tuples(definitions, 1, 3), tuples(st.one_of(queries, partitions), most=2)
)

store_inputs = st.builds(
    lambda name, alias, on, wp: t.StoreInput(name, alias, on, *wp),
    names,
    optional(names),
    optional(expressions),
    within_per,
)
on_demand_queries = st.one_of(
    st.builds(lambda i, s: t.OnDemandQuery(i, s), store_inputs, optional(full_selections)),
    st.builds(lambda s, o: t.OnDemandQuery(None, s, o), full_selections, st.builds(t.InsertInto, outer_sources)),
    st.builds(
        lambda s, o: t.OnDemandQuery(None, s, o),
        full_selections,
        st.builds(t.UpdateOrInsert, outer_sources, expressions, st.none(), assignments),
    ),
    st.builds(
        lambda s, o: t.OnDemandQuery(None, s, o),
        optional(full_selections),
        st.one_of(
            st.builds(t.DeleteFrom, outer_sources, st.none(), optional(expressions)),
            st.builds(t.UpdateTable, outer_sources, expressions, st.none(), assignments),
        ),
    ),
)

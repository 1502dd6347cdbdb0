"""Prints a plan as indented text: definitions, queries, placement, shard safety, known faults of Siddhi's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ...errors import SiddhiBindError
from ...lang import tree
from ...masking import mask_addresses
from .. import nodes as n
from ..connectors.outside import is_outside, promise
from ..cycles import cycles, shared_tables
from ..distributed.distribute import distribute
from ..distributed.placement import stateless
from ..gaps import find_gaps
from ..query_parts import connector_type
from ..shard_safety.known_faults import known_faults
from ..shard_safety.safety import aggregation_safety
from .show import show


def explain(plan: n.Plan, lines_before: int = 0) -> str:
    """The plan as text, ending in a newline. Numbers of lines count the `lines_before` the app's text."""
    lines: list[str] = [f"app {plan.name}" if plan.name else "app"]
    queries, aggregations = stateless(plan)
    elements, gaps = _elements(plan, queries, lines_before), _gaps(plan, lines_before)
    faults = _known_faults(plan, lines_before)
    for part in (_definitions(plan, aggregations), elements, _cycles(plan), _explain_distribution(plan), faults, gaps):
        lines.extend(f"  {line}" for line in part)
    return mask_addresses("\n".join(lines) + "\n")


# ------------------------------------------------------------------------------------------------------- distributed


def _explain_distribution(plan: n.Plan) -> Iterator[str]:
    """The parts that a fully distributed deployment makes of an app with @dist."""
    parts: list[n.Query | n.Partition | n.AggregationDef] = [*plan.elements, *plan.aggregations.values()]
    if not any(tree.find_annotation(p.annotations, "dist") for p in parts):
        return
    try:
        split = distribute(plan)
    except SiddhiBindError as e:
        yield f"distributed: refused by its manager, {e.message}"
        return
    apps = sum(g.parallel for g in split.groups)
    yield f"distributed: {len(split.groups)} execution groups, {apps} apps"
    for g in split.groups:
        yield f"  {', '.join(g.instances)}: {', '.join(g.elements)}{' (on a receiver node)' if g.receiver else ''}"
        yield from (f"    reads {r.stream}: {r.strategy.value}{f' {r.key}' if r.key else ''}" for r in g.reads)
    for t in split.topics:
        count = "1 partition" if t.partitions == 1 else f"{t.partitions} partitions"
        yield f"  topic {t.name}, {count}: {', '.join(t.writers) or 'outside'} → {', '.join(t.readers)}"
    yield from (f"  ! {note}" for note in split.notes)


# ------------------------------------------------------------------------------------------------------- definitions


def _definitions(plan: n.Plan, apart: Collection[str]) -> Iterator[str]:
    if plan.idle_clock is not None:
        c = plan.idle_clock
        yield f"clock: moves on by {c.increment:,} ms when nothing is sent for {c.idle:,} ms, in a deployment"
    for id_, s in plan.streams.items():
        note = "" if s.kind == "defined" else f"  -- {s.kind}"
        yield f"stream {id_} {s.source.schema}{note}"
        for sink in s.annotations:
            if is_outside(sink, plan.properties):
                yield f"  sink {(type_ := connector_type(sink, plan.properties))}: {promise(type_)}"
    for id_, t in plan.tables.items():
        key = ", ".join(t.source.schema[i].name for i in t.primary_key)
        notes = [f"key {key}"] if key else []
        if t.is_stored:
            notes.append("in a database, shared by all nodes; each change is made exactly once")
        remark = f"  -- {'; '.join(notes)}" if notes else ""
        yield f"table {id_} {t.source.schema}{remark}"
    for id_, w in plan.windows.items():
        yield f"window {id_} {w.source.schema} {_window(w.window)}, sends {w.output} events"
    for id_, trigger in plan.triggers.items():
        when = f"every {trigger.every:,} ms" if trigger.every is not None else trigger.cron or "start"
        yield f"trigger {id_} at {when}"
    for id_, f in plan.functions.items():
        yield f"function {id_} in {f.language} returns {f.returns}"
    for a in plan.aggregations.values():
        yield from _aggregation(a, plan, apart)


def _aggregation(a: n.AggregationDef, plan: n.Plan, apart: Collection[str]) -> Iterator[str]:
    yield f"aggregation {a.id} {a.source.schema}"
    yield from (f"  {line}" for line in _input(a.input))
    by = f"{show(a.by)}, an attribute" if a.by is not None else "the clock"
    yield f"  per {', '.join(a.durations)} by {by}"
    if a.select.group_by:
        yield f"  group by {', '.join(show(g) for g in a.select.group_by)}"
    if a.retention is not None:
        kept_times = ", ".join(f"{d} for {ms:,} ms" for d, ms in a.retention.kept.items())
        yield f"  purges every {a.retention.interval:,} ms, keeps {kept_times}"
    yield "  stores"
    for c in a.base:
        arg = f" of {show(c.arg)}" if c.arg is not None else ""
        yield f"    {c.name} {c.type} = {c.kind}{arg}"
    yield "  answers"
    for item in a.output:
        yield f"    {item.name} {item.expr.type} = {show(item.expr)}"
    yield f"  shards: {'rows carry SHARD_ID' if a.partitioned else 'rows carry no SHARD_ID'}"
    yield f"  runs in: {_place(a.id in apart)}"
    yield f"  routing: {_safety(aggregation_safety(plan, a))}"


# ----------------------------------------------------------------------------------------------------------- queries


def _elements(plan: n.Plan, apart: Collection[str], lines_before: int) -> Iterator[str]:
    for e in plan.elements:
        if isinstance(e, n.Query):
            yield from _query(e, apart, lines_before)
            continue
        yield f"{e.id}"
        for key in e.keys:
            if isinstance(key, n.ValueKey):
                yield f"  key of {key.stream}: {show(key.expr)} {key.expr.type}"
            else:
                ranges = ", ".join(f"'{name}' if {show(c)}" for c, name in key.ranges)
                yield f"  key of {key.stream}: {ranges}"
        if e.purge is not None:
            yield f"  purge every {e.purge.interval:,} ms keys that were idle for {e.purge.idle:,} ms"
        yield f"  routing: {_safety(e.safety)}"
        for q in e.queries:
            yield from (f"  {line}" for line in _query(q, apart, lines_before))


def _query(q: n.Query, apart: Collection[str], lines_before: int) -> Iterator[str]:
    yield f"query '{q.name}'" + (f"  -- line {q.span.line + lines_before}" if q.span.end else "")
    for line in _body(q):
        yield f"  {line}"
    yield f"  runs in: {_place(q.name in apart)}"
    yield f"  routing: {_safety(q.safety)}"


def _place(apart: bool) -> str:
    return "any worker, on pieces of the input in parallel" if apart else "the node, in order"


def _body(q: n.Query) -> Iterator[str]:
    names = _slot_names(q.input)
    yield from _input(q.input)
    if q.select.items:
        yield "select"
        for item in q.select.items:
            yield f"  {item.name} {item.expr.type} = {show(item.expr, names)}"
    if q.select.group_by:
        yield f"group by {', '.join(show(g, names) for g in q.select.group_by)}"
    if q.select.having is not None:
        yield f"having {show(q.select.having, names)}"
    if q.select.order_by:
        keys = [*(i.name for i in q.select.items), *(show(e, names) for e in q.select.unselected)]
        order = (f"{keys[o.attr]}{' desc' if o.descending else ''}" for o in q.select.order_by)
        yield f"order by {', '.join(order)}"
    for what, value in (("limit", q.select.limit), ("offset", q.select.offset)):
        if value is not None:
            yield f"{what} {value:,}"
    if q.rate is not None:
        yield f"output {q.rate.kind} every {q.rate.every:,} {'events' if q.rate.unit == 'events' else 'ms'}"
    yield from _output(q.output)


def _slot_names(i: n.Input) -> dict[int, str]:
    match i:
        case n.JoinInput():
            left, right = i.left.source.id, i.right.source.id
            return {0: left, 1: right} if left != right else {0: f"{left}:left", 1: f"{right}:right"}
        case n.StateInput():
            return {k: s.ref or s.source.id for k, s in enumerate(i.slots)}
    return {}


def _input(i: n.Input) -> Iterator[str]:
    match i:
        case n.StreamInput():
            yield f"from {i.source.id}"
            yield from (f"  {line}" for line in _steps(i, {}))
        case n.JoinInput():
            names = _slot_names(i)
            yield f"{i.kind} join"
            for slot, side in enumerate((i.left, i.right)):
                yield f"  {names[slot]} ({side.source.kind}){', triggers' if i.triggers[slot] else ''}"
                yield from (f"    {line}" for line in _steps(side, {}))
                if side.ignored is not None:
                    yield f"    {_window(side.ignored)}, without effect: all rows of the table are read"
            if i.on is not None:
                yield f"  on {show(i.on, names)}"
            if i.per is not None:
                yield f"  within {', '.join(show(w, names) for w in i.within)} per {show(i.per, names)}"
        case n.StateInput():
            within = f", within {i.within:,} ms" if i.within is not None else ""
            yield f"{i.kind}{within}"
            yield from (f"  {line}" for line in _state(i.state, _slot_names(i)))


def _steps(i: n.StreamInput, names: Mapping[int, str]) -> Iterator[str]:
    for step in i.steps:
        match step:
            case n.FilterStep():
                yield f"filter {show(step.condition, names)}"
            case n.WindowStep():
                yield _window(step)
            case n.FunctionStep():
                adds = f" adds {step.appends}" if len(step.appends) else ""
                yield f"{step.function}({', '.join(show(a, names) for a in step.args)}){adds}"


def _window(w: n.WindowStep) -> str:
    return f"window {w.function}({', '.join(show(a) for a in w.args)})"


def _state(s: n.State, names: Mapping[int, str]) -> Iterator[str]:
    while isinstance(s, n.NextState):
        yield from _state(s.first, names)
        yield "then"
        s = s.then
    match s:
        case n.StreamState():
            name = names[s.slot]
            yield s.input.source.id if name == s.input.source.id else f"{name} = {s.input.source.id}"
            yield from (f"  {line}" for line in _steps(s.input, names))
        case n.CountState():
            most = s.most if s.most != tree.UNBOUNDED else ""
            yield f"<{s.least}:{most}> times"
            yield from (f"  {line}" for line in _state(s.state, names))
        case n.AbsentState():
            yield "not" + (f", for {s.wait:,} ms" if s.wait is not None else "")
            yield from (f"  {line}" for line in _state(s.state, names))
        case n.LogicalState():
            yield s.op
            for side in (s.left, s.right):
                yield from (f"  {line}" for line in _state(side, names))
        case n.EveryState():
            yield "every"
            yield from (f"  {line}" for line in _state(s.state, names))


def _output(o: n.Output) -> Iterator[str]:
    names = {n.TABLE: o.target.id}
    match o:
        case n.Insert():
            yield f"insert {o.event_type} events into {o.target.id}"
        case n.Delete():
            on = show(o.on, names) if o.on is not None else "true"
            yield f"delete from {o.target.id} on {on}, {o.event_type} events"
        case n.Update() | n.Upsert():
            verb = "update" if isinstance(o, n.Update) else "update or insert into"
            yield f"{verb} {o.target.id} on {show(o.on, names)}, {o.event_type} events"
            for s in o.set or ():
                yield f"  set {o.target.schema[s.attr].name} = {show(s.value, names)}"


def _safety(s: n.Safety) -> str:
    keys = ", ".join(f"{stream} by {attribute}" for stream, attribute in s.keys)
    return f"{s.level}{f' ({keys})' if keys else ''}: {s.reason}"


# ------------------------------------------------------------------------------------------- cycles, faults and gaps


def _cycles(plan: n.Plan) -> Iterator[str]:
    for way in cycles(plan):
        way_round = " -> ".join(f"'{name}'" for name in (*way, way[0]))
        yield f"cycle: {way_round}, run in slices"
    for table, readers, writers in shared_tables(plan):
        quoted_names = [", ".join(f"'{name}'" for name in names) for names in (readers, writers)]
        yield f"cycle: table {table} is read by {quoted_names[0]} and written by {quoted_names[1]}, run in slices"


def _known_faults(plan: n.Plan, lines_before: int) -> Iterator[str]:
    """Places where Siddhi's answer differs because of a fault."""
    for note in known_faults(plan):
        place = note.place
        yield f"known-fault in {place.kind} '{place.name}', line {place.span.line + lines_before}: {note.text}"


def _gaps(plan: n.Plan, lines_before: int) -> Iterator[str]:
    for use in find_gaps(plan):
        place_ = f", line {use.span.line + lines_before}" if use.span.end else ""
        yield f"gap {use.name}: {use.what} cannot run in this build{place_}"

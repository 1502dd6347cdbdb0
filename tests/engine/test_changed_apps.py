"""An app that is changed while it runs: what is unchanged puts out what it would have put out undisturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkstream_nb.engine.cases import events, input_batch
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.plan.state_units import KeptUnit, UnitChanges, state_tokens, unit_changes, units_of

from .test_properties import SCHEMA, WINDOWS, feeds

DEFINITIONS = """
define table T (sym string, total long);
define window W (sym string, qty int) length(4) output all events;
define window V (sym string, qty int) time(600) output current events;
define trigger Tr at every 700 milliseconds;
"""
NAMED = {
    "filtered": "from S[qty > 3] select sym, qty insert into O1;",
    "pattern": "from every e1=S -> e2=S[e2.qty > e1.qty] within 2 sec select e1.qty as a, e2.qty as b insert into O2;",
    "absent": "from every e1=S -> not S[qty > 8] for 500 milliseconds select e1.sym as sym insert into O3;",
    "begins": "from every not S[qty > 9] for 600 milliseconds select 1 as one insert into O4;",
    "sequence": "from every e1=S, e2=S[e1.sym == sym]+ select e1.qty as a, e2[0].qty as b insert into O5;",
    "joined": "from S#window.length(3) as a join S#window.time(600) as b on a.sym == b.sym "
    "select a.qty as x, b.qty as y insert into O6;",
    "rated": "from S#window.length(5) select sym, sum(qty) as s group by sym output last every 500 milliseconds "
    "insert into O7;",
    "snapshot": "from S#window.length(3) select sym, sum(qty) as s output snapshot every 600 milliseconds "
    "insert into O8;",
    "late": "from S#reorder:kslack(ts) select sym, qty insert into O9;",
    "into": "from S select sym, qty insert into W;",
    "intoV": "from S select sym, qty insert into V;",
    "ofW": "from W select sym, sum(qty) as s, count() as n insert all events into O10;",
    "rowsOfW": "from W select sym, qty insert into O11;",
    "withW": "from S[qty > 5] as s join W as w on s.sym == w.sym select s.qty as x, w.qty as y insert into O12;",
    "ofV": "from V select sym, sum(qty) as s insert into O13;",
    "written": "from S select sym, 1L as total update or insert into T set T.total = T.total + 1L on T.sym == sym;",
    "withT": "from S as s join T as t on s.sym == t.sym select s.qty as x, t.total as total insert into O14;",
    "ticks": "from Tr select triggered_time as at insert into O15;",
    "next": "from O1#window.length(2) select sum(qty) as s insert into O16;",
    **{
        f"window{i}": f"from S#window.{w} select sym, sum(qty) as s, count() as n insert all events into P{i};"
        for i, w in enumerate(WINDOWS)
    },
}
PARTITIONS = [
    "partition with (sym of S) begin {0} from S#window.length(2) select sym, sum(qty) as s insert into Q1; end;",
    "partition with (sym of S) begin {0} from every e1=S -> e2=S[e2.qty > e1.qty] select e1.sym as sym insert into #I; "
    "{1} from #I#window.length(2) select sym, count() as n insert into Q2; end;",
    "partition with (qty > 5 as 'high' or qty <= 5 as 'low' of S) begin {0} from S#window.timeBatch(500) "
    "select sym, sum(qty) as s insert into Q3; end;",
]


def app(names: Sequence[str], partitions: Sequence[int], changed: Sequence[str] = ()) -> str:
    """The app with these queries and partitions; the `changed` ones read fewer events."""
    queries = []
    for name in names:
        text = NAMED[name]
        if name in changed:
            text = text.replace("select ", "select 'x' as changed, ", 1) if "T set" not in text else text.replace("1L", "2L")
        queries.append(f"@info(name='{name}') {text}")
    for p in partitions:
        queries.append(PARTITIONS[p].format(f"@info(name='p{p}a')", f"@info(name='p{p}b')"))
    return SCHEMA + DEFINITIONS + "\n".join(queries)


def engine(plan: Plan, units: Mapping[str, KeptUnit], *, by_chunk: bool) -> NodeEngine:
    return NodeEngine(plan, trace=True, by_chunk=by_chunk, tokens=state_tokens(plan, units))


def run(node: NodeEngine, plan: Plan, steps: Sequence[Any]) -> dict[str, list[Any]]:
    """What every named query puts out: current and expired events, with their steps."""
    outputs = node.step(input_batch(plan, steps))
    return {q: [events(kind) for kind in found] for q, found in outputs.queries.items()}


def same_inputs(plan: Plan, other: Plan, changes: UnitChanges) -> set[str]:
    """The named queries that are kept, and whose inputs are not changed either, however far up."""
    kept = {key.partition(" ")[2] for key in changes.kept}
    touched = {key.partition(" ")[2] for key in (*changes.added, *changes.changed, *changes.bound, *changes.removed)}

    def members(p: Plan) -> dict[str, Any]:
        return {q.name: (e.id if hasattr(e, "queries") else q.name, q) for e in p.elements for q in getattr(e, "queries", (e,))}

    from sparkstream_nb.engine.assembly import sources_of
    from sparkstream_nb.engine.operators import tables_read

    now, before = members(other), members(plan)
    disturbed = {q for p in (now, before) for q, (unit, _) in p.items() if unit in touched}
    spoilt = {key for key in touched}
    while True:
        spoilt |= {p[q][1].output.target.id for p in (now, before) for q in disturbed if q in p}
        more = {
            name
            for name, (_, q) in now.items()
            if name not in disturbed and spoilt & {*sources_of(q), *tables_read(q), q.output.target.id * ("T" == q.output.target.id)}
        }
        if not more:
            return {q for q, (unit, _) in now.items() if unit in kept and q not in disturbed}
        disturbed |= more


@st.composite
def changes_of_apps(draw: st.DrawFn) -> tuple[str, str]:
    """An app, and what it is changed to: queries in another place, added, removed and changed."""
    pool = [n for n in NAMED if not n.startswith("window")]
    first = draw(st.lists(st.sampled_from(pool), min_size=2, max_size=7, unique=True))
    first += draw(st.lists(st.sampled_from([n for n in NAMED if n.startswith("window")]), max_size=3, unique=True))
    second = [n for n in first if draw(st.integers(0, 4))]
    second = [*draw(st.lists(st.sampled_from([n for n in NAMED if n not in first]), max_size=2, unique=True)), *second]
    changed = [n for n in second if n in first and not draw(st.integers(0, 4))]
    partitions = draw(st.lists(st.integers(0, 2), max_size=2, unique=True))
    others = draw(st.lists(st.integers(0, 2), max_size=2, unique=True))
    return app(first, partitions), app(second, others, changed)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes_of_apps(), feeds(), st.integers(0, 100), st.booleans(), st.booleans())
def test_what_is_unchanged_goes_on(apps: tuple[str, str], feed: list[Any], cut: int, first: bool, second: bool) -> None:
    before, after = (compile_app(text) for text in apps)
    units = units_of(before)
    changes = unit_changes(units, after, 1)
    feed = [s for s in feed if "late" not in s]
    at = cut * len(feed) // 100
    node = engine(before, units, by_chunk=first)
    run(node, before, feed[:at])
    snapshot = node.snapshot()
    undisturbed = run(node, before, feed[at:])
    node = engine(after, changes.units, by_chunk=second)
    node.restore(snapshot)
    found = run(node, after, feed[at:])
    for q in same_inputs(before, after, changes):
        assert found[q] == undisturbed[q], (q, changes)
    restarted = engine(after, changes.units, by_chunk=first)
    restarted.restore(node.snapshot())
    assert restarted.snapshot() == node.snapshot()

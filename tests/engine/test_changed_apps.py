"""An app that is changed while it runs: what is unchanged puts out what it would have put out undisturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from profiles import examples
from reference.engine_cases import events, input_batch
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.runtime.assembly import sources_of
from sparkstream_nb.engine.runtime.operators import tables_read
from sparkstream_nb.engine.state.node_batch import OutputOptions
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Partition, Plan
from sparkstream_nb.plan.state_units import KeptUnit, UnitChanges, state_tokens, unit_changes, units_of

from .test_properties import SCHEMA, WINDOWS, feeds

DEFINITIONS = """
define stream O1 (sym string, qty int);
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
            text = _changed(text)
        queries.append(f"@info(name='{name}') {text}")
    for p in partitions:
        queries.append(PARTITIONS[p].format(f"@info(name='p{p}a')", f"@info(name='p{p}b')"))
    return SCHEMA + DEFINITIONS + "\n".join(queries)


def _changed(text: str) -> str:
    """The query with another meaning, and the outputs that its readers know."""
    if "O1;" in text:
        return text.replace("qty > 3", "qty > 4")
    if "from S select" in text:
        return text.replace("from S select", "from S[qty != 1] select")
    return text.replace("select ", "select 'x' as changed, ", 1)


def engine(plan: Plan, units: Mapping[str, KeptUnit], *, by_chunk: bool) -> NodeEngine:
    return NodeEngine(plan, outputs=OutputOptions(trace=True), by_chunk=by_chunk, tokens=state_tokens(plan, units))


def run(node: NodeEngine, plan: Plan, steps: Sequence[Any]) -> dict[str, list[Any]]:
    """What every named query puts out: current and expired events, with their steps."""
    outputs = node.step(input_batch(plan, steps))
    return {q: [events(kind) for kind in found] for q, found in outputs.queries.items()}


def same_inputs(before: Plan, after: Plan, changes: UnitChanges) -> set[str]:
    """The named queries that are kept and whose inputs, however far up, are not touched by the change."""
    kept = set(changes.kept)
    tainted = {*changes.added, *changes.changed, *changes.bound, *changes.removed}
    elements = [
        (f"partition {e.id}" if isinstance(e, Partition) else f"query {e.name}", e, p)
        for p in (before, after)
        for e in p.elements
    ]
    spoilt = {key.partition(" ")[2] for key in tainted}
    size = 0, 0
    while True:
        for key, e, _ in elements:
            queries = e.queries if isinstance(e, Partition) else (e,)
            read = {x for q in queries for x in (*sources_of(q), *tables_read(q))}
            if key in tainted or read & spoilt:
                tainted.add(key)
                spoilt |= {q.output.target.id for q in queries}
        if (len(tainted), len(spoilt)) == size:
            break
        size = len(tainted), len(spoilt)
    clean = [e for key, e, p in elements if p is after and key in kept and key not in tainted]
    return {q.name for e in clean for q in (e.queries if isinstance(e, Partition) else (e,))}


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


@pytest.mark.thorough
@settings(
    max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
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


STREAM = "define stream S (v int);\n"
SUMS = "@info(name='sums') from S select sum(v) as total insert into Out;\n"


def changed(before: str, after: str, feed: list[Any], rest: list[Any]) -> tuple[UnitChanges, dict[str, list[Any]]]:
    """What becomes of the units, and what the queries of `after` put out for `rest`."""
    plan, other = compile_app(before), compile_app(after)
    units = units_of(plan)
    node = engine(plan, units, by_chunk=False)
    run(node, plan, feed)
    changes = unit_changes(units, other, 1)
    again = engine(other, changes.units, by_chunk=False)
    again.restore(node.snapshot())
    return changes, run(again, other, rest)


def test_what_is_added_begins_with_what_comes_from_now_on() -> None:
    added = (
        "@info(name='from now') from S#window.length(9) select sum(v) as total insert into Out2;\n"
        "@info(name='absent') from not S for 2 sec select 1 as one insert into Out3;\n"
        "@info(name='ticks') from Tr select triggered_time as at insert into Out4;\n"
    )
    trigger = "define trigger Tr at every 1 sec;\n"
    feed = [["S", 1_000, [1]], ["S", 50_000, [2]]]
    rest = [["S", 50_500, [4]], {"tick": 52_700}]
    changes, found = changed(STREAM + SUMS, STREAM + trigger + added + SUMS, feed, rest)
    assert changes.kept == ("query sums",)
    assert changes.added == ("trigger Tr", "query from now", "query absent", "query ticks")
    assert found["sums"][0] == [[50_500, [7]]]
    assert found["from now"][0] == [[50_500, [4]]]
    assert found["absent"][0] == [[52_500, [1]]]
    assert [at for at, _ in found["ticks"][0]] == [51_500, 52_500]
    quiet = changed(STREAM + SUMS, STREAM + trigger + added + SUMS, feed, [{"tick": 52_700}])[1]
    assert [at for at, _ in quiet["absent"][0]] == [52_000]


def test_a_query_that_comes_back_begins_anew() -> None:
    plan, without = compile_app(STREAM + SUMS), compile_app(STREAM + SUMS.replace("'sums'", "'other'"))
    none = compile_app(STREAM + "from S select v insert into Out;")
    units = units_of(plan)
    node = engine(plan, units, by_chunk=False)
    run(node, plan, [["S", 1, [1]]])
    gone = unit_changes(units, none, 1)
    assert gone.removed == ("query sums",)
    back = unit_changes(gone.units, plan, 2)
    assert back.added == ("query sums",)
    again = engine(plan, back.units, by_chunk=False)
    again.restore(node.snapshot())  # of a node that slept through both changes
    assert run(again, plan, [["S", 2, [5]]])["sums"][0] == [[2, [5]]]
    assert unit_changes(units, without, 1).kept == ("query other",)  # another name for the same


def test_queries_that_count_on_a_named_window_begin_anew_with_it() -> None:
    window = "define window W (v int) length({}) output all events;\n"
    reads = "from S select v insert into W;\n@info(name='{}') from W select sum(v) as total insert into O{};\n"
    before = STREAM + window.format(3) + reads.format("a", 1) + SUMS
    assert unit_changes(
        units_of(compile_app(before)), compile_app(STREAM + window.format(2) + reads.format("a", 1) + SUMS), 1
    ).bound == ("query a",)
    more = before + "@info(name='b') from W select max(v) as most insert into O2;"
    changes = unit_changes(units_of(compile_app(before)), compile_app(more), 1)
    assert (changes.added, changes.bound) == (("query b",), ("window W", "query a"))
    plain = before + "@info(name='b') from W select v insert into O2;"
    assert unit_changes(units_of(compile_app(before)), compile_app(plain), 1).bound == ()

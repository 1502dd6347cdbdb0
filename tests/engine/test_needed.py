"""Without the attributes that a plan does not need (`plan.needed`), the engine puts out the same, errors too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiles import examples
from reference import engine_cases, replay
from reference.engine_cases import input_batch, run_case
from sparkstream_nb.engine.columnar.column_data import Column, UnreadColumn, concat
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions, StreamRows, UnreadAttribute, take_rows
from sparkstream_nb.errors import NotInThisBuild
from sparkstream_nb.nodes.batches import between, concat_columns
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.needed import needed_attributes
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.types import Type

from .test_properties import QUERIES, WINDOWS, feeds

SCHEMA = """
define stream S (sym string, px double, qty int, ts long, ok bool, ex string);
define table Known (sym string, n long);
define window Held (sym string, qty int) length(2);
"""
MORE = [
    "from S[qty > 3 and ok == true] select sym, px insert into Filtered; "
    "from Filtered#window.length(2) select sym, sum(px) as s group by sym insert into O2;",
    "from S select cast(ex, 'int') as n insert into Failing;",
    "from S[not(px < 30.0)] select sym, 1L as n update or insert into Known set Known.n = Known.n + 1 "
    "on Known.sym == sym;",
    "from S join Known on S.sym == Known.sym select S.qty, Known.n insert into Joined;",
    "from S#window.length(2) as a join S#window.time(500) as b on a.sym == b.sym select a.qty, b.px insert into Both;",
    "from S#window.length(3) as a left outer join S[ok == true]#window.length(2) as b on a.qty == b.qty "
    "select a.sym, b.px insert all events into Outer;",
    "from every e1=S[qty > 3] -> e2=S[sym == e1.sym] select e1.px as p, e2.qty as q insert into Pairs;",
    "from every e1=S[px > 20.0]<1:2> -> e2=S[qty < 5] select e1[0].sym as s, e1[last].qty as q, e2.px as p "
    "insert into Counted;",
    "from every e1=S, e2=S[px > e1.px] select e1.sym as s, e2.px as p insert into Rising;",
    "partition with (sym of S) begin from S select qty, count() as n insert into #I; "
    "from #I#window.length(2) select sum(qty) as s insert into Inner; end;",
    "partition with (qty < 5 as 'low' or qty >= 5 as 'high' of S) begin from S#window.lengthBatch(2) "
    "select max(px) as m insert into Ranges; end;",
    "from S select sym, qty insert into Held;",
    "from Held select sym, sum(qty) as s insert all events into FromHeld;",
    "from S select sym, px, qty, ts, ok, ex insert into S2; from S2 select sym insert into Sent;",
    "from S[qty == 12] select sym, px, 1 as qty, ts, ok, ex insert into S;",
    "from S#reorder:kslack(ts) select sym, ts insert into Late;",
    "define aggregation A from S select sym, sum(qty) as s group by sym aggregate every sec, min;",
    "from S select qty, sum(px) as s output last every 3 events insert into Rated;",
    "from S[sym == 'A' in Known] select qty insert into Looked;",
]


def without(plan: Plan, batch: InputBatch) -> InputBatch:
    """The batch without the attributes that the plan does not need."""
    read = needed_attributes(plan)
    rows = {
        s: StreamRows(
            r.step, r.ts, [c if i in read[s] else UnreadAttribute(len(r.ts)) for i, c in enumerate(r.columns)]
        )
        for s, r in batch.rows.items()
    }
    return InputBatch(batch.clock, rows)


def told(plan: Plan, feed: list[Any], cut: int, *, by_chunk: bool, all: bool) -> object:
    """All that comes out in two micro-batches, and the state afterwards."""
    node = NodeEngine(plan, outputs=OutputOptions(trace=True), start=0, by_chunk=by_chunk)
    out: list[object] = []
    for steps in (feed[:cut], feed[cut:]):
        batch = input_batch(plan, steps)
        got = node.step(batch if all else without(plan, batch))
        out += [
            {s: engine_cases.events(e) for s, e in got.streams.items()},
            {q: [engine_cases.events(e) for e in both] for q, both in got.queries.items()},
            {a: t.to_pylist() for a, t in got.partials.items()},
            [(e.query, e.stream, e.ts, e.values, e.message) for e in got.errors],
        ]
    return out, node.stats(), node.next_due(), node.snapshot()


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    feed=feeds(), cut=st.integers(0, 15), by_chunk=st.booleans(),
    some=st.lists(st.sampled_from(MORE), min_size=1, max_size=4, unique=True),
    window=st.sampled_from(WINDOWS), query=st.sampled_from([*QUERIES.values(), ""]),
)  # fmt: skip
def test_the_same_comes_out(
    feed: list[Any], cut: int, by_chunk: bool, some: list[str], window: str, query: str
) -> None:
    definitions = [x for x in some if x.startswith("define")]
    queries = [query.format(window), *(x for x in some if not x.startswith("define"))]
    plan = compile_app(SCHEMA + "\n".join(definitions + queries))
    right = told(plan, feed, cut, by_chunk=by_chunk, all=True)
    assert told(plan, feed, cut, by_chunk=by_chunk, all=False) == right


@pytest.mark.thorough
@pytest.mark.parametrize("by_chunk", [False, True])
@pytest.mark.parametrize("part", range(16))
def test_cases(part: int, by_chunk: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [c for c in list(replay.siddhi_cases())[part::16] if "uuid" not in c["app"].lower()]
    for case in found:
        with monkeypatch.context() as patch:
            try:
                whole = run_case(case, by_chunk=by_chunk)
            except NotInThisBuild:
                continue
            patch.setattr(engine_cases, "input_batch", lambda plan, steps: without(plan, input_batch(plan, steps)))
            assert run_case(case, by_chunk=by_chunk) == whole, case["id"]


def test_what_is_left_out_goes_through() -> None:
    out = UnreadAttribute(5)
    rows = StreamRows(np.arange(5), np.arange(5), [out, pa.array(range(5))])
    batch = InputBatch(np.arange(5), {"S": rows})
    assert not rows.whole
    assert InputBatch.from_bytes(batch.to_bytes()).rows["S"].columns[0] == out
    assert between(batch, 1, 3).rows["S"].columns[0] == UnreadAttribute(2)
    assert take_rows(out, np.array([1, 1, 4])) == UnreadAttribute(3)
    assert concat_columns([out, pa.array(["a"])]) == UnreadAttribute(6)


def test_what_is_not_read_has_no_values() -> None:
    column = UnreadColumn(Type.INT, 5)
    both = concat([Column(Type.INT, np.arange(2, dtype=np.int32)), column])
    assert [len(c) for c in (column, both, column.take(np.array([1, 2])), column.slice(1, 2))] == [5, 7, 2, 1]
    for ask in (lambda: both.values, lambda: both.null, lambda: both.to_list(None), lambda: both.to_arrow(None)):
        with pytest.raises(RuntimeError, match="left out"):
            ask()

"""`NodeEngine.next_due`: no timer fires before it, and a tick at it leaves nothing that is due."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiles import a_third, examples
from reference.engine_cases import input_batch
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import Outputs
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.plan.window_declarations import DECLARATIONS

from .test_properties import SCHEMA, WINDOWS, feeds

DAY = 86_400_000
SOME = "select sym, sum(qty) as s insert {} events into Out;"
SHAPES = {
    "current": "from S#window.{} " + SOME.format("current"),
    "expired": "from S#window.{} " + SOME.format("expired"),
    "partition": "partition with (sym of S) begin from S#window.{} " + SOME.format("all") + " end;",
    "named": "define window W (sym string, px double, qty int, ts long, ok bool, ex string) {}; "
    "from S insert into W; from W " + SOME.format("all"),
    "join": "from S#window.{} as a join S#window.length(2) as b on a.sym == b.sym "
    "select a.sym, b.qty insert all events into Out;",
    "all every": "from S#window.{} select sym, sum(qty) as s output all every 350 milliseconds "
    "insert all events into Out;",
    "last every": "partition with (sym of S) begin from S#window.{} select sym, qty output last every 1 sec "
    "insert into Out; end;",
    "snapshot": "from S#window.{} select sym, sum(qty) as s group by sym output snapshot every 900 milliseconds "
    "insert into Out;",
}
SHAPED = [
    (shape, window)
    for shape in SHAPES
    for window in WINDOWS
    if DECLARATIONS[window.split("(")[0]].timers_emit != "nothing" or (shape != "named" and window == "length(3)")
]
OTHERS = {
    "absent at first": "from not S[qty > 6] for 700 milliseconds select 1 as one insert into Out;",
    "absent again and again": "from every not S[qty > 6] for 700 milliseconds select 1 as one insert into Out;",
    "absent before": "from not S[qty > 6] for 400 milliseconds -> b=S[ok] select b.sym insert into Out;",
    "absent after": "from every a=S[ok] -> not S[sym == a.sym] for 500 milliseconds select a.sym insert into Out;",
    "absent within": "from every a=S[ok] -> not S[qty > 9] for 500 milliseconds -> c=S within 2 sec "
    "select a.sym, c.qty insert into Out;",
    "absent or": "from every a=S[ok] -> not S[qty > 9] for 500 milliseconds or b=S[qty == 3] "
    "select a.sym insert into Out;",
    "absent and": "from every a=S[ok] -> not S[qty > 9] for 500 milliseconds and b=S[qty == 3] "
    "select a.sym insert into Out;",
    "absent in a sequence": "from every a=S[ok], not S[qty > 9] for 500 milliseconds select a.sym insert into Out;",
    "absent in a partition": "partition with (sym of S) begin from every not S[qty > 6] for 700 milliseconds "
    "select 1 as one insert into Out; end;",
    "made by another stream": "define stream T (sym string); partition with (sym of S, sym of T) begin "
    "from T select sym insert into Other; "
    "from not S for 700 milliseconds select 1 as one insert into Out; end;",
    "periodic": "define trigger P at every 450 milliseconds; from P select triggered_time as t insert into Out;",
    "cron": "define trigger P at '*/3 * * * * ?'; from P select triggered_time as t insert into Out;",
    "at the start": "define trigger P at 'start'; from P select triggered_time as t insert into Out;",
    "purge": "@purge(enable='true', interval='600 milliseconds', idle.period='500 milliseconds') "
    "partition with (sym of S) begin from S select sym, count() as n output last every 2 sec insert into Out; end;",
    "purge of a pattern": "@purge(enable='true', interval='600 milliseconds', idle.period='500 milliseconds') "
    "partition with (sym of S) begin from every a=S[ok] -> not S[qty > 9] for 1300 milliseconds select a.sym "
    "insert into Out; end;",
    "slack": "from S#reorder:kslack(ts, 800L) select sym, ts insert into Out;",
    "adaptive slack": "from S#reorder:akslack(ts, px, 20L, 800L) select sym, ts insert into Out;",
    "slack in a partition": "partition with (sym of S) begin from S#reorder:kslack(ts, 800L) select sym, ts "
    "insert into Out; end;",
    "chain": "from S#window.delay(300) select sym, qty insert into A; "
    "from A#window.timeBatch(400) select sym, sum(qty) as s insert into Out;",
    "circle": "from S#window.delay(300) select sym, qty insert into A; "
    "from A[qty > 0]#window.delay(200) select sym, qty - 3 as qty insert into A;",
}


def emitted(outputs: Outputs) -> dict[str, Any]:
    """What came out: of each stream the times and values; logs and errors."""
    out: dict[str, Any] = {
        s: (e.ts.tolist(), [str(c) for c in e.columns]) for s, e in outputs.streams.items() if len(e.ts)
    }
    return out | {k: v for k, v in (("logs", outputs.logs), ("errors", outputs.errors)) if v}


def at(node: NodeEngine, plan: Plan, *clock: int) -> Outputs:
    """A micro-batch of ticks."""
    return node.step(input_batch(plan, [{"tick": t} for t in clock]))


def copy(node: NodeEngine, plan: Plan, by_chunk: bool) -> NodeEngine:
    """A node in the same state."""
    twin = NodeEngine(plan, by_chunk=by_chunk)
    twin.restore(node.snapshot())
    return twin


def check(text: str, feed: list[Any], by_chunk: bool) -> None:
    """Feeds a node step by step, and looks after each whether its next due time is true."""
    plan = compile_app(text)
    node = NodeEngine(plan, by_chunk=by_chunk)
    streams = set(plan.streams)
    for step in feed:
        if isinstance(step, list) and step[0] not in streams:
            continue
        node.step(input_batch(plan, [step]))
        due, now = node.next_due(), node.now
        again = copy(node, plan, by_chunk).next_due()
        assert again == due or (due is not None and (again is None or again > due)), "a restart makes it no earlier"
        before = now + 10 * DAY if due is None else due - 1
        if before >= now:
            came = emitted(at(copy(node, plan, by_chunk), plan, before))
            assert not came, f"{came} at {before}, due at {due}"
        # Of equal times in a partition one fires with each movement of the clock; then nothing is overdue.
        twin = copy(node, plan, by_chunk)
        at(twin, plan, *[max(now, now if due is None else due)] * 12)
        after = twin.next_due()
        assert after is None or after > twin.now


@pytest.mark.thorough
@pytest.mark.parametrize("shaped", a_third(SHAPED), ids=" ".join)
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(feed=feeds(), by_chunk=st.booleans())
def test_of_windows(shaped: tuple[str, str], feed: list[Any], by_chunk: bool) -> None:
    shape, window = shaped
    check(SCHEMA + SHAPES[shape].format(window), feed, by_chunk)


@pytest.mark.parametrize("name", a_third(OTHERS))
@settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(feed=feeds(), other=st.sets(st.integers(0, 15), max_size=4), by_chunk=st.booleans())
def test_of_the_rest(name: str, feed: list[Any], other: set[int], by_chunk: bool) -> None:
    feed = [
        ["T", s[1], [s[2][0]]] if i in other and isinstance(s, list) and "of T" in OTHERS[name] else s
        for i, s in enumerate(feed)
    ]
    check(SCHEMA + OTHERS[name], feed, by_chunk)


def test_a_window_of_current_events_alone_is_never_due() -> None:
    plan = compile_app("define stream S (v int); from S#window.time(1 sec) select sum(v) as s insert into O;")
    node = NodeEngine(plan)
    node.step(input_batch(plan, [["S", 1000, [1]]]))
    assert node.next_due() is None, "what leaves is not seen before the next event, and leaves before it"


def test_an_empty_batch_is_not_due() -> None:
    plan = compile_app("define stream S (v int); from S#window.timeBatch(1 sec) select sum(v) as s insert into O;")
    node = NodeEngine(plan)
    at(node, plan, 500)
    assert node.next_due() is None
    node.step(input_batch(plan, [["S", 1000, [1]]]))
    assert node.next_due() == 2000
    at(node, plan, 2000)
    assert node.next_due() is None


def test_equal_times_in_a_partition_are_overdue_until_all_have_fired() -> None:
    plan = compile_app(
        "define stream S (k string); partition with (k of S) begin "
        "from S#window.time(1 sec) select k insert expired events into O; end;"
    )
    node = NodeEngine(plan)
    node.step(input_batch(plan, [{"stream": "S", "batch": [[1000, [k]] for k in "abc"]}]))
    assert node.next_due() == 2000
    assert len(at(node, plan, 2000).streams["O"].ts) == 1
    assert node.next_due() == 2000
    assert len(at(node, plan, 2500, 2500).streams["O"].ts) == 2
    assert node.next_due() is None

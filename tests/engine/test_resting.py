"""A node may rest while no event comes to it and nothing is due: what it puts out afterwards is the same.

So a micro-batch leaves out the nodes that it does not concern (`journal.resting`), and each makes up for what it missed
by one movement of the clock.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiles import a_third, examples
from reference.engine_cases import input_batch
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan import compile_app

from .test_next_due import OTHERS, SHAPED, SHAPES
from .test_properties import SCHEMA, feeds

Step = Any


def time_of(step: Step) -> int:
    if isinstance(step, list):
        return int(step[1])
    if "tick" in step:
        return int(step["tick"])
    return int(step["batch"][-1][0])


def put_out(outputs: Any) -> list[Any]:
    found = [(s, t, str(v)) for s, e in sorted(outputs.streams.items()) for t, v in e.rows()]
    return [*found, *outputs.logs, *outputs.errors]


def results(text: str, batches: list[list[Step]], *, rests: bool, by_chunk: bool) -> list[Any]:
    """What a node puts out. `batches`: the steps of micro-batches; those of other nodes are ticks to it."""
    plan = compile_app(text)
    node = NodeEngine(plan, by_chunk=by_chunk)
    out: list[Any] = []
    missed: int | None = None
    due: int | None = None
    for number, batch in enumerate(batches):
        last = max(map(time_of, batch))
        own = any(not (isinstance(s, dict) and "tick" in s) for s in batch)
        if rests and number and not own and node.may_rest and (due is None or due > last):
            missed = last if missed is None else max(missed, last)
            continue
        if missed is not None:
            assert not put_out(node.step(input_batch(plan, [{"tick": missed}])))
            missed = None
        out += put_out(node.step(input_batch(plan, batch)))
        due = node.next_due()
    return out


@st.composite
def divided(draw: st.DrawFn) -> list[list[Step]]:
    """Micro-batches of a feed of which some steps are other nodes'."""
    batches: list[list[Step]] = [[]]
    others = draw(st.booleans())
    for step in draw(feeds()):
        if draw(st.integers(0, 3)) == 0:
            others = not others
            batches.append([])
        elif draw(st.integers(0, 2)) == 0:
            batches.append([])
        batches[-1].append({"tick": time_of(step)} if others else step)
    return [b for b in batches if b]


def check(text: str, batches: list[list[Step]], by_chunk: bool) -> None:
    streams = set(compile_app(text).streams)
    fit = [[s for s in b if not isinstance(s, list) or s[0] in streams] for b in batches]
    fit = [b for b in fit if b]
    if fit:
        always = results(text, fit, rests=False, by_chunk=by_chunk)
        resting = results(text, fit, rests=True, by_chunk=by_chunk)
        assert resting == always


@pytest.mark.parametrize("shaped", a_third(SHAPED), ids=" ".join)
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=divided(), by_chunk=st.booleans())
def test_of_windows(shaped: tuple[str, str], batches: list[list[Step]], by_chunk: bool) -> None:
    shape, window = shaped
    check(SCHEMA + SHAPES[shape].format(window), batches, by_chunk)


@pytest.mark.parametrize("name", a_third(OTHERS))
@settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=divided(), other=st.sets(st.integers(0, 15), max_size=4), by_chunk=st.booleans())
def test_of_the_rest(name: str, batches: list[list[Step]], other: set[int], by_chunk: bool) -> None:
    def changed(i: int, step: Step) -> Step:
        return ["T", step[1], [step[2][0]]] if i in other and isinstance(step, list) else step

    if "of T" in OTHERS[name]:
        batches = [[changed(i, s) for i, s in enumerate(b)] for b in batches]
    check(SCHEMA + OTHERS[name], batches, by_chunk)


def test_timers_of_a_partition_keep_a_node_awake() -> None:
    """Of equal times of its instances one fires with each movement of the clock."""
    timed = "partition with (sym of S) begin from S#window.time(1 sec) select sym insert expired events into Out; end;"
    plain = "partition with (sym of S) begin from S select sym, count() as n insert into Out; end;"
    for text, rests in ((timed, False), (plain, True), ("from S#window.time(1 sec) select sym insert into Out;", True)):
        node = NodeEngine(compile_app(SCHEMA + text))
        assert not node.may_rest, "it has not started"
        node.step(input_batch(node.plan, [{"tick": 1000}]))
        assert node.may_rest == rests

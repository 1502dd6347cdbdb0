"""Outputs of replays by query: together they are the outputs of their stream, whatever way an engine runs."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.engine_cases import input_batch
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import OutputOptions
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.output_labels import is_inner, label_shared, list_labels, query_of, stream_of

S = "define stream S (k string, v int);\n"
APPS = {
    "three rules": S
    + "@info(name='a') from S[v > 2] select k, v insert into O;"
    + "@info(name='b#') from S#window.length(2) select k, v insert into O;"
    + "from every e1=S -> e2=S[k == e1.k] select e1.k as k, e2.v as v insert into O;"
    + "@info(name='reads') from O select v insert into P;",
    "in a partition": S
    + "partition with (k of S) begin @info(name='a') from S select k, v insert into #I;"
    + "@info(name='b') from #I#window.length(2) select k, sum(v) as s insert into O;"
    + "@info(name='c') from S select k, 1L as s insert into O; end;",
    "a table cycle": S
    + "define table T (k string, v int);"
    + "@info(name='big') from S[v > 3] select k, v insert into O;"
    + "@info(name='keep') from O select k, v insert into T;"
    + "@info(name='known') from S join T on S.k == T.k select S.k as k, S.v as v insert into O;",
    "both kinds of events": S
    + "@info(name='all') from S#window.lengthBatch(2) select k, v insert all events into O;"
    + "@info(name='old') from S#window.length(2) select k, v insert expired events into O;",
}
EVENTS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), max_size=9)


@given(name=st.sampled_from(sorted(APPS)), events=EVENTS, by_chunk=st.booleans())
def test_the_outputs_by_query_are_those_of_the_stream(
    name: str, events: list[tuple[str, int]], by_chunk: bool
) -> None:
    plan = compile_app(APPS[name])
    labels = label_shared(plan)
    batch = input_batch(plan, [["S", i, list(e)] for i, e in enumerate(events)])
    plain = NodeEngine(plan, start=0, by_chunk=by_chunk).step(batch).streams
    told = NodeEngine(plan, start=0, by_chunk=by_chunk, outputs=OutputOptions(labels=labels)).step(batch).streams
    together: dict[str, Counter[str]] = {}
    for label, emitted in told.items():
        rows = zip(emitted.step.tolist(), emitted.rows(), strict=True)
        together.setdefault(stream_of(label), Counter()).update(map(str, rows))
    one = {s: Counter(map(str, zip(e.step.tolist(), e.rows(), strict=True))) for s, e in plain.items()}
    assert together == one
    assert not set(told) & set(map(stream_of, labels.values()))


def test_labels_name_query_and_stream() -> None:
    plan = compile_app(APPS["three rules"])
    labels = list_labels(plan)
    assert labels == ["O@a", "O@b#", "O@query3", "P"]
    assert [query_of(label, plan) for label in labels] == ["a", "b#", "query3", "reads"]
    assert [stream_of(label) for label in labels] == ["O", "O", "O", "P"]
    assert not any(map(is_inner, labels))
    assert list_labels(compile_app(APPS["in a partition"])) == ["O@b", "O@c"]


@pytest.mark.parametrize("name", APPS)
def test_the_apps_have_streams_of_several_queries(name: str) -> None:
    assert label_shared(compile_app(APPS[name]))

"""Plans with lineage put out what they did without it, and name what that is made of."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reference import replay
from reference.engine_cases import events, input_batch
from reference.parts import Case, failing
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan, Ref, WindowStep
from sparkstream_nb.plan.query_parts import inputs
from sparkstream_nb.plan.reports.lineage import LINEAGE, events_of, held_of, with_lineage
from sparkstream_nb.types import Type

PARTS = 10
SHARE = 10
"""One case of so many is run."""
NOT_TRACED = ("ratelimit/snapshot/having", "ratelimit/snapshot/join", "ratelimit/snapshot_having")
"""What a snapshot shows depends on which attributes are aggregates."""


def numbered(batch: InputBatch, plan: Plan) -> InputBatch:
    rows, at = {}, 0
    for stream, r in batch.rows.items():
        place = plan.streams[stream].source.schema.find(LINEAGE)
        numbers: Any = list(range(at, at + len(r.ts)))
        at += len(r.ts)
        if place is not None:
            long = plan.streams[stream].source.schema[place].type is Type.LONG
            r = StreamRows(r.step, r.ts, [*r.columns, pa.array(numbers, pa.int64()) if long else numbers])
        rows[stream] = r
    return dataclasses.replace(batch, rows=rows)


def put_out(case: Case, plan: Plan, batch: InputBatch) -> dict[str, Any]:
    engine = NodeEngine(plan, allow_scripts=True, start=case.get("start", 0))
    out: dict[str, Any] = {}
    for part in (InputBatch(np.empty(0, np.int64)), batch):
        for stream, emitted in engine.step(part).streams.items():
            place = plan.streams[stream].source.schema.find(LINEAGE)
            found = events(emitted)
            for _, values in found:
                if place is not None:
                    values.pop(place)
            out.setdefault(stream, []).extend(found)
    return out


def counts_whole_events(plan: Plan) -> bool:
    """Whether a window compares events by all that they have: with lineage none are equal."""
    shown = (x for q in plan.queries for x in inputs(q.input))
    return any(
        isinstance(x, WindowStep)
        and (
            x.function == "unique:time"
            or (x.function in ("frequent", "lossyFrequent") and not any(isinstance(a, Ref) for a in x.args))
        )
        for x in (*(step for side in shown for step in side.steps), *(w.window for w in plan.windows.values()))
    )


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
def test_lineage_changes_nothing(part: int) -> None:
    failing(replay.siddhi_cases()[::SHARE][part::PARTS], changed)


def changed(case: Case) -> str | None:
    """What lineage changes in what a case puts out."""
    try:
        plan = compile_app(case["app"], properties=case.get("properties", {}))
        NodeEngine(plan, allow_scripts=True)
    except SparkStreamError:
        return None  # an app that is refused
    if any(a.name.lower() in ("source", "sink") for s in plan.streams.values() for a in s.annotations):
        return None  # topics carry no lineage
    if case["id"] in NOT_TRACED or counts_whole_events(plan):
        return None
    steps = [s for s in case["feed"] if not (isinstance(s, dict) and ("query" in s or "restart" in s))]
    batch, traced = input_batch(plan, steps), with_lineage(plan)
    found, expected = put_out(case, traced, numbered(batch, traced)), put_out(case, plan, batch)
    return None if found == expected else f"{found} with lineage, {expected} without"


@pytest.mark.parametrize("case", ["same_name_ins", "same_name_ins_stream"])
def test_the_stream_of_a_trigger_has_no_lineage_where_a_query_writes_it(case: str) -> None:
    (one,) = (c for c in replay.siddhi_cases() if c["id"] == f"triggers/{case}")
    assert changed(one) is None


def lineages(app: str, *values: tuple[str, int]) -> list[Any]:
    """What each output of stream O of an app is made of, which got these events, 1 s apart, on S."""
    plan = with_lineage(compile_app(f"define stream S (k string, v int); {app}"))
    at = 1000 * np.arange(len(values))
    columns: list[Any] = [list(c) for c in zip(*values, strict=True)]
    batch = InputBatch(at, {"S": StreamRows(np.arange(len(values)), at, columns)})
    emitted = NodeEngine(plan, start=0).step(numbered(batch, plan)).streams["O"]
    return [row[-1] for _, row in emitted.rows()]


FOUR = (("a", 1), ("b", 2), ("a", 3), ("b", 4))


@pytest.mark.parametrize(
    ("app", "made_of"),
    [
        ("from S[v > 2] select k insert into O;", [[2], [3]]),
        ("from every e1=S -> e2=S[k == e1.k] select e1.v as a insert into O;", [[0, 2], [1, 3]]),
        ("from e1=S<2:3> -> e2=S[v == 4] select e2.v as b insert into O;", [[0, 1, 2, 3]]),
        ("from S[k == 'a'] select v insert into M; from M[v > 1] select v insert into O;", [[2]]),
        ("from S#window.length(2) select sum(v) as s insert into O;", [[0], [0, 1], [1, 2], [2, 3]]),
        ("from S#window.length(1) as s join S#window.length(1) as r on s.v == r.v + 1 select s.v insert into O;",
         [[0, 1], [1, 2], [2, 3]]),
    ],
)  # fmt: skip
def test_what_outputs_are_made_of(app: str, made_of: list[list[int]]) -> None:
    assert [events_of(found) for found in lineages(app, *FOUR)] == made_of


def test_how_many_events_an_aggregate_holds() -> None:
    found = lineages("from S#window.length(3) select k, sum(v) as s group by k insert into O;", *FOUR)
    assert [held_of(x) for x in found] == [1, 1, 2, 2]
    collected = lineages(
        "from S[v > 0] select k, v insert into M; from M#window.length(3) select sum(v) as s insert into O;", *FOUR
    )
    assert [events_of(x) for x in collected] == [[0], [0, 1], [0, 1, 2], [1, 2, 3]]

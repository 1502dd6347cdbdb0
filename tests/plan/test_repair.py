"""What would make queries right on several nodes: by hand, and the rewritten texts of all cases held against runs."""

from __future__ import annotations

from typing import Any

import pytest

from profiles import a_sixth
from reference import replay
from reference.engine_cases import input_batch
from reference.parts import Case, failing
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.reports.repair import Repairs, repairs

from .shards import wrong_claims

S = "define stream S (k string, v double, n int);\n"
BETTER = {"stateless": 0, "keyed": 1, "node-dependent": 2}


def found(text: str) -> Repairs:
    return repairs(compile_app(text), text)


@pytest.mark.parametrize(
    ("query", "kind", "advice", "text"),
    [
        ("from S[v > 1] select k insert into O;", "nothing", "right under any routing", None),
        ("from every e1=S -> e2=S[k == e1.k] select e2.v insert into O;", "route", "route by k (hash:k)", None),
        ("from S#window.timeBatch(1 min) select k, v insert into O;", "align", "full multiples of their length",
         "from S#window.timeBatch(1 min, 0) select k, v insert into O;"),
        ("from S#window.length(9) select n, avg(v) as m group by n insert into O;", "partition",
         "if it is meant for each n by itself: put it into a partition, and route by n (hash:n)",
         "partition with (n of S)\nbegin\n"
         "  from S#window.length(9) select n, avg(v) as m group by n insert into O;\nend;"),
        ("from S[v > 1.0]#window.time(1 min) select sum(v) as s having s > 9.0 insert into O;", "aggregation",
         "an aggregation, read by `from Query1Sums within",
         "@PartitionById(enable='true')\ndefine aggregation Query1Sums\nfrom S[v > 1.0]\nselect sum(v) as s\n"
         "aggregate every sec ... day;"),
        ("from every e1=S, e2=S[v > e1.v] select e2.v insert into O;", "partition", "for each k by itself", None),
        ("define trigger T at every 1 sec; from T select triggered_time insert into O;", "one node",
         "run it on one node that gets every event", None),
    ],
)  # fmt: skip
def test_by_hand(query: str, kind: str, advice: str, text: str | None) -> None:
    (repair,) = found(S + query).repairs
    assert (repair.kind, repair.line) == (kind, 2)
    assert advice in repair.advice
    if text is not None:
        assert repair.text == text


def test_a_reader_is_repaired_by_what_it_reads() -> None:
    text = S + "from S#window.timeBatch(1 min) select k, v insert into M;\nfrom M[v > 1.0] select k insert into O;\n"
    repaired = found(text)
    assert [r.kind for r in repaired.repairs] == ["align", "one node"]
    assert repaired.repairs[1].advice.startswith("repair the query that it reads from")
    assert repaired.rewritten == text.replace("1 min)", "1 min, 0)")
    assert [q.safety.level for q in compile_app(repaired.rewritten).queries] == ["stateless", "stateless"]


def test_comments_and_variables_stay() -> None:
    text = S + (
        "-- before\nfrom S#window.length(${n}) -- inside\nselect k, avg(v) as m group by k insert into O; -- behind\n"
    )
    plan = compile_app(text, variables={"n": "5"})
    rewritten = repairs(plan, text, {"n": "5"}).rewritten
    assert rewritten == S + (
        "-- before\npartition with (k of S)\nbegin\n  from S#window.length(${n}) -- inside\n"
        "  select k, avg(v) as m group by k insert into O;\nend; -- behind\n"
    )


@pytest.mark.parametrize("part", a_sixth(range(12)))
def test_rewritten_texts_are_safer_and_hold(part: int) -> None:
    failing(replay.siddhi_cases()[part::48], _safer_and_right)


def _safer_and_right(case: Case) -> None:
    """Asserts that a case's app, rewritten, is safer and puts out the same on several nodes."""
    try:
        plan = compile_app(case["app"], properties=case.get("properties", {}))
        NodeEngine(plan, allow_scripts=True)
    except SparkStreamError:
        return
    repaired = repairs(plan, case["app"])
    assert len(repaired.repairs) == len(plan.queries)
    if repaired.rewritten is None:
        return
    again = compile_app(repaired.rewritten, properties=case.get("properties", {}))
    before, after = ({q.name: q.safety.level for q in p.queries} for p in (plan, again))
    assert list(before) == list(after)
    assert all(BETTER[after[q]] <= BETTER[before[q]] for q in before)
    assert any(BETTER[after[q]] < BETTER[before[q]] for q in before)
    assert [str(w[0].safety) for w in _wrong(case, again)] == []


def _wrong(case: Case, plan: Any) -> list[Any]:
    if any(a.name.lower() in ("source", "sink") for s in plan.streams.values() for a in s.annotations):
        return []
    steps = [s for s in case["feed"] if not (isinstance(s, dict) and ("query" in s or "restart" in s))]
    return list(wrong_claims(plan, input_batch(plan, steps), start=case.get("start", 0)))

"""Apps whose tables are changed in ways that cannot be put in order afterwards: events between the changes go through
operator by operator, and all comes out as if each had gone alone."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.test_noted_tables import STREAMS, reader, writer
from reference.compare import difference
from sparkstream_nb.engine import stretches
from sparkstream_nb.engine.cases import run_case
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan import compile_app

CONDITIONS = ("T.k == k", "T.v < v", "T.k == k and T.v > v", "T.g == g and T.k != k", "T.v == v")


def composed(r: Random) -> dict[str, Any]:
    """An app over a table that queries change and look into by any conditions, and a feed in which changes are rare."""
    key = r.choice(["@PrimaryKey('k') ", "@Index('v') ", ""])
    queries = [writer(r, r.choice(CONDITIONS), True).replace("from S", "from S[v > 4]") for _ in range(r.randint(1, 3))]
    queries += [reader(r, r.choice(CONDITIONS), i) for i in range(r.randint(1, 3))]
    other = ["from S#window.time(5) select k, sum(v) as v insert all events into W;",
             "from S[v == 6] select k, g, v, p insert into N; from N select k, g, v, p insert into T;",
             "from every e1=S[v > 2] -> e2=S[v < e1.v] select e1.k as k, e2.v as v insert into P;"]  # fmt: skip
    queries += [q for q in other if r.random() < 0.4]
    r.shuffle(queries)
    feed: list[Any] = []
    t = 1000
    for _ in range(r.randint(10, 60)):
        t += r.choice([0, 1, 5])
        s = "S" if r.random() < 0.9 else "R"
        row = [r.choice("abc"), r.randint(1, 2), r.choice([0, 1, 2, 2, 3, 3, 5, 6]), r.randint(0, 9) / 2]
        feed.append([s, t, row[: 4 if s == "S" else 3]])
        if r.random() < 0.03:
            feed.append(r.choice([{"query": "from T select k, g, v, p"}, {"restart": True}]))
    feed.append({"query": "from T select k, g, v, p"})
    return {"id": "stretches", "app": STREAMS + f"{key}define table T (k string, g int, v long, p double); "
            + " ".join(queries), "feed": feed}  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_stretches_between_changes_answer_as_events_one_by_one(seed: int) -> None:
    case = composed(Random(seed))
    with patch.object(stretches, "FEW", 1):
        got = run_case(case)
    one_by_one = run_case(case, by_chunk=True)
    assert difference({**case, "expect": one_by_one, "got": got}) is None, case["app"]
    assert got.get("results") == one_by_one.get("results"), case["app"]


RULES = "define stream S (k string, v long); define stream R (k string, v long); @PrimaryKey('k') " \
    "define table T (k string, v long); from R[v > 3] update or insert into T on T.k == k; "


@pytest.mark.parametrize(
    ("queries", "runs"),
    [
        ("from S join T on T.v < S.v select S.k as k insert into O;", "by operator, by chunk where tables change"),
        ("from S join T on T.k == S.k select S.k as k insert into O;", "by operator"),
        # A timer brings a change about, which comes when no event tells.
        ("from S#window.time(3) select k, v insert expired events into T; from S[T.v < v in T] select k insert into O;",
         "by chunk"),
        # What a change causes feeds back.
        ("from S[T.v < v in T] select k insert into O; from O select k, 1L as v insert into S;", "by chunk"),
    ],
)  # fmt: skip
def test_which_apps_run_in_stretches(queries: str, runs: str) -> None:
    said = NodeEngine(compile_app(RULES + queries)).stats()["runs"]
    assert said.split(":")[0] == runs


def test_a_stretch_ends_where_an_event_passes_the_filter_of_what_changes() -> None:
    app = RULES + "from S join T on T.v < S.v select S.k as k, T.v as v insert into O;"
    feed = [["S", 1, ["a", 9]], ["R", 2, ["x", 5]], ["S", 3, ["a", 9]], ["R", 4, ["x", 1]], ["S", 5, ["a", 9]],
            ["R", 6, ["x", 7]], ["S", 7, ["a", 9]]]  # fmt: skip
    with patch.object(stretches, "FEW", 1):
        got = run_case({"id": "x", "app": app, "feed": feed})
    assert got["streams"]["O"] == [[3, ["a", 5]], [5, ["a", 5]], [7, ["a", 7]]]

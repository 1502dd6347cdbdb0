"""What-if studies: counts against those of a divergence, recommendations, and a running app."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.app import App, Reading
from sparkstream_nb.app.running.study import Study, candidates
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.nodes.tallies import Tally, tally
from sparkstream_nb.plan import compile_app
from sparkstream_nb.replay.replay import Way
from sparkstream_nb.replay.study_tasks import RoutingOutcome

ROW = st.tuples(
    st.integers(0, 1), st.sampled_from(["a", "b", None]), st.sampled_from([1.0, 0.0, -0.0, float("nan"), None])
)


def table(rows: list[tuple[int, str | None, float | None]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    # As the outputs of nodes, whose -0.0 is 0.0.
    values = [None if v is None else v + 0.0 for v in columns[2]]
    return pa.table(
        [pa.array(columns[0], pa.int64()), pa.array(columns[1], pa.string()), pa.array(values, pa.float64())],
        ["clock", "v0", "v1"],
    )


@given(st.lists(ROW, max_size=8), st.lists(ROW, max_size=8))
def test_a_tally_counts_bags(truth: list, found: list) -> None:  # type: ignore[type-arg]
    one, two = (Counter((c, k, "NaN" if v is not None and v != v else v) for c, k, v in x) for x in (truth, found))
    more = two - one
    assert tally(table(truth), table(found)) == Tally(
        same=(one & two).total(),
        lost=(one - two).total(),
        spurious=sum(n for k, n in more.items() if k not in one),
        duplicated=sum(n for k, n in more.items() if k in one),
    )


def test_the_routing_that_repairs_most_with_the_least_skew() -> None:
    def outcome(nodes: int, route: str, lost: int, *events: int) -> RoutingOutcome:
        return RoutingOutcome(Way(nodes, route), {"O": Tally(10 - lost, lost), "P": Tally(5)}, events)

    some = [outcome(1, "round_robin", 0, 9), outcome(2, "round_robin", 4, 5, 4), outcome(2, "hash:a", 1, 8, 1)]
    queries = {"O": "q", "P": "p"}
    study = Study("A", some, queries)
    assert study.best == "hash:a"
    assert study.recommendation == (
        "hash:a repairs most; the busiest node takes up to 1.78 times the mean. It repairs p. round_robin repairs the "
        "same queries, and the busiest node takes up to 1.11 times the mean. No routing tried repairs q: with hash:a 1 "
        "lost, 0 spurious and 0 duplicated on 2 nodes, 14 the same."
    )
    better = Study("A", [*some, outcome(2, "hash:b", 0, 9, 0), outcome(2, "hash:c", 0, 5, 4)], queries)
    assert better.recommendation == (
        "hash:c gives the outputs of one node on every number of nodes; the busiest node takes up to 1.11 times the "
        "mean."
    )
    alone = Study("A", [outcome(3, "sticky", 0, 98, 1, 1)], queries)
    assert alone.recommendation == (
        "sticky gives the outputs of one node on every number of nodes; one node takes 98% of all events, and so does "
        "nearly all the work."
    )
    assert study.frame.columns.tolist() == ["nodes", "routing", "same", "lost", "spurious", "duplicated", "skew"]
    assert study.by_query.columns.tolist()[:4] == ["nodes", "routing", "query", "stream"]


def test_every_rule_is_told_the_routing_that_repairs_it() -> None:
    def outcome(route: str, spree: int, mean: int, any_: int = 0) -> RoutingOutcome:
        tallies = {"O@spree": Tally(9 - spree, spree), "O@mean": Tally(5 - mean, mean), "T": Tally(2 - any_, any_)}
        return RoutingOutcome(Way(2, route), tallies, (5, 5))

    queries = {"O@spree": "spree", "O@mean": "mean", "T": ""}
    study = Study("A", [outcome("sticky", 6, 0), outcome("hash:id", 0, 3), outcome("round_robin", 5, 3)], queries)
    assert study.recommendation == (
        "hash:id repairs most; all nodes take the same. It repairs T, spree. sticky repairs mean. No routing tried "
        "repairs all: split the app into one for each routing: with hash:id 3 lost, 0 spurious and 0 duplicated on 2 "
        "nodes, 13 the same."
    )
    assert study.repairs == {"spree": "hash:id", "mean": "sticky", "T": "hash:id"}
    assert study.by_query[["query", "stream"]].drop_duplicates().values.tolist() == [
        ["spree", "O"], ["mean", "O"], ["", "T"],
    ]  # fmt: skip
    never = Study("A", [outcome("sticky", 6, 0, 1), outcome("hash:id", 0, 3, 1)], queries)
    assert "No routing tried repairs T: with" in never.recommendation


def test_without_events_a_study_recommends_nothing() -> None:
    none = Study("A", [RoutingOutcome(Way(n, r), {}, (0,) * n) for n in (1, 2) for r in ("sticky", "hash:id")], {})
    assert none.recommendation == "No events yet: feed the app, or give a feed."
    silent = Study("A", [RoutingOutcome(Way(n, "sticky"), {"O": Tally(0, 0, 0)}, (5, 0)) for n in (1, 2)], {"O": "q"})
    nothing = "No query has an output, on one node or on several: there is nothing to compare."
    assert silent.recommendation == nothing


STORED = """define stream S (k string);
@store(type='rdbms', jdbc.url='jdbc:sqlite:{file}') @primaryKey('k') define table T (k string);
from S update or insert into T on T.k == k;"""


def test_a_table_in_a_database_cannot_be_replayed(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(STORED.format(file=tmp_path / "t.db"), nodes=2, allow=[f"file={tmp_path}"])
    for ask in (app.divergence, app.study):
        with pytest.raises(SparkStreamError, match="table 'T' is in a database"):
            ask()


APP = """
define stream S (k string, j string, v int);
@info(name='rise') from every e1=S -> e2=S[k == e1.k and v > e1.v] select e1.v as a, e2.v as b insert into O;
@info(name='sums') from S#window.length(3) select sum(v) as s insert into P;
"""


def test_the_routings_that_are_tried() -> None:
    assert candidates(compile_app(APP)) == ["round_robin", "random:1", "hash:k", "hash:j"]
    two = compile_app("define stream S (k string); define stream R (n int); from S select k insert into O;")
    assert candidates(two) == ["round_robin", "random:1", "sticky", "hash:k"]


@pytest.mark.contract(thorough=True)
def test_a_study_counts_what_a_divergence_lists(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(APP, nodes=3)
    random = np.random.default_rng(5)
    frame = pd.DataFrame({
        "k": random.choice(list("abcdefg"), 400), "j": random.choice(list("xyz"), 400),
        "v": random.integers(0, 50, 400), "at": np.sort(random.integers(0, 90_000, 400)),
    })  # fmt: skip
    app.feed("S", frame, time="at", progress=lambda p: None)
    study = app.study(nodes=[1, 2, 3, 5])
    assert len(study.frame) == 4 * 4
    for row in study.frame.to_dict("records"):
        counts = app.divergence(nodes=row["nodes"], routing=row["routing"]).counts
        late = counts.late.sum()
        assert row["same"] == counts.same.sum()
        assert row["lost"] == counts.lost.sum() + late
        assert row["spurious"] + row["duplicated"] == counts.spurious.sum() + counts["duplicated"].sum() + late
    one = study.frame[study.frame.nodes == 1]
    assert (one.lost + one.spurious + one["duplicated"]).sum() == 0
    rise = study.by_query[(study.by_query["query"] == "rise") & (study.by_query.routing == "hash:k")]
    assert (rise.lost + rise.spurious + rise["duplicated"]).sum() == 0
    assert study.best == "hash:k"
    assert "No routing tried repairs sums" in study.recommendation

    again = app.study(nodes=[2], routings=["round_robin", "hash:k"], feed={"S": frame}, time="at")
    known = study.frame[(study.frame.nodes == 2) & study.frame.routing.isin(["round_robin", "hash:k"])]
    assert again.frame.values.tolist() == known.values.tolist()
    german = pd.DataFrame({"k": frame.k, "j": frame.j, "V": frame.v.map("1.0{:02d}".format), "at": frame["at"]})
    written = Reading(time="at", columns={"v": "V"}, decimal=",")
    again = app.study(nodes=[2], routings=["round_robin", "hash:k"], feed={"S": german}, reading=written)
    assert again.frame.values.tolist() == known.values.tolist()
    folder = app.home
    del again
    assert not list(folder.rglob("study-*"))

    for wrong in (
        {"nodes": 0},
        {"nodes": []},
        {"routings": ["hash:nothing"]},
        {"routings": []},
        {"feed": {"R": frame}},
    ):
        with pytest.raises(Misuse):
            app.study(**wrong)  # type: ignore[arg-type]

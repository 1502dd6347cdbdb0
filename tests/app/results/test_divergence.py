"""What nodes put out, held against one node's truth: the matching, small apps by hand, and a running app."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstream_nb.app import App
from sparkstream_nb.app.results.divergence import VERDICTS, Divergence, MergedCheck, Truth, match
from sparkstream_nb.app.results.output_matching import Alert
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.journal.entries import Ask
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.lab.display import html, text
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.reports.lineage import events_of, held_of
from sparkstream_nb.replay.replay import Merged, Nodes, Way
from sparkstream_nb.replay.study_tasks import Input

EXAMPLES = int(os.environ.get("SPARKSTREAM_EXAMPLES", "40"))
ALERT = st.builds(
    Alert,
    clock=st.integers(0, 3),
    ts=st.just(0),
    values=st.tuples(st.sampled_from(["a", "b", float("nan")])),
    node=st.integers(0, 1),
    made_of=st.sampled_from([None, [1, 2], [3, ""]]),
)


@given(st.lists(ALERT, max_size=8), st.lists(ALERT, max_size=8))
def test_every_output_is_matched_once_and_as_many_are_the_same_as_can_be(
    truth: list[Alert], found: list[Alert]
) -> None:
    matches = match(truth, found)
    assert Counter(id(m.true) for m in matches if m.true) == Counter(map(id, truth))
    assert Counter(id(m.found) for m in matches if m.found) == Counter(map(id, found))
    both = Counter((a.times, a.identity) for a in truth) & Counter((a.times, a.identity) for a in found)
    assert sum(m.verdict == "same" for m in matches) == both.total()
    for m in matches:
        match m.verdict:
            case "same":
                assert (m.true.times, m.true.identity) == (m.found.times, m.found.identity)
            case "late":
                assert m.true.times != m.found.times
                assert (m.true.identity, m.true.origin) == (m.found.identity, m.found.origin)
            case "lost":
                assert m.found is None
            case "duplicated" | "spurious":
                assert m.true is None


def of(
    app: str, events: Sequence[tuple[Any, ...]], folder: Path, route: str = "round_robin", nodes: int = 2
) -> Divergence:
    """The divergence of an app over events: (stream, time, values...); a stream of None moves the clock, and one of "?"
    is an on-demand query."""
    plan = compile_app(app)
    schemas = {s: d.source.schema for s, d in plan.streams.items()}
    inbox = Inbox(folder / "inbox")
    for stream, ts, *values in events:
        at = np.array([ts], np.int64)
        if stream == "?":
            inbox.append([Ask(text=values[0])])
            continue
        rows = {} if stream is None else {stream: StreamRows(np.zeros(1, np.int64), at, [[v] for v in values])}
        inbox.append([inbox.batch(InputBatch(at, rows), route)])
    inbox.close()
    shards = [f"node-{i + 1}" for i in range(nodes)]
    source = Input(str(folder / "inbox"), schemas, nodes, len(events))
    return Truth("app", source, Nodes(plan, 0), shards).against(Way(nodes))


S = "define stream S (k string, v int);\n"
R = "define stream R (k string, v int);\n"
FOUR = [("S", 0, "a", 1), ("S", 1, "b", 2), ("S", 2, "b", 3), ("S", 3, "a", 4)]
"""Round robin over two nodes: a1 and b3 to node 1, b2 and a4 to node 2."""

APPS = {
    "filter": (S + "from S[v > 2] select k, v insert into O;", FOUR, "2 same"),
    "length window": (
        S + "from S#window.length(2) select sum(v) as s insert into O;", FOUR, "1 same 3 lost 3 spurious",
    ),
    "length batch": (S + "from S#window.lengthBatch(2) select sum(v) as s insert into O;", FOUR, "2 lost 2 spurious"),
    "time window": (
        S + "from S#window.time(10) select k, sum(v) as s group by k insert into O;", FOUR, "2 same 2 lost 2 spurious",
    ),
    "distinct count": (
        S + "from S#window.time(10) select distinctCount(k) as n insert into O;", FOUR, "3 same 1 lost 1 spurious",
    ),
    "pattern": (
        S + "from every e1=S -> e2=S[k == e1.k] select e1.v as a, e2.v as b insert into O;", FOUR, "2 lost",
    ),
    "pattern that finds a later one": (
        S + "from every e1=S[v == 1] -> e2=S[v > 1] select e1.v as a, e2.v as b insert into O;", FOUR,
        "1 lost 1 spurious",
    ),
    "counted pattern": (
        S + "from e1=S<2:2> -> e2=S select e1[0].v as a, e1[1].v as b, e2.v as c insert into O;", FOUR, "1 lost",
    ),
    "sequence": (
        S + "from every e1=S, e2=S[v > e1.v] select e1.v as a, e2.v as b insert into O;", FOUR, "3 lost 2 spurious",
    ),
    "logical pattern": (
        S + "from e1=S[k == 'a'] and e2=S[k == 'b'] select e1.v as a, e2.v as b insert into O;", FOUR,
        "1 lost 2 spurious",
    ),
    "absent pattern": (
        S + "from every e1=S[v == 1] -> not S[v == 2] for 10 sec select e1.v as a insert into O;",
        [*FOUR, (None, 20_000)], "1 spurious",
    ),
    "join of windows": (
        S + R + "from S#window.time(10) as s join R#window.time(10) as r on s.k == r.k "
        "select s.v as a, r.v as b insert into O;",
        [("S", 0, "a", 1), ("R", 1, "a", 2), ("S", 2, "b", 3), ("S", 3, "x", 0), ("R", 4, "b", 5)], "1 same 1 lost",
    ),
    "outer join": (
        S + R + "from S#window.time(10) as s left outer join R#window.time(10) as r on s.k == r.k "
        "select s.v as a, r.v as b insert into O;",
        [("R", 0, "a", 1), ("S", 1, "a", 2)], "1 lost 1 spurious",
    ),
    "table": (
        S + R + "define table T (k string, v int); from R insert into T; "
        "from S[S.k == T.k in T] select k insert into O;",
        [("R", 0, "a", 1), ("S", 1, "a", 2), ("S", 2, "a", 3)], "1 same 1 lost",
    ),
    "table join": (
        S + R + "define table T (k string, v int); from R insert into T; "
        "from S join T on S.k == T.k select S.v as a, T.v as b insert into O;",
        [("R", 0, "a", 1), ("S", 1, "a", 2), ("S", 2, "a", 3)], "1 same 1 lost",
    ),
    "rate by events": (
        S + "from S select v output last every 2 events insert into O;", FOUR, "1 same 1 lost 1 spurious",
    ),
    "rate by time": (
        S + "from S select v output first every 1 sec insert into O;", FOUR, "1 same 1 spurious",
    ),
    "limit of a batch": (
        S + "from S#window.timeBatch(10, 0) select k, v order by v limit 1 insert into O;", [*FOUR, (None, 10)],
        "1 same 1 spurious",
    ),
    "trigger": (
        S + "define trigger T at every 1 sec; from T select triggered_time as t insert into O;",
        [("S", 0, "a", 1), (None, 1000), (None, 2000)], "2 same 2 duplicated",
    ),
    "queries one after the other": (
        S + "from S#window.length(2) select sum(v) as s insert into M; from M[s > 4] select s insert into O;", FOUR,
        "2 lost 1 spurious",
    ),
    "late": (
        S + "from S#window.timeBatch(10 sec) select k, v insert into O;",
        [("S", 0, "a", 1), ("S", 5_000, "b", 2), (None, 10_000), (None, 15_000), (None, 30_000)], "1 same 1 late",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", APPS)
def test_by_hand(name: str, tmp_path: Path) -> None:
    app, events, expected = APPS[name]
    found = of(app, events, tmp_path)
    assert found.warning is None
    (row,) = found.counts[found.counts.stream == "O"].to_dict("records")
    assert " ".join(f"{row[v]} {v}" for v in VERDICTS if row[v]) == expected


@pytest.mark.parametrize("name", APPS)
def test_one_node_is_the_truth(name: str, tmp_path: Path) -> None:
    app, events, _ = APPS[name]
    found = of(app, events, tmp_path, nodes=1)
    assert not found.diverges
    assert len(found.frame) > 0 or name == "absent pattern"


RULES = (
    S + "@info(name='rise') from every e1=S -> e2=S[k == e1.k] select e1.k as k, e2.v as v insert into O;"
    "@info(name='other') from every e1=S -> e2=S[v == e1.v] select e1.k as k, e2.v as v insert into O;"
    "@info(name='all') from S select k, v insert into O;"
    "@info(name='last') from S#window.length(2) select k, sum(v) as s insert into P;"
)


def test_rules_of_one_stream_are_told_apart(tmp_path: Path) -> None:
    found = of(RULES, FOUR, tmp_path)
    assert found.counts[["query", "stream", "same", "lost"]].values.tolist() == [
        ["rise", "O", 0, 2], ["other", "O", 0, 0], ["all", "O", 4, 0], ["last", "P", 1, 3],
    ]  # fmt: skip
    lost = found.frame[found.frame.verdict == "lost"]
    assert lost["query"].value_counts().to_dict() == {"rise": 2, "last": 3}
    assert found.repairs == {"rise": "hash:k", "last": "one node"}
    assert "hash:k repairs rise." in found.advice
    assert "No routing repairs last: " in found.advice
    parts = "split the app into rise under hash:k; other under hash:v; last on one node."
    assert found.advice.endswith(parts)
    told = text(found)
    assert "repaired by" in told
    assert told.endswith(parts)
    assert [c.split()[0] for c in told.splitlines() if c.endswith("hash:k")] == ["rise"]
    assert parts in html(found)
    keyed = found.rerouted(2, "hash:k")
    assert keyed.repairs == {"last": "one node"}


def test_an_output_of_another_rule_is_not_its_own(tmp_path: Path) -> None:
    app = (
        S + "@info(name='first') from S#window.lengthBatch(2) select k, v insert into O;"
        "@info(name='late') from every e1=S[v == 1] -> e2=S[v == 2] select e2.k as k, e2.v as v insert into O;"
    )
    found = of(app, FOUR, tmp_path)
    late = found.counts.set_index("query").loc["late"]
    assert (late.same, late.lost) == (0, 1)


def test_without_events_nothing_is_claimed(tmp_path: Path) -> None:
    found = of(RULES, [], tmp_path)
    assert text(found) == "app on 2 nodes, as the events came, against one node: no events yet"


def test_a_cause_names_the_events_and_their_nodes(tmp_path: Path) -> None:
    frame = of(APPS["pattern"][0], FOUR, tmp_path).frame
    assert [str(c) for c in frame.cause] == [
        "split over 2 nodes: S['b', 2] on node-2, S['b', 3] on node-1",
        "split over 2 nodes: S['a', 1] on node-1, S['a', 4] on node-2",
    ]
    later = of(APPS["pattern that finds a later one"][0], FOUR, tmp_path / "later").frame
    assert later.verdict.tolist() == ["lost", "spurious"]
    assert [e.values for e in later.cause[1].events] == [("a", 1), ("b", 3)]
    held = of(APPS["length window"][0], FOUR, tmp_path / "held").frame
    cause = held.cause[held.verdict == "lost"].iloc[-1]
    assert (cause.held, [e.node for e in cause.events]) == (2, ["node-1", "node-2"])


HELD = {
    "length": "from S#window.length(3) select sum(v) as s insert into O;",
    "time by group": "from S#window.time(4) select k, sum(v) as s group by k insert into O;",
    "batch": "from S#window.lengthBatch(2) select sum(v) as s insert into O;",
    "sort": "from S#window.sort(2, k) select sum(v) as s insert into O;",
    "running": "from S[v != 4] select k, sum(v) as s group by k insert into O;",
}


@given(name=st.sampled_from(sorted(HELD)), keys=st.lists(st.sampled_from("abc"), max_size=12))
@settings(max_examples=EXAMPLES, deadline=None)
def test_causes_of_sums_are_the_events_that_were_added(name: str, keys: list[str]) -> None:
    events = [("S", i, k, 1 << i) for i, k in enumerate(keys)]
    with tempfile.TemporaryDirectory() as folder:
        found = of(S + HELD[name], events, Path(folder))
    for m in found.matches.get("O", []):
        alert = m.alert
        numbers = events_of(alert.made_of)
        assert (alert.values[-1] or 0) == sum(1 << n for n in numbers)
        assert held_of(alert.made_of) == len(numbers)


def test_of_many_events_a_cause_names_the_first_and_last_few(tmp_path: Path) -> None:
    events = [("S", i, "a", i) for i in range(12)]
    frame = of(S + "from S#window.length(9) select sum(v) as s insert into O;", events, tmp_path).frame
    cause = frame.cause[frame.verdict == "lost"].iloc[-1]
    assert (cause.held, [e.timestamp for e in cause.events]) == (9, [3, 4, 5, 9, 10, 11])
    assert str(cause) == (
        "its input is divided over the nodes: 9 events, from S['a', 3] on node-2, S['a', 4] on node-1, "
        "S['a', 5] on node-2 to S['a', 9] on node-2, S['a', 10] on node-1, S['a', 11] on node-2"
    )


TABLE = (
    S + "define table T (k string, n long); from S select k, 1L as n update or insert into T set T.n = T.n + 1L "
    "on T.k == k; from S join T on S.k == T.k select S.k as k, T.n as n insert into O;"
)


@pytest.mark.parametrize(
    ("change", "last"),
    [
        ("select 'b' as k, 7L as n insert into T", {"b": 8}),
        ("select 'a' as k, 7L as n update or insert into T set T.n = n on T.k == k", {"a": 8, "b": 1}),
        ("select 7L as n update T set T.n = n on T.k == 'a'", {"a": 8, "b": 1}),
        ("delete T on T.k == 'a'", {"a": 1, "b": 1}),
    ],
)
def test_tables_that_queries_change(change: str, last: dict[str, int], tmp_path: Path) -> None:
    found = of(TABLE, [("S", 0, "a", 1), ("?", 0, change), ("S", 1, "a", 1), ("S", 2, "b", 1)], tmp_path, nodes=1)
    assert (found.warning, found.diverges) == (None, False)
    assert last.items() <= dict(found.frame["values"].iloc[1:].tolist()).items()


MONOTONE = {
    "filter": "from S[v > 2] select v as a insert into O;",
    "pattern": "from every e1=S -> e2=S[k == e1.k] select e1.v as a, e2.v as b insert into O;",
    "count": "from every e1=S[k == 'a']<2:2> -> e2=S[k == 'b'] select e1[0].v as a, e1[1].v as b, e2.v as c "
    "insert into O;",
    "and": "from every (e1=S[k == 'a'] and e2=S[k == 'b']) select e1.v as a, e2.v as b insert into O;",
    "join": "from S#window.time(3) as s join R#window.time(3) as r on s.k == r.k select s.v as a, r.v as b "
    "insert into O;",
    "chain": "from S[v > 1] select k, v insert into M; from every e1=M -> e2=M[k == e1.k] select e1.v as a "
    "insert into O;",
}
"""Queries of which more events never take back what fewer put out, if these are the same in between."""


@given(
    name=st.sampled_from(sorted(MONOTONE)),
    feed=st.lists(st.tuples(st.sampled_from("SSR"), st.sampled_from("ab")), max_size=6),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_causes_are_the_fewest_events_that_make_an_output(name: str, feed: list[tuple[str, str]]) -> None:
    """Held against all subsets of a feed: its causes alone make an output, and no fewer of them do."""
    app = S + R + MONOTONE[name]
    events = [(stream, i, k, i) for i, (stream, k) in enumerate(feed)]

    def outputs(some: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], Alert]:
        with tempfile.TemporaryDirectory() as folder:
            return {m.true.values: m.true for m in of(app, some, Path(folder), nodes=1).matches.get("O", []) if m.true}

    for values, alert in outputs(events).items():
        causes = [events[n] for n in events_of(alert.made_of)]
        makers = [
            some for size in range(len(causes) + 1) for some in combinations(causes, size) if values in outputs(some)
        ]
        assert makers == [tuple(causes)]


@pytest.mark.contract(thorough=True)
def test_a_running_app(run: Callable[..., App]) -> None:
    app = run(
        S + "@info(name='rise') from every e1=S -> e2=S[k == e1.k] select e1.v as a, e2.v as b insert into O;", nodes=2
    )
    app.feed("S", pd.DataFrame({"k": ["a", "b", "b", "a"], "v": [1, 2, 3, 4]}), progress=lambda p: None)
    app.send("S", ["a", 5], node=2)
    found = app.divergence()
    assert found.counts.to_dict("records") == [
        {"query": "rise", "stream": "O", "same": 1, "lost": 2, "spurious": 0, "late": 0, "duplicated": 0}
    ]
    assert found.frame.columns.tolist() == ["query", "verdict", "timestamp", "node", "values", "cause"]
    assert app.output("O").frame[["a", "b"]].values.tolist() == [[4, 5]]
    assert app.divergence(nodes=3, routing="hash:k").counts.same.tolist() == [3]


AGGREGATED = "define aggregation A from S select k, count() as n, {} group by k aggregate every sec, min;"


@pytest.mark.parametrize("more", ["avg(v) as a, max(v) as m", "v"])
def test_merged_aggregations_are_those_of_one_node(more: str, tmp_path: Path) -> None:
    events = [("S", 700 * i, "ab"[i % 3 % 2], i) for i in range(40)]
    found = of(S + AGGREGATED.format(more), events, tmp_path, nodes=3)
    (row,) = found.aggregations.to_dict("records")
    assert row == {"aggregation": "A", "rows": 39, "differing": 0}
    assert not found.diverges


def test_rows_that_are_merged_otherwise_are_found() -> None:
    truth: Merged = {("sec", 0, ("a",)): [1, 0.3], ("sec", 1000, ("a",)): [2, None], ("min", 0, ("a",)): [3, 1.0]}
    found: Merged = {("sec", 0, ("a",)): [1, 0.1 + 0.2], ("sec", 1000, ("a",)): [1, None], ("min", 0, ("b",)): [3, 1.0]}
    assert MergedCheck.of(truth, found).differing == [
        ("sec", 1000, ("a",), [2, None], [1, None]),
        ("min", 0, ("a",), [3, 1.0], None),
        ("min", 0, ("b",), None, [3, 1.0]),
    ]

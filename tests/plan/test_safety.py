"""Shard safety, rule by rule (the rules are listed in `plan.shard_safety.safety`)."""

# ruff: noqa: E501  (an app reads best on one line)

from __future__ import annotations

import pytest

from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.shard_safety.safety import aggregation_safety, dependent_queries

DEFINITIONS = """
define stream S (k string, v int, ts long);
define stream R (k string, w int);
define table T (k string, v int);
define trigger Tick at every 1 sec;
define aggregation A from S select k, sum(v) as s group by k aggregate every sec;
"""
S_BY_K = (("S", "k"),)
BOTH_BY_K = (("R", "k"), ("S", "k"))

QUERIES = [
    ("filter", "from S[v > 3] select k, v * 2 as w insert into O", "stateless", ()),
    ("time window without aggregates", "from S#window.time(1 sec) select k insert into O", "stateless", ()),
    ("time window, grouped", "from S#window.time(1 sec) select k, sum(v) as s group by k insert into O", "keyed", S_BY_K),
    ("time window, all", "from S#window.time(1 sec) select sum(v) as s insert into O", "node-dependent", ()),
    ("length window, grouped", "from S#window.length(5) select k, sum(v) as s group by k insert into O", "node-dependent", ()),
    ("timeBatch from its first event", "from S#window.timeBatch(1 sec) select k, sum(v) as s group by k insert into O",
     "node-dependent", ()),
    ("timeBatch with a start", "from S#window.timeBatch(1 sec, 0) select k, sum(v) as s group by k insert into O", "keyed",
     S_BY_K),
    ("external time", "from S#window.externalTime(ts, 1 sec) select k, sum(v) as s group by k insert into O",
     "node-dependent", ()),
    ("session per key", "from S#window.session(1 sec, k) select k, v insert into O", "keyed", S_BY_K),
    ("session of all", "from S#window.session(1 sec) select k, v insert into O", "node-dependent", ()),
    ("first per key", "from S#window.unique:first(k) select k, v insert into O", "keyed", S_BY_K),
    ("first per key and another attribute", "from S#window.unique:first(k, v) select k, v insert into O", "node-dependent", ()),
    ("last per key", "from S#window.unique:ever(k) select k, v insert expired events into O", "keyed", S_BY_K),
    ("last per key, as it comes", "from S#window.unique:ever(k) select k, v insert into O", "stateless", ()),
    ("last per key, summed up", "from S#window.unique:time(k, 1 sec) select sum(v) as s insert into O", "node-dependent", ()),
    ("last of n keys", "from S#window.unique:length(k, 2) select k, count() as n group by k insert into O", "node-dependent", ()),
    ("batch of keys", "from S#window.unique:timeBatch(k, 1 sec) select k, v insert into O", "node-dependent", ()),
    ("deduplicated", "from S#unique:deduplicate(k, 1 sec) select k, v insert into O", "keyed", S_BY_K),
    ("deduplicated by a computed key", "from S#unique:deduplicate(v % 2, 1 sec) select k, v insert into O", "node-dependent", ()),
    ("running sum per group", "from S select k, sum(v) as s group by k insert into O", "keyed", S_BY_K),
    ("running sum of all", "from S select sum(v) as s insert into O", "node-dependent", ()),
    ("limit", "from S#window.time(1 sec) select k limit 1 insert into O", "node-dependent", ()),
    ("a query that asks for the leader", "from S[coordination:isLeader()] select k insert into O", "node-dependent", ()),
    ("rate in events", "from S select k output every 3 events insert into O", "node-dependent", ()),
    ("rate by time", "from S select k output every 3 sec insert into O", "stateless", ()),
    ("last of a period", "from S select k output last every 3 sec insert into O", "node-dependent", ()),
    ("last of a period per group", "from S select k, v group by k output last every 3 sec insert into O", "keyed", S_BY_K),
    ("join on equality", "from S#window.time(1 sec) join R#window.time(1 sec) on S.k == R.k select S.k insert into O", "keyed",
     BOTH_BY_K),
    ("join grouped by its key", "from S#window.time(1 sec) join R#window.time(1 sec) on S.k == R.k "
     "select R.k, count() as n group by R.k insert into O", "keyed", BOTH_BY_K),
    ("join grouped by something else", "from S#window.time(1 sec) join R#window.time(1 sec) on S.k == R.k "
     "select S.v, count() as n group by S.v insert into O", "node-dependent", ()),
    ("join with a length window", "from S#window.length(1) join R#window.time(1 sec) on S.k == R.k select S.k insert into O",
     "node-dependent", ()),
    ("join without equality", "from S#window.time(1 sec) join R#window.time(1 sec) on S.v > R.w select S.k insert into O",
     "node-dependent", ()),
    ("pattern tied by a key", "from every e1=S -> e2=R[k == e1.k] within 5 sec select e1.k insert into O", "keyed", BOTH_BY_K),
    ("pattern tied in a chain", "from every e1=S -> e2=R[k == e1.k] -> e3=R[k == e2.k] select e1.k insert into O", "keyed",
     BOTH_BY_K),
    ("pattern not tied", "from every e1=S -> e2=R[w > e1.v] select e1.k insert into O", "node-dependent", ()),
    ("pattern tied by or", "from every e1=S -> e2=R[k == e1.k or w > 3] select e1.k insert into O", "node-dependent", ()),
    ("pattern tied by two attributes", "from every e1=S -> e2=S[v == e1.ts] select e1.k insert into O", "node-dependent", ()),
    ("pattern that matches once", "from e1=S -> e2=R[k == e1.k] select e1.k insert into O", "node-dependent", ()),
    ("every over a group", "from every (e1=S -> e2=R[k == e1.k]) select e1.k insert into O", "node-dependent", ()),
    ("absent, tied", "from every e1=S -> not R[k == e1.k] for 1 sec select e1.k insert into O", "keyed", BOTH_BY_K),
    ("sequence", "from every e1=S, e2=R[k == e1.k] select e1.k insert into O", "node-dependent", ()),
    ("trigger", "from Tick select triggered_time insert into O", "node-dependent", ()),
    ("join with an aggregation", "from S join A on S.k == A.k within '2024-**-** **:**:**' per 'seconds' select A.s insert into O",
     "node-dependent", ()),
]  # fmt: skip


@pytest.mark.parametrize(("query", "level", "keys"), [q[1:] for q in QUERIES], ids=[q[0] for q in QUERIES])
def test_query_by_itself(query: str, level: str, keys: tuple[tuple[str, str], ...]) -> None:
    safety = compile_app(DEFINITIONS + query + ";").queries[0].safety
    assert (safety.level, safety.keys) == (level, keys), safety.reason


def test_an_aggregation_that_looks_into_a_table() -> None:
    app = DEFINITIONS + "define aggregation B from S[T.k == k in T] select sum(v) as s aggregate every sec;"
    plan = compile_app(app)
    assert aggregation_safety(plan, plan.aggregations["B"]).level == "merged"
    plan = compile_app(app + "@info(name='fills') from R select k, w as v insert into T;")
    found = aggregation_safety(plan, plan.aggregations["B"])
    assert (found.level, "query 'fills'" in found.reason) == ("node-dependent", True)


def _safeties(queries: str) -> dict[str, tuple[str, tuple[tuple[str, str], ...]]]:
    return {q.name: (q.safety.level, q.safety.keys) for q in compile_app(DEFINITIONS + queries).queries}


def test_a_reader_inherits() -> None:
    found = _safeties("""
        from S select sum(v) as s insert into Total; from Total[s > 3] select s insert into O;
        from S select k, sum(v) as s group by k insert into PerKey; from PerKey[s > 3] select s insert into O2;
    """)
    assert found["query2"] == ("node-dependent", ())
    assert found["query4"] == ("keyed", S_BY_K)


def test_keys_are_traced_to_the_input() -> None:
    found = _safeties("""
        from S[v > 0] select k as name, str:upper(k) as loud, v insert into M;
        from M select name, sum(v) as s group by name insert into O;
        from M select loud, sum(v) as s group by loud insert into O2;
    """)
    assert found["query2"] == ("keyed", S_BY_K)
    assert found["query3"] == ("node-dependent", ())


def test_two_keys_for_one_stream_conflict() -> None:
    found = _safeties("""
        from S select k, v, sum(v) as s group by k insert into M;
        from M select v, sum(s) as t group by v insert into O;
    """)
    assert found["query2"][0] == "node-dependent"


def test_a_loop_of_streams_ends() -> None:
    found = _safeties("from S select k, v insert into L; from L[v > 0] select k, v - 1 as v insert into L;")
    assert found == {"query1": ("stateless", ()), "query2": ("stateless", ())}


def test_partition_keeps_everything_apart() -> None:
    plan = compile_app(
        DEFINITIONS
        + """
        partition with (k of S) begin
            from S#window.length(3) select k, sum(v) as s insert into #I;
            from #I[s > 3] select k insert into O;
        end;
        partition with (v % 2 == 0 as 'even' or v % 2 != 0 as 'odd' of S) begin from S select k insert into P; end;
        partition with (k of S) begin from every e1=S -> e2=R select e1.k insert into Q; end;
    """
    )
    assert [e.safety.level for e in plan.elements] == ["keyed", "node-dependent", "node-dependent"]
    assert [q.safety.keys for q in plan.queries[:2]] == [S_BY_K, S_BY_K]


def test_tables() -> None:
    keyed = _safeties("from S select k, v insert into T; from R join T on R.k == T.k select R.k, T.v insert into O;")
    both = (("R", "k"), ("S", "k"))
    assert keyed == {"query1": ("keyed", both), "query2": ("keyed", both)}
    mixed = _safeties("from S select k, v insert into T; from R join T on R.w > T.v select R.k, T.v insert into O;")
    assert {level for level, _ in mixed.values()} == {"node-dependent"}


STORED = """
define stream S (k string, v int, at long);
define stream R (k string, w int);
@store(type='rdbms', datasource='shop') @primaryKey('k') define table P (k string, v int);
@store(type='rdbms', datasource='shop') define table T (k string, v int);
"""
INSERTS = "@info(name='inserts') from S select k, v insert into T;"
UPSERTS = "@info(name='upserts') from S select k, v update or insert into P set P.v = v on P.k == k;"
OF_TABLES = [
    ("no query writes it", "from S join P on S.k == P.k select S.k, P.v insert into O;", [("stateless", ())], "no query"),
    ("grouped by what nobody writes", "from S join P on S.k == P.k select P.k, sum(S.v) as s group by P.k insert into O;",
     [("keyed", S_BY_K)], "per k"),
    ("only added to", INSERTS + "from R select k, w as v insert into T;", [("stateless", ())] * 2, "independently"),
    ("each reaches it by its key", UPSERTS + "from R join P on R.k == P.k select R.k, P.v insert into O;",
     [("keyed", BOTH_BY_K)] * 2, "by its 'k'"),
    ("adding is as its input is", INSERTS + "from R join T on R.k == T.k select R.k, T.v insert into O;",
     [("stateless", ()), ("keyed", BOTH_BY_K)], "independently"),
    ("one names no key", UPSERTS + "@info(name='low') from R delete P on P.v < w;", [("node-dependent", ())] * 2,
     "query 'low' names no key"),
    ("adding goes on as before", INSERTS + "from R[w > 1] delete T on T.v < w;", [("stateless", ()), ("node-dependent", ())],
     "independently"),
    ("what it reads depends on the node",
     "@info(name='deep') from S#window.length(2) select k, max(v) as v insert into M; " + INSERTS.replace("from S", "from M")
     + "from R join T on R.k == T.k select R.k, T.v insert into O;",
     [("node-dependent", ())] * 3, "window 'length'"),
]  # fmt: skip


@pytest.mark.parametrize(("queries", "claims", "reason"), [t[1:] for t in OF_TABLES], ids=[t[0] for t in OF_TABLES])
def test_tables_in_a_database(queries: str, claims: list[tuple[str, tuple[tuple[str, str], ...]]], reason: str) -> None:
    found = [q.safety for q in compile_app(STORED + queries).queries]
    assert [(s.level, s.keys) for s in found] == claims, found
    assert reason in found[0].reason


def test_a_cause_names_the_query_that_it_comes_from() -> None:
    plan = compile_app(
        STORED
        + UPSERTS
        + """@info(name='deep') from R#window.length(2) select k, sum(w) as v insert into M;
        @info(name='writes') from M select k, convert(v, 'int') as v update or insert into P set P.v = v on P.k == k;
        @info(name='wide') from S select k, v, sum(v) as s group by k insert into K;
        @info(name='tall') from S select k, v, sum(v) as s group by v insert into K;
        @info(name='both') from K[s > 1] select k insert into O;"""
    )
    reasons = {q.name: q.safety.reason for q in plan.queries}
    assert reasons["writes"].startswith("it reads what query 'deep' sends: window 'length'")
    assert reasons["upserts"] == "every query accesses table 'P' by its 'k'"  # what it puts out is not of 'deep'
    assert reasons["both"].endswith("query 'wide' by k and query 'tall' by v")


def test_aggregations_merge_unless_their_input_depends_on_the_node() -> None:
    plan = compile_app(DEFINITIONS)
    assert aggregation_safety(plan, plan.aggregations["A"]).level == "merged"
    plan = compile_app(DEFINITIONS + "from R#window.length(2) select 'x' as k, 1 as v, sum(w) as ts insert into S;")
    assert aggregation_safety(plan, plan.aggregations["A"]).level == "node-dependent"


def test_routing_that_suits_all() -> None:
    plan = compile_app(
        DEFINITIONS
        + """
        from S select k, sum(v) as s group by k insert into O; from R select k, sum(w) as s group by k insert into P;
    """
    )
    assert [dict(q.safety.keys) for q in plan.queries] == [{"S": "k"}, {"R": "k"}]
    assert dependent_queries(plan, "hash:k") == []
    plan = compile_app(DEFINITIONS + "from S select sum(v) as s insert into O;")
    assert dependent_queries(plan, "hash:k") == [plan.queries[0].name]


def test_of_several_keys_that_of_the_routing_counts() -> None:
    plan = compile_app(
        "define stream S (k string, a string, v int);"
        "@info(name='both') from every e1=S -> e2=S[k == e1.k and a == e1.a and v > e1.v] select e1.k as k, e2.v as v insert into O;"
        "@info(name='after') from every e1=O -> e2=O[k == e1.k] select e1.k as k insert into P;"
        "@info(name='one') from S#window.time(1 sec) select a, sum(v) as s group by a insert into Q;"
    )
    assert dependent_queries(plan, "hash:k") == ["one"]
    assert dependent_queries(plan, "hash:a") == ["after"]
    assert dependent_queries(plan, "round_robin") == ["both", "after", "one"]
    assert dependent_queries(plan, "hash:v") == ["both", "after", "one"]

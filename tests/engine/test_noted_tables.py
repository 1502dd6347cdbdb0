"""Tables whose writes are noted while a batch goes operator by operator answer as they do chunk by chunk."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.table_apps import ROWS, TABLE, Case, apps, cases, check, conditions_of_join, one_of, streams, text
from profiles import examples
from reference.engine_cases import run_case
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan import compile_app

STREAMS = streams("SNM", "R")
FILTERS = one_of("", "[v > 3]", "[g == 1]", "[v % 2 == 0]")
PLAIN_SETS = (
    "T.v = v", "T.p = p", "T.v = v + 100L, T.p = p", "T.v = T.v + v, T.p = T.p - 0.1", "T.v = maximum(T.v, v)",
    "T.v = T.v * 3L % 7L, T.p = T.p / v", "T.p = ifThenElse(T.p > p and v > 2L, T.p, p), T.v = T.v + 1L",
    "T.p = (T.p * T.v + p) / (T.v + 1L), T.v = T.v + 1L", "T.v = coalesce(T.v, v), T.p = minimum(T.p, p, 2.5)",
    "T.v = ifThenElse(not (T.p > 1.0) or T.v is null, v, T.v - v), T.p = T.v + p", "T.v = T.v + T.v, T.p = T.p * 2.0",
)  # fmt: skip
SETS = (*PLAIN_SETS, "T.p = p, T.v = v - T.v")


def writer(on: str, keyed: bool, source: str = "S") -> st.SearchStrategy[str]:
    """A query that writes to T; S is read as `source`."""
    kinds = [
        text(f"from {source}{{}} {ROWS} update or insert into T on {on};", FILTERS),
        text(f"from {source}{{}} {ROWS} update or insert into T set {{}} on {on};", FILTERS, one_of(*PLAIN_SETS)),
        text(f"from {source}{{}} select k, g, v update T on {on};", FILTERS),
        text(f"from {source}{{}} {ROWS} update T set {{}} on {on};", FILTERS, one_of(*SETS)),
        text(f"from R{{}} select k, g, v delete T on {on};", FILTERS),
    ]
    return one_of(*kinds, *([text(f"from {source}{{}} {ROWS} insert into T;", FILTERS)] if keyed else []))


def reader(on: str) -> st.SearchStrategy[str]:
    """A query that looks into T."""
    of_s = conditions_of_join(on)
    return one_of(
        f"from S join T on {of_s} select S.v as a, T.v as b, T.p as p insert into O{{i}};",
        f"from S left outer join T on {of_s} and T.v > 2L select S.v as a, T.v as b insert into O{{i}};",
        f"from S#window.length(2) join T on {of_s} select S.v as a, T.v as b insert all events into O{{i}};",
        f"from R[({on}) in T] select k, v insert into O{{i}};",
        f"from S[not (({on}) in T)] select k, v insert into O{{i}};",
    )


def defined(annotation: str) -> st.SearchStrategy[str]:
    return st.just(f"{STREAMS}{annotation}{TABLE}")


@st.composite
def by_key(draw: st.DrawFn) -> str:
    """A table that all use by a key, its own or an assumed one."""
    key = draw(one_of("", "@PrimaryKey('k') ", "@PrimaryKey('g') ", "@Index('k') ", "@PrimaryKey('k', 'g') "))
    on = "T.g == g" if "('g')" in key else "T.k == k"
    if "'k', 'g'" in key or (not key and draw(st.booleans())):
        on = "T.k == k and T.g == g"
    writers = st.lists(writer(on, bool(key)), min_size=1, max_size=4)
    queries = st.builds(list.__add__, writers, st.lists(reader(on), min_size=1, max_size=3))
    return draw(apps(head=defined(key), queries=queries))


@st.composite
def by_lives(draw: st.DrawFn) -> str:
    """A table without a key that queries only insert into and delete from, by any conditions."""
    condition = one_of("T.k == k", "T.v < v", "T.k == k and T.v > v", "T.g == g and T.k != k")
    first = text(f"from S{{}} {ROWS} insert into T;", FILTERS)
    delete = text("from {}{} select k, g, v delete T on {};", one_of("S", "R"), FILTERS, condition)
    other = one_of(delete, "from R[g == 2] select k, g, v, 0.5 as p insert into T;")
    readers = st.lists(condition.flatmap(reader), min_size=1, max_size=3)
    queries = st.builds(lambda a, b, c: [a, *b, *c], first, st.lists(other, min_size=1, max_size=3), readers)
    index = draw(one_of("", "@Index('k') ", "@Index('v') @Index('g') "))
    return draw(apps(head=defined(index), queries=queries))


@st.composite
def by_circle(draw: st.DrawFn) -> str:
    """A table that queries only insert into, some of them after a look into it."""
    key = draw(one_of("", "@PrimaryKey('k') ", "@PrimaryKey('k', 'g') ", "@Index('k') "))
    on = draw(one_of("T.k == k", "T.k == k and T.g == g", "T.g == g"))
    other = draw(one_of(on, on, on, "T.k == k", "T.g == g"))
    through_n = "from S{look} select k, g, v, p insert into N; from N{where} select * insert into T; "
    through_n += "from N select k, v insert into New;"
    found = []
    for look in (f"[not (({on}) in T)]", f"[v > 2 and not (({other}) in T)]", f"[({on}) in T or g == 1]"):
        if draw(st.booleans()):
            where = draw(FILTERS)
            found.append(draw(one_of(
                f"from S{look} select k, g, v, p insert into T;", through_n.format(look=look, where=where)
            )))  # fmt: skip
    found.append(draw(one_of(
        f"from R[not (({on}) in T)] select k, g, v, 0.5 as p insert into T;",
        f"from R[not (({on}) in T)] select k, 1 as g, v, 0.5 as p insert into T;",  # not what it asked for
        "from R[v > 4] select k, g, v, 0.5 as p insert into T;",
        "from S#window.length(2) select k, g, v, p insert into M; from M[not ((T.k == k) in T)] insert into T;",
    )))  # fmt: skip
    single = [f"{q};" for q in " ".join(found).rstrip(";").split("; ")]
    queries = st.lists(reader(on), min_size=1, max_size=2).map(lambda readers: single + readers)
    return draw(apps(head=defined(key), queries=queries))


APPS = st.one_of(by_key(), by_lives(), by_circle())


@pytest.mark.thorough
@settings(max_examples=examples(180), deadline=None)
@given(st.one_of(cases(APPS), cases(APPS, keys=("a", "b", "c", None))))
def test_noted_writes_answer_as_writes_one_by_one(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("table", "queries", "noted"),
    [
        ("define table T (k string, v long);", "from S select k, v update or insert into T on T.k == k;", True),
        ("define table T (k string, v long);", "from S select k, v insert into T;", True),
        (
            "@Index('v') define table T (k string, v long);",
            "from S select k, v update or insert into T on T.k == k;",
            False,
        ),
        (
            "@PrimaryKey('k') define table T (k string, v long);",
            "from S select k, v update T set T.v = T.v * v on T.k == k;",
            True,
        ),
        (
            "@PrimaryKey('k') define table T (k string, v long);",
            "from S select k, v update T set T.v = convert(T.v, 'long') + v on T.k == k;",
            False,
        ),
        (
            "@PrimaryKey('k') define table T (k string, v long);",
            "from S select k, v update T set T.v = T.v + v on T.k == k;",
            True,
        ),
        (
            "@PrimaryKey('k') define table T (k string, v long);",
            "from S select k, v update or insert into T set T.v = v on T.k == k;",
            True,
        ),
    ],
)
def test_which_tables_are_noted(table: str, queries: str, noted: bool) -> None:
    read = "from S[(T.k == k) in T] select k insert into O;"
    node = NodeEngine(compile_app(f"define stream S (k string, v long); {table} {queries} {read}"))
    assert (node.graph.order is not None) == noted


@pytest.mark.parametrize(("op", "noted"), [("and", True), ("or", False)])
def test_a_condition_by_the_whole_key_is_noted(op: str, noted: bool) -> None:
    app = (
        "define stream S (k string, v long); @PrimaryKey('k', 'v') define table T (k string, v long); "
        f"from S delete T on T.k == k {op} T.v == v; from S[(T.k == k and T.v == v) in T] select k insert into O;"
    )
    assert (NodeEngine(compile_app(app)).graph.order is not None) == noted


def test_an_update_of_one_attribute_leaves_an_object_unchanged() -> None:
    app = (
        "define stream S (k string, v long); define stream R (k string); "
        "@PrimaryKey('k') define table T (k string, v long, o object); "
        "from S[v < 10] select k, v, createSet(k) as o insert into T; "
        "from S[v >= 10] select k, v update T set T.v = v on T.k == k; "
        "from R join T on T.k == R.k select T.k as k, T.v as v, T.o as o insert into O;"
    )
    assert NodeEngine(compile_app(app)).graph.order is not None
    feed = [["S", 1, ["a", 1]], ["S", 2, ["b", 2]], ["S", 3, ["a", 20]], ["S", 4, ["a", 30]], ["R", 5, ["a"]]]
    for by_chunk in (False, True):
        got = run_case({"id": "object", "app": app, "feed": feed}, by_chunk=by_chunk)
        assert got["streams"]["O"] == [[5, ["a", 30, ["a"]]]]


def test_a_table_whose_assumed_key_comes_twice_is_written_one_by_one() -> None:
    app = f"{STREAMS}{TABLE} "
    app += "from S select k, g, v, p update or insert into T on T.k == k; from R join T on R.k == T.k select T.v as v "
    app += "insert into O;"
    row = {"query": "select 'a' as k, 1 as g, 5L as v, 0.5 as p insert into T"}
    feed = [row, row, ["S", 1, ["a", 2, 7, 0.5]], ["R", 2, ["a", 1, 1]]]
    got = run_case({"id": "twice", "app": app, "feed": feed})
    assert got["streams"]["O"] == [[2, [7]], [2, [7]]]


@pytest.mark.parametrize(
    ("queries", "at_once"),
    [
        ("from S[not ((T.k == k) in T)] insert into T;", True),
        ("from S[not ((T.k == k) in T)] select k, v insert into N; from N[v > 1] insert into T;", True),
        ("from S[not ((T.k == k) in T)] select v, k insert into N; from N select v as x, k as y insert into M; "
         "from M select y as k, x as v insert into T;", True),
        ("from S[not ((T.v > v) in T)] insert into T;", False),  # not by one value
        ("from S[not ((T.k == k) in T)] insert into T; from S[not ((T.v == v) in T)] insert into T;", False),
        ("from S[not ((T.k == k) in T)] insert into N; from N[not ((U.v == v) in U)] insert into T; "
         "from N insert into U;", False),
        ("from S[not ((T.v == v) in T)] select k, v + 1L as v insert into T;", False),  # not the value that comes in
        ("from S[not ((T.v == v) in T)] select k, v + 1L as v insert into N; from N insert into T;", False),
        ("from S[not ((T.k == k) in T)] insert into T; from S[v == 0] delete T on T.k == k;", False),
        ("from S#window.lengthBatch(2) insert into N; from N[not ((T.k == k) in T)] insert into T;", False),
        ("from S[not ((T.k == k) in T)]#window.length(2) insert into T;", False),
    ],
)  # fmt: skip
def test_which_circles_take_whole_batches(queries: str, at_once: bool) -> None:
    node = NodeEngine(compile_app(f"define stream S (k string, v long); define table T (k string, v long); "
                                  f"define table U (k string, v long); {queries}"))
    assert (node.graph.order is not None) == at_once

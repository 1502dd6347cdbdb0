"""Apps whose tables are changed in ways that cannot be put in order afterwards: events between the changes go through
operator by operator, and all comes out as if each had gone alone."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.table_apps import TABLE, Case, apps, cases, check, one_of, text
from engine.test_noted_tables import STREAMS, reader, writer
from profiles import examples
from reference.engine_cases import run_case
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.runtime import batch_splitter as stretches
from sparkstream_nb.plan import compile_app

CONDITIONS = one_of("T.k == k", "T.v < v", "T.k == k and T.v > v", "T.g == g and T.k != k", "T.v == v")
OTHERS = (
    ["from S#window.time(5) select k, sum(v) as v insert all events into W;"],
    ["from S[v == 6] select k, g, v, p insert into N;", "from N select k, g, v, p insert into T;"],
    ["from every e1=S[v > 2] -> e2=S[v < e1.v] select e1.k as k, e2.v as v insert into P;"],
)
WRITERS = CONDITIONS.flatmap(lambda on: writer(on, True, "S[v > 4]"))
APPS = apps(
    head=text(f"{STREAMS}{{}}{TABLE}", one_of("", "@PrimaryKey('k') ", "@Index('v') ")),
    queries=st.builds(
        lambda writers, readers, others: [*writers, *readers, *(q for other in others for q in other)],
        st.lists(WRITERS, min_size=1, max_size=3),
        st.lists(CONDITIONS.flatmap(reader), min_size=1, max_size=3),
        st.lists(st.sampled_from(OTHERS), max_size=3, unique_by=id),
    ),
)
"""A table that queries change and look into by any conditions."""


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None)
@given(cases(APPS, values=(0, 1, 2, 2, 3, 3, 5, 6), from_s=90, twice=0))
def test_stretches_between_changes_answer_as_events_one_by_one(case: Case) -> None:
    with patch.object(stretches, "FEW", 1):
        check(case)


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

"""What shard safety claims, held against runs: on three nodes, under the routing that it names, a query puts out what
it does on one node."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.compose import AREAS, Composer
from profiles import a_sixth, examples
from reference import replay
from reference.engine_cases import input_batch
from reference.parts import Case, failing
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Safety
from sparkstream_nb.types import Type

from . import shards
from .shards import app_and_events, wrong_claims

PARTS = 12
SHARE = int(os.environ.get("SPARKSTREAM_SHARE", "4"))
"""One case of so many is run."""


def wrong(case: Case) -> list[str]:
    """The queries of a case whose claims do not hold, each with what is lost and what is spurious."""
    found = app_and_events(case)
    if found is None:
        return []
    plan, batch = found
    if any(a.name.lower() in ("source", "sink") for s in plan.streams.values() for a in s.annotations):
        return []  # a topic reaches one node alone
    if any(a.type is Type.OBJECT for t in plan.tables.values() if t.is_stored for a in t.source.schema):
        return []  # no database holds objects
    return [
        f"{case['id']} {q.name}: {q.safety} lost {list(lost)[:2]} spurious {list(spurious)[:2]}\n{case['app']}"
        for q, lost, spurious in wrong_claims(plan, batch, start=case.get("start", 0))
    ]


@pytest.mark.parametrize("part", a_sixth(range(PARTS)))
def test_claims_about_the_cases_hold(part: int) -> None:
    failing(replay.siddhi_cases()[::SHARE][part::PARTS], lambda case: "\n".join(wrong(case)) or None)


def in_a_database(case: Case) -> Case:
    return {**case, "id": f"{case['id']} (stored)", "app": shards.in_a_database(case["app"])}


@pytest.mark.parametrize("part", a_sixth(range(PARTS)))
def test_claims_about_the_cases_with_tables_in_a_database_hold(part: int) -> None:
    with_tables = [c for c in replay.siddhi_cases() if "define table" in c["app"] and "@store" not in c["app"].lower()]
    cases = list(map(in_a_database, with_tables))
    failing(cases[part::PARTS], lambda case: "\n".join(wrong(case)) or None)


@settings(max_examples=examples(15, "SPARKSTREAM_EXAMPLES"), deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_claims_about_composed_apps_with_tables_in_a_database_hold(random: Random) -> None:
    composer = Composer(random)
    AREAS["tables"](composer)
    assert wrong(in_a_database(composer.case("composed", 15))) == []


@settings(max_examples=examples(40, "SPARKSTREAM_EXAMPLES"), deadline=None)
@given(random=st.randoms(use_true_random=False), area=st.sampled_from(sorted(AREAS)))
def test_claims_about_composed_apps_hold(random: Random, area: str) -> None:
    composer = Composer(random)
    AREAS[area](composer)
    assert wrong(composer.case("composed", 15)) == []


def test_null_and_the_text_null_are_one_group_on_one_node() -> None:
    app = "define stream S (k string, v int); from S select k, count() as n group by k insert into O;"
    values = [None, "null", "a", None, "null", "b", ""]
    case = {"id": "null", "app": app, "feed": [["S", i, [v, i]] for i, v in enumerate(values)]}
    (query,) = compile_app(app).queries
    assert query.safety.level == "keyed"
    assert wrong(case) == []


def test_a_wrong_claim_is_found() -> None:
    app = "define stream S (k string, v int); from S#window.length(2) select sum(v) as s insert into O;"
    case = {"id": "x", "app": app, "feed": [["S", i, ["a", i]] for i in range(6)]}
    plan = compile_app(app)
    (query,) = plan.queries
    assert wrong(case) == []
    claimed = Safety("keyed", "", (("S", "v"),))
    object.__setattr__(query, "safety", claimed)
    steps = input_batch(plan, case["feed"])
    ((found, lost, spurious),) = wrong_claims(plan, steps)
    assert found.safety == claimed
    assert (Counter(lost).total(), Counter(spurious).total()) == (4, 4)

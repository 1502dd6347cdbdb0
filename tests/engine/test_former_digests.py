"""Digests of the units of apps as versions since 0.1.0 have written them into apps' folders: they are still known.

A line of the file has an app, and by unit its digests, in 0.1.0 and 0.2.0. A digest that is not known any more costs
users their state: if a class of `plan.nodes` gets an attribute or another name, `FORMER_FORMS` needs a form without it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkstream_nb.app.deployment.app_folder import known_fingerprints
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.state_units import KeptUnit, state_units, unit_changes

FILE = Path(__file__).parents[1] / "cases" / "folders" / "digests.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_digests_of_earlier_versions_are_known(case: dict) -> None:  # type: ignore[type-arg]
    plan = compile_app(case["app"], {"shardId": "node-1"})
    digests = dict(case["digests"])
    assert set(digests.pop("plan")) <= set(known_fingerprints(plan))
    units = {u.key: u for u in state_units(plan)}
    assert set(units) == set(digests)
    for key, former in digests.items():
        for digest in former:
            assert digest in (units[key].digest, *units[key].former_digests)
            kept = {key: KeptUnit(digest, 3)}
            changes = unit_changes(kept, plan, 4)
            if key not in changes.bound:
                assert changes.units[key].token == f"{digest}.3", "its state has its former name in snapshots"


def test_an_attribute_that_an_earlier_version_did_not_know_counts() -> None:
    """Only where it has its default: an index over two attributes is another table."""
    store = "@store(type='rdbms', jdbc.url='jdbc:sqlite:/tmp/x.db', username='u', password='p')"
    plain = f"define stream S (k string, v int); {store} @index('k') define table T (k string, v int);"
    joint = plain.replace("'k')", "'k', 'v')")
    a, b = (state_units(compile_app(text, {"shardId": "node-1"}))[0] for text in (plain, joint))
    assert not {a.digest, *a.former_digests} & {b.digest, *b.former_digests}

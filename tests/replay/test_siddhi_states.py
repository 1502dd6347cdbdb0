"""Windows, partial matches and totals at any moment of the cases: they are those of the real Siddhi."""

from __future__ import annotations

from random import Random

import pytest

from fuzz.oracle import Oracle, missing
from plan.shards import app_and_events
from profiles import seed
from reference import replay as reference
from reference.siddhi_states import description, state_differences

PARTS = 6
FAULT = "filter_fault"
"""In the names of cases with a filter that fails: Siddhi's partial match keeps the event, which changes no output."""


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
def test_states_of_the_cases(part: int) -> None:
    if needed := missing():
        pytest.skip(needed)
    different_outputs = {id for d in reference.listed_differences() for id in d["cases"]}
    compared, differences = 0, []
    with Oracle() as siddhi:
        for case in reference.siddhi_cases()[part::PARTS]:
            feed = case["feed"]
            has_queries = any(isinstance(s, dict) and {"query", "restart"} & s.keys() for s in feed)
            if case["id"] in different_outputs or has_queries or FAULT in case["id"]:
                continue
            steps = Random(f"{seed()} {case['id']}").randint(1, len(feed)) if feed else 0
            prefix = {k: v for k, v in case.items() if k != "expect"} | {"feed": feed[:steps], "states": True}
            app = app_and_events(prefix)
            if app is None:
                continue
            answer = siddhi.answer(prefix).get("expect", {})
            if "states" not in answer or answer.get("fault"):
                continue
            compared += 1
            ours = description(*app, case.get("start") or 0)
            differences += [f"{case['id']} {d}" for d in state_differences(app[0], ours, answer["states"])]
    assert compared > 300
    assert differences == []

"""Forks behind triggers: what fires twice in one step goes down every way before the second comes. No case shows it, as
the reference engine's triggers follow the wall clock."""

from __future__ import annotations

import pytest

from reference.engine_cases import run_case


@pytest.mark.parametrize("by_chunk", [False, True])
def test_a_trigger_that_fires_several_times_goes_down_both_ways_each_time(by_chunk: bool) -> None:
    app = (
        "define trigger Tick at every 1 sec; define stream S (v int); "
        "from Tick select 'a' as way, triggered_time as t insert into X; "
        "from Tick select 'b' as way, triggered_time as t insert into X; "
        "from X select way, t insert into O;"
    )
    got = run_case({"id": "fork", "app": app, "feed": [["S", 500, [1]], ["S", 3600, [2]]]}, by_chunk=by_chunk)
    told = [values for _, values in got["streams"]["O"]]
    assert len(told) >= 6
    assert [way for way, _ in told] == ["a", "b"] * (len(told) // 2)
    assert [t for _, t in told[::2]] == [t for _, t in told[1::2]]

"""`#T` outside of partitions: a stream of its own, in micro-batches, over restarts and as an operator."""

from __future__ import annotations

from reference.engine_cases import run_case
from sparkstream_nb.cli.results import list_outputs
from sparkstream_nb.plan import compile_app

APP = (
    "define stream S (k string, v int); from S select k, v insert into #T;"
    "partition with (k of S) begin from S select v as w insert into #T; from #T select sum(w) as s insert into O; end;"
    "from #T#window.length(2) select k, sum(v) as s insert into P;"
)
FEED = [["S", 1000 + i, ["ab"[i % 2], i]] for i in range(6)]


def test_in_any_micro_batches() -> None:
    whole = run_case({"app": APP, "feed": FEED})
    sums = [["a", 0], ["b", 1], ["a", 3], ["b", 5], ["a", 7], ["b", 9]]
    assert [values for _, values in whole["streams"]["P"]] == sums
    assert [values for _, values in whole["streams"]["O"]] == [[0], [1], [2], [4], [6], [9]]
    assert run_case({"app": APP, "feed": FEED}, by_chunk=True) == whole
    assert run_case({"app": APP, "feed": FEED}, cuts=range(6), saves=True) == whole
    assert run_case({"app": APP, "feed": [*FEED[:3], {"restart": True}, *FEED[3:]]}) == whole


def test_nothing_shows_it() -> None:
    assert not [s for s in run_case({"app": APP, "feed": FEED})["streams"] if "#" in s]
    assert list_outputs(compile_app(APP)) == ["O", "P"]
    assert {"#T", "partition0#T"} <= compile_app(APP).streams.keys()

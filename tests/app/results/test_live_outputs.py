"""Live nodes that share the events of random apps, or of recorded cases: ours put out the same, each by itself, and so
the verdicts of divergence follow from what real Siddhi 5.1.30 nodes put out.

Each line of `tests/cases/live/outputs.jsonl` is an app, its events, the number of nodes, the routing, and what one live
node put out that took all events and each of those that shared them. `tests/live` records more.
"""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path

import pytest

from fuzz.oracle import Oracle, missing
from tests.live.shares import Share, differences, random_share, recorded_shares, with_answers

RECORDED = (Path(__file__).parents[2] / "cases" / "live" / "outputs.jsonl").read_text("utf-8").splitlines()
SEED = int(os.environ.get("SPARKSTREAM_LIVE_SEED", "2"))
COUNT = int(os.environ.get("SPARKSTREAM_LIVE_CASES", "44"))


@pytest.mark.parametrize(
    "line",
    [  # every fifth is one of the quick tests
        pytest.param(line, id=str(i), marks=() if i % 5 == 0 else pytest.mark.thorough)
        for i, line in enumerate(RECORDED, 1)
    ],
)
def test_nodes_that_share_events_put_out_what_live_ones_do(line: str) -> None:
    assert not differences(Share.from_json(json.loads(line)))


def test_recorded_nodes_put_out_something_and_differ_from_one_node() -> None:
    shares = [Share.from_json(json.loads(line)) for line in RECORDED]
    outputs = [[sorted(map(repr, live.items())) for live in share.answers] for share in shares]
    assert sum(len(events) for share in shares for live in share.answers for events in live.values()) > 1000
    assert sum(one not in each for one, *each in outputs) > 30


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("origin", ["random", "recorded"])
def test_apps_on_live_nodes(origin: str) -> None:
    if needed := missing():
        pytest.skip(needed)
    if origin == "random":
        shares = (share for number in range(COUNT) if (share := random_share(SEED, number)) is not None)
    else:
        shares = islice(recorded_shares(SEED), COUNT)
    with Oracle() as oracle:
        answered = list(with_answers(shares, oracle))
    assert len(answered) > COUNT // 2
    different = [(share.app, words) for share in answered if (words := differences(share))]
    assert not different

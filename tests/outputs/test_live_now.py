"""Random cases on a live cluster of real Siddhi nodes: each node is answered as by ours."""

from __future__ import annotations

import os

import pytest

from tests.live.cluster import missing, with_answers
from tests.live.random_cases import case

from .test_live_clusters import check_answers

SEED = int(os.environ.get("SPARKSTREAM_LIVE_SEED", "1"))
COUNT = int(os.environ.get("SPARKSTREAM_LIVE_CASES", "4"))


@pytest.mark.thorough
@pytest.mark.server
@pytest.mark.timeout(900)
def test_random_cases_on_a_live_cluster() -> None:
    if needed := missing():
        pytest.skip(f"needs {needed}")
    answered = with_answers(case(SEED, number) for number in range(COUNT))
    assert len(answered) == COUNT
    for one in answered:
        check_answers(one)

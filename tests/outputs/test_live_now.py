"""Random cases on a live cluster of real Siddhi nodes: each node is answered as by ours."""

from __future__ import annotations

import os

import pytest

from tests.live.cluster import h2, missing, postgresql, with_answers
from tests.live.random_cases import case
from tests.run_servers import ServerOf

from .test_live_clusters import check_answers

SEED = int(os.environ.get("SPARKSTREAM_LIVE_SEED", "1"))
COUNT = int(os.environ.get("SPARKSTREAM_LIVE_CASES", "4"))
pytestmark = [pytest.mark.thorough, pytest.mark.server, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def _cluster() -> None:
    if needed := missing():
        pytest.skip(f"needs {needed}")


@pytest.mark.parametrize("restart", ["", "renamed"])
def test_random_cases(restart: str) -> None:
    answered = with_answers((case(SEED, number, restart) for number in range(COUNT)), h2)
    assert len(answered) == COUNT
    for one in answered:
        check_answers(one)


def test_random_cases_on_postgresql(server_of: ServerOf) -> None:
    answered = with_answers((case(SEED, number) for number in range(COUNT)), postgresql(server_of("postgresql")))
    assert answered
    for one in answered:
        check_answers(one)

"""Random cases on live clusters of real Siddhi nodes: ours answers as each of them, or their source says why not."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest

from tests.live.answers import differing_queries, unexplained_queries
from tests.live.cluster import Case, Stores, h2, missing, postgresql, with_answers, with_answers_of_processes
from tests.live.random_cases import KINDS, case
from tests.run_servers import ServerOf

SEED = int(os.environ.get("SPARKSTREAM_LIVE_SEED", "1"))
COUNT = int(os.environ.get("SPARKSTREAM_LIVE_CASES", "3"))
QUERIES = 5
pytestmark = [pytest.mark.thorough, pytest.mark.server, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def _cluster() -> None:
    if needed := missing():
        pytest.skip(f"needs {needed}")


def random_cases(*kinds: str) -> list[tuple[str, Case]]:
    """Cases of these kinds."""
    return [(kind, case(SEED, number, KINDS[kind], QUERIES)) for kind in kinds for number in range(COUNT)]


def check(cases: list[tuple[str, Case]], stores: Stores, threads: int) -> None:
    """Asserts that live nodes answer the cases as ours, where servers do not hide or lose more than `as_wso2` says, and
    always as their source says."""
    answered = with_answers([one for _, one in cases], stores, threads)
    assert len(answered) == len(cases)
    for (kind, _), one in zip(cases, answered, strict=True):
        if kind in ("playback", "renamed", "alive"):
            assert not [*differing_queries(one, "alive" if kind == "alive" else None)], kind
        assert not [*unexplained_queries(one)], kind


def test_random_cases() -> None:
    check(random_cases(*KINDS), h2, threads=4)


def test_random_cases_on_postgresql(server_of: ServerOf) -> None:
    check(random_cases("playback", "alive", "killed"), postgresql(server_of("postgresql")), threads=2)


def test_a_node_that_is_killed_comes_back(server_of: ServerOf, tmp_path: Path) -> None:
    cases = (case(SEED, number, KINDS["killed"], QUERIES) for number in count())
    one = next(c for c in cases if len(c["nodes"]) == 2 and sum("restart" in step for step in c["steps"]) == 2)
    answered = with_answers_of_processes(one, postgresql(server_of("postgresql"))(0), tmp_path)
    assert not [*unexplained_queries(answered)]

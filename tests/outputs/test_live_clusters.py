"""What live clusters answered: one to four real Siddhi 5.1.30 nodes on one database, in playback and alive.

Each line of the files in `tests/cases/live/` is an app, the shard ids of its nodes, and steps in their order: an event
of a node, whose last attribute is its time, or a retrieval from a node with the `rows` of its answer. The bounds of
retrievals lie anywhere. In `renamed.jsonl` nodes start again without their state, as another shard. `tests/live`
records more.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.live.answers import differing_queries

FOLDER = Path(__file__).parents[1] / "cases" / "live"
PLAYBACK = (FOLDER / "playback.jsonl").read_text(encoding="utf-8").splitlines()
ALIVE = (FOLDER / "alive.jsonl").read_text(encoding="utf-8").splitlines()
RENAMED = (FOLDER / "renamed.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", [pytest.param(line, id=str(i)) for i, line in enumerate(PLAYBACK, 1)])
def test_each_node_answers_as_a_real_one_in_playback(line: str) -> None:
    assert not [*differing_queries(json.loads(line))]


@pytest.mark.parametrize("line", [pytest.param(line, id=str(i)) for i, line in enumerate(ALIVE, 1)])
def test_nodes_answer_as_real_ones_whose_clock_is_the_walls(line: str) -> None:
    assert not [*differing_queries(json.loads(line), as_wso2="alive")]


@pytest.mark.parametrize("line", [pytest.param(line, id=str(i)) for i, line in enumerate(RENAMED, 1)])
def test_nodes_that_start_again_as_other_shards_answer_as_real_ones(line: str) -> None:
    assert not [*differing_queries(json.loads(line))]


def test_there_are_cases_with_several_nodes_and_bounds_inside_buckets() -> None:
    cases = [json.loads(line) for line in [*PLAYBACK, *ALIVE]]
    queries = [step["query"] for case in cases for step in case["steps"] if "query" in step]
    assert len(queries) > 100
    assert sum(len(case["nodes"]) > 1 for case in cases) > 20

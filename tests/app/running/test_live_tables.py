"""Nodes that share a table of a database: ours put out, and leave in it, what real Siddhi 5.1.30 nodes do.

Each line of `tests/cases/live/tables.jsonl` is an app, its nodes, and steps in their order: an event of a node, whose
last attribute is its time, or a retrieval from a node with the `rows` of its answer; and the `events` that the nodes
put out, `[node, stream, values]`. `tests/live` records more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App

RECORDED = (Path(__file__).parents[2] / "cases" / "live" / "tables.jsonl").read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    "case",
    [  # every tenth is one of the quick tests
        pytest.param(json.loads(line), id=str(i), marks=() if i % 10 == 0 else pytest.mark.thorough)
        for i, line in enumerate(RECORDED, 1)
    ],
)
def test_nodes_that_share_a_table(case: dict[str, Any], run: Callable[..., App], tmp_path: Path) -> None:
    database = f"@store(type='rdbms', jdbc.url='jdbc:sqlite:{tmp_path / 't.db'}')"
    app = run(case["app"].replace("@stored", database), nodes=len(case["nodes"]), allow=[f"file={tmp_path}"])
    for step in case["steps"]:
        if "query" in step:
            rows = sorted(([*row] for row in app.query(step["query"]).rows), key=str)
            assert rows == step["rows"], step
        else:
            app.send(step["stream"], step["data"], at=step["data"][-1], node=step["node"] + 1, wait=True)
    events = [event for stream in case["watch"] for event in outputs(app, stream)]
    assert sorted(events, key=str) == case["events"]


def outputs(app: App, stream: str) -> Iterator[list[Any]]:
    """`[node, stream, values]` of each event of a stream."""
    for row in app.output(stream).frame.to_dict("records"):
        node = app.shard_ids.index(row["node"])
        yield [node, stream, [None if pd.isna(row[a]) else row[a] for a in app.schemas[stream].names]]

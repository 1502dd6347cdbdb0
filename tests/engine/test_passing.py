"""Where events go through an app one by one, those that no filter lets through go through no query."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.runtime.query_operator import QueryOp
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app

STREAM = "define stream S (k string, v long); define stream L (k string, v long); "
LOOP = "from S[v > 90] select k, v insert into L; from L[v > 40] select k, v / 2 as v insert into L; "
EVENTS = [("abc", 1), ("b", 95), ("c", 7), ("abc", 200), ("d", 9)]


def fed(node: NodeEngine, steps: list[int]) -> Any:
    """What the events come to; those of one step are sent at once."""
    n, time = len(EVENTS), 1000 + np.array(steps)
    columns = [pa.array([k for k, _ in EVENTS]), pa.array([v for _, v in EVENTS], pa.int64())]
    clock = time[np.unique(np.array(steps), return_index=True)[1]]
    return node.step(InputBatch(clock, {"S": StreamRows(np.array(steps), np.full(n, 1000) + np.array(steps), columns)}))


@pytest.mark.parametrize(
    ("steps", "sent", "runs"),
    [
        # Two of five events go into the loop, once each. What comes out of it is seen by the loop and the join, which
        # sees all that was sent as well.
        ([0, 1, 2, 3, 4], [23, 47, 95, 25, 50, 100, 200], {"L": 2 + 7, "O": 5 + 7}),
        # One of three sends has events that do.
        ([0, 1, 1, 1, 2], [25, 23, 50, 47, 100, 95, 200], {"L": 1 + 4, "O": 3 + 4}),
    ],
)
def test_only_what_passes_a_filter_is_run(
    steps: list[int], sent: list[int], runs: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = NodeEngine(compile_app(STREAM + LOOP + "from L join S#window.length(1) as s on s.k == L.k "
                                  "select L.k as k, L.v as v insert into O;"))  # fmt: skip
    assert node.stats()["runs"].startswith("by chunk")
    seen, run = Counter[str](), QueryOp.run

    def counted(self: QueryOp, inputs: Any, clock: Any) -> Any:
        seen[self.target.id] += any(len(rows) for rows in inputs.values())
        return run(self, inputs, clock)

    monkeypatch.setattr(QueryOp, "run", counted)
    assert fed(node, steps).streams["L"].columns[1].to_pylist() == sent
    assert seen == runs


def test_an_event_that_fails_in_a_filter_is_reported_in_both_ways() -> None:
    # The third character of a text that has fewer.
    app = STREAM + "from S[str:charAt(k, 2) == 'c'][v > 100] select k, v insert into O;"
    told = []
    for by_chunk in (False, True):
        outputs = fed(NodeEngine(compile_app(app), by_chunk=by_chunk), [0, 1, 2, 3, 4])
        told.append([e.message for e in outputs.errors])
        assert outputs.streams["O"].columns[1].to_pylist() == [200]
    assert told[0] == told[1]
    assert len(told[0]) == 3

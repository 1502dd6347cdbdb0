"""Runs all cases with patterns, by operator, by chunk and cut before each step, and then puts faults into machines,
each of which has to be an error. Run by `test_bounds.py` with compiled loops that check each place of such memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow as pa

from reference import replay
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.patterns.pointers import IS_CHECKED
from sparkstream_nb.engine.patterns.pools import Pools
from sparkstream_nb.engine.runtime.operators import QueryOperator
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import StateInput

PARTITIONED = """
define stream S (k string, v long);
partition with (k of S) begin
  from every a=S -> b=S[v > a.v] -> c=S[v > b.v] select a.v as x, b.v as y, c.v as z insert into Out;
end;
"""


def has_pattern(case: replay.Case) -> bool:
    """Whether an app, which has one, is accepted and has a pattern or a sequence."""
    try:
        plan = compile_app(case["app"], properties=case.get("properties", {}))
    except SiddhiError:
        return False
    return any(isinstance(q.input, StateInput) for q in plan.queries)


def differences() -> Iterator[str]:
    """What comes out otherwise than in Siddhi, or looks beyond a memory."""
    listed = {i for d in replay.listed_differences() for i in d["cases"]}
    for case in replay.siddhi_cases():
        if case["id"] in listed or not has_pattern(case):
            continue
        cuts = range(1, len(case["feed"]))
        for by_chunk, at in ((False, ()), (True, ()), (False, cuts)):
            try:
                difference = replay.verdict(case, by_chunk=by_chunk, cuts=at)
            except IndexError as e:
                difference = str(e)
            if difference is not None:
                yield f"{case['id']}{', by chunk' * by_chunk}{', cut' * bool(at)}: {difference}"


def counts_room_that_is_not_there(pools: Pools) -> None:
    pools.machine.cells_left += 1 << 20


def links_a_free_record_beyond(pools: Pools) -> None:
    pools.machine.free_cell = len(pools.array("cells"))


def lists_a_partial_beyond(pools: Pools) -> None:
    pools.array("cells")[:] = 1 << 40


def forgets_half_of_the_instances(pools: Pools) -> None:
    pools.hold("lists", pools.array("lists")[: len(pools.array("lists")) // 2].copy())


FAULTS: dict[Callable[[Pools], None], str] = {
    counts_room_that_is_not_there: "cells",
    links_a_free_record_beyond: "cells",
    lists_a_partial_beyond: "partials",
    forgets_half_of_the_instances: "lists",
}
"""Faults of a machine that has run, and the memory that they lead outside of."""


def step(node: NodeEngine, first: int, events: int) -> Any:
    ts = np.arange(first, first + events)
    columns = [pa.array([f"k{i % 50}" for i in range(events)]), pa.array(-ts)]
    return node.step(InputBatch(ts, {"S": StreamRows(np.arange(events), ts, columns)}))


def faults_not_noticed() -> Iterator[str]:
    """The faults that are no error, or one of another memory."""
    for fault, memory in FAULTS.items():
        node = NodeEngine(compile_app(PARTITIONED))
        step(node, 1, 500)
        query: Any = next(op.query for op in node.operators if isinstance(op, QueryOperator))
        fault(query._pattern.pools)
        try:
            step(node, 1000, 5000)
            message = "is no error"
        except IndexError as e:
            message = str(e)
        if message != f"a place outside {memory} of a pattern":
            yield f"{fault.__name__}: {message}"


def main() -> int:
    assert IS_CHECKED, "run with NUMBA_BOUNDSCHECK=1"
    messages = [*differences(), *faults_not_noticed()]
    print(*messages, sep="\n")
    return len(messages) > 0


if __name__ == "__main__":
    sys.exit(main())

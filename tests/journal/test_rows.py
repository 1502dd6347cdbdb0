"""The rows that pass through Spark, and what the commit makes of each kind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sparkstream_nb.engine.state.node_batch import ElementRows, Emitted, RetrievalAnswer
from sparkstream_nb.journal import result_codec, result_rows
from sparkstream_nb.journal.entries import Ask, to_json
from sparkstream_nb.journal.journal import COLUMNS
from sparkstream_nb.outputs.commit import AfterCommit, Commit, CommittedRun, ErrorLimit, Progress
from sparkstream_nb.outputs.output_files import OutputFiles
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import BatchClock
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey

EVENTS = Emitted(("k",), np.array([0, 1]), np.array([5, 6]), [pa.array(["a", "b"])])
BLOB = result_codec.to_ipc(result_codec.emitted_table(EVENTS, 40))
SUMS = pa.table({"total": [7, 8]})
REPORT = result_rows.NodeReport("node-1", 1.5, True, 120, {"clock": 9, "steps": 4}, BatchClock(3, 5, 9))
ROWS: list[result_rows.Row] = [
    result_rows.StreamEvents(0, 3, 4, "Out", 2, BLOB),
    result_rows.StreamEvents(0, 3, 4, "Big", 50_000, file="/somewhere"),
    result_rows.CurrentEvents(0, 3, 4, "q", 2, BLOB),
    result_rows.ExpiredEvents(0, 3, 4, "q", 2, BLOB),
    result_rows.Partial(0, 3, 4, "Sums", 2, result_codec.to_ipc(SUMS)),
    result_rows.Errors(0, 3, 4, 1, result_codec.error_lines([["S", 5, [1, "x"], "q: no number"]])),
    result_rows.Logs(0, 3, 4, ("one", "two")),
    result_rows.Answered(0, 4, 4, RetrievalAnswer([("n", "long")], [[2**40], [None]])),
    result_rows.Answered(0, 4, 4, result_codec.QueryFailed("SiddhiRuntimeError", "no")),
    result_rows.NodeDone(0, 3, 4, 17, REPORT),
    result_rows.NodeFailure.of(0, ValueError("what went wrong")),
    result_rows.Entries(0, 3, 4, to_json([Ask(text="from T select *")])),
    result_rows.NodePart(0, 3, 4, 2, b"rows"),
    result_rows.NodePart(0, 3, 4, 2, b"", "parts/3-4-a.0", "parts/3-4-a.clock"),
    result_rows.RowCounts(0, 3, 4, ElementRows(Counter(q=3, other=1), Counter(w=2))),
]


def columns_of(found: list[result_rows.Row]) -> dict[str, list[Any]]:
    return dict(zip(COLUMNS, map(list, zip(*map(result_rows.encode, found), strict=True)), strict=True))


@pytest.mark.parametrize("form", ["arrow", "pandas"])
def test_every_kind_comes_back_as_it_was(form: str) -> None:
    table = pa.table(columns_of(ROWS), schema=result_rows.ARROW_SCHEMA)
    assert result_rows.from_columns(table if form == "arrow" else table.to_pandas()) == ROWS
    assert {type(r) for r in ROWS} == set(result_rows.KINDS.values())
    failure = result_rows.NodeFailure(0, 0, -1, "ValueError", "what went wrong")
    assert result_rows.decode(result_rows.encode(ROWS[10])) == failure


def test_rows_come_in_the_order_of_node_and_entry() -> None:
    found: list[result_rows.Row] = [result_rows.Logs(*at, ()) for at in ((1, 0, 0), (0, 7, 7), (0, 2, 3))]
    table = pa.table(columns_of(found), schema=result_rows.ARROW_SCHEMA)
    assert [(r.node, r.seq) for r in result_rows.from_table(table)] == [(0, 2), (0, 7), (1, 0)]


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="kind 'control'"):
        result_rows.decode((0, 0, 0, "control", "", 0, b"", ""))

    class Control(result_rows.Row):
        kind = "control"

    with pytest.raises(TypeError, match="Control is not among the kinds of rows"):
        result_rows.encode(Control(0, 0, 0))


class Kept:
    """A store that notes what it is told to commit."""

    def __init__(self) -> None:
        self.told: tuple[Any, ...] = ()

    def commit(self, *told: Any) -> bool:
        self.told = told
        return True

    def unfit(self, aggregation: str, partials: pa.Table) -> dict[int, str]:
        return {}


SUM_APP = "define stream S (v int); define aggregation Sums from S select sum(v) as total aggregate every sec;"


def commit_to(folder: Path) -> tuple[Commit, Any]:
    store: Any = Kept()
    outputs, plan = OutputFiles(folder, ["node-1"]), compile_app(SUM_APP)
    return Commit(CommittedRun("app", "run", ["node-1"], plan), store, outputs, Progress()), store


def test_errors_above_the_limit_go_after_a_commit(tmp_path: Path) -> None:
    plan, progress, store = compile_app("define stream S (v int);"), Progress(), DuckDBStore(":memory:")
    try:
        limit = ErrorLimit(store, "app", 200, progress)
        after = AfterCommit(limit=limit)
        run = CommittedRun("app", "run", ["node-1"], plan)
        commit = Commit(run, store, OutputFiles(tmp_path, ["n"]), progress, after)
        kept = []
        for batch in range(4):
            lines = result_codec.error_lines([["S", i, [i], "no"] for i in range(101 if batch < 2 else 1)])
            commit.commit([result_rows.Errors(0, batch, batch, 1, lines)], batch)
            kept.append((store.errors("app").num_rows, progress.dropped_errors))
        assert kept == [(101, 0), (200, 2), (201, 2), (202, 2)]
        assert progress.errors == 204
        for most, dropped in ((None, 2), (50, 154)):  # as an app that is opened
            ErrorLimit(store, "app", most, progress)
            assert progress.dropped_errors == dropped
    finally:
        store.close()


def test_a_commit_takes_each_kind_to_its_place(tmp_path: Path) -> None:
    commit, store = commit_to(tmp_path)
    large = tmp_path / "partial"
    large.write_bytes(result_codec.to_ipc(SUMS))
    taken = [ROWS[i] for i in (0, 4, 5, 6, 7, 9, 14)]
    commit.commit([*taken, result_rows.Partial(0, 3, 4, "Sums", 2, file=str(large))], 12)
    key, partials, errors, clock = store.told
    assert (key, clock) == (BatchKey("app", "run", 12), BatchClock(3, 5, 9))
    assert {key: table["total"].to_pylist() for key, table in partials.items()} == {("Sums", "node-1"): [7, 8, 7, 8]}
    assert [(e.stream, e.ts, e.values, e.reason) for e in errors] == [("S", 5, [1, "x"], "q: no number")]
    assert not large.exists()
    p = commit.progress
    assert (p.batch, p.last, p.rows, p.errors, p.logs) == (12, 4, {"Out": 2}, 1, ["one", "two"])
    assert p.element_rows == ElementRows(Counter(q=3, other=1), Counter(w=2))
    assert p.nodes == {0: REPORT}
    assert p.answers == {4: {0: RetrievalAnswer([("n", "long")], [[2**40], [None]])}}
    frame = commit.outputs.frame("Out", ["k"], 12)
    expected = pd.DataFrame({"node": ["node-1"] * 2, "timestamp": [5, 6], "k": ["a", "b"]})
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)


@pytest.mark.parametrize("row", [ROWS[2], ROWS[10], ROWS[11]])
def test_a_commit_refuses_what_is_not_for_it(tmp_path: Path, row: result_rows.Row) -> None:
    commit, store = commit_to(tmp_path)
    with pytest.raises(TypeError, match=f"'{row.kind}'"):
        commit.commit([row], 0)
    assert store.told == ()

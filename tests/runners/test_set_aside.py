"""Events that a node cannot take are set aside with the reason; those around them come out, and nothing must be made
fresh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.nodes.batches import between

# Every event with v > 90 goes round and round.
ROUND = """
define stream S (k string, v int);
define stream Again (k string, v int);
@info(name='held') from S#window.length(3) select k, sum(v) as s insert into O;
@info(name='there') from S[v > 90] select k, v insert into Again;
@info(name='back') from Again select k, v insert into Again;
"""


@pytest.mark.contract
@pytest.mark.parametrize("nodes", [1, 2])
def test_streams_that_feed_each_other_without_end(nodes: int, run: Callable[..., App]) -> None:
    app = run(ROUND, nodes=nodes)
    values = [*range(50), 99, *range(50, 80), 91]
    app.feed("S", pd.DataFrame({"k": ["a"] * len(values), "v": values}))
    app.send("S", ["a", 98])
    app.send("S", ["a", 1])
    app.flush()
    errors = app.errors.frame
    assert [(e[0], e[1]) for e in errors["values"]] == [("a", 99), ("a", 91), ("a", 98)]
    assert set(errors["reason"]) == {"set aside: streams feed each other without end, or something is nested too deep"}
    right = [v for v in [*values, 98, 1] if v <= 90]
    assert len(app.output("O").frame) == len(right)
    if nodes == 1:
        assert app.output("O").frame["s"].tolist() == [sum(right[max(0, i - 2) : i + 1]) for i in range(len(right))]
    app.stop()
    app.send("S", ["a", 2])
    app.flush()
    assert len(app.errors.frame) == 3


@pytest.mark.thorough
@pytest.mark.contract(thorough=True)
def test_streams_without_end_beside_a_table_in_a_database(run: Callable[..., App], tmp_path: Path) -> None:
    table = "@primaryKey('k') define table T (k string, n int);"
    store = f"@store(type='rdbms', jdbc.url='jdbc:sqlite:{tmp_path / 't.db'}') {table}"
    text = f"{store} {ROUND} from S select k, 1 as n update or insert into T set T.n = T.n + n on T.k == k;"
    app = run(text, allow=[f"file={tmp_path}"])
    values = [*range(50), 99, *range(50, 80)]
    app.feed("S", pd.DataFrame({"k": ["a"] * len(values), "v": values}))
    app.send("S", ["a", 1])
    app.flush()
    errors = app.errors.frame
    assert errors["values"].tolist() == [["a", 99]]
    assert errors["reason"].tolist() == [
        "set aside: streams feed each other without end, or something is nested too deep"
    ]
    assert app.output("O").frame["s"].tolist()[-1] == 78 + 79 + 1
    assert app.query("from T select n").rows == [[81]]


def test_a_part_of_a_batch() -> None:
    rows = StreamRows(np.array([0, 0, 2, 3]), np.array([5, 5, 7, 8]), [pa.array([1, 2, 3, 4]), ["a", "b", "c", "d"]])
    part = between(InputBatch(np.array([5, 6, 7, 8]), {"S": rows}), 1, 3)
    assert part.clock.tolist() == [6, 7]
    assert part.rows["S"].step.tolist() == [1]
    assert [c if isinstance(c, list) else c.to_pylist() for c in part.rows["S"].columns] == [[3], ["c"]]
    assert between(part, 0, 1).rows == {}


FAR = 2**62


@pytest.mark.contract
def test_an_event_far_ahead_is_an_error_and_the_clock_goes_on(run: Callable[..., App], tmp_path: Path) -> None:
    app = run("define stream S (k string, v int); from S#window.time(1 sec) select count() as n insert into O;")
    app.send("S", ["a", 1], at=1_000)
    app.send("S", [["b", 2], ["c", 3]], at=FAR)
    frame = pd.DataFrame({"k": ["d", "e"], "v": [4, 5], "t": [3_000, FAR]})
    report = app.feed("S", frame, time="t")
    assert (report.rows, report.rejected) == (2, 1)
    frame.to_parquet(tmp_path / "a.parquet")
    assert app.feed("S", tmp_path / "a.parquet", time="t").rejected == 1
    assert app.output("O").frame["timestamp"].tolist() == [1_000, 3_000, 3_000]
    assert app.output("O").frame["n"].tolist() == [1, 1, 2]
    errors = app.errors.frame
    assert errors["values"].tolist() == [["b", 2], ["c", 3], ["e", 5], ["e", 5]]
    assert errors["timestamp"].tolist() == [FAR] * 4
    assert all("is too far ahead: after" in r for r in errors["reason"])


@pytest.mark.parametrize(("playback", "arguments"), [("", {"max_ahead": None}), ("@app:playback\n", {})])
def test_all_times_are_taken_where_time_is_simulated(
    playback: str, arguments: dict[str, None], run: Callable[..., App]
) -> None:
    app = run(f"{playback}define stream S (v int); from S select v insert into O;", **arguments)
    app.send("S", [1], at=2**50)
    app.flush()
    assert app.output("O").frame["timestamp"].tolist() == [2**50]

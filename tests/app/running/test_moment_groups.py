"""Groups of selects, outputs that rate limits hold back and newest buckets at a moment."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App, Moment
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.compared_shown import comparison_json
from sparkstream_nb.lab.display import text

START = 1_717_236_000_000
AGGREGATES = [
    "sum(v)", "count()", "avg(v)", "min(v)", "max(v)", "minForever(v)", "maxForever(v)", "stdDev(v)",
    "distinctCount(v)", "and(v > 10)", "or(v > 40)", "unionSet(createSet(v))",
]  # fmt: skip


def filled(run: Callable[..., App], source: str, events: int = 30) -> App:
    app, chance = run(source), random.Random(4)
    for i in range(events):
        app.send("S", [chance.choice("abc"), chance.randint(1, 50)], at=START + 1000 * i)
    return app


def groups_of(moment: Moment, query: str, *columns: str) -> dict[Any, Any]:
    frame = moment[query].groups
    return {tuple(row[:-1]): row[-1] for row in frame[list(columns)].values.tolist()}


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_group_has_the_value_of_its_last_output(run: Callable[..., App], aggregate: str) -> None:
    app = filled(run, f"""define stream S (k string, v int);
@info(name='q') from S select k, {aggregate} as x group by k insert into O;
@info(name='all') from S select {aggregate} as x insert into P;
partition with (k of S) begin @info(name='p') from S select k, v % 3 as m, {aggregate} as x group by m insert into Q;
end;""".replace("group by m", "group by k"))
    for position in (1, 7, 30):
        moment = app.at(event=position)
        last: dict[Any, Any] = {}
        for i in range(1, position + 1):
            for output in app.at(event=i).outputs:
                last[output.stream, output.values[0] if output.stream != "P" else ""] = output.values[-1]
        for (k,), value in groups_of(moment, "q", "k", "x").items():
            assert str(value) == str(last["O", k])
        for (k,), value in groups_of(moment, "p", "key", "x").items():
            assert str(value) == str(last["Q", k])
        assert str(moment["all"].groups["x"].tolist()) == str([last["P", ""]])


@pytest.mark.parametrize("window", ["length(6)", "time(6 sec)", "lengthBatch(4)"])
def test_groups_hold_what_the_window_holds(run: Callable[..., App], window: str) -> None:
    app = filled(run, f"""define stream S (k string, v int);
@info(name='q') from S#window.{window}
select k, sum(v) as total, count() as n, max(v) as most, min(v) as least, distinctCount(v) as kinds group by k
insert all events into O;""")
    for position in range(1, 31):
        moment = app.at(event=position)
        contents = moment["q"].window
        contents = contents[~contents["waiting"].astype(bool)]
        expected = {
            k: (f["v"].sum(), len(f), f["v"].max(), f["v"].min(), f["v"].nunique()) for k, f in contents.groupby("k")
        }
        groups = moment["q"].groups[["k", "total", "n", "most", "least", "kinds"]].values.tolist()
        assert {row[0]: tuple(row[1:]) for row in groups if row[2]} == expected


def test_groups_of_batches_are_those_of_the_last_batch(run: Callable[..., App]) -> None:
    app = filled(run, """define stream S (k string, v int);
@info(name='q') from S#window.lengthBatch(4) select k, sum(v) as total group by k insert into O;""")
    last: dict[Any, Any] = {}
    for position in range(1, 31):
        moment = app.at(event=position)
        if moment.outputs:
            last = {(o.values[0],): o.values[1] for o in moment.outputs}
        groups = groups_of(moment, "q", "k", "total")
        assert {k: total for k, total in groups.items() if pd.notna(total)} == last


RATES: dict[str, tuple[str, list[list[Any]]]] = {
    "all every 4 events": ("select k, v output all every 4 events", [["a", 5], ["b", 6], ["a", 7]]),
    "last every 4 events, by group": (
        "select k, sum(v) as v group by k output last every 4 events", [["a", 9], ["b", 12], ["a", 16]],
    ),
    "all every 10 sec": ("select k, v output all every 10 sec", [["a", v] for v in (1, 3, 5, 7)]),
    "last every 10 sec": ("select k, v output last every 10 sec", [["a", 7]]),
    "last every 10 sec, by group": (
        "select k, sum(v) as v group by k output last every 10 sec", [["a", 16], ["b", 12]],
    ),
    "snapshot every 10 sec": ("select k, v output snapshot every 10 sec", [["a", 7]]),
}  # fmt: skip


@pytest.mark.parametrize(("rate", "rows"), RATES.values(), ids=RATES)
def test_outputs_that_wait(run: Callable[..., App], rate: str, rows: list[list[Any]]) -> None:
    app = run(f"define stream S (k string, v int); @info(name='q') from S {rate} insert into O;")
    for i in range(1, 8):
        app.send("S", ["a" if i % 2 else "b", i], at=START + 1000 * i)
    moment = app.at()
    outputs = moment["q"].pending_outputs[["k", "v"]].values.tolist()
    if rate.startswith("select k, v output all every 10"):
        rows = [["a" if i % 2 else "b", i] for i in range(1, 8)]
    assert outputs == rows
    assert moment.sql("select count(*) as n from pending_outputs('q')")["n"].tolist() == [len(rows)]


def test_the_newest_buckets(run: Callable[..., App]) -> None:
    app = filled(run, """define stream S (k string, v int);
define aggregation A from S select k, sum(v) as total group by k aggregate every sec...min;
@info(name='q') from S select k insert into O;""", 5)
    moment = app.at()
    buckets = moment.buckets("A")
    assert buckets.columns.tolist() == ["node", "duration", "AGG_TIMESTAMP", "k", "total"]
    seconds, minutes = (buckets[buckets["duration"] == d] for d in ("sec", "min"))
    (event,) = moment.events
    assert seconds[["AGG_TIMESTAMP", "k", "total"]].values.tolist() == [[event.time, *event.values]]
    assert minutes["total"].sum() == sum(app.at(event=i).events[0].values[1] for i in range(1, 6))
    assert moment.sql("select sum(total) as t from buckets('A') where duration = 'min'")["t"].tolist() == [
        minutes["total"].sum()
    ]
    assert comparison_json(moment, 5)["aggregations"]["A"][0]["duration"] == "sec"
    with pytest.raises(Misuse, match="has no aggregation 'B'"):
        moment.buckets("B")
    assert len(app.at().back(5).buckets("A")) == 0


def test_what_it_looks_like(run: Callable[..., App]) -> None:
    app = filled(run, """define stream S (k string, v int);
@info(name='q') from S select k, sum(v) as total, max(v) + 1 as next group by k output last every 10 sec insert into O;
@info(name='plain') from S select k insert into P;""", 5)
    moment = app.at()
    assert "2 groups, 2 outputs waiting" in text(moment)
    assert moment["q"].groups.columns.tolist() == ["node", "key", "k", "total", "max(v)"]
    assert "max(v)" in text(moment["q"])
    data = comparison_json(moment["q"], 5)
    assert (len(data["groups"]), len(data["pending_outputs"])) == (2, 2)
    assert moment.sql("select sum(total) as t from groups('q')")["t"].tolist() == [moment["q"].groups["total"].sum()]
    with pytest.raises(Misuse, match="query plain has no groups: it keeps no events"):
        _ = moment["plain"].groups
    with pytest.raises(Misuse, match="query plain has no outputs that wait"):
        _ = moment["plain"].pending_outputs
    with pytest.raises(Misuse, match="query q has no window: read groups or pending_outputs"):
        _ = moment["q"].window

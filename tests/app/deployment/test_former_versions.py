"""Apps that former versions deployed go on: what is in their folders names no module of this one."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from sparkstream_nb.app import attach, changes, deploy

FOLDER = Path(__file__).parents[2] / "cases" / "folders" / "0.2.0.tar.xz"
"""The folder of `TEXT` under 0.2.0, after four trades of 10, 20, 30 and 40 pieces, of IBM and WSO2 in turn."""
TEXT = """
@app:name('Old')
define stream Trades (symbol string, price double, volume long, at long);
@primaryKey('symbol') define table Last (symbol string, price double);
@PartitionById(enable='true')
define aggregation Sums from Trades select symbol, sum(volume) as total group by symbol
aggregate by at every sec ... day;
@info(name='window') from Trades#window.length(3) select symbol, sum(volume) as total insert into Totals;
@info(name='rise') from every a=Trades -> b=Trades[symbol == a.symbol and price > a.price] within 1 hour
select a.symbol as symbol, a.price as low, b.price as high insert into Rises;
@info(name='last') from Trades select symbol, price update or insert into Last on Last.symbol == symbol;
partition with (symbol of Trades) begin
@info(name='count') from Trades select symbol, count() as n insert into Counts;
end;
"""
FOLDER_0_1_0 = FOLDER.with_name("0.1.0.tar.xz")
"""The folder of `TEXT_0_1_0` under 0.1.0, on Spark, after four events of S: a 0, b 1, a 2, b 3."""
TEXT_0_1_0 = """@app:name('Old')
define stream S (k string, v long);
define stream B (k string, v long);
@primaryKey('k') define table T (k string, v long);
define table U (k string, v double);
define window W (k string, v long) length(3) output all events;
define aggregation A from S select k, sum(v) as total, avg(v) as mean group by k aggregate every sec ... min;
@info(name='w') from S#window.length(3) select k, sum(v) as s insert into O;
@info(name='t') from S select k, v update or insert into T on T.k == k;
@info(name='u') from S select k, convert(v,'double') as v insert into U;
@info(name='p') from every a=S[v > 1] -> b=B[b.k == a.k] within 1 hour
select a.k as k, a.v as av, b.v as bv insert into P;
@info(name='q') from S insert into W;
@info(name='r') from W select k, sum(v) as s insert into X;
@info(name='g') from S#window.time(1 hour) select k, count() as n group by k insert into G;
partition with (k of S) begin
@info(name='pp') from S#window.length(2) select k, sum(v) as s insert into Q;
end;
"""
START = 1_700_000_000_000


def test_an_app_of_0_2_0_goes_on(tmp_path: Path) -> None:
    with tarfile.open(FOLDER) as archive:
        archive.extractall(tmp_path, filter="data")
    app = deploy(TEXT, nodes=2, routing="hash:symbol", master="inline", home=tmp_path, mode="active-active")
    try:
        app.send("Trades", ["WSO2", 49.5, 50, START + 4000], at=START + 4000)
        app.send("Trades", ["IBM", 90.0, 60, START + 5000], at=START + 5000)
        app.flush()
        assert app.output("Totals").frame["total"].tolist() == [10, 20, 40, 60, 110, 100]
        assert app.output("Rises").frame[["low", "high"]].values.tolist() == [[100.0, 101.0], [49.0, 49.5]]
        assert app.output("Counts").frame["n"].tolist() == [1, 1, 2, 2, 3, 3]
        assert sorted(app.query("from Last select symbol, price").rows) == [["IBM", 90.0], ["WSO2", 49.5]]
        sums = app.query("from Sums within '2023-**-** **:**:**' per 'days' select symbol, total").frame
        assert dict(zip(sums["symbol"], sums["total"], strict=True)) == {"IBM": 100, "WSO2": 110}
    finally:
        app.stop()


def test_a_folder_of_0_1_0_is_known(tmp_path: Path) -> None:
    """Its tables and aggregations have the digests of that version."""
    with tarfile.open(FOLDER_0_1_0) as archive:
        archive.extractall(tmp_path, filter="data")
    how = {"home": tmp_path, "master": "local[1]"}
    assert repr(changes(TEXT_0_1_0, **how)) == "Old continues with all of its state: the change does not affect it."
    units = changes(TEXT_0_1_0.replace("length(2)", "length(4)"), **how).units
    assert units is not None
    assert {"table T", "table U", "window W", "aggregation A", "query p"} <= set(units.kept)
    assert (units.changed, units.added, units.removed) == (("partition partition0",), (), ())


def _move_spark_state(home: Path) -> None:
    """Spark wrote the place of the folder into the metadata of its state: this is its place now."""
    for file in home.glob("life-*/checkpoint/state/*/_metadata/**/[0-9]*"):
        (life,) = home.glob("life-*")
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(rf"file:[^\"]*/{life.name}/", f"file:{life}/", text), encoding="utf-8")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


@pytest.mark.spark
@pytest.mark.thorough
def test_an_app_of_0_1_0_goes_on(tmp_path: Path) -> None:
    with tarfile.open(FOLDER_0_1_0) as archive:
        archive.extractall(tmp_path, filter="data")
    _move_spark_state(tmp_path)
    app = attach("Old", home=tmp_path, master="local[2]")  # as the session of other tests
    try:
        app.send("S", ["a", 4], at=START + 4)
        app.send("S", ["b", 5], at=START + 5)
        app.send("B", ["b", 7], at=START + 10)
        app.flush()
        assert [app.output(o).frame.iloc[-1, -1] for o in "OXGQ"] == [12, 12, 3, 8]
        assert app.output("P").frame[["av", "bv"]].values.tolist() == [[3, 7], [5, 7]]
        assert sorted(app.query("from T select *").rows) == [["a", 4], ["b", 5]]
        assert [v for _, v in app.query("from U select *").rows] == [0, 1, 2, 3, 4, 5]
        sums = app.query("from A within '2023-**-** **:**:**' per 'min' select k, total, mean").rows
        assert sorted(sums) == [["a", 6, 2.0], ["b", 9, 3.0]]
    finally:
        app.stop()

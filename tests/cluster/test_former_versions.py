"""Apps that former versions deployed go on: what is in their folders names no module of this one."""

from __future__ import annotations

import tarfile
from pathlib import Path

from sparkstream_nb.app import deploy

FOLDER = Path(__file__).parents[1] / "cases" / "folders" / "0.2.0.tar.xz"
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

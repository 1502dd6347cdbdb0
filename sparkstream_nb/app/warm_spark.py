"""Speeds up later starts of Spark: `python -m sparkstream_nb.app.warm_spark`.

Runs an app as a notebook does, while Spark's JVM records the classes that it loads in an archive. `make setup` does
this. Returns at once if the archive exists.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pandas as pd

from ..errors import SparkUnavailable
from ..runners.spark.class_recording import has_archive, record_archive
from .deploying import deploy, stop_all

APP = """
@app:name('Warm')
define stream Trades (symbol string, price double, quantity long);
define aggregation Sums from Trades select symbol, avg(price) as price group by symbol aggregate every sec ... hour;
from Trades[quantity > 10]#window.time(5 sec) select symbol, sum(price) as total group by symbol insert into Totals;
"""


def main() -> None:
    """If Spark does not start, prints that there is no archive, and succeeds."""
    try:
        if has_archive():
            return
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="sparkstream-warm-") as folder, record_archive():
            _run(Path(folder))
    except SparkUnavailable as error:
        print(error)
        return
    took = f"{time.perf_counter() - began:.0f} s"
    print(f"Done in {took}." if has_archive() else "This Java keeps no archive of classes: Spark starts without.")


def _run(folder: Path) -> None:
    app = deploy(APP, home=folder / "app", fresh=True)
    trades = pd.DataFrame({"symbol": ["a", "b"], "price": [1.0, 2.0], "quantity": [20, 30]})
    csv, parquet = folder / "trades.csv", folder / "trades.parquet"
    trades.to_csv(csv, index=False)
    trades.to_parquet(parquet)
    app.send("Trades", ["a", 10.5, 20])
    for source in (trades, csv, parquet):
        app.feed("Trades", source)
    app.output("Totals")
    app.aggregation("Sums", "sec")
    stop_all()


if __name__ == "__main__":
    main()

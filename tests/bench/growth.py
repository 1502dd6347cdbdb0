"""How the time of one event grows with the run, the keys, the partitions and the window: four curves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch
from sparkstream_nb.plan import compile_app

from .engine_bench import BATCH, batches

TRADES = "define stream Trades (symbol string, price double, quantity long, timestamp long);"
RUNS = 5
Point = tuple[int, float]


@dataclass(frozen=True)
class Curve:
    """`sizes` against nanoseconds an event. `app` and `keys` are functions of the size; `skip` and `events` count
    events: those before the clock starts, which fill windows and make keys known, and those that are timed."""

    name: str
    axis: str
    sizes: tuple[int, ...]
    app: Callable[[int], str]
    keys: Callable[[int], int]
    skip: Callable[[int], int]
    events: Callable[[int], int]


SLIDING = "from Trades#window.time(1 sec) select symbol, avg(price) as a, sum(quantity) as q group by symbol " \
    "insert into Out;"
PATTERN = "from every e1=Trades[quantity > 950] -> e2=Trades[symbol == e1.symbol and price > e1.price] within 1 sec " \
    "select e1.price as p1, e2.price as p2 insert into Pairs;"
CURVES = (
    Curve(
        "events", "events of the run", (100_000, 1_000_000, 10_000_000),
        lambda n: SLIDING + PATTERN, lambda n: 100, lambda n: 100_000, lambda n: n,
    ),
    Curve(
        "keys", "keys of the group by", (10, 100, 1_000, 10_000, 100_000),
        lambda n: SLIDING.replace("time(1 sec)", "length(1000)"), lambda n: n, lambda n: 500_000, lambda n: 1_000_000,
    ),
    Curve(
        "partitions", "keys of the partition", (10, 100, 1_000, 10_000),
        lambda n: "partition with (symbol of Trades) begin from every e1=Trades -> e2=Trades[price > e1.price * 1.01] "
        "within 5 sec select e1.symbol as symbol, e2.price as p insert into Out; "
        "from Trades#window.length(50) select symbol, avg(price) as ap insert into Out2; end;",
        lambda n: n, lambda n: 500_000 + 150 * n, lambda n: 1_000_000,
    ),
    Curve(
        "window", "events in the window", (1_000, 10_000, 100_000, 1_000_000),
        lambda n: SLIDING.replace("time(1 sec)", f"length({n})"), lambda n: 100, lambda n: 3 * n + 250_000,
        lambda n: 1_000_000,
    ),
)  # fmt: skip


def trades(n: int, keys: int) -> list[pa.Array]:
    """Columns of n trades over so many symbols, one a millisecond."""
    r = np.random.default_rng(11)
    names = pa.array([f"S{k:06d}" for k in range(keys)])
    symbol = names.take(pa.array(r.integers(0, keys, n)))
    price = np.round(100 + 10 * np.sin(np.arange(n) / 5000) + r.normal(0, 2, n), 4)
    ts = 1_600_000_000_000 + np.arange(n)
    return [symbol, pa.array(price), pa.array(r.integers(1, 1001, n)), pa.array(ts)]


def _fed(columns: list[pa.Array], a: int, n: int) -> Iterator[InputBatch]:
    return batches([c.slice(a, n) for c in columns], "Trades", BATCH)


def measured(curve: Curve) -> list[Point]:
    """The curve's points, the best of `RUNS` runs each. The sizes take turns, as a machine that others use as well is
    slower for seconds at a time; a round before the first compiles what is not yet."""
    runs = []
    for size in curve.sizes:
        skip, n = curve.skip(size), curve.events(size)
        runs.append((compile_app(TRADES + curve.app(size)), trades(skip + n, curve.keys(size)), skip, n))
    best = [float("inf")] * len(runs)
    for turn in range(1 + RUNS):
        for k, (plan, columns, skip, n) in enumerate(runs):
            node = NodeEngine(plan)
            for batch in _fed(columns, 0, skip):
                node.step(batch)
            fed = list(_fed(columns, skip, n))
            began = time.perf_counter()
            for batch in fed:
                node.step(batch)
            took = (time.perf_counter() - began) / n * 1e9
            if turn:
                best[k] = min(best[k], took)
    return list(zip(curve.sizes, best, strict=True))

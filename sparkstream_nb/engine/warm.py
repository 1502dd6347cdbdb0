"""Compiles the engine's loops ahead of use: `python -m sparkstream_nb.engine.warm`.

The apps below run on a few events each; the loops that they use are compiled into numba's cache
(`notation/kernels.py`), which all processes of this machine share. `make setup` does this once, and elsewhere the
first deployment does (`app/results/first_use.py`). A loop that no app here uses is compiled when it is first used; a
loop that many apps use belongs in `QUERIES`. The windows are the declared ones, without windows of extensions
(`unique:...`), which few apps have and which take a sixth of the time.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
from llvmlite import binding

from .._version import __version__
from ..plan import compile_app
from ..plan.nodes import Plan
from ..plan.window_declarations import DECLARATIONS
from ..system import end_with_parent, is_locked, lock
from ..types import Type
from .columnar.column_data import ARROW
from .node import NodeEngine
from .notation.kernels import cache_folder, digests, forget_others
from .state.node_batch import InputBatch, OutputOptions, StreamRows

WITH_PARENT = "--with-parent"

STREAMS = """
define stream S (symbol string, price double, qty int, volume long, ok bool, at long);
define stream T (symbol string, price double, qty int, volume long, ok bool, at long);
"""

AGGREGATES = (
    "count() as n, sum(qty) as q, sum(volume) as v, sum(price) as p, avg(price) as a, min(price) as low, "
    "max(price) as high, min(volume) as least, max(volume) as most, min(qty) as few, max(qty) as many, "
    "stdDev(price) as d, distinctCount(symbol) as kinds, minForever(price) as lowest, maxForever(volume) as highest, "
    "and(ok) as all, or(ok) as some"
)

WINDOWS = tuple(
    d.example_call(count=3, few=3, time="20 millisec", at="at", key="symbol", value="price")
    for name, d in DECLARATIONS.built_in.items()
    if ":" not in name
)

QUERIES = (
    # Patterns and sequences are one automaton, by far the largest loop: one of the two processes is busy with it.
    """from every e1=S[price > 0.0] -> e2=S[price > e1.price and symbol == e1.symbol] within 20 millisec
    select e1.symbol as symbol, e2.price as price insert into Out;""",
    # Windows with groups, and their input of the aggregators.
    *(
        f"from S#window.{w} select symbol, price, {AGGREGATES} group by symbol insert all events into Out;"
        for w in (*WINDOWS, "externalTimeBatch(at, 20, 0, 50)")
    ),
    # And with expired events that are not wanted.
    *(f"from S#window.{w} select symbol, price, {AGGREGATES} group by symbol insert into Out;" for w in WINDOWS),
    f"from S select symbol, {AGGREGATES} group by symbol having n > 1 insert into Out;",
    f"""partition with (symbol of S) begin
    from S#window.time(20) select symbol, {AGGREGATES} insert all events into Out; end;""",
    # Rate limits.
    "from S select symbol, price output last every 3 events insert into Out;",
    "from S select symbol, price output first every 20 millisec insert into Out;",
    # Late events.
    "from S#reorder:kslack(at, 20L) select symbol, price insert into Out;",
    # Joins and tables.
    """from S#window.time(20) as a join T#window.length(5) as b on a.symbol == b.symbol and a.price > b.price
    select a.symbol as symbol, b.price as price insert all events into Out;""",
    """@primaryKey('symbol') @index('qty') define table K (symbol string, qty int, price double);
    from S select symbol, qty, price update or insert into K on K.symbol == symbol;
    from T join K on T.symbol == K.symbol select T.symbol as symbol, K.price as price insert into Out;
    from T[not (qty == K.qty in K)] delete K on K.qty == qty;""",
    # Aggregations by calendar.
    """define aggregation A from S select symbol, price, avg(price) as a, sum(qty) as q, sum(volume) as v,
    min(price) as low, max(qty) as most, count() as n group by symbol aggregate by at every sec ... year;""",
    # More ways through the automaton, which the first process has compiled by now.
    """from e1=S<1:3>, e2=T or e3=S[qty > e1[0].qty]
    select e1[last].price as price, e2.symbol as symbol insert into Out;
    from e1=S -> not T for 5 millisec select e1.symbol as symbol insert into Silent;
    from every (e1=S and not T for 5 millisec) -> e2=T select e1.symbol as symbol insert into Alone;""",
    """partition with (symbol of S) begin from every e1=S -> e2=S[price > e1.price] within 20 millisec
    select e1.symbol as symbol, e2.price as price insert into Out; end;""",
    # Functions of texts, numbers and dates that differ from event to event.
    """from S select str:concat(symbol, '-', convert(price, 'string')) as text, convert(volume, 'string') as number,
    time:dateFormat(at, 'yyyy-MM-dd HH:mm:ss.SSS') as day, time:dateAdd(at, qty, 'MONTH') as later, at insert into M;
    from M select convert(text, 'double') as a, convert(number, 'long') as b, str:upper(day) as c, later, UUID() as id,
    math:rand(7) as chance, time:dateFormat(at, 'yyyy') as year insert into Out;""",
)

APPS = tuple(STREAMS + query for query in QUERIES)

EVENTS, START = 240, 1_700_000_000_000

VALUES: dict[Type, Callable[[int], object]] = {
    Type.STRING: lambda i: f"s{i % 3}",
    Type.INT: lambda i: i % 5,
    Type.LONG: lambda i: START + 3 * i,
    Type.FLOAT: lambda i: i % 7 + 0.5,
    Type.DOUBLE: lambda i: i % 7 + 0.5,
    Type.BOOL: lambda i: i % 2 == 0,
}


def events(plan: Plan) -> InputBatch:
    """Events of all defined streams in turn, 3 ms apart."""
    ts = START + 3 * np.arange(EVENTS)
    streams = [s for s, d in plan.streams.items() if d.kind == "defined"]
    rows = {}
    for k, stream in enumerate(streams):
        steps = np.arange(k, EVENTS, len(streams))
        columns = [pa.array([VALUES[a.type](i) for i in steps.tolist()], ARROW[a.type]) for a in plan.schema(stream)]
        rows[stream] = StreamRows(steps, ts[steps], columns)
    return InputBatch(ts, rows)


def run(app: str) -> int:
    """Runs an app by operator and by chunk, through a snapshot, and past its last timer; returns the number of output
    events."""
    plan = compile_app(app, {"shardId": "node-1"})
    batch = events(plan)
    later = InputBatch(np.array([batch.clock[-1] + 1000]))
    out = 0
    for by_chunk in (False, True):
        options = OutputOptions(stored=True)
        node, again = (NodeEngine(plan, shard="node-1", by_chunk=by_chunk, outputs=options) for _ in range(2))
        outputs = [node.step(batch)]
        again.restore(node.snapshot())
        outputs.append(again.step(later))
        out += sum(len(e) for f in outputs for e in f.streams.values()) + sum(
            len(t) for t in outputs[0].partials.values()
        )
    return out


def _ran(app: str) -> frozenset[str]:
    """Runs an app; the digests of the loops that its process has by then."""
    run(app)
    return digests()


def is_compiled() -> bool:
    """True if `main` has run for this version of the package, on a machine as this one."""
    return _marker().exists()


def _marker() -> Path:
    """A file in numba's cache. Its name has all that compiled code depends on, except the sources: after an edit, numba
    compiles the changed loops.
    """
    parts = (__version__, numba.__version__, sys.implementation.cache_tag, binding.get_host_cpu_name())
    return cache_folder() / f"compiled-{hashlib.sha256(' '.join(map(str, parts)).encode()).hexdigest()[:12]}"


def main() -> None:
    """Fills the cache in two processes. Prints how many of the apps are done (`3/71`) as they are, and the time it
    took. With `WITH_PARENT` it ends with the process that started it. If another process is at it, this one waits.
    """
    if WITH_PARENT in sys.argv[1:]:
        end_with_parent(sys.stdin.buffer, group=True)
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "compiling.lock").open("a") as file:
        waits = is_locked(file)
        lock(file, wait=True)
        if waits and is_compiled():
            return
        _compile_all()


def _compile_all() -> None:
    began, loop_digests = time.perf_counter(), set(digests())
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for count, future in enumerate(as_completed([pool.submit(_ran, app) for app in APPS]), 1):
            loop_digests |= future.result()
            if not sys.stdout.isatty():
                print(f"{count}/{len(APPS)}", flush=True)
    forget_others(loop_digests)
    _marker().touch()
    print(f"The engine's loops are compiled ({time.perf_counter() - began:.0f} s).")


if __name__ == "__main__":
    main()

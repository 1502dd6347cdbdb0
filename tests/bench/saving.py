"""What it costs a node to save its state after one more event, by what it holds: CPU, pieces and memory.

`python -m tests.bench.saving KIND EVENTS`, in a process of its own, as it measures the peak of the process's memory.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.content_chunking import pieces
from sparkstream_nb.engine.state.node_batch import InputBatch
from sparkstream_nb.plan import compile_app

from .engine_bench import batches

TRADES = "define stream Trades (symbol string, price double, quantity long, id string, timestamp long);"
SELECT = "select symbol, avg(price) as a, sum(quantity) as q insert into Out;"
SET = "update or insert into T set T.price = price, T.quantity = quantity on T.id == id;"
KINDS = {
    "length": "from Trades#window.length({n}) select symbol, price, sum(quantity) as q insert into Out;",
    "time by key": "partition with (symbol of Trades) begin from Trades#window.time({n} millisec) " + SELECT + " end;",
    "length by key": "partition with (symbol of Trades) begin from Trades#window.length({k}) " + SELECT + " end;",
    "groups": "from Trades select id, avg(price) as a, sum(quantity) as q group by id insert into Out;",
    "pattern": "from every e1=Trades[price > 0] -> e2=Trades[symbol == e1.symbol and price < 0] "
    "select e1.price as a, e1.id as i insert into Out;",
    "table": "define table T (id string, symbol string, price double, quantity long); "
    "from Trades select id, symbol, price, quantity " + SET,
}
KEYS, STEPS = 10_000, 1 << 18


def events(first: int, n: int, distinct: bool) -> Iterator[InputBatch]:
    """`n` trades from the number `first` on, one a millisecond; `distinct`: each has an id of its own."""
    r = np.random.default_rng(first)
    names = pa.array([f"S{k:05d}" for k in range(KEYS)])
    number, symbol = np.arange(first, first + n), names.take(pa.array(r.integers(0, KEYS, n)))
    ids = pa.array(np.char.mod("id%09d", number)) if distinct else symbol
    price, quantity = pa.array(np.round(r.normal(100, 2, n), 4)), pa.array(r.integers(1, 1001, n))
    return batches([symbol, price, quantity, ids, pa.array(1_600_000_000_000 + number)], "Trades", STEPS)


def memory(name: str) -> float:
    """MB of the process, by the name that Linux has for it."""
    found = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(name))
    return int(found.split()[1]) / 1024


def saved(node: NodeEngine, former: set[str]) -> dict[str, Any]:
    """Saves the node; `former` has the digests of what is stored, before and after."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began = memory("VmRSS"), time.process_time()
    parts = node.saved_parts()
    made = time.process_time()
    found = [(p.digest, p.size) for p in pieces(parts)]
    done = time.process_time()
    new = {d: size for d, size in found if d not in former}
    former.clear()
    former.update(d for d, _ in found)
    return {
        "state MB": round(sum(size for _, size in found) / 1e6, 1), "snapshot ms": round(1e3 * (made - began), 1),
        "cut and hash ms": round(1e3 * (done - made), 1), "pieces": len(found), "new": len(new),
        "new MB": round(sum(new.values()) / 1e6, 2), "RSS MB": round(before), "peak MB": round(memory("VmHWM")),
    }  # fmt: skip


def main(kind: str, n: int) -> None:
    """Prints a line for the first save, and one for each of three more events."""
    node = NodeEngine(compile_app(TRADES + KINDS[kind].format(n=n, k=max(1, n // KEYS))))
    distinct, former = kind in ("groups", "pattern", "table"), set[str]()
    for first in range(0, n + 1000, STEPS):
        for batch in events(first, min(STEPS, n + 1000 - first), distinct):
            node.step(batch)
    for more in range(4):
        print(json.dumps({"kind": kind, "events": n, "saved": more, **saved(node, former)}), flush=True)
        for batch in events(n + 1000 + more, 1, distinct):
            node.step(batch)


if __name__ == "__main__":
    main(sys.argv[1], int(float(sys.argv[2])))

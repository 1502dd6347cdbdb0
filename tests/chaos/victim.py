"""The program that the chaos harness kills: an app of every kind of state, and a list of things to do with it.

victim.py HOME MASTER NODES [ROWS]: deploys the app, goes on with the list where the app's inbox ends, and, when it is
through, leaves what came out in HOME/found. With ROWS, a window and a table of so many are filled first, and change by
an event between the others. What it does depends on the list alone, so that what came out must not differ
however often it is killed.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

APP = """
define stream S (k string, v int);
define stream R (k string, w int);
@PrimaryKey('k') define table T (k string, total long);
define aggregation A from S select k, sum(v) as total, count() as n group by k aggregate every sec, min;
@info(name = 'filter') from S[v > 50] select k, v insert into Big;
@info(name = 'time') from S#window.time(2 sec) select k, sum(v) as total group by k insert into Sums;
@info(name = 'pattern') from every e1=S[v > 80] -> e2=S[k == e1.k and v < 20] within 3 sec
select e1.k as k, e1.v as high, e2.v as low insert into Falls;
@info(name = 'table') from R select k, convert(w, 'long') as total update or insert into T
set T.total = total on T.k == k;
@info(name = 'lookup') from S join T on S.k == T.k select S.k as k, S.v as v, T.total as total insert into Known;
@info(name = 'join') from S#window.length(20) join R#window.length(5) on S.k == R.k
select S.k as k, S.v as v, R.w as w insert into Pairs;
"""
STREAMS = ("Big", "Sums", "Falls", "Known", "Pairs")
LARGE = """
define stream F (id string, v int);
@PrimaryKey('id') define table L (id string, v int);
"""
OF_LARGE = """
@info(name = 'filled') from F#window.length({rows}) select id, sum(v) as total, count() as n
output last every 1000 events insert into Filled;
@info(name = 'large') from F select id, v update or insert into L set L.v = v on L.id == id;
"""
ACTIONS = 30
START = 1_700_000_000_000


def action(number: int) -> tuple[str, Any]:
    """What is done: ("feed", frame) with a bad row, or ("send", (stream, events, time in ms))."""
    rng = np.random.default_rng(number)
    at = START + number * 1_000
    keys = np.array(["a", "b", "c", "ü"])
    if number % 3 == 2:
        n = 400
        v = rng.integers(0, 100, n).astype(float)
        v[rng.integers(0, n)] = 0.5
        times = at + np.sort(rng.integers(0, 900, n))
        return "feed", pd.DataFrame({"k": keys[rng.integers(0, 4, n)], "v": v, "at": times})
    stream = "R" if number % 3 else "S"
    events = [[str(keys[rng.integers(0, 4)]), int(rng.integers(0, 100))] for _ in range(8)]
    return "send", (stream, events, at)


def steps(number: int) -> int:
    """How many requests an action is, as `Stats.events` counts them."""
    kind, what = action(number)
    return len(what) - 1 if kind == "feed" else 1


def work(app: Any, rows: int = 0) -> None:
    """Does what is not done yet."""
    done, number = app.stats().events, 0
    if rows and not done:
        ids = [f"a row of some length {i}" for i in range(rows)]
        app.feed("F", pd.DataFrame({"id": ids, "v": np.arange(rows), "at": START - rows + np.arange(rows)}), time="at")
        done = rows
    done -= rows
    each = 2 if rows else 1
    while done > 0:
        done -= 1 if number % each else steps(number // each)
        number += 1
    assert done == 0, f"an action is in by half: {done}"
    for n in range(number, each * ACTIONS):
        kind, what = action(n // each)
        if n % each:
            at = START + n // each * 1_000 + 950
            app.send("F", [f"a row of some length {n * 977 % rows}", n % 100], at=at)
        elif kind == "feed":
            app.feed("S", what, time="at")
        else:
            stream, events, at = what
            app.send(stream, events, at=at)
            if n // each % 4 == 0:
                app.flush()
    app.flush()


def found(app: Any, rows: int = 0) -> dict[str, pd.DataFrame]:
    """All that came out."""
    out = {s: app.output(s).frame for s in (*STREAMS, *(("Filled",) if rows else ()))}
    out["A"], out["A by shard"] = app.aggregation("A", per="sec")
    if rows:
        out["L"] = app.query("from L select sum(v) as total, count() as n").frame
    table = app.query("from T select k, total order by k").frame
    out["T"] = table.sort_values(list(table.columns), ignore_index=True)
    errors = app.errors.frame.astype({"values": str})
    out["errors"] = errors.sort_values(list(errors.columns), ignore_index=True)
    return out


def leave(home: Path, found: dict[str, pd.DataFrame]) -> None:
    """Writes what came out to HOME/found: whole, or not at all."""
    (home / "found.new").write_bytes(pickle.dumps(found))
    (home / "found.new").rename(home / "found")


def main(home: str, master: str, nodes: int, rows: int = 0) -> None:
    from sparkstream_nb.app import deploy

    text = LARGE + APP + OF_LARGE.format(rows=rows) if rows else APP
    app = deploy(text, name="chaos", home=Path(home), master=master, nodes=nodes)
    work(app, rows)
    leave(Path(home), found(app, rows))
    app.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))

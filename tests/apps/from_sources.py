"""Runs apps over a feed that comes from a file or from Kafka, and leaves what came out. A program for tests.

from_sources.py FOLDER MASTER SOURCE...: one app after the other for each SOURCE, `file:FOLDER` or
`kafka:HOST:PORT/TOPIC`, whose home is FOLDER/file or FOLDER/kafka. What it publishes goes to HOME-out. Its environment
has the address of a database (JDBC_URL), where {app} stands for `file` or `kafka`, with user and password (DB_USER,
DB_PASSWORD); and, where Spark's machines and this one see no folder in common, the address where they meet (SHARED).
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sparkstream_nb.app import App, deploy
from sparkstream_nb.runners.spark.shared_session import spark_session
from tests.objects import settings

EVENTS = 3_000
QUERIES = """
@sink(type='file', file.uri='{out}/falls.csv', @map(type='csv'))
define stream Falls (k string, high long, low long);
@PrimaryKey('k') define table T (k string, v long);
define aggregation A from S select k, sum(v) as total group by k aggregate every sec, min;
{store} @PrimaryKey('k') define table D (k string, n long);
{store} define aggregation B from S select k, sum(v) as total group by k aggregate every sec, min;
from S#window.time(2 sec) select k, sum(v) as total group by k insert into Sums;
from every e1=S[v > 80] -> e2=S[k == e1.k and v < 20] within 3 sec
select e1.k as k, e1.v as high, e2.v as low insert into Falls;
from S select k, v update or insert into T set T.v = v on T.k == k;
from S select k, 1L as n update or insert into D set D.n = D.n + n on D.k == k;
from S[v > 95] join D on S.k == D.k select S.k as k, D.n as n insert into Seen;
"""
STORE = """
@store(type='rdbms', jdbc.url='{database}', username='${{env:DB_USER}}', password='${{env:DB_PASSWORD}}')
"""
CREDENTIALS = ("DB_USER", "DB_PASSWORD")
OUTPUTS = ("Sums", "Falls", "Seen")


def lines() -> list[str]:
    """The feed as JSON, with event times."""
    rng = np.random.default_rng(3)
    times = 1_700_000_000_000 + np.cumsum(rng.integers(0, 40, EVENTS))
    keys, values = rng.integers(0, 5, EVENTS), rng.integers(0, 100, EVENTS)
    return [f'{{"event":{{"at":{t},"k":"k{k}","v":{v}}}}}' for t, k, v in zip(times, keys, values, strict=True)]


def out_of(home: Path) -> Path:
    """Where the sink of the app in `home` writes."""
    return home.with_name(f"{home.name}-out")


def database_of(source: str) -> str:
    """The address of the database of the app that reads `source`."""
    return os.environ["JDBC_URL"].format(app=source.partition(":")[0])


def app_text(source: str, out: Path) -> str:
    kind, _, place = source.partition(":")
    if kind == "file":
        options = f"type='file', dir.uri='{place}', mode='line', dir.polling.interval='50'"
    else:
        broker, _, topic = place.partition("/")
        options = (
            f"type='kafka', bootstrap.servers='{broker}', topic.list='{topic}', group.id='{os.getpid()}', "
            "threading.option='single.thread'"
        )
    text = f"@source({options}, event.time='at', @map(type='json')) define stream S (at long, k string, v long); "
    return text + QUERIES.format(out=out, store=STORE.format(database=database_of(source)))


def allowed(source: str, out: Path) -> list[str]:
    """What the app may reach."""
    kind, _, place = source.partition(":")
    reads = f"{kind}={place.partition('/')[0] if kind == 'kafka' else place}"
    return [f"file={out}", reads, f"jdbc={database_of(source).removeprefix('jdbc:')}"]


def found(app: App) -> dict[str, pd.DataFrame]:
    """All that came out, when all has come in."""
    assert app.catch_up(200)
    assert app.drain(60) == 0
    assert app.stats().events == EVENTS
    out = {s: app.output(s).frame for s in OUTPUTS}
    for aggregation in ("A", "B"):
        out[aggregation] = app.aggregation(aggregation, per="sec")[0]
    for table, column in (("T", "v"), ("D", "n")):
        rows = app.query(f"from {table} select k, {column}").frame
        out[table] = rows.sort_values("k", ignore_index=True)
    published = (out_of(app.home) / "falls.csv").read_text().splitlines()
    out["published"] = pd.DataFrame({"line": published})
    assert len(published) == len(out["Falls"])
    return out


def home_of(folder: Path, source: str) -> Path:
    """Where the app that reads `source` is at home."""
    return folder / source.partition(":")[0]


def deployed(source: str, home: Path, **arguments: Any) -> App:
    """The app that reads `source`, at home in a folder."""
    out = out_of(home)
    return deploy(
        app_text(source, out), name=f"from-{home.name}", home=home, allow=allowed(source, out), allow_env=CREDENTIALS,
        **arguments,
    )  # fmt: skip


def main(folder: str, master: str, *sources: str) -> None:
    shared = os.environ.get("SHARED")
    if shared is not None and not master.startswith("sc://"):
        spark_session(master, conf=settings())
    for source in sources:
        home = home_of(Path(folder), source)
        app = deployed(source, home, master=master, shared=shared)
        (home / "found").write_bytes(pickle.dumps(found(app)))
        app.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

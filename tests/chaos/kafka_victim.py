"""The program that the chaos harness kills, with Kafka: events come from a topic, and what comes of them is left.

kafka_victim.py HOME MASTER NODES BROKER TOPIC EVENTS: deploys the app, waits until so many events of the topic are
through, and leaves what came out in HOME/found. Events have their own times, in whose order the partitions are read, so
what comes out must not differ however often anything is killed. The group of consumers is called as the folder: another
app would begin where that of the group was. A sink sends some of it to the topic of the folder's name, at least once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd

from tests.chaos.victim import leave

APP = """
@source(type='kafka', bootstrap.servers='{broker}', topic.list='{topic}', group.id='{group}',
        threading.option='partition.wise', event.time='at', @map(type='json'))
define stream S (k string, v long, at long);
@sink(type='kafka', bootstrap.servers='{broker}', topic='{group}', @map(type='csv'))
define stream Falls (k string, high long, low long);
@PrimaryKey('k') define table T (k string, v long);
define aggregation A from S select k, sum(v) as total, count() as n group by k aggregate every sec, min;
@info(name = 'time') from S#window.time(1 sec) select k, sum(v) as total group by k insert into Sums;
@info(name = 'last') from Sums[total > 99000] select k, total insert into High;
@info(name = 'pattern') from every e1=S[v > 9990] -> e2=S[k == e1.k and v < 10] within 1 sec
select e1.k as k, e1.v as high, e2.v as low insert into Falls;
@info(name = 'table') from S[v > 9900] select k, v update or insert into T set T.v = v on T.k == k;
"""
STREAMS = ("High", "Falls")


def found(app: Any) -> dict[str, pd.DataFrame]:
    """All that came out."""
    out = {s: app.output(s).frame for s in STREAMS}
    out["A"], out["A by shard"] = app.aggregation("A", per="sec")
    table = app.query("from T select k, v order by k").frame
    out["T"] = table.sort_values(list(table.columns), ignore_index=True)
    return out


def main(home: str, master: str, nodes: int, broker: str, topic: str, events: int) -> None:
    from sparkstream_nb.app import deploy

    app = deploy(
        APP.format(broker=broker, topic=topic, group=Path(home).name), name="chaos", home=Path(home), master=master,
        nodes=nodes,
        routing="hash:k" if nodes > 1 else "round_robin", allow=[f"kafka={broker}"],
    )  # fmt: skip
    changed = app.runtime.progress.changed
    with changed:
        while app.stats().events < events:
            changed.wait(0.25)
    app.flush()
    assert app.drain(120) == 0
    leave(Path(home), found(app))
    app.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5], int(sys.argv[6]))

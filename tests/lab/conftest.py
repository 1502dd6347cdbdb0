"""A real IPython shell, and an app without Spark: its nodes are engines in this process, its answers are fixed."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.testing.globalipapp import start_ipython

from sparkstream_nb import cluster
from sparkstream_nb.plan import compile_app

TRADES = """define stream TradeStream (symbol string, price double, quantity long, timestamp long);
@PartitionById(enable='true')
define aggregation TradeAggregation
from TradeStream
select symbol, avg(price) as avgPrice, sum(quantity) as total
group by symbol
aggregate by timestamp every sec ... year;
@info(name='rise')
from every e1=TradeStream -> e2=TradeStream[e2.price > e1.price] within 1 min
select e1.symbol as symbol, e2.price as price
insert into Rises;
"""
HOUR = 1_717_236_000_000  # 2024-06-01 10:00 UTC


class StandIn:
    """What the lab asks of a running app, with the four trades' answers; notes what it was asked."""

    def __init__(self, name: str = "Trades") -> None:
        self.name, self.plan = name, compile_app(TRADES, properties={"shardId": "node-1"})
        self.nodes, self.mode, self.routing, self.state = 2, "active-active", "round_robin", "running"
        self.shard_ids, self.redeployed, self.warnings = ["node-1", "node-2"], None, []
        self.calls: list[tuple[Any, ...]] = []
        self.wait_forever = False
        self.errors = pd.DataFrame({"stream": [], "timestamp": [], "values": [], "reason": []})

    def send(self, stream: str, values: Any, *, at: int | None = None, node: int | None = None) -> None:
        self.calls.append(("send", stream, values, at, node))

    def feed(self, stream: str, source: Any, **how: Any) -> Any:
        self.calls.append(("feed", stream, source, how))
        self.errors = pd.DataFrame(
            {"stream": ["TradeStream"], "timestamp": [None], "values": [["<b>x</b>"]], "reason": ["no number: 'x'"]}
        )
        return SimpleNamespace(
            stream=stream, rows=4, rejected=1, seconds=0.5, events_per_second=6.0, outputs={"Rises": 2}, reasons=("x",)
        )

    def query(self, text: str) -> Any:
        if self.wait_forever:
            raise KeyboardInterrupt
        self.calls.append(("query", text))
        rows = [["<i>wso2</i>", 70, 100.0]] * 40
        columns = [("symbol", "string"), ("total", "long"), ("avgPrice", "double")]
        return SimpleNamespace(
            columns=columns, rows=rows, frame=pd.DataFrame(rows, columns=[c for c, _ in columns]), by_shard=None
        )

    def aggregation(self, name: str, per: str = "sec", within: Any = None) -> tuple[pd.DataFrame, pd.DataFrame]:
        self.calls.append(("aggregation", name, per))
        whole = pd.DataFrame({"AGG_TIMESTAMP": [HOUR], "symbol": ["wso2"], "avgPrice": [100.0], "total": [70]})
        if per == "sec":
            whole = pd.DataFrame(
                {
                    "AGG_TIMESTAMP": [HOUR, HOUR + 1000],
                    "symbol": ["wso2"] * 2,
                    "avgPrice": [100.0] * 2,
                    "total": [30, 40],
                }
            )
            return whole, whole.assign(SHARD_ID=["node-1", "node-2"])
        return whole, pd.concat(
            [whole.assign(SHARD_ID="node-1", total=30), whole.assign(SHARD_ID="node-2", total=40)], ignore_index=True
        )

    def flush(self) -> None:
        self.calls.append(("flush",))

    def output(self, stream: str, *, last: int | None = None) -> pd.DataFrame:
        return pd.DataFrame(
            {"node": [1, 2], "timestamp": [HOUR, HOUR + 1500], "symbol": ["a", None], "price": [1.5, 2.0]}
        )

    def explain(self) -> str:
        return "app Trades\n"

    def stats(self) -> dict[str, Any]:
        return {"events": 4, "nodes": {"node-1": {"state_bytes": 120}}}

    def stop(self) -> None:
        self.state = "stopped"

    def interrupt(self) -> None:
        self.calls.append(("interrupt",))


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The stand-in, known under its name as a deployed app is."""
    stand_in = StandIn()
    known = {"Trades": stand_in}
    monkeypatch.setattr(cluster, "apps", lambda: known)

    def deploy(text: str, *, name: str | None = None, **how: Any) -> StandIn:
        compile_app(text, properties={"shardId": "node-1"}, variables=how.get("variables") or {})
        stand_in.calls.append(("deploy", name, how))
        return stand_in

    monkeypatch.setattr(cluster, "deploy", deploy)
    return stand_in


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """A shell of IPython's with the extension loaded."""
    start_ipython()
    ip = InteractiveShell.instance()
    ip.run_line_magic("reload_ext", "sparkstream_nb")
    before = dict(ip.user_ns)
    yield ip
    for name in set(ip.user_ns) - set(before):
        del ip.user_ns[name]

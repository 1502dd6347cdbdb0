"""A real IPython shell, and an app without Spark: its nodes are engines in this process, its answers are fixed."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import Any, ClassVar

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.testing.globalipapp import start_ipython

from sparkstream_nb import app as api
from sparkstream_nb.app import App, Deployment, Errors, Events, Feed, FeedReport, Result, Sent, Stats
from sparkstream_nb.app.deploying import _apps
from sparkstream_nb.app.results.answers import DiskStats, NodeStats, PartStats
from sparkstream_nb.app.results.listeners import CommitListeners
from sparkstream_nb.app.results.selection_criteria import SharedSelection
from sparkstream_nb.app.running.app_waits import AppWaits
from sparkstream_nb.app.running.background import Feeds
from sparkstream_nb.app.running.feeding import FeedRequest, FeedSource, FeedTarget
from sparkstream_nb.app.running.runtime import AppRuntime
from sparkstream_nb.lab import connect
from sparkstream_nb.outputs.commit import Progress
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.distributed.leader import Parts
from sparkstream_nb.request import DeployRequest
from sparkstream_nb.retention import Retention
from sparkstream_nb.runners.spark import jvm
from sparkstream_nb.sources.feeds import Shape
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey
from sparkstream_nb.types import Schema
from stores.trades import partials_of
from tests.distribution import group_of

from .browser import chromium, lab

__all__ = ["chromium", "lab"]  # fixtures

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


def unbegun_feed(app: str = "Trades", stream: str = "TradeStream") -> Feed:
    """A feed in the background whose thread was not started."""
    standing: Any = SimpleNamespace(progress=Progress(), run="run")
    nothing: Any = None
    inbox: Any = SimpleNamespace(folder=Path())
    target = FeedTarget(
        app, 1, inbox, standing, nothing, RLock(), lambda: None, lambda entries: None, lambda: 0, nothing
    )  # fmt: skip
    made = Feed(target, FeedRequest([FeedSource(None, Shape(stream, Schema.of(), None, {}))], "round_robin"))
    made.id = 7
    return made


class StandInWaits(AppWaits):
    """Waits that end at once, and are noted."""

    def __init__(self, runtime: StandInRuntime) -> None:
        self.calls = runtime.calls

    def settle_briefly(self) -> None:
        self.calls.append(("settle",))

    def flush(self) -> None:
        self.calls.append(("flush",))


class StandInRuntime(AppRuntime):
    """The runtime of an app without files and nodes."""

    def __init__(self, name: str) -> None:
        home = Path(tempfile.mkdtemp(prefix="sparkstream-stand-in-"))
        weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)
        self.deployment = Deployment(
            DeployRequest(), name, "active-active", "round_robin", shard_ids=("node-1", "node-2"), home=home
        )
        self.plan = compile_app(TRADES, properties={"shardId": "node-1"})
        self.parts = Parts(self.plan, None)
        self.schemas = {s: d.source.schema for s, d in self.plan.streams.items()}
        self.redeployed, self.warnings = None, []
        self.writers = lambda aggregation: self.shard_ids
        self.progress = Progress()
        self.listeners = CommitListeners(name, self.progress)
        self.selection = SharedSelection()
        self.running, self._closed = True, False
        self.calls: list[tuple[Any, ...]] = []
        self.waits = StandInWaits(self)
        self.connections: Any = SimpleNamespace(sinks=None, intakes=None, away=[])
        self.stream: Any = SimpleNamespace(failure=lambda: None)
        self.inbox: Any = SimpleNamespace(position=SimpleNamespace(events={}))

    @property
    def state(self) -> str:
        return "running" if self.running else "stopped"

    @cached_property
    def store(self) -> DuckDBStore:  # type: ignore[override]
        """A store in memory with two trades on each node, half an hour apart."""
        store = DuckDBStore(":memory:")
        store.prepare(self.plan.aggregations.values())
        self.commit(store, "node-1", [["wso2", 100.0, 10, HOUR], ["wso2", 100.0, 20, HOUR + 1000]])
        self.commit(store, "node-2", [["wso2", 100.0, 10, HOUR + 1_802_000], ["wso2", 100.0, 30, HOUR + 1_803_000]])
        return store

    def commit(self, store: DuckDBStore, shard: str, rows: list[list[Any]]) -> None:
        """Commits trades of one node, and tells who watches."""
        progress = self.progress
        key = BatchKey("Trades", "run", progress.batch + 1)
        assert store.commit(key, {("TradeAggregation", shard): partials_of(self.plan, rows)})
        with progress.changed:
            progress.batch += 1
            progress.changed.notify_all()

    def stop(self) -> None:
        self.running = False

    def interrupt(self) -> dict[str, int]:
        self.calls.append(("interrupt",))
        return {}

    def close(self) -> None:
        self.listeners.clear()

    @property
    def feeds(self) -> Feeds:
        return Feeds({})


class StandIn(App):
    """A running app without nodes: its answers are those of the four trades; notes what it was asked."""

    runtime: StandInRuntime

    def __init__(self, name: str = "Trades") -> None:
        super().__init__(StandInRuntime(name))
        self.calls = self.runtime.calls
        self.remembered: tuple[str | None, int] | None = None
        self.wait_forever = False
        self.refused = pd.DataFrame({"stream": [], "timestamp": [], "values": [], "reason": []})

    runner_note: ClassVar[str | None] = None

    def remember(self, *, variable: str | None, lines_before: int) -> None:
        self.remembered = variable, lines_before

    def send(
        self, stream: str, values: Any, *, at: int | None = None, node: int | None = None, wait: bool = False
    ) -> Sent:
        assert wait
        self.calls.append(("send", stream, values, at, node))
        return Sent(self.name, stream, 1, at or 0, ("node-2",), {"High": 1})

    def feed(self, stream: str, source: Any, **how: Any) -> Any:
        self.calls.append(("feed", stream, source, how))
        if how.get("background"):
            return unbegun_feed(self.name, stream)
        self.refused = pd.DataFrame(
            {"stream": ["TradeStream"], "timestamp": [None], "values": [["<b>x</b>"]], "reason": ["no number: 'x'"]}
        )
        return FeedReport(self.name, stream, 4, 1, 0.5, {"Rises": 2}, {"no number: 'x'": 1})

    def query(self, text: str, *, limit: int | None = None, as_wso2: bool = False) -> Result:
        if self.wait_forever:
            raise KeyboardInterrupt
        self.calls.append(("query", text))
        columns = [("symbol", "string"), ("total", "long"), ("avgPrice", "double")]
        return Result(columns, [["<i>wso2</i>", 70, 100.0]] * 40, limit=limit)

    def output(self, stream: str, *, last: int | None = None, limit: int | None = None) -> Events:
        self.runtime.schema_of(stream)
        frame = pd.DataFrame(
            {"node": [1, 2], "timestamp": [HOUR, HOUR + 1500], "symbol": ["a", None], "price": [1.5, 2.0]}
        )
        return Events(self.name, stream, frame, limit)

    @property
    def errors(self) -> Errors:
        return Errors(self.name, self.refused)

    def stats(self) -> Stats:
        nodes = {"node-1": NodeStats("node-1", 12_345, 1_234_567.8, 1.54, 1_234_567, HOUR)}
        rise = PartStats("query", "rise", "Rises", 1_200, 80)
        parts = (rise, PartStats("aggregation", "TradeAggregation", None, None, 0))
        disk = DiskStats(3_100_000, 12_000_000, 512, 262_144, Retention(), {})
        return Stats("Trades", self.state, HOUR, 12_345, 1, 2, {"Rises": 1_200}, 0, nodes, parts, disk)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs a browser. `distribution.py` finds it by the names of its files."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
            assert group_of(item.nodeid, by_file=True) == "browser", f"call {item.path.name} test_..._browser.py"


@pytest.fixture(autouse=True, scope="session")
def _no_jvm_ahead() -> None:
    """Loading the extension begins no JVM: hardly a test here needs one."""
    jvm.drop()


@pytest.fixture(autouse=True)
def screen() -> None:
    """Results show themselves by `lab`, whatever a test before did."""
    connect()


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The stand-in, known under its name as a deployed app is."""
    stand_in = StandIn()
    monkeypatch.setitem(_apps, "Trades", stand_in)

    def deploy(text: str, *, name: str | None = None, **how: Any) -> StandIn:
        compile_app(text, properties={"shardId": "node-1"}, variables=how.get("variables") or {})
        stand_in.calls.append(("deploy", name, how))
        return stand_in

    monkeypatch.setattr(api, "deploy", deploy)
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

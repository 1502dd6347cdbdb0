"""A model of what an app costs by events, nodes and cores, held against measured points.

    python -m tests.bench.scale [--cores 1 2] [--nodes 1 4 16 64] [--events 250000 1000000 4000000]
    python -m tests.bench.scale --fit FILE [--check FILE]

Prints a line of JSON for each point, the constants that fit them, and each point beside what the model predicts for it
when it is fitted to the other points.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from sparkstream_nb.app import deploy
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan import compile_app

from .commits import START, TEXT, cpu, events, singles
from .engine_bench import batches

_HEAVY = "".join(
    f"from every a=T[v > {90 + 5 * i}.0] -> b=T[v > a.v * 1.01] within 5 sec "
    f"select a.k as k, b.v as p insert into P{i};"
    f"from T#window.length({40 + 10 * i}) select k, avg(v) as a, stdDev(v) as d insert into W{i};"
    for i in range(4)
)
APPS = {
    "light": TEXT,
    "heavy": f"define stream T (k string, v double, at long); partition with (k of T) begin {_HEAVY} end;",
}
ENTRY = 250_000
"""Events of an entry of the journal, as the feeds of here make them."""
MILLION = 1_000_000


@dataclass(frozen=True)
class Setting:
    """`engine`: CPU seconds that the app's queries take for a million events, in a process without Spark."""

    app: str
    cores: int
    nodes: int
    engine: float


@dataclass(frozen=True)
class Point(Setting):
    """`cpu`, of all processes, and `wall`: seconds from a feed of so many `events` to the commit of the last."""

    events: int
    cpu: float
    wall: float


def engine_cost(app: str) -> float:
    """CPU seconds of the second million of events in the engine alone, the best of three."""
    with tempfile.TemporaryDirectory() as folder:
        table = pq.read_table(events(Path(folder), 2 * MILLION))
    columns = [c.combine_chunks() for c in table.columns]
    found = []
    for _ in range(3):
        node = NodeEngine(compile_app(APPS[app]))
        began = 0.0
        for i, batch in enumerate(batches(columns, "T", ENTRY)):
            if i * ENTRY == MILLION:
                began = time.process_time()
            node.step(batch)
        found.append(time.process_time() - began)
    return round(min(found), 4)


def measured(setting: Setting, counts: Sequence[int]) -> list[Point]:
    """The points of an app: feeds of so many events, after one that is not counted."""
    points = []
    with tempfile.TemporaryDirectory() as folder:
        app = deploy(
            APPS[setting.app], name=f"{setting.app}{setting.nodes}", nodes=setting.nodes, routing="hash:k",
            master=f"local[{setting.cores}]", home=Path(folder) / "home",
        )  # fmt: skip
        singles(app, -100, 10)
        first = START
        for i, n in enumerate([max(counts), *counts]):
            file = events(Path(folder), n, first)
            before, began = cpu(), time.perf_counter()
            app.feed("T", file, time="at")
            app.flush()
            took = round(cpu() - before, 3), round(time.perf_counter() - began, 3)
            first += n
            file.unlink()
            if i:
                points.append(Point(**asdict(setting), events=n, cpu=took[0], wall=took[1]))
        app.stop()
    return points


@dataclass(frozen=True)
class Model:
    """Seconds of each part of a feed, in CPU (`cpu`) and on the clock (`wall`).

    `feed`: any feed. `event`: a million events, in what is done once for all nodes. `engine`: times what the engine
    alone takes. `divided`: a million events that are divided over nodes. `task`: a partition, of which there are as
    many as cores, and no more than nodes. `node`: a node. `part`: a node and an entry of the journal. On the clock,
    engines, divisions, nodes and parts are divided by the partitions.
    """

    cpu: dict[str, float]
    wall: dict[str, float]

    @classmethod
    def fitted(cls, points: Sequence[Point]) -> Model:
        """The constants with the smallest relative errors; none is negative."""
        return cls(_fitted(points, "cpu"), _fitted(points, "wall"))

    def predicted(self, p: Setting, count: int) -> tuple[float, float]:
        """CPU and wall seconds of a feed of so many events."""
        return _sum(self.cpu, _parts(p, count, "cpu")), _sum(self.wall, _parts(p, count, "wall"))

    def scaled(self, by: float) -> Model:
        """The model of a machine where all but the engine, which is measured there, takes `by` times as long."""
        cpu, wall = ({k: v if k == "engine" else v * by for k, v in m.items()} for m in (self.cpu, self.wall))
        return Model(cpu, wall)


def _parts(p: Setting, count: int, which: str) -> dict[str, float]:
    """How much of each part a feed has: in all (`cpu`), or one after the other (`wall`)."""
    entries, millions, tasks = -(-count // ENTRY), count / MILLION, min(p.cores, p.nodes)
    side_by_side = tasks if which == "wall" else 1
    return {
        "feed": 1.0,
        "event": millions,
        "divided": millions / side_by_side if p.nodes > 1 else 0.0,
        "engine": millions * p.engine / side_by_side,
        "task": tasks,
        "node": p.nodes / side_by_side,
        "part": p.nodes * entries / side_by_side,
    }


def _sum(costs: Mapping[str, float], parts: Mapping[str, float]) -> float:
    return sum(cost * parts[name] for name, cost in costs.items())


def _fitted(points: Sequence[Point], which: str) -> dict[str, float]:
    parts = [_parts(p, p.events, which) for p in points]
    seen = np.array([getattr(p, which) for p in points])
    names = list(parts[0])
    while True:
        matrix = np.array([[x[n] for n in names] for x in parts]) / seen[:, None]
        found = np.linalg.lstsq(matrix, np.ones(len(points)), rcond=None)[0]
        if found.min() >= 0:
            return dict(zip(names, found.round(5).tolist(), strict=True))
        names.pop(int(found.argmin()))


def report(points: Sequence[Point], model: Model | None = None) -> str:
    """A table of the points beside what is predicted: by `model`, or by one that is fitted to all other points."""
    lines = ["| app | cores | nodes | events | CPU, s | predicted | s | predicted |", "| --- |" + " ---: |" * 7]
    errors = []
    for p in points:
        used = model or Model.fitted([o for o in points if o is not p])
        cpu, wall = used.predicted(p, p.events)
        errors.append((abs(cpu / p.cpu - 1), abs(wall / p.wall - 1)))
        lines.append(
            f"| {p.app} | {p.cores} | {p.nodes} | {p.events:,} | {p.cpu:.2f} | {cpu:.2f} | {p.wall:.2f} | {wall:.2f} |"
        )
    for name, found in zip(("CPU", "time"), zip(*errors, strict=True), strict=True):
        lines.append(
            f"{name}: {sum(e <= 0.25 for e in found)} of {len(found)} points within 25 %, "
            f"half of them within {100 * float(np.median(found)):.0f} %, all within {100 * max(found):.0f} %"
        )
    return "\n".join(lines)


def _read(file: Path) -> list[Point]:
    """The points in a file. The engine's cost of an app is its least: what else a machine does only adds to it."""
    points = [Point(**json.loads(line)) for line in file.read_text().splitlines() if line.startswith("{")]
    return [replace(p, engine=min(o.engine for o in points if o.app == p.app)) for p in points]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apps", nargs="+", choices=APPS, default=list(APPS))
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--events", type=int, nargs="+", default=[250_000, MILLION, 4 * MILLION])
    parser.add_argument("--fit", type=Path, metavar="FILE", help="points that were measured before")
    parser.add_argument("--check", type=Path, metavar="FILE", help="points of another machine, by the model of --fit")
    given = parser.parse_args()
    if given.fit:
        points = _read(given.fit)
    else:
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        points = []
        for app in given.apps:
            engine = engine_cost(app)
            for cores in given.cores:
                for nodes in given.nodes:
                    for p in measured(Setting(app, cores, nodes, engine), given.events):
                        points.append(p)
                        print(json.dumps(asdict(p)), flush=True)
    model = Model.fitted(points)
    print(model)
    print(report(points))
    if given.check:
        others = _read(given.check)
        engines = {p.app: p.engine for p in points}
        by = float(np.median([p.engine / engines[p.app] for p in others]))
        print(f"the other machine takes {by:.2f} times as long")
        print(report(others, model.scaled(by)))


if __name__ == "__main__":
    main()

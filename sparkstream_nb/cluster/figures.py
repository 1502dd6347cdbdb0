"""The figures of an app, gathered from what its micro-batches reported."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ..plan.leader import Parts
from ..plan.nodes import Plan
from ..plan.placement import idle, split
from ..retention import Retention
from ..spark.commit import Progress
from ..spark.inbox import Position
from ..spark.outputs import dropped
from .answers import DiskStats, NodeStats, PartStats, Stats
from .folder import Life


def disk_of(home: Path, life: Life, retention: Retention) -> DiskStats:
    """What the folder of an app holds."""
    folder = life.folder(home)
    return DiskStats(
        recording=_bytes(folder / "inbox"),
        outputs=_bytes(folder / "outputs"),
        state=_bytes(folder / "checkpoint"),
        store=sum(_size(file) for file in home.glob("store.duckdb*")),
        retention=retention,
        dropped=dict(dropped(folder / "outputs")),
    )


def _bytes(folder: Path) -> int:
    return sum(_size(Path(root, name)) for root, _, names in os.walk(folder) for name in names)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # it went just now
        return 0


def stats_of(
    app: str, plan: Plan, state: str, life: Life, position: Position, progress: Progress, disk: DiskStats
) -> Stats:
    """How far `app` is, in `state`, with the nodes that `life` has now and its inbox at `position`. The caller holds
    `progress.changed`."""
    p = progress
    passes_on = life.groups is None and idle(split(Parts(plan, life.led).own(plan, leads=False))[1])
    nodes = {}
    # The first node of a distributed app works for all of them.
    told = next((r.engine["by_node"] for r in p.nodes.values() if "by_node" in r.engine), None)
    held: Counter[str] = Counter()
    for n in life.over if life.leader is None else (*life.over, life.leader):
        report = p.nodes.get(n)
        if report is None:
            continue
        taken, worked = p.taken.get(n, 0), p.worked.get(n, 0.0)
        rate = None if (passes_on and n != life.leader) or not worked else 1000 * taken / worked
        clock = None if report.clock is None else report.clock.after
        shard, runs = life.shards[n], str(report.engine.get("runs", ""))
        if told is not None:
            taken, rate, runs = told[shard]["events"], None, told[shard]["runs"] or "nothing"
        nodes[shard] = NodeStats(shard, taken, rate, report.ms, report.state_bytes, clock, runs)
        held.update(report.engine.get("state_bytes", {}))
    return Stats(
        app=app,
        state=state,
        clock=position.clock,
        events=position.request,
        waiting=position.seq - 1 - p.last,
        micro_batches=p.batch + 1,
        outputs=dict(p.rows),
        errors=p.errors,
        nodes=nodes,
        parts=tuple(_parts(plan, held, p.rows)),
        disk=disk,
    )


def _parts(plan: Plan, held: Counter[str], rows: dict[str, int]) -> Iterator[PartStats]:
    for q in plan.queries:
        target = q.output.target.id
        out = rows.get(target, 0) if target in plan.streams else None
        yield PartStats("query", q.name, target, out, held[q.name])
    for kind, found in (("table", plan.tables), ("window", plan.windows), ("aggregation", plan.aggregations)):
        for name in found:
            yield PartStats(kind, name, None, None, held[name])

"""The figures of an app, gathered from the reports of its micro-batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...journal.inbox import Inbox
from ...outputs.commit import Progress
from ...outputs.output_files import dropped_events
from ...plan.nodes import Plan
from ...retention import Retention
from ..deployment.app_folder import AppRun
from .answers import DiskStats, NodeStats, PartStats, StateSize, Stats


def disk_of(home: Path, app_run: AppRun, retention: Retention) -> DiskStats:
    """The size of an app's folder."""
    folder = app_run.folder(home)
    return DiskStats(
        recording=_bytes(folder / "inbox"),
        outputs=_bytes(folder / "outputs"),
        state=_bytes(folder / "checkpoint") + _bytes(folder / "moments"),
        store=sum(_size(file) for file in home.glob("store.duckdb*")),
        retention=retention,
        dropped=dict(dropped_events(folder / "outputs")),
    )


def _bytes(folder: Path) -> int:
    return sum(_size(Path(root, name)) for root, _, names in os.walk(folder) for name in names)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # it went just now
        return 0


RECENT = 60
"""Micro-batches whose figures `Stats.recent` has, at most."""


def stats_of(
    app: str, plan: Plan, state: str, app_run: AppRun, inbox: Inbox, progress: Progress, disk: DiskStats,
    *, passes_on: bool,
) -> Stats:  # fmt: skip
    """The progress of `app`, in `state`, with the nodes that `app_run` has now and its `inbox`. `passes_on`: nodes
    leave all work to Spark's tasks. The caller holds `progress.changed`."""
    p, position = progress, inbox.position
    nodes = {}
    latest = max((r.clock.after for r in p.nodes.values() if r.clock is not None), default=None)
    # The first node of a distributed app works for all of them.
    engine_by_node = next((r.engine["by_node"] for r in p.nodes.values() if "by_node" in r.engine), None)
    sizes: dict[str, list[StateSize]] = {}
    for n in app_run.over if app_run.leader is None else (*app_run.over, app_run.leader):
        report = p.nodes.get(n)
        if report is None:
            continue
        taken_events, work_ms = p.events_by_node.get(n, 0), p.ms_by_node.get(n, 0.0)
        rate = None if (passes_on and n != app_run.leader) or not work_ms else 1000 * taken_events / work_ms
        # A node that was left out of a micro-batch has the clock of the others: it gets it before its next event.
        clock = latest if report.rests else None if report.clock is None else report.clock.after
        shard, runs = app_run.shards[n], str(report.engine.get("runs", ""))
        if engine_by_node is not None:
            taken_events, rate, runs = engine_by_node[shard]["events"], None, engine_by_node[shard]["runs"] or "nothing"
        state_sizes = _state_sizes(report.engine if engine_by_node is None else engine_by_node[shard])
        nodes[shard] = NodeStats(shard, taken_events, rate, report.ms, report.state_bytes, clock, runs, state_sizes)
        for name, one in state_sizes.items():
            sizes.setdefault(name, []).append(one)
    total_sizes = {name: _sum_sizes(node_sizes) for name, node_sizes in sizes.items()}
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
        parts=tuple(_parts(plan, total_sizes, p.rows)),
        disk=disk,
        came=dict(position.events),
        lag=inbox.arrivals.total - inbox.arrivals.through(p.last),
        rates=p.throughput.rates(),
        times=p.throughput.times(),
        recent=tuple(p.throughput.last(RECENT)),
        faulty=dict(p.faulty),
        dropped_errors=p.dropped_errors,
    )


def _state_sizes(engine: Mapping[str, Any]) -> dict[str, StateSize]:
    """The contents of a node's queries, tables, windows and aggregations, without the empty ones."""
    rows = engine.get("state_rows", {})
    return {name: StateSize(n, rows.get(name)) for name, n in engine.get("state_bytes", {}).items() if n}


def _sum_sizes(sizes: Sequence[StateSize]) -> StateSize:
    """The contents of several nodes for the same part."""
    rows = [s.rows for s in sizes if s.rows is not None]
    return StateSize(sum(s.bytes for s in sizes), sum(rows) if rows else None)


def _parts(plan: Plan, state_sizes: Mapping[str, StateSize], rows: dict[str, int]) -> Iterator[PartStats]:
    nothing = StateSize(0)
    for q in plan.queries:
        target = q.output.target.id
        out = rows.get(target, 0) if target in plan.streams else None
        size = state_sizes.get(q.name, nothing)
        yield PartStats("query", q.name, target, out, size.bytes, size.rows)
    for kind, elements in (("table", plan.tables), ("window", plan.windows), ("aggregation", plan.aggregations)):
        for name in elements:
            size = state_sizes.get(name, nothing)
            yield PartStats(kind, name, None, None, size.bytes, size.rows)

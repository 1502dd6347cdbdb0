"""The figures of a running app, as of its last committed micro-batch."""

from __future__ import annotations

from dataclasses import replace

from ...retention import Retention
from ..results.answers import DiskStats, Stats
from ..results.app_metrics import disk_of, stats_of
from .runtime import AppRuntime

NO_DISK = DiskStats(0, 0, 0, 0, Retention(), {})
"""In place of sizes on the disk, which take longer to read the more files there are."""


def read_stats(app: AppRuntime, disk: DiskStats = NO_DISK) -> Stats:
    """The figures of an app, with the sizes of its folder that were read before."""
    sinks = app.connections.sinks.figures()
    with app.progress.changed:
        stats = stats_of(
            app.name, app.plan, app.state, app.app_run, app.inbox, app.progress, disk,
            passes_on=app.target.marks.nodes == 0,
        )  # fmt: skip
    sources = app.connections.intakes.figures()
    return replace(stats, sinks=sinks, sources=sources, clock_kind=app.deployment.request.clock)


def read_disk(app: AppRuntime) -> DiskStats:
    """The size of an app's folder."""
    return disk_of(app.home, app.app_run, app.deployment.retention)

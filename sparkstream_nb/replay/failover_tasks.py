"""Many failovers of one recording, divided over tasks: each scenario is a run of its own, counted against one node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache

import pyarrow as pa

from ..journal.tasks import Tasks
from ..simulation.faults import Scenario
from ..simulation.node_groups import NodeGroups
from ..simulation.timeline import gap_before
from .failover_replay import FailoverOutcome, Item, Tables, items_of, outcome_of, truth_of
from .replay import Nodes
from .study_tasks import Hashed, Input, rows_of


@dataclass(frozen=True)
class FailoverCounts:
    """Costs of a scenario: takeovers; the total time (ms) without an active node before them; events lost, and
    processed twice; outputs lost, spurious and duplicated, and the number of one node's outputs.
    """

    takeovers: int
    gap: int
    events_lost: int
    events_twice: int
    lost: int
    spurious: int
    duplicated: int
    outputs: int


_FIGURES = tuple(f.name for f in fields(FailoverCounts))
_SCHEMA = ", ".join(["scenario int", *(f"{n} long" for n in _FIGURES)])


def counts_of(outcome: FailoverOutcome) -> FailoverCounts:
    """The outcome of a pair in figures."""
    (pair,) = outcome.groups
    report, tallies = pair.report, outcome.tallies.values()
    takeovers = report.takeovers[1:]
    return FailoverCounts(
        len(takeovers),
        sum(gap_before(t.at, pair.happenings) or 0 for t in takeovers),
        sum(map(len, report.lost_events.values())),
        sum(len(t.replayed) for t in takeovers),
        sum(t.lost for t in tallies),
        sum(t.spurious for t in tallies),
        sum(t.duplicated for t in tallies),
        sum(t.same + t.lost for t in tallies),
    )


def failovers(
    tasks: Tasks, source: Input, nodes: Nodes, scenarios: Sequence[Scenario], key: str
) -> list[FailoverCounts]:
    """The cost of every scenario, computed by tasks on all cores. `key` names the recording and the plan
    for workers that have them already. Raises SparkStreamError if a run fails."""
    task = _FailoverTask(scenarios, source, nodes, key)
    parts = 32 if tasks.cores is None else min(len(scenarios), 2 * tasks.cores)
    rows = rows_of(tasks, task, len(scenarios), _SCHEMA, parts=parts)
    counts = {r["scenario"]: FailoverCounts(*(r[n] for n in _FIGURES)) for r in rows}
    return [counts[i] for i in range(len(scenarios))]


@dataclass(frozen=True)
class _FailoverTask:
    """The work on one partition of Spark's: each row is the number of a scenario."""

    scenarios: Sequence[Scenario]
    source: Input
    nodes: Nodes
    key: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            items, truth = _prepare_worker(Hashed(self.key, self.source), Hashed(self.key, self.nodes))
            numbers = batch.column(0).to_pylist()
            counts = [
                counts_of(outcome_of(items, NodeGroups((self.scenarios[i],)), self.nodes, truth)) for i in numbers
            ]
            columns = [pa.array(c, pa.int64()) for c in zip(*map(astuple, counts), strict=True)]
            yield pa.record_batch([pa.array(numbers, pa.int32()), *columns], ["scenario", *_FIGURES])


@lru_cache(maxsize=1)
def _prepare_worker(source: Hashed, nodes: Hashed) -> tuple[list[Item], Tables]:
    """The recording and its truth; kept by a worker for its next tasks."""
    items = items_of(source.value.read(), nodes.value.plan)
    return items, truth_of(items, nodes.value)

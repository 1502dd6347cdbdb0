"""What-if studies: an app's input replayed by many numbers of nodes under many routings, with outputs compared with one
node's.

Each combination is a task; on Spark, all are one job. A Python worker reads the recording and computes the truth once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import SparkStreamError
from ..journal.tasks import Task, TaskFailed, Tasks
from ..nodes.tallies import Tally, table_of, tally
from ..plan.nodes import Plan
from ..plan.output_labels import is_inner, list_labels
from ..types import Schema
from .replay import ONE, NodeReplay, Nodes, Recording, Way, read_recording, replay_nodes
from .replay_progress import current_progress

_SCHEMA = "way int, stream string, same long, lost long, spurious long, duplicated long, events array<long>"


@dataclass(frozen=True)
class Input:
    """A recording on disk: the inbox in `folder` up to entry `last`, of an app that began with `began` nodes."""

    folder: str
    schemas: Mapping[str, Schema]
    began: int
    last: int

    def read(self) -> Recording:
        """Raises SparkStreamError if the beginning is not kept any more."""
        return read_recording(Path(self.folder), self.schemas, self.began, last=self.last)


@dataclass(frozen=True)
class RoutingOutcome:
    """Outcome of a way of routing a recording: a tally by derived stream, or label of it (`plan.output_labels`), and
    the number of events of each node."""

    way: Way
    tallies: Mapping[str, Tally]
    events: tuple[int, ...]


def outcome(came_in: Recording, way: Way, nodes: Nodes, truth: Mapping[str, pa.Table]) -> RoutingOutcome:
    """The outcome of a way; `truth` is `outputs` of one node."""
    node_outputs = outputs(replay_nodes(came_in, way, nodes), nodes.plan)
    events = np.zeros(way.nodes, np.int64)
    for item in came_in.recorded_events:
        for places in way.places(came_in, item).values():
            events += np.bincount(places, minlength=way.nodes)
    streams = [
        s for s in {**dict.fromkeys(list_labels(nodes.plan)), **nodes.plan.streams} if s in truth or s in node_outputs
    ]
    return RoutingOutcome(way, {s: tally(truth.get(s), node_outputs.get(s)) for s in streams}, tuple(events.tolist()))


def outputs(replays: Iterable[NodeReplay], plan: Plan) -> dict[str, pa.Table]:
    """By derived stream, or label of it (`plan.output_labels`), the outputs of all nodes as `table_of`, with the app's
    clock."""
    parts: dict[str, list[pa.Table]] = {}
    for replay in replays:
        for stream, events in replay.streams.items():
            if is_inner(stream):
                continue
            for rows, clock in events:
                stream_table = table_of(rows).append_column("clock", pa.array(clock[rows.step]))
                parts.setdefault(stream, []).append(stream_table)
    return {s: pa.concat_tables(tables) for s, tables in parts.items()}


@lru_cache(maxsize=1)
def _read_input(source: Hashed) -> Recording:
    """The recording; kept by a worker for its next tasks."""
    recording: Recording = source.value.read()
    return recording


@lru_cache(maxsize=1)
def _replay_truth(source: Hashed, nodes: Hashed, ideal: Hashed) -> dict[str, pa.Table]:
    """The truth: the outputs of one node that takes the ideal recording; kept by a worker for its next tasks."""
    best = _read_input(source) if ideal == source else ideal.value.read()
    current_progress().expect(best.steps)
    return outputs(replay_nodes(best, ONE, nodes.value), nodes.value.plan)


@dataclass(frozen=True)
class Hashed:
    """A value that is distinguished from others by a key."""

    key: str
    value: Any = None

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed) and self.key == other.key


@dataclass(frozen=True)
class _StudyTask:
    """The work on one partition of Spark's: each row is the number of a way."""

    ways: Sequence[Way]
    source: Input
    nodes: Nodes
    key: str
    ideal: Input
    ideal_key: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for i in batch.column(0).to_pylist():
                source = Hashed(self.key, self.source)
                came_in = _read_input(source)
                if i == 0:
                    current_progress().expect(came_in.steps * sum(w.nodes for w in self.ways))
                truth = _replay_truth(source, Hashed(self.key, self.nodes), Hashed(self.ideal_key, self.ideal))
                way_outcome = outcome(came_in, self.ways[i], self.nodes, truth)
                yield _rows(i, way_outcome)


def _rows(way: int, way_outcome: RoutingOutcome) -> pa.RecordBatch:
    tallies = [("", Tally()), *way_outcome.tallies.items()]
    return pa.RecordBatch.from_pylist(
        [
            {"way": way, "stream": s, "same": t.same, "lost": t.lost, "spurious": t.spurious,
             "duplicated": t.duplicated, "events": list(way_outcome.events)}
            for s, t in tallies
        ],
        pa.schema(
            [("way", pa.int32()), ("stream", pa.string()),
             *((n, pa.int64()) for n in ("same", "lost", "spurious", "duplicated")),
             ("events", pa.list_(pa.int64()))]
        ),
    )  # fmt: skip


def rows_of(tasks: Tasks, task: Task, count: int, schema: str, *, parts: int) -> list[dict[str, Any]]:
    """The rows of a study, `count` runs of it in `parts` parts. Raises SparkStreamError if it fails."""
    try:
        return list(tasks.each(task, count, schema, tasks=parts).to_pylist())
    except TaskFailed as e:
        raise SparkStreamError(f"the study failed: {e}") from e


@dataclass(frozen=True)
class StudyInput:
    """A recording that is studied, with a name for it and the plan, for workers that have them already. The
    recording `ideal` gives the truth (default: itself)."""

    source: Input
    key: str
    ideal: StudyInput | None = None


def run_study(tasks: Tasks, study: StudyInput, nodes: Nodes, ways: Sequence[Way]) -> list[RoutingOutcome]:
    """The outcome of every way, each computed by a task. Raises SparkStreamError if a replay fails."""
    best = study.ideal or study
    # Those with most nodes take longest: they begin first.
    longest_first = sorted(ways, key=lambda w: -w.nodes)
    task = _StudyTask(longest_first, study.source, nodes, study.key, best.source, best.key)
    rows = rows_of(tasks, task, len(longest_first), _SCHEMA, parts=len(longest_first))
    tallies: dict[Way, dict[str, Tally]] = {w: {} for w in longest_first}
    events: dict[Way, tuple[int, ...]] = {}
    for r in rows:
        way = longest_first[r["way"]]
        events[way] = tuple(r["events"])
        if r["stream"]:
            tallies[way][r["stream"]] = Tally(r["same"], r["lost"], r["spurious"], r["duplicated"])
    return [RoutingOutcome(w, tallies[w], events[w]) for w in ways]

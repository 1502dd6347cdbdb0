"""Checks that an app's outputs do not depend on how its input is cut into micro-batches."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.columnar.column_data import ARROW
from ..engine.node import NodeEngine
from ..engine.state.node_batch import InputBatch, Outputs, StreamRows
from ..plan import compile_app
from ..plan.nodes import Plan
from ..types import Type

InputEvent = tuple[str, int, Sequence[Any]]
"""Stream, time (ms) and values."""

OutputEvent = tuple[int, list[Any]]
"""Time (ms) and values."""


def check_cuts(
    text: str, events: Sequence[InputEvent], *, until: int | None = None, tries: int = 8
) -> dict[str, list[OutputEvent]]:
    """The outputs of an app by stream, the same in every way in which a node may run it.

    The events, in the order of their times, are one micro-batch first; then they are taken event by event through all
    queries; then, `tries` times, they are cut into micro-batches at random, and the node is restored from its state
    between some of them. At the end, the clock moves to `until` (ms). Use it for windows and aggregators of your own:
    state that they do not save shows, and so does a loop that treats many events otherwise than one.

    Raises AssertionError at the first output that differs, and SiddhiError for a text that is wrong.
    """
    plan = compile_app(text)
    end = () if until is None else (until,)
    outputs = _run(plan, [(events, end)])
    _compare(outputs, _run(plan, [(events, end)], by_chunk=True), "event by event")
    for seed in range(tries):
        chance = random.Random(seed)
        cuts = sorted(chance.sample(range(len(events) + 1), min(len(events), chance.randint(1, 8))))
        parts = [events[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True)]
        batches = [*((p, ()) for p in parts[:-1]), (parts[-1], end)]
        restarts = {i for i in range(len(batches)) if chance.random() < 0.5}
        description = f"with micro-batches that begin at events {cuts}, restored before batches {sorted(restarts)}"
        _compare(outputs, _run(plan, batches, restarts=restarts, by_chunk=seed % 2 == 1), description)
    return outputs


def _run(
    plan: Plan,
    batches: Iterable[tuple[Sequence[InputEvent], tuple[int, ...]]],
    *,
    by_chunk: bool = False,
    restarts: Iterable[int] = (),
) -> dict[str, list[OutputEvent]]:
    node = NodeEngine(plan, by_chunk=by_chunk)
    outputs: dict[str, list[OutputEvent]] = {s: [] for s, d in plan.streams.items() if s not in plan.input_streams}

    def keep(of_batch: Outputs) -> None:
        assert not of_batch.errors, f"an event became an error: {of_batch.errors[0]}"
        for stream, stream_events in of_batch.streams.items():
            outputs.setdefault(stream, []).extend((ts, list(values)) for ts, values in stream_events.rows())

    keep(node.step(InputBatch(np.empty(0, np.int64))))
    for i, (events, ticks) in enumerate(batches):
        if i in restarts:
            state = node.snapshot()
            node = NodeEngine(plan, by_chunk=by_chunk)
            node.restore(state)
        keep(node.step(_batch(plan, events, ticks)))
    return outputs


def _batch(plan: Plan, events: Sequence[InputEvent], ticks: tuple[int, ...]) -> InputBatch:
    batch = InputBatch(np.array([*(time for _, time, _ in events), *ticks], np.int64))
    events_by_stream = sorted(enumerate(events), key=lambda e: e[1][0])
    for stream, of_stream in groupby(events_by_stream, key=lambda e: e[1][0]):
        at, rows = zip(*of_stream, strict=True)
        values = [_column(t, [row[2][k] for row in rows]) for k, t in enumerate(plan.schema(stream).types)]
        times = np.array([row[1] for row in rows], np.int64)
        batch.rows[stream] = StreamRows(np.array(at, np.int64), times, values)
    return batch


def _column(type: Type, values: list[Any]) -> Any:
    return values if type is Type.OBJECT else pa.array(values, ARROW[type])


def _compare(first: dict[str, list[OutputEvent]], second: dict[str, list[OutputEvent]], how: str) -> None:
    for stream, events in first.items():
        others = second.get(stream, [])
        for i, (one, other) in enumerate(zip(events, others, strict=False)):
            assert repr(one) == repr(other), f"event {i + 1} of {stream} is {one}, and {other} {how}"
        assert len(events) == len(others), f"{len(events)} events of {stream}, and {len(others)} {how}"

"""Cases of the reference format as an operator takes them: which of them it can run, and their frames.

An operator takes no events that are sent at once, its clock begins with its first row, and it answers no on-demand
queries. So it runs the cases whose feed is single events and ticks, in the order of their times, and whose answer does
not need a clock that was at 0 before. A tick is a row of a stream that no query reads. On-demand queries are left out;
so are restarts, which a stream has wherever it likes.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reference.compare import difference
from reference.engine_cases import arrow_column, fits, run_case
from reference.parts import Case
from reference.replay import siddhi_cases
from sparkstream_nb.engine.expressions.objects import jsonable
from sparkstream_nb.errors import NotInThisBuild, SparkStreamError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.runners.operator.column_types import SPARK
from sparkstream_nb.runners.operator.operator_spec import (
    ERRORS,
    LATE,
    InputFrame,
    OperatorRequest,
    OperatorSpec,
    plan_operator,
)
from sparkstream_nb.types import Type

TIME = "_at"
TICKS = "Ticks"
"""The stream whose rows move the clock alone."""


@dataclass(frozen=True)
class OperatorCase:
    """A case that the operator can run: its text, the rows of each input stream as (time, values), and its outputs."""

    case: Case
    plan: Plan
    rows: Mapping[str, list[tuple[int, list[Any]]]]
    outputs: tuple[str, ...]

    @property
    def spec(self) -> OperatorSpec:
        frames = [InputFrame(s, self.columns(s), TIME, None) for s in self.rows]
        return plan_operator(self.case["id"], self.case["app"], frames, OperatorRequest(outputs=self.outputs))

    def columns(self, stream: str) -> dict[str, str]:
        """The columns of a stream's frame, with Spark's types."""
        if stream == TICKS:
            return {TIME: "bigint"}
        return {TIME: "bigint", **{a.name: SPARK[a.type] for a in self.plan.schema(stream)}}

    def batch(self, stream: str, begin: int = 0, end: int | None = None) -> pa.RecordBatch:
        """Rows of a stream's frame."""
        rows = self.rows[stream][begin:end]
        arrays = [pa.array([t for t, _ in rows], pa.int64())]
        if stream == TICKS:
            return pa.record_batch(arrays, names=[TIME])
        for i, attribute in enumerate(self.plan.schema(stream)):
            arrays.append(arrow_column(attribute.type, [values[i] for _, values in rows]))
        return pa.record_batch(arrays, names=[TIME, *self.plan.schema(stream).names])

    def difference(self, found: Iterable[pa.RecordBatch | pa.Table]) -> str | None:
        """What tells rows of the operator's frame from Siddhi's answer, in words; None where they agree."""
        streams: dict[str, list[Any]] = {name: [] for name in self.outputs}
        for batch in found:
            for row in batch.to_pylist():
                name = row["_output"]
                if name == LATE:
                    return f"a late row: {row}"
                if name != ERRORS:
                    streams[name].append([_millis(row["_timestamp"]), self._values(name, row[name])])
        return difference({**self.case, "got": {"streams": streams}})

    def _values(self, name: str, struct: Mapping[str, Any]) -> list[Any]:
        types = self.plan.schema(name).types
        return [
            json.loads(v) if t is Type.OBJECT and v is not None else jsonable(v)
            for t, v in zip(types, struct.values(), strict=True)
        ]


def _millis(moment: Any) -> int:
    return round(moment.timestamp() * 1000)


def runnable(cases: Iterable[Case]) -> Iterator[OperatorCase]:
    """The cases that the operator can run. Lazy: checking a case takes as long as running it."""
    return (found for case in cases if isinstance(found := operator_case(case), OperatorCase))


def shuffled_cases(seed: int) -> list[Case]:
    """Siddhi's cases in an order that a seed draws."""
    cases = list(siddhi_cases())
    random.Random(seed).shuffle(cases)
    return cases


def operator_case(case: Case) -> OperatorCase | str:
    """A case as the operator runs it, or why it cannot."""
    if "error" in case["expect"]:
        return "a text that is refused"
    if case.get("scripts") or case.get("properties") or case.get("limits"):
        return "parameters of a deployment"
    if any("batch" in step for step in case["feed"] if isinstance(step, dict)):
        return "events that are sent at once"
    feed = [step for step in case["feed"] if isinstance(step, list) or "tick" in step]
    steps = [(step[0], step[1], step[2]) if isinstance(step, list) else (TICKS, step["tick"], []) for step in feed]
    if not any(isinstance(step, list) for step in feed):
        return "no events"
    times = [ts for _, ts, _ in steps]
    if any(later < earlier for earlier, later in itertools.pairwise(times)):
        return "events that are not in the order of their times"
    if min(times) <= 0:
        return "times before 1970"
    try:
        plan = compile_app(case["app"])
    except SparkStreamError:
        return "a listed difference"
    for stream, _, values in steps:
        types = () if stream == TICKS else plan.schema(stream).types
        if Type.OBJECT in types or not fits(types, values) or len(values) < len(types):
            return "objects, or events that do not fit their stream"
    order = _order_of_streams(steps)
    if order is None:
        return "events of several streams at one time"
    expect = {"streams": case["expect"]["streams"], "queries": {}}
    case = {**case, "feed": feed, "expect": expect}
    try:
        got = run_case({**case, "start": None})
        if difference({**case, "got": {"streams": got["streams"]}}) is not None:
            return "a clock that was at 0 before the first event, on-demand queries, restarts, or a listed difference"
    except NotInThisBuild:
        return "a declared gap"
    rows = {s: [(ts, list(v)) for stream, ts, v in steps if stream == s] for s in order}
    written = {q.output.target.id for q in plan.queries if q.output.target.kind == "stream"}
    outputs = [s for s, d in plan.streams.items() if "#" not in s and (s in written or d.kind == "fault")]
    outputs = [s for s in outputs if s not in rows]
    if not outputs:
        return "no output"
    found = OperatorCase(case, plan, rows, tuple(sorted(outputs)))
    try:
        _ = found.spec
    except SparkStreamError as error:
        return f"refused: {error}"
    return found


def _order_of_streams(feed: Sequence[Any]) -> list[str] | None:
    """The streams in an order that events at one time keep; None if there is none."""
    streams = list(dict.fromkeys(stream for stream, _, _ in feed))
    ties = [(a, b) for (a, t, _), (b, u, _) in itertools.pairwise(feed) if t == u and a != b]
    for order in itertools.permutations(streams) if len(streams) < 6 else [streams]:
        place = {s: i for i, s in enumerate(order)}
        if all(place[a] < place[b] for a, b in ties):
            return list(order)
    return None


def watermark_of(batches: Sequence[pa.RecordBatch]) -> int:
    """The watermark after rows, with a delay of 0."""
    return max((int(np.max(b.column(TIME).to_numpy())) for b in batches if b.num_rows), default=0)

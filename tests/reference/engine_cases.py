"""Cases of the reference format on one node: an app, a feed, a virtual clock, and the output as `expect` has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sparkstream_nb.engine.columnar.blocks import Buffer, Tracked, digest_of
from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.engine.expressions.objects import jsonable
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.content_chunking import pieces
from sparkstream_nb.engine.state.node_batch import Emitted, InputBatch, OutputOptions, Outputs, StreamRows
from sparkstream_nb.errors import NotInThisBuild, SiddhiError, SparkStreamError
from sparkstream_nb.lang.parser import parse_on_demand
from sparkstream_nb.limits import Limits
from sparkstream_nb.plan import bind_retrieval, compile_app
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.types import Type

Step = Any


def input_batch(plan: Plan, steps: Sequence[Step]) -> InputBatch:
    """The steps of a feed (events, batches, ticks) as one micro-batch. An event with too few values has nulls for the
    rest; of one that does not fit its stream only the time counts. Raises KeyError for an unknown stream."""
    clock = []
    rows: dict[str, tuple[list[int], list[int], list[list[Any]]]] = {}
    for i, step in enumerate(steps):
        if isinstance(step, list):
            stream, ts, values = step
            events = [(ts, values)]
        elif "tick" in step:
            clock.append(step["tick"])
            continue
        else:
            stream, events = step["stream"], step["batch"]
        types = plan.schema(stream).types
        at, times, data = rows.setdefault(stream, ([], [], []))
        for ts, values in events:
            if fits(types, values):
                at.append(i)
                times.append(ts)
                data.append([*values, *[None] * (len(types) - len(values))])
        clock.append(events[-1][0])
    batch = InputBatch(np.array(clock, np.int64))
    for stream, (at, times, data) in rows.items():
        types = plan.schema(stream).types
        columns = [arrow_column(t, [row[k] for row in data]) for k, t in enumerate(types)]
        batch.rows[stream] = StreamRows(np.array(at, np.int64), np.array(times, np.int64), columns)
    return batch


def fits(types: Sequence[Type], values: Sequence[Any]) -> bool:
    """True if the JSON values of an event fit its stream: no more of them than attributes, and none of another kind."""

    def one(type: Type, value: Any) -> bool:
        if type is Type.BOOL:
            return isinstance(value, bool)
        whole = type in (Type.INT, Type.LONG)  # a text may be "NaN"
        return not type.numeric or (isinstance(value, int | float) and not isinstance(value, bool)) or not whole

    return len(values) <= len(types) and all(v is None or one(t, v) for t, v in zip(types, values, strict=False))


def arrow_column(type: Type, values: list[Any]) -> Any:
    """JSON values as an input column; objects stay a list. Numbers are narrowed as Java's Jackson does."""
    if type is Type.OBJECT:
        return values
    if type in (Type.INT, Type.LONG):
        bits = 32 if type is Type.INT else 64
        values = [None if v is None else (int(v) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for v in values]
    elif type in (Type.FLOAT, Type.DOUBLE):
        values = [None if v is None else float(v) for v in values]
    elif type is Type.STRING:
        values = [v if v is None or isinstance(v, str) else str(v) for v in values]
    return pa.array(values, ARROW[type])


def whole(parts: Iterable[Buffer | Tracked]) -> bytes:
    """Join the pieces in which a state is stored. Raises AssertionError if a stored piece differs from the one in
    memory.
    """
    stored = [(p.digest, p.data()) for p in pieces(parts)]
    if any(digest_of(d) != n for n, d in stored):
        raise AssertionError("a part of the state was written, and nobody told")
    return b"".join(d for _, d in stored)


def events(emitted: Emitted) -> list[list[Any]]:
    """`[timestamp, [values]]` per event."""
    return [[ts, [jsonable(v) for v in values]] for ts, values in emitted.rows()]


def run_case(
    case: Mapping[str, Any], *, by_chunk: bool = False, cuts: Sequence[int] = (), saves: bool = False
) -> dict[str, Any]:
    """Runs the case's app on its feed; returns the output in the form of the case's `expect`.

    The clock starts at 0, as in Siddhi's playback, or at the case's `start`; if that is null, with the first event.
    A case with `scripts` true may run script functions, and its `limits` bound what one event may use. `cuts` are
    positions in the feed at which a new micro-batch begins. With `saves` the node is saved after each, as a
    runner does, and a restart loads the saved state. Raises `NotInThisBuild` for an app that needs a declared
    gap, so that it is not mistaken for a rejection.
    """
    shard = case.get("properties", {}).get("shardId", "")

    def new_node() -> NodeEngine:
        scripts = bool(case.get("scripts"))
        return NodeEngine(
            plan,
            shard=shard,
            outputs=OutputOptions(trace=True),
            allow_scripts=scripts,
            by_chunk=by_chunk,
            start=case.get("start", 0),
            limits=Limits.of(case.get("limits")),
        )

    try:
        plan = compile_app(case["app"], properties=case.get("properties", {}))
        node = new_node()
    except NotInThisBuild:
        raise
    except SiddhiError as e:
        return {"error": type(e).__name__, "message": str(e)}
    got: dict[str, Any] = {
        "streams": {},
        "queries": {q.name: {"in": [], "out": []} for q in plan.queries if q.named},
    }
    results: list[dict[str, Any]] = []
    pending: list[Step] = []

    def flush() -> None:
        nonlocal pending
        if not pending:
            return
        steps, pending = pending, []
        take(node.step(input_batch(plan, steps)))
        if saves:
            whole(node.saved_parts())

    def take(out: Outputs) -> None:
        for stream, emitted in out.streams.items():
            got["streams"].setdefault(stream, []).extend(events(emitted))
        for name, (current, expired) in out.queries.items():
            got["queries"][name]["in"].extend(events(current))
            got["queries"][name]["out"].extend(events(expired))
        if out.errors:
            got["fault"] = True

    take(node.step(InputBatch(np.empty(0, np.int64))))
    for i, step in enumerate(case["feed"]):
        if i in cuts:
            flush()
        if isinstance(step, dict) and "query" in step:
            flush()
            results.append(answer(node, plan, step["query"]))
        elif isinstance(step, dict) and "restart" in step:
            flush()
            blob = whole(node.saved_parts()) if saves else node.snapshot()
            former, node = node, new_node()
            take(node.step(InputBatch(np.empty(0, np.int64))))  # Siddhi starts an app before it restores it
            node.restore(blob)
            if saves and node.snapshot() != former.snapshot():
                raise AssertionError("the saved state is of another kind")
        else:
            pending.append(step)
    flush()
    if results:
        got["results"] = results
    return got


def answer(node: NodeEngine, plan: Plan, text: str) -> dict[str, Any]:
    """An on-demand query's answer as a case shows it: `rows` and `columns`, or `error` and `message`."""
    try:
        found = node.answer(bind_retrieval(parse_on_demand(text), plan, text))
    except NotInThisBuild:
        raise
    except SparkStreamError as e:
        return {"error": type(e).__name__, "message": str(e)}
    rows = [[jsonable(v) for v in row] for row in found.rows]
    return {"rows": rows, "columns": [f"{n} {t}" for n, t in found.columns]}

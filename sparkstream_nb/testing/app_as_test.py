"""A test file made of the events that were sent to an app, and of its outputs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from .. import argument_checks
from ..app import App
from ..app.running.app_script import record_of, write_file
from ..app.running.recorded_steps import RecordedStep, recorded_steps
from ..errors import Misuse
from ..outputs.output_files import frame_rows
from ..plan.output_labels import output_streams
from ..types import Schema
from .cell_values import write_rows, write_text, write_value
from .model import ONE, SUFFIX
from .reporting import run_paths
from .suite_results import AppTestReport

MOST_STEPS = 1_000
"""Steps that a test has at most by default: it is to be read."""


@dataclass(frozen=True)
class ExportedTest:
    """A test file and its report; a test that does not pass says which outputs depend on more than the events."""

    path: Path
    report: AppTestReport


def export_test(app: App, path: str | Path, *, limit: int = MOST_STEPS) -> ExportedTest:
    """Writes a test file of the events that were sent to an app and of its outputs, with its text in it, and runs it.

    The test has the app's number of nodes, and each event goes to the node that took it. Raises `Misuse` for an app
    that took nothing, or more than `limit` steps, and SparkStreamError if the beginning of its input is no longer kept,
    or the file cannot be written.
    """
    argument_checks.check_path("path", path)
    argument_checks.require_int("limit", limit, 1)
    file = Path(path)
    if file.suffix != SUFFIX:
        raise Misuse(f"a test file ends in {SUFFIX}: call it {file.with_suffix(SUFFIX)}")
    app.flush()
    steps = list(recorded_steps(app.runtime, limit))
    if not steps:
        raise Misuse(f"{app.name} took no event yet: send or feed some, and export them then")
    lines = list(_lines(app, steps))
    if not any(line.startswith("expect ") for line in lines):
        raise Misuse(f"{app.name} writes to no stream and no table: a test of it would expect nothing")
    write_file(file, "\n".join(lines) + "\n")
    return ExportedTest(file, run_paths([file]))


def _lines(app: App, steps: Sequence[RecordedStep]) -> Iterator[str]:
    record = record_of(app.runtime)
    yield "# Events that were sent to an app, and its outputs."
    yield "app:"
    yield from (f"    {line}" if line.strip() else "" for line in record.text.strip("\n").splitlines())
    if record.arguments["start"] is not None:
        yield f"start: {record.arguments['start']}"
    if record.arguments["timezone"] != "UTC":
        yield f"timezone: {record.arguments['timezone']}"
    for name, value in record.arguments["variables"].items():
        yield f"param {name}: {value}"
    if app.nodes > 1:
        settings = {"nodes": app.nodes, "alerts": record.arguments["alerts"], "mode": app.mode}
        if _takes_turns(app):
            settings["routing"] = app.routing
        text = ", ".join(f"{k}: {v}" for k, v in settings.items() if v not in ("active-active", "on"))
        yield f"run nodes: {text}"
    for (stream, together), group in groupby(enumerate(steps), key=lambda pair: _kind(*pair)):
        if stream is None:
            yield from ("", *(f"wait until {_time(step.clock)}" for _, step in group))
        else:
            yield from _send(app, stream, [step for _, step in group], together is not None)
    yield from _expectations(app, " on nodes" if app.nodes > 1 else "")


def _takes_turns(app: App) -> bool:
    """True if each event goes to one of several nodes."""
    return app.nodes > 1 and app.mode == "active-active"


def _kind(place: int, step: RecordedStep) -> tuple[str | None, int | None]:
    """Steps that are one table have the same kind: its stream (None: a tick), and the place of a chunk."""
    if not step.events:
        return None, None
    return step.events[0].stream, place if len(step.events) > 1 else None


def _send(app: App, stream: str, steps: Sequence[RecordedStep], together: bool) -> Iterator[str]:
    schema = app.schemas[stream]
    several = _takes_turns(app)
    at, node = (f"@{n}" if n in schema.names else n for n in ("at", "node"))
    rows = [[at, *([node] if several else []), *map(write_text, schema.names)]]
    for step in steps:
        for event in step.events:
            place = [write_text(f"node-{event.node + 1}")] if several else []
            rows.append([_time(event.time), *place, *map(write_value, event.values, schema.types)])
    yield ""
    yield f"send {_in_step(stream)}{' together' if together else ''}"
    yield from write_rows(rows)


def _expectations(app: App, run: str) -> Iterator[str]:
    """The outputs of each stream, and the rows of each table in memory."""
    for stream in output_streams(app.plan):
        frame = app.output(stream).frame
        schema = app.schemas[stream]
        yield ""
        if frame.empty:
            yield f"expect {_in_step(stream)} nothing{run}"
            continue
        at, node = (f"@{n}" if n in schema.names else n for n in ("at", "node"))
        yield f"expect {_in_step(stream)}{f' any order{run}' if run else ''}"
        yield from _table(frame_rows(frame), schema, at, node if _takes_turns(app) else None, app.shard_ids)
    for table in app.plan.tables:
        answer = app.query(f"from {table} select *")
        yield ""
        if not answer.rows:
            yield f"expect table {_in_step(table)} nothing{run}"
            continue
        schema = app.plan.schema(table)
        rows = [[write_value(v, t, first=i == 0) for i, (v, t) in enumerate(zip(row, schema.types, strict=True))]
                for row in answer.rows]  # fmt: skip
        yield f"expect table {_in_step(table)}{run}"
        yield from write_rows([[write_text(n, first=i == 0) for i, n in enumerate(schema.names)], *rows])


def _table(
    rows: Sequence[Sequence[Any]], schema: Schema, at: str, node: str | None, shards: Sequence[str]
) -> list[str]:
    """Outputs (node, time, values) as a table."""
    cells = [[at, *([] if node is None else [node]), *map(write_text, schema.names)]]
    for shard, time, *values in rows:
        place = [] if node is None else [f"node-{shards.index(shard) + 1}"]
        cells.append([_time(time), *place, *map(write_value, values, schema.types)])
    return write_rows(cells)


def _time(ms: int) -> str:
    """A time of UTC, such as `2024-06-03T10:00:00.500`; ms where a calendar does not have it."""
    try:
        moment = dt.datetime.fromtimestamp(ms // 1000, dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return str(ms)
    return f"{moment.isoformat()}.{ms % 1000:03}".removesuffix(".000") if ms >= 0 else str(ms)


def _in_step(name: str) -> str:
    """The name of a stream or table in a step."""
    return f'"{name}"' if name in ("table", "query", "errors", ONE) or not name.isidentifier() else name

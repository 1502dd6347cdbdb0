"""An app that a test runs, without its sources, sinks and databases: in a temporary folder, in virtual time."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..app.deploying import close_app, deploy_compiled
from ..app.running.app import App
from ..engine.state.node_batch import InputBatch, StreamRows
from ..errors import Misuse, nearest
from ..ingest.ingest import columns_of
from ..journal.entries import Entry
from ..journal.temporary import temporary
from ..lang.tree import Annotation, AnnotationElement
from ..outputs.output_files import frame_rows
from ..plan.connectors.without_connections import check_variables, disconnect_streams, move_stores_to_memory
from ..plan.nodes import Plan, TableDef
from ..plan.open_names import compile_open
from ..request import DeployRequest
from ..runners.choice import INLINE
from ..stores.address import MEMORY
from ..types import Schema, Type
from .clock_moves import check_clock_move, list_recurring_timers
from .model import Run, Settings

Instrument = Callable[[Plan], Plan]
"""Adds queries to a plan that count which parts of it events reach."""
_numbers = itertools.count(1)
_ROOM = 256 << 20
"""Free bytes that a folder in memory must have."""


@dataclass(frozen=True)
class AppUnderTestSetup:
    """The deployment of an app for a test: its text, run, clock and runner.

    `master`: "inline", or a Spark master (None: local).
    """

    text: str
    run: Run = field(default_factory=Run)
    settings: Settings = field(default_factory=Settings)
    allow_scripts: bool = False
    master: str | None = INLINE
    instrument: Instrument | None = None


@dataclass(frozen=True)
class SentEvent:
    """An event of a test: its time (ms), the shard id of the node that takes it (None: by the routing), its values."""

    at: int
    values: Sequence[Any]
    node: str | None = None


@dataclass(frozen=True)
class OutputRows:
    """Rows that an app gave: the columns' schema, and for each row its values in that order."""

    schema: Schema
    rows: Sequence[Sequence[Any]]


class AppUnderTest:
    """A running app of a test. `now` is the latest time (ms) of an event or a wait. Close it in the end."""

    def __init__(self, setup: AppUnderTestSetup) -> None:
        """Raises SiddhiError for a wrong app, and what `deploy` raises."""
        self._folder = temporary("test", _folder_in_memory())
        try:
            home = self._folder / "home"
            home.mkdir(0o700)
            self._app = _deploy(setup, home)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._timers = list_recurring_timers(self._app.plan, setup.settings.timezone)
        self.begin = setup.settings.start or 0
        self.now = self.begin
        self._clock_has_moved = setup.settings.start is not None
        self._rows_taken: dict[str, int] = {}
        self._errors_taken = 0

    @property
    def app(self) -> App:
        """The app."""
        return self._app

    def input_schema(self, stream: str) -> Schema:
        """The schema of a stream that events are sent to. Raises `Misuse` for another name."""
        streams = {s: d for s, d in self._app.plan.streams.items() if d.kind == "defined"}
        if stream not in streams:
            raise Misuse(nearest(f"the app defines no stream '{stream}'", stream, streams))
        return streams[stream].source.schema

    def output_schema(self, stream: str) -> Schema:
        """The schema of a stream's outputs: its attributes, then the columns of time and node of `take`. Raises
        `Misuse` for a stream that no query writes to."""
        plan = self._app.plan
        targets = {q.output.target.id for q in plan.queries}
        targets |= {s for s, d in plan.streams.items() if d.kind != "defined"}
        outer = sorted(s for s in targets if s in plan.streams and "#" not in s)
        if stream not in outer:
            is_definition = stream in plan.tables or stream in plan.windows or stream in plan.aggregations
            if is_definition:
                how = f"table {stream}" if stream not in plan.aggregations else f'query "from {stream} within ..."'
                raise Misuse(f"'{stream}' is not a stream: write expect {how}")
            if stream in plan.streams:
                raise Misuse(f"no query writes to the stream '{stream}': expect the output of another one")
            raise Misuse(nearest(f"the app has no stream '{stream}'", stream, outer))
        return with_stamps(plan.streams[stream].source.schema)

    def send(self, stream: str, events: Sequence[SentEvent], *, together: bool = False) -> None:
        """Sends events, one after the other or as one chunk, and waits for their effects.

        Raises SparkStreamError for values that do not fit, and `Misuse` for a time until which too many timers fire.
        Times may be earlier than `now`: late events.
        """
        schema = self.input_schema(stream)
        now = self.now
        for event in events:
            if self._clock_has_moved or now > self.begin:
                check_clock_move(self._timers, now, max(now, event.at))
            now = max(now, event.at)
        app, entries = self._app.runtime, []
        groups = [list(events)] if together else [[e] for e in events]
        with app.lock:
            app.start()
            for group in groups:
                columns = columns_of(schema, [e.values for e in group], stream, app.deployment.limits)
                times = np.array([e.at for e in group], np.int64)
                steps = StreamRows(np.zeros(len(group), np.int64), times, columns)
                route = self._route_of(group[0].node)
                entries.append(app.inbox.batch(InputBatch(times[-1:], {stream: steps}), route))
            self._append(entries)
        self.now = max(self.now, *(e.at for e in events))
        self._clock_has_moved = True

    def _route_of(self, node: str | None) -> str:
        app = self._app
        if node is None:
            return app.routing
        if node not in app.shard_ids:
            raise Misuse(nearest(f"there is no node '{node}'", node, app.shard_ids))
        return f"node:{app.shard_ids.index(node) + 1}"

    def _append(self, entries: Sequence[Entry]) -> None:
        self._app.runtime.append(entries)
        self._app.flush()

    def move_clock(self, to: int) -> None:
        """Moves the clock on to `to` (ms), so that windows and timers run. Raises `Misuse` for an earlier time, and
        for one until which too many timers fire."""
        if to < self.now:
            raise Misuse(f"the clock is at {self.now:,} ms and does not go back to {to:,} ms")
        check_clock_move(self._timers, self.now, to)
        app, clocks = self._app.runtime, [to] if self._clock_has_moved else [self.begin, to]
        with app.lock:
            app.start()
            self._append([app.clock.tick_entry(clock) for clock in clocks])
        self.now, self._clock_has_moved = to, True

    def take_outputs(self, stream: str) -> OutputRows:
        """The outputs of a stream since they were taken last, in order of time; of equal times in that of nodes."""
        schema = self.output_schema(stream)
        attributes = len(schema) - 2
        rows = [(*row[2:], row[1], row[0]) for row in frame_rows(self._app.output(stream).frame)]
        new, self._rows_taken[stream] = rows[self._rows_taken.get(stream, 0) :], len(rows)
        if self._app.nodes > 1:
            new.sort(key=lambda row: int(row[attributes]))
        return OutputRows(schema, new)

    def query(self, text: str) -> OutputRows:
        """The answer to a retrieval query. Raises SiddhiError for a wrong one."""
        answer = self._app.query(text)
        types = {t.value: t for t in Type}
        schema = Schema.of(*((name, types.get(kind, Type.OBJECT)) for name, kind in answer.columns))
        return OutputRows(schema, answer.rows)

    def table(self, name: str) -> OutputRows:
        """The rows of a table or named window. Raises `Misuse` for another name."""
        plan = self._app.plan
        if name not in plan.tables and name not in plan.windows:
            raise Misuse(nearest(f"the app has no table or window '{name}'", name, [*plan.tables, *plan.windows]))
        return self.query(f"from {name} select *")

    def take_errors(self) -> OutputRows:
        """The events that the app could not process since they were taken last: stream, reason, time, values."""
        frame = self._app.errors.frame.iloc[self._errors_taken :]
        self._errors_taken += len(frame)
        times = [None if t is None or t != t else int(t) for t in frame["timestamp"].tolist()]
        rows = zip(frame["stream"].tolist(), frame["reason"].tolist(), times, frame["values"].tolist(), strict=True)
        return OutputRows(ERRORS, list(rows))

    def close(self) -> None:
        """Stops the app and removes its folder. Again without effect."""
        if not self._app.closed:
            close_app(self._app.name)
        shutil.rmtree(self._folder, ignore_errors=True)


ERRORS = Schema.of(("stream", Type.STRING), ("reason", Type.STRING), ("at", Type.LONG), ("values", Type.OBJECT))
"""The columns of an app's errors."""


def with_stamps(schema: Schema) -> Schema:
    """The attributes, then the columns of an event's time and node: `at` and `node`, or `@at` and `@node` beside an
    attribute of that name."""
    at, node = (f"@{name}" if name in schema.names else name for name in ("at", "node"))
    return Schema.of(*((a.name, a.type) for a in schema), (at, Type.LONG), (node, Type.STRING))


def _folder_in_memory() -> str | None:
    """A folder whose files are in memory, where waiting for the disk takes no time; None if there is none, or it is
    nearly full."""
    folder = "/dev/shm"
    try:
        roomy = shutil.disk_usage(folder).free >= _ROOM and os.access(folder, os.W_OK)
    except OSError:
        return None
    return folder if roomy else None


def _deploy(setup: AppUnderTestSetup, folder: Path) -> App:
    database = folder / "tables.db"
    run = setup.run
    # In other modes of several nodes, tables are in the nodes' memory.
    several = (run.nodes or 1) > 1 and run.mode in (None, "active-active")

    def compile_offline(text: str, properties: Mapping[str, str], variables: Mapping[str, str] | None) -> Plan:
        shared = tuple(sorted((k, v) for k, v in properties.items() if k != "shardId"))
        plan = _compile_offline(text, shared, tuple(sorted((variables or {}).items())), several)
        plan = _share_tables(plan, database)
        return plan if setup.instrument is None else setup.instrument(plan)

    request = DeployRequest(
        text=setup.text,
        name=f"sparkstream-test-{next(_numbers)}",
        nodes=run.nodes,
        mode=run.mode,
        routing=run.routing or "round_robin",
        alerts=run.alerts or "on",
        master=setup.master,
        store=MEMORY,
        fresh=True,
        variables=dict(setup.settings.variables),
        allow_scripts=setup.allow_scripts,
        allow=(f"file={folder}",),
        home=folder / "app",
        start=setup.settings.start,
        timezone=setup.settings.timezone,
        max_ahead=None,
    )
    return deploy_compiled(request, compile_offline)


@lru_cache(maxsize=256)
def _compile_offline(
    text: str, properties: tuple[tuple[str, str], ...], variables: tuple[tuple[str, str], ...], several: bool
) -> Plan:
    """The plan without connections. `several`: there are several nodes, which share the tables with a `@store`."""
    plan, names = compile_open(text, {**dict(properties), "shardId": "node-1"}, dict(variables))
    check_variables(plan, names, "Write param {0}: VALUE in the test file.")
    plan = move_stores_to_memory(disconnect_streams(plan), tables=not several)
    return replace(plan, idle_clock=None)  # it would follow the machine's time


def _share_tables(plan: Plan, database: Path) -> Plan:
    """The plan with its tables with a `@store`, which all nodes share, in a file of the test."""
    elements = (AnnotationElement("type", "rdbms"), AnnotationElement("jdbc.url", f"jdbc:sqlite:{database}"))
    store = Annotation("store", elements)

    def share(table: TableDef) -> TableDef:
        annotations = tuple(a for a in table.annotations if a.name.lower() != "store")
        return replace(table, annotations=(*annotations, store)) if table.is_stored else table

    tables = {id_: share(t) for id_, t in plan.tables.items()}
    return replace(plan, tables=tables)

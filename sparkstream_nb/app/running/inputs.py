"""Events that users send and feed."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from ... import argument_checks
from ...engine.state.batch import InputBatch, StreamRows
from ...errors import Misuse, shown
from ...ingest.ingest import columns_of, too_late
from ...journal.entries import Reject
from ...journal.results import error_lines
from ...journal.routing import Route, assign
from ...request import DAY
from ...sources.feed_check import check_source
from ..deployment.deployment import milliseconds
from ..results import frontend
from ..results.answers import FeedReport, Sent
from ..results.progress import OnProgress
from . import feeding
from .feeding import Feed
from .runtime import AppRuntime
from .sent import row_of
from .source_reading import Reading


@dataclass(frozen=True)
class FeedOptions:
    """The arguments of `App.feed` that do not concern its source."""

    route: str | None = None
    limit: int | None = None
    progress: OnProgress | None = None
    background: bool = False


class Inputs:
    """The ways by which events come into an app by a call."""

    def __init__(self, app: AppRuntime) -> None:
        self._app = app

    def send(
        self,
        stream: str,
        values: Any,
        *,
        at: int | str | datetime | None = None,
        node: int | None = None,
        wait: bool = False,
    ) -> Sent:
        """See `App.send`."""
        app = self._app
        if not wait:
            return self._send(stream, values, at, node)
        with app.progress.changed:
            before = dict(app.progress.rows)
        sent = self._send(stream, values, at, node)
        last = app.inbox.position.seq - 1
        app.settle_briefly()
        with app.progress.changed:
            if app.progress.last < last:
                return sent
            after = dict(app.progress.rows)
        return replace(sent, outputs={s: n - before.get(s, 0) for s, n in after.items() if n > before.get(s, 0)})

    def _send(self, stream: str, values: Any, at: int | str | datetime | None, node: int | None) -> Sent:
        app = self._app
        schema = app.schema_of(stream)
        several = isinstance(values, list | tuple) and bool(values) and isinstance(values[0], list | tuple | dict)
        rows = [row_of(stream, schema, v) for v in (values if several else [values])]
        columns = columns_of(schema, rows, stream, app.deployment.limits)
        route = app.routing if node is None else f"node:{node}"
        Route.parse(route, app.nodes)
        with app.lock:
            clock = app.inbox.position.clock
            ts = app.now() if at is None else milliseconds(at, "at")
            behind = at is None and app.wall is None and clock is not None and ts - clock > DAY
            sent = Sent(app.name, stream, len(rows), ts, clock=clock if behind else None, started=app.stopped)
            latest = app.latest_time()
            if latest is not None and ts > latest and at is not None:
                errors = error_lines([[stream, ts, row, too_late(ts, latest)] for row in rows])
                app.start()
                file = app.inbox.write(f"late-{uuid.uuid4().hex[:12]}", errors)
                app.append([Reject(file=file, sent=True)])
                return sent
            times = np.full(len(rows), ts, np.int64)
            batch = InputBatch(times[:1], {stream: StreamRows(np.zeros(len(rows), np.int64), times, columns)})
            app.start()
            taking = self._taking_nodes(batch, route)
            ticket = app.put([app.inbox.batch(batch, route)])
        app.inbox.settle(ticket)  # without the lock: others put more in meanwhile, for the next wait
        return replace(sent, nodes=taking)

    def _taking_nodes(self, batch: InputBatch, route: str) -> tuple[str, ...]:
        """The shard ids of the nodes that take a batch which comes in next; none if nodes take turns."""
        app = self._app
        if app.deployment.groups is not None:
            return ()
        over = app.life.over or tuple(range(app.life.began))
        parsed = Route.parse(route, len(over))
        found = assign(batch, parsed, app.schemas, len(over), app.inbox.position.request)
        return tuple(app.life.shards[over[n]] for n in sorted({int(n) for a in found.values() for n in a}))

    def feed(
        self,
        stream: str,
        source: Any,
        reading: Reading,
        options: FeedOptions,
    ) -> FeedReport | Feed:
        """See `App.feed`."""
        app = self._app
        schema = app.schema_of(stream)
        route, limit, progress = options.route, options.limit, options.progress
        argument_checks.optional_int("limit", limit, 0)
        if progress is not None and not callable(progress):
            raise Misuse(f"progress is a function, not {shown(progress)}")
        if isinstance(source, str | Path):
            argument_checks.check_path("the feed", source)
        d = app.deployment
        shape = reading.shape(stream, schema)
        shape = replace(shape, latest=app.latest_time(), limits=d.limits, kept=d.retention.errors)
        Route.parse(route or app.routing, app.nodes, {stream: schema} if route else None)
        check_source(source, shape)
        followed = len(app.listeners) > 0
        request = feeding.FeedRequest(source, shape, route or app.routing, limit, followed, app.stopped)
        if options.background:
            return feeding.start_feed(app.target, request)
        if progress is not None:
            return self._feed_request(request, progress)
        with contextlib.closing(frontend.current().progress()) as display:
            return self._feed_request(request, display)

    def _feed_request(self, request: feeding.FeedRequest, progress: OnProgress) -> FeedReport:
        app = self._app
        try:
            return feeding.feed(app.target, request, app.settle, progress)
        except KeyboardInterrupt as stop:
            app.stop_and_report(stop)
            raise

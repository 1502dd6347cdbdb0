"""Events that users send and feed."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from ... import argument_checks
from ...engine.state.node_batch import InputBatch, StreamRows
from ...errors import Misuse, shown
from ...ingest.ingest import columns_of, too_late
from ...journal.entries import Reject
from ...journal.result_codec import error_lines
from ...journal.routing import Route, assign
from ...request import DAY
from ...sources.disorder import Disorder
from ...sources.feed_check import check_source
from ...sources.frame_stream import is_stream
from ...sources.recordings import RecordingFile
from ..deployment.deployment import milliseconds
from ..results import frontend
from ..results.answers import FeedReport, Sent
from ..results.feed_progress import OnProgress
from . import background as background_feeds
from . import feeding
from .background import Feed
from .frame_feed import FrameFeed, follow_frame
from .pace import Pace
from .runtime import AppRuntime
from .sent import recording_path, row_of, sources_of
from .source_reading import Reading, readings_of
from .source_shapes import shape_of


class FeedPlay(TypedDict, total=False):
    """The arguments of `App.feed` that control how a feed runs; that method describes each."""

    speed: float | None
    rate: float | None
    paused: bool
    together: bool
    disorder: Disorder | None


class FeedArguments(FeedPlay, total=False):
    """The arguments of `App.feed` but for its source, and whether it runs in the background."""

    time: str | Mapping[str, str] | None
    time_format: str | None
    time_zone: str | None
    route: str | None
    limit: int | None
    columns: Mapping[str, str | None] | Sequence[str] | None
    decimal: str | None
    missing: Sequence[str] | None
    progress: OnProgress | None


@dataclass(frozen=True)
class FeedOptions:
    """The arguments of `App.feed` that do not concern its source."""

    route: str | None = None
    limit: int | None = None
    progress: OnProgress | None = None
    background: bool = False
    play: FeedPlay = field(default_factory=FeedPlay)


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
        """Sends an event, or a list of events at once: one chunk, as Siddhi's `InputHandler.send(Event[])`.

        An event is a list of values in the stream's order, or a dict by attribute. `at` is its time: ms since 1970, a
        datetime or an ISO text; without it this machine's time, or the app's clock if that is ahead. An event whose
        time is too far ahead (`max_ahead` of `deploy`) becomes an error of the app. `node` (from 1) overrides the
        routing. Returns when the event is in the inbox; with `wait` when its effects are committed, and the report
        counts them. `flush` waits for all that was sent. Raises `Misuse` for an unknown stream, and SparkStreamError
        for values that do not fit.
        """
        app = self._app
        if not wait:
            return self._send(stream, values, at, node)
        with app.progress.changed:
            before = dict(app.progress.rows)
        answer = self._send(stream, values, at, node)
        last = app.inbox.position.seq - 1
        app.waits.settle_briefly()
        with app.progress.changed:
            if app.progress.last < last:
                return answer
            after = dict(app.progress.rows)
        return replace(answer, outputs={s: n - before.get(s, 0) for s, n in after.items() if n > before.get(s, 0)})

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
            ts = app.clock.now() if at is None else milliseconds(at, "at")
            is_behind = at is None and app.clock.wall is None and clock is not None and ts - clock > DAY
            answer = Sent(app.name, stream, len(rows), ts, clock=clock if is_behind else None, started=app.stopped)
            latest = app.clock.latest_time()
            if latest is not None and ts > latest and at is not None:
                errors = error_lines([[stream, ts, row, too_late(ts, latest)] for row in rows])
                app.start()
                file = app.inbox.write(f"late-{uuid.uuid4().hex[:12]}", errors)
                app.append([Reject(file=file, sent=True)])
                return answer
            times = np.full(len(rows), ts, np.int64)
            batch = InputBatch(times[:1], {stream: StreamRows(np.zeros(len(rows), np.int64), times, columns)})
            app.start()
            taking = self._taking_nodes(batch, route)
            ticket = app.put([app.inbox.batch(batch, route)])
        app.inbox.settle(ticket)  # without the lock: others put more in meanwhile, for the next wait
        return replace(answer, nodes=taking)

    def _taking_nodes(self, batch: InputBatch, route: str) -> tuple[str, ...]:
        """The shard ids of the nodes that take a batch which comes in next; none if nodes take turns."""
        app = self._app
        if app.deployment.groups is not None:
            return ()
        over = app.app_run.over or tuple(range(app.app_run.began))
        parsed_route = Route.parse(route, len(over))
        assignment = assign(batch, parsed_route, app.schemas, len(over), app.inbox.position.request)
        return tuple(app.app_run.shards[over[n]] for n in sorted({int(n) for a in assignment.values() for n in a}))

    def feed(
        self,
        stream: str | Path | Mapping[str, Any],
        source: Any = None,
        *,
        time: str | Mapping[str, str] | None = None,
        time_format: str | None = None,
        time_zone: str | None = None,
        route: str | None = None,
        limit: int | None = None,
        columns: Mapping[str, str | None] | Sequence[str] | None = None,
        decimal: str | None = None,
        missing: Sequence[str] | None = None,
        progress: OnProgress | None = None,
        background: bool = False,
        **play: Unpack[FeedPlay],
    ) -> FeedReport | Feed | FrameFeed:
        """Feeds `stream` from a frame (pandas, Arrow, Spark) or a `.csv` or `.parquet` file, until all is committed.

        Several sources are merged by event time: `feed({"Lamp": lamps, "Key": keys}, time="at")`, where a stream may
        have a list of sources; of equal times, events of an earlier source come first.

        A recording (`App.recording`) is fed by its path alone: `feed("week.parquet")`.

        A streaming DataFrame is followed: the call returns a `FrameFeed` at once, and each of Spark's micro-batches is
        taken once. It is a source of the app, with the options that say how values are read.

        `time` names the column of event times (ms, datetime, or text), for all sources or by stream: events are put in
        their order, ties in the feed's. Without it events keep the feed's order, 1 ms apart. `time_format`: how these
        times are written, as Python's `strptime` takes it, or "s", "ms", "us" or "ns" for numbers since 1970 (default:
        ms, or ISO 8601). `time_zone`: that of times that name none (default: UTC). Of a time that its clocks showed
        twice the first is taken; one that they left out is as much later as they went forward. `route` overrides the
        routing. `limit`: only this many rows of each source, the first ones. `columns` maps attributes to source
        columns (None: the attribute is null), or lists these in the attributes' order; other names are matched without
        case, spaces, underscores and hyphens. An attribute of type long with the column of `time` has it in ms. Of
        texts, `decimal=","` reads numbers such as 1.234,5, and `missing` are those that mean null, besides an empty
        cell. Rows that do not fit are counted, and as many as `retention` says are kept in `errors`. `progress` is
        called when the reading begins, and then several times a second until all is committed; by default the front end
        shows how far the feed is.

        With `background` the call returns at once: a `Feed`, which can be paused, stepped, stopped and waited for;
        `paused` begins one that waits for its first step, and `together` merges the sources with a feed of the app that
        is under way, which is returned. `speed`: ms of event time in a ms of this machine's time; or `rate`: events a
        second; by default as fast as the app takes them. `disorder`: a `Disorder`, by which events come late, twice,
        not at all, or with a clock that is off.

        Raises `Misuse` for an unknown stream, SparkStreamError for a source that is no feed.
        """
        options = FeedOptions(route, limit, progress, background, play)
        if source is None and (path := recording_path(stream)) is not None:
            return self.feed_recording(path, options)
        if isinstance(stream, Path):
            raise Misuse(f"feed takes a stream's name and its source; a path alone is a recording: {stream}")
        if is_stream(source):
            readings = readings_of(
                {str(stream): self._app.schema_of(str(stream))}, time, columns, time_format=time_format,
                time_zone=time_zone, decimal=decimal, missing=missing,
            )  # fmt: skip
            return self.follow(str(stream), source, readings[str(stream)], options)
        sources = sources_of(stream, source)
        readings = readings_of(
            {s: self._app.schema_of(s) for s, _ in sources}, time, columns, time_format=time_format,
            time_zone=time_zone, decimal=decimal, missing=missing,
        )  # fmt: skip
        return self._feed_sources(sources, readings, options)

    def _feed_sources(
        self,
        sources: Sequence[tuple[str, Any]],
        reading: Reading | Mapping[str, Reading],
        options: FeedOptions,
    ) -> FeedReport | Feed:
        """`sources`: (stream, source) pairs, in the order in which events of equal times come; `reading`: one for all,
        or one for each stream."""
        app, play, route = self._app, options.play, options.route
        _check_options(options)
        pace = Pace.of(play.get("speed"), play.get("rate"))
        read = [self._feed_source(s, x, reading[s] if isinstance(reading, Mapping) else reading) for s, x in sources]
        schemas = {s.shape.stream: s.shape.schema for s in read}
        Route.parse(route or app.routing, app.nodes, schemas if route else None)
        read = [replace(feed_source, shape=check_source(feed_source.source, feed_source.shape)) for feed_source in read]
        disorder = play.get("disorder")
        if disorder is not None and not isinstance(disorder, Disorder):
            raise Misuse(f"disorder is a Disorder, not {shown(disorder)}: Disorder(late=0.05, seed=7)")
        app.target.skew(disorder)
        _check_event_times(read, play, pace)
        request = feeding.FeedRequest(
            read, route or app.routing, options.limit, len(app.listeners) > 0, app.stopped, pace,
            play.get("paused", False), () if play.get("together") else [n for n, f in app.feeds.items() if f.active],
            disorder,
        )  # fmt: skip
        return self._begin(request, options)

    def _begin(self, request: feeding.FeedRequest, options: FeedOptions) -> FeedReport | Feed:
        together = options.play.get("together", False)
        if options.background or together or request.paused:
            return background_feeds.start_feed(self._app.target, request, together=together)
        if options.progress is not None:
            return self._wait_for(request, options.progress)
        with contextlib.closing(frontend.current().progress()) as display:
            return self._wait_for(request, display)

    def follow(self, stream: str, frame: Any, reading: Reading, options: FeedOptions) -> FrameFeed:
        """Follows a streaming frame: see `App.feed`. Raises `Misuse` for options of a feed that has an end."""
        named_options = {"route": options.route, "limit": options.limit, **options.play}
        for name, value in named_options.items():
            if value not in (None, False):
                raise Misuse(f"a streaming frame is followed as it comes: {name} is for feeds of frames and files")
        return follow_frame(self._app, frame, self._feed_source(stream, frame, reading).shape)

    def feed_recording(self, path: Path, options: FeedOptions) -> FeedReport | Feed:
        """Feeds a recording: its events come in the order, and in the chunks, in which they came in before. Raises
        SparkStreamError if the file is no recording, or one of other streams."""
        app, play = self._app, options.play
        for name, value in (("limit", options.limit), ("disorder", play.get("disorder"))):
            if value is not None:
                raise Misuse(f"a recording is fed as it is: {name} is for other feeds")
        if play.get("together"):
            raise Misuse("a recording is fed as it is: together is for other feeds")
        recording = RecordingFile.open(path)
        recording.match(app.schemas)
        pace = Pace.of(play.get("speed"), play.get("rate"))
        Route.parse(options.route or app.routing, app.nodes, app.schemas if options.route else None)
        request = feeding.FeedRequest(
            (), options.route or app.routing, None, len(app.listeners) > 0, app.stopped, pace,
            play.get("paused", False), recording=recording,
        )  # fmt: skip
        return self._begin(request, options)

    def _feed_source(self, stream: str, source: Any, reading: Reading) -> feeding.FeedSource:
        app = self._app
        schema = app.schema_of(stream)
        if isinstance(source, str | Path):
            argument_checks.check_path("the feed", source)
        shape = shape_of(reading, stream, schema)
        d = app.deployment
        return feeding.FeedSource(
            source, replace(shape, latest=app.clock.latest_time(), limits=d.limits, most_rejects=d.retention.errors)
        )

    def _wait_for(self, request: feeding.FeedRequest, progress: OnProgress) -> FeedReport:
        """Feeds in the foreground, and waits until all is committed."""
        app = self._app
        try:
            if not request.pace:
                return feeding.feed(app.target, request, app.waits.settle, progress)
            running = background_feeds.start_feed(app.target, request)
            end = running.watch(lambda: progress(running.progress))
            try:
                return running.wait()
            except KeyboardInterrupt:
                running.stop()
                raise
            finally:
                end()
        except KeyboardInterrupt as stop:
            app.waits.stop_and_report(stop)
            raise


def _check_options(options: FeedOptions) -> None:
    """Raises `Misuse` for options of a feed of another type."""
    argument_checks.optional_int("limit", options.limit, 0)
    for name in ("paused", "together"):
        argument_checks.check_bool(name, options.play.get(name, False))
    if options.progress is not None and not callable(options.progress):
        raise Misuse(f"progress is a function, not {shown(options.progress)}")


def _check_event_times(sources: Sequence[feeding.FeedSource], play: FeedPlay, pace: Pace) -> None:
    """Raises `Misuse` for options that need the event times of sources which have none."""
    timeless = [s.shape.stream for s in sources if s.shape.time is None]
    if play.get("disorder") is not None and (timeless or play.get("together")):
        raise Misuse("disorder goes by event time: name its column with time=, and feed all sources in one call")
    if timeless and (len(sources) > 1 or play.get("together")):
        raise Misuse(f"feeds are merged by event time: name its column for {', '.join(timeless)}, with time=")
    if timeless and pace.speed is not None:
        raise Misuse("speed goes by event time, and this feed has none: name its column with time=, or give a rate")

"""A running app and its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

import pandas as pd

from ...argument_types import explain_arguments
from ...charts.frame_plot import ChartKind
from ...errors import Misuse, nearest
from ...nodes.distributed import Distributed
from ...plan import explain
from ...plan.nodes import Plan
from ...plan.reports.app_graph import graph_of
from ...plan.reports.repair import repairs
from ...plan.reports.split_graph import split_graph
from ...simulation.faults import Fault
from ...sources.disorder import Disorder
from ...sources.feed_check import check_source
from ...sources.frame_stream import is_stream
from ...stores import Store
from ...types import Schema
from ..deployment.deployment import Deployment
from ..results.answers import Errors, Events, FeedReport, LiveStats, Result, Sent, Stats
from ..results.app_metrics import disk_of, stats_of
from ..results.divergence import Divergence
from ..results.failover import Failover
from ..results.failover_study import FailoverStudy
from ..results.feed_progress import OnProgress
from ..results.frontend import Displayed, View
from ..results.listeners import OnCommit
from ..results.rejected import Replayed
from ..results.rescheduling import DistributedFailover
from ..results.stream_chart import Chart
from ..results.stream_tail import Tail
from ..results.text_answers import AppGraph, PlanText, RepairList
from ..results.traces import PatternTrace, WindowTrace
from ..tracing.tracing import TraceOptions, trace_plan
from ..views.controls import Cluster
from .app_inputs import FeedOptions, FeedPlay, Inputs
from .background import Feed, Feeds
from .input_recording import AppRecording
from .output_frames import OutputFrames
from .rejections import Rejections
from .replays import Replays
from .retrievals import Retrievals
from .runtime import AppRuntime
from .sent import recording_path, sources_of
from .source_reading import AS_IT_IS, Reading, readings_of
from .stream_reader import StreamReader
from .study import Study
from .wall import WALL

if TYPE_CHECKING:
    from ...runners.spark.output_source import DataFrame, SparkSession
    from ...sources.feeds import Shape


@explain_arguments
class App(Displayed):
    """A deployed app. Made by `deploy`, or found by `get`; a notebook shows it as a card.

    Times are ms since 1970. Nodes are numbered from 1. `lines_before`: lines above the app's text where a person sees
    it, as the line `%%siddhi` of its cell; numbers of lines include them. `runtime` is for the package itself.
    """

    lines_before = 0

    def __init__(self, runtime: AppRuntime) -> None:
        self.runtime = runtime
        self._inputs, self._rejections = Inputs(runtime), Rejections(runtime)
        self._retrievals, self._streams = Retrievals(runtime), StreamReader(runtime)
        self._replays = Replays(runtime)
        self._frames = OutputFrames(runtime, self._retrievals)

    # --------------------------------------------------------------------------------------------------- properties

    @property
    def name(self) -> str:
        """The name under which it was deployed."""
        return self.runtime.name

    @property
    def mode(self) -> str:
        """ "single", "active-active", "ha", "scalable" or "distributed"."""
        return self.runtime.mode

    @property
    def routing(self) -> str:
        """The rule that gives an event its node: "round_robin", "hash:ATTRIBUTE", "node:K", "random:SEED" or
        "sticky"."""
        return self.runtime.routing

    @property
    def shard_ids(self) -> tuple[str, ...]:
        """The shard id of each node, in order."""
        return self.runtime.shard_ids

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.runtime.nodes

    @property
    def home(self) -> Path:
        """The app's folder."""
        return self.runtime.home

    @property
    def deployment(self) -> Deployment:
        """Everything that was asked for in `deploy`, with defaults filled in."""
        return self.runtime.deployment

    @property
    def plan(self) -> Plan:
        """The plan of the first node."""
        return self.runtime.plan

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The schema of each stream."""
        return self.runtime.schemas

    @property
    def store(self) -> Store:
        """The store of the aggregations."""
        return self.runtime.store

    @property
    def warnings(self) -> list[str]:
        """Warnings that the card shows, about stores that other deployments share."""
        return self.runtime.warnings

    @property
    def emptied(self) -> Sequence[str]:
        """Removals of `fresh` from stores outside the app's folder, a sentence for each."""
        return self.runtime.emptied

    @property
    def redeployed(self) -> str | None:
        """A sentence about the state of an earlier deployment, which the app continues."""
        return self.runtime.redeployed

    @property
    def runner_note(self) -> str | None:
        """A note on the Spark that the app runs on; None for a tested version."""
        return self.runtime.session.about

    @property
    def closed(self) -> bool:
        """True if it can no longer be used, because it was deployed again or all apps were stopped."""
        return self.runtime.closed

    @property
    def state(self) -> str:
        """ "running", "stopped" (by `stop` or `interrupt`) or "failed"."""
        return self.runtime.state

    @property
    def away(self) -> list[str]:
        """The sources that cannot be read and the sinks that could not deliver last, each with the reason."""
        return self.runtime.away

    @property
    def feeds(self) -> Feeds:
        """The feeds in the background since the app was deployed, by their numbers."""
        return self.runtime.feeds

    @property
    def remembered_variable(self) -> str | None:
        """The variable of the notebook that held the app, from its folder."""
        return self.runtime.remembered_variable

    def summary(self) -> str:
        return f"<App {self.name}: {self.state}, {self.nodes} node{'s' if self.nodes > 1 else ''}, {self.mode}>"

    # ------------------------------------------------------------------------------------------------------- running

    def start(self) -> None:
        """Starts the app, or starts it again where it left off. Raises SparkStreamError if that cannot be."""
        self.runtime.start()

    def stop(self) -> None:
        """Cancels the app's work, within 2 s, and stops its feeds in the background.

        State, outputs and aggregations stay; an event or a query starts it again.
        """
        self.runtime.stop()

    def interrupt(self) -> dict[str, int]:
        """Stops the app as `stop` does, and takes back events of feeds and queries that it had not begun to process;
        returns their number by stream, which is also in `logs`. Events that were sent stay.

        The app starts again with the next event or query; a micro-batch that was under way is then carried through.
        """
        return self.runtime.interrupt()

    def close(self) -> None:
        """Stops the app if it runs, and closes its files. It cannot be used afterwards; calls raise an error."""
        self.runtime.close()

    def wait_tried(self) -> None:
        """Waits a little until it is known which sources are away."""
        self.runtime.wait_tried()

    def scale(
        self,
        nodes: int | None = None,
        *,
        shard_ids: Sequence[str] | None = None,
        conf: str | Path | Sequence[str | Path] | None = None,
    ) -> Self:
        """Changes the number of nodes of a running active-active deployment, and returns the app.

        `nodes`: the number from now on; the last ones go, new ones get the next shard ids. Or `shard_ids`, or the
        deployment files `conf` of all nodes. Events that were sent before are committed with the former nodes. Nodes
        that stay keep their state; rows that removed nodes stored are kept, and a node that comes back under its shard
        id continues where it left off. Raises `Misuse` for an app on a single node, or ids that do not differ.
        """
        self.runtime.scale(nodes, shard_ids=shard_ids, conf=conf)
        return self

    def on_commit(self, callback: OnCommit) -> Callable[[], None]:
        """Calls `callback(n)` after each committed micro-batch, where `n` of the app are; returns a function that ends
        that.

        It is called on a thread of its own, outside all locks, so it may ask the app and takes the time it needs:
        commits meanwhile are reported in one call. Its exceptions are logged. It ends with `close`, thus when the app
        is deployed again.
        """
        return self.runtime.on_commit(callback)

    def flush(self) -> None:
        """Waits until everything sent is committed. Raises SparkStreamError if the app failed."""
        self.runtime.flush()

    def drain(self, seconds: float = 30.0) -> int:
        """Waits as `flush` does, and then until the sinks have delivered all outputs, for `seconds` at most; returns
        the number still to be sent. They are sent later, also after the app was stopped and started again.
        """
        return self.runtime.drain(seconds)

    def catch_up(self, seconds: float = 60.0) -> bool:
        """Wait until the sources have read everything available, and all of it is committed, for `seconds` at most;
        returns whether they have. Raises SparkStreamError if the app failed.
        """
        return self.runtime.catch_up(seconds)

    def finish(self, seconds: float = 60.0) -> None:
        """Takes nothing more in, and waits until all that came in is committed and Spark is done with it, and a while
        for the sinks; then stops.

        Raises SparkStreamError if that fails, or takes Spark longer than `seconds` after the last commit."""
        self.runtime.finish(seconds)

    def remember(self, *, variable: str | None, lines_before: int) -> None:
        """Keeps which variable of the notebook holds the app, and the lines above its text, for `attach`."""
        self.runtime.remember(variable=variable, lines_before=int(lines_before))

    # ----------------------------------------------------------------------------------------------------- events in

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
        return self._inputs.send(stream, values, at=at, node=node, wait=wait)

    def tick(self, ms: int) -> None:
        """Moves the app's clock to `ms` with no event, so that windows and timers run."""
        self.runtime.tick(ms)

    @overload
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
        background: Literal[False] = False,
        **play: Unpack[FeedPlay],
    ) -> FeedReport: ...

    @overload
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
        background: Literal[True],
        **play: Unpack[FeedPlay],
    ) -> Feed: ...

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
    ) -> FeedReport | Feed:
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
            return self._inputs.feed_recording(path, options)
        if isinstance(stream, Path):
            raise Misuse(f"feed takes a stream's name and its source; a path alone is a recording: {stream}")
        if is_stream(source):
            readings = readings_of(
                {str(stream): self.runtime.schema_of(str(stream))}, time, columns, time_format=time_format,
                time_zone=time_zone, decimal=decimal, missing=missing,
            )  # fmt: skip
            return self._inputs.follow(str(stream), source, readings[str(stream)], options)  # type: ignore[return-value]
        sources = sources_of(stream, source)
        readings = readings_of(
            {s: self.runtime.schema_of(s) for s, _ in sources}, time, columns, time_format=time_format,
            time_zone=time_zone, decimal=decimal, missing=missing,
        )  # fmt: skip
        return self._inputs.feed(sources, readings, options)

    @property
    def recording(self) -> AppRecording:
        """The recorded input, to be saved as a file that `feed`, `study`, `divergence`, `failover` and `sparkstream
        audit` take. Raises `Misuse` if the app is closed."""
        return AppRecording.of(self.runtime)

    @property
    def errors(self) -> Errors:
        """Rows and events that the app could not take, each with its reason."""
        return self._rejections.errors

    def replay(
        self,
        errors: pd.DataFrame | Sequence[int] | None = None,
        *,
        decimal: str | None = None,
        missing: Sequence[str] | None = None,
    ) -> Replayed:
        """Sends rows, events and messages of `errors` once more, and takes them off the list.

        `errors`: their ids, or rows of `errors.frame`, whose values and timestamps may have been edited; by default all
        that came in on a stream. An event keeps its time; one without gets the time of the app's clock, which the
        answer says. Values that are texts are read as by a feed with `decimal` and `missing`. Those whose values do not
        fit their stream stay on the list, and the answer says why. Raises `Misuse`, before anything is sent, for an id
        that is not there, and a timestamp or values of another kind. Where the process ends in between, they are sent
        and still on the list.
        """
        return self._rejections.replay(errors, decimal=decimal, missing=missing)

    # ------------------------------------------------------------------------------------------------------- answers

    def query(self, text: str, *, limit: int | None = None, as_wso2: bool = False) -> Result:
        """Answers an on-demand query when everything sent is committed.

        Over an aggregation: merged over shards, and `by_shard` the rows of each. Over a node's own tables and windows,
        with several nodes: the select works on the rows of all. `limit` is the number of rows to show. `as_wso2`: the
        answer of WSO2's servers over an aggregation partitioned by id, which do not see the bucket of the finest
        duration that is open on each node. Raises SiddhiError, with a caret, for a wrong query.
        """
        return self._retrievals.query(text, limit=limit, as_wso2=as_wso2)

    def aggregation(
        self, name: str, per: str = "sec", within: Sequence[Any] | str | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """All of an aggregation's buckets of a duration: (merged over shards, by shard with SHARD_ID first).

        `within`: one text with wildcards, or two bounds (texts or ms). Raises `Misuse` for an unknown name, and
        SparkStreamError for a duration that the aggregation does not have.
        """
        return self._retrievals.aggregation(name, per, within)

    def view(self, name: str | None = None, *, per: str | None = None, measure: str | None = None) -> View:
        """Draws an aggregation by shard and merged, by duration, group and measure.

        `name` may be left out if there is one. `per` and `measure` are its first choice. Raises `Misuse` for names that
        the app does not have, and SparkStreamError if no front end is connected.
        """
        return self._retrievals.view(name, per=per, measure=measure)

    def output(self, stream: str, *, last: int | None = None, limit: int | None = None) -> Events:
        """The outputs of a derived stream so far; only the `last` events if given. Events that were sent before are
        waited for, but not a feed in the background, nor anything if the app is stopped: `waiting` counts those.

        Of a stream that no query writes to: its input, the `last` events (by default 1,000). The deployment's
        `retention` says how much of the past is kept; events no longer kept are counted. `limit` is the number of rows
        to show. Raises `Misuse` for an unknown stream.
        """
        return self._streams.output(stream, last=last, limit=limit)

    def stream(
        self, name: str, *, start: Literal["beginning", "now"] = "beginning", session: SparkSession | None = None
    ) -> DataFrame:
        """A streaming DataFrame of Spark's over the committed outputs of a derived stream, each of them once.

        Its columns are the stream's attributes (an object as JSON), `_timestamp`, and `_node`, the number from 1 that
        the node has had since it came. `start`: the first output that is kept, or those that are committed from now on;
        a query that has a checkpoint continues from there. `session`: by default the app's own, or the running one if
        the app runs inline. Spark's workers have to see the app's folder; over Connect, the server's Python needs this
        package. A warning counts outputs that are no longer kept.

        Raises `Misuse` for a name that is no derived stream, and for an app with `shared=...`; SparkUnavailable without
        a Spark that can do it. The query fails if outputs that it has not read are no longer kept, and if its
        checkpoint is of an earlier run of the app, which was deployed with `fresh=True` since.
        """
        return self._frames.stream(name, start=start, session=session)

    def table(self, name: str, *, session: SparkSession | None = None) -> DataFrame:
        """A batch DataFrame of Spark's: of a derived stream, the outputs that are committed at the call, with the
        columns that `stream` gives, where events that were sent before are waited for as by `output`; of a table or a
        named window, the rows that `query("from NAME select *")` gives.

        Raises `Misuse` for a name that is none of these, and SparkUnavailable as `stream` does.
        """
        return self._frames.table(name, session=session)

    def tail(
        self,
        stream: str,
        *,
        last: int = 20,
        latest: str | None = None,
        number: str | None = None,
        newest: Literal["first", "last"] = "first",
    ) -> Tail:
        """The end of a stream; in a notebook its display follows the stream, up to the last commit.

        The `last` events (a number), the `newest` of them first or last; or the latest event of each value of the
        attribute `latest`, of `last` values; or the attribute `number` of the newest event. Raises `Misuse` for unknown
        names.
        """
        return self._streams.tail(stream, last=last, latest=latest, number=number, newest=newest)

    def chart(
        self,
        stream: str,
        *,
        y: str | Sequence[str] | None = None,
        by: str | None = None,
        x: str | None = None,
        last: int | str | None = None,
        kind: ChartKind = "line",
    ) -> Chart:
        """A chart of a stream's numbers; in a notebook its display follows the stream, up to the last commit.

        `y`: an attribute, or several (default: all numeric ones). `by`: an attribute, or "node": a line for each of its
        values (default: for each node of several that share the events). `x`: an attribute in place of the event time;
        whole numbers between 1980 and 2100 in ms are drawn as times. `last`: only this length of event time, in ms or
        as "10min". `kind`: "line", "bar" or "points". Of more points than can be seen, the lowest and the highest of
        each pixel column are drawn. Raises `Misuse` for unknown names, and attributes that are no numbers.
        """
        return self._streams.chart(stream, y=y, by=by, x=x, last=last, kind=kind)

    def trace(
        self,
        query: str | None = None,
        feed: Any = None,
        *,
        time: str | Mapping[str, str] | None = None,
        start: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        limit: int | None = None,
        labels: str | Sequence[str] | None = None,
    ) -> WindowTrace | PatternTrace:
        """Shows what a window of the app holds over a feed, or the partial matches of a pattern: `sparkstream_nb.trace`
        of this app, with the same arguments. A private node takes the events; the app does not see them.
        """
        scripts = self.deployment.allow_scripts
        options = TraceOptions.of({"time": time}, start, until, limit, labels=labels, allow_scripts=scripts)
        return trace_plan(self.plan, query, feed, options)

    # ------------------------------------------------------------------------------------------------------ the past

    def divergence(
        self, nodes: int | None = None, routing: str | None = None, *, feed: str | Path | None = None
    ) -> Divergence:
        """The nodes' outputs, compared with one node that takes the same events in the same order.

        With `nodes` or `routing`: the outputs that this number of nodes would have had under that routing. Every output
        is the same, lost, spurious, late or duplicated, and one that is not the same has its cause: the events that it
        was computed from, and the nodes that they went to. The input is replayed here, or a recording (`feed`), without
        Spark. Raises SparkStreamError if its beginning is no longer kept, or a table is in a database.
        """
        return self._replays.divergence(nodes, routing, feed=feed)

    @property
    def cluster(self) -> Cluster:
        """The nodes of an app in mode ha, scalable or distributed, to be looked at, killed, restarted, paused and cut
        off. Raises `Misuse` in other modes."""
        return self._replays.cluster

    @property
    def placement(self) -> dict[str, list[str]]:
        """The nodes that run each partial app of mode distributed, at the app's clock; empty in other modes."""
        return self._replays.placement

    def failover(self, *, feed: str | Path | None = None) -> Failover | DistributedFailover:
        """The outputs of mode ha, scalable or distributed, compared with one node that takes every event and never
        fails: who took over when, which events were lost or processed twice, which outputs are lost, spurious or
        duplicated.

        The input is replayed here, or a recording (`feed`), without Spark. Raises `Misuse` in other modes,
        SparkStreamError where the beginning of the input is not kept any more.
        """
        return self._replays.failover(feed=feed)

    def failover_study(
        self,
        seeds: int | Iterable[int] = 1_000,
        faults: str | Sequence[Fault] = "kill",
        *,
        feed: Mapping[str, Any] | str | Path | None = None,
        time: str | None = None,
        reading: Reading | None = None,
        **figures: Any,
    ) -> FailoverStudy:
        """The cost of failovers under many seeds and settings, computed on all cores, on Spark by one job.

        `seeds`: how many, or which. `faults`: "kill" (the active node dies at a moment that the seed chooses), or as in
        `deploy`. `figures`: values to try for the fields of a `Pair`: heartbeat, retries, poll, persist (ms),
        revisions, queue, balancer; others are taken from the app's pair, or the servers' own. The input so far is
        replayed; or `feed`, a recording, or frames or files by stream, put in order by `time` as in `feed`; `reading`
        says more of how they are read (`Reading(time="at", decimal=",")`). An app of any mode can be studied. Raises
        `Misuse` for impossible figures, SparkStreamError as `failover` and `feed` do.
        """
        return self._replays.failover_study(seeds, faults, feed=feed, time=time, reading=reading, **figures)

    def study(
        self,
        nodes: int | Iterable[int] = range(1, 17),
        routings: Sequence[str] | None = None,
        *,
        feed: Mapping[str, Any] | str | Path | None = None,
        time: str | None = None,
        reading: Reading | None = None,
        disorder: Disorder | Sequence[Disorder] = (),
    ) -> Study:
        """Outputs on other numbers of nodes under other routings: the numbers of lost, spurious and duplicated ones
        against one node's, for every combination, computed by one Spark job.

        `routings`: by default round robin, random, each input stream to one node, and by each attribute that could be a
        key. The input so far is replayed; or `feed`, a recording, or frames or files by stream, put in order by `time`
        as in `feed`; `reading` says more of how they are read (`Reading(time="at", decimal=",")`).
        `disorder`: the same of the feed's events in one or several disorders, counted against one node that takes them
        in order; the column `disorder` of the frame names them.
        A study is without a leader: it shows which queries need one. Raises `Misuse` for an impossible combination,
        SparkStreamError as `divergence` and `feed` do.
        """
        return self._replays.study(nodes, routings, feed=feed, time=time, reading=reading, disorder=disorder)

    # ------------------------------------------------------------------------------------------------- about the app

    def explain(self) -> PlanText:
        """The plan: where each part runs, and the effect of routing on each query."""
        clock = "clock: this machine's, from the deployment on\n" if self.deployment.clock == WALL else ""
        return PlanText(clock + explain(self.plan, self.lines_before))

    def repair(self) -> RepairList:
        """Repairs that make each query right on several nodes, and the app's text with the possible rewrites."""
        found = repairs(self.plan, self.plan.text, self.deployment.references.variables)
        return RepairList(found, self.lines_before)

    def graph(self) -> AppGraph:
        """Streams, queries, tables and the rest as a picture, marked by the effect of routing; in mode distributed the
        execution groups, their contents, and the topics between them.
        """
        groups = self.deployment.groups
        if isinstance(groups, Distributed):
            return AppGraph(split_graph(self.plan, groups.split))
        return AppGraph(graph_of(self.plan))

    def stats(self) -> Stats:
        """The app's progress and speed, and the figures of its nodes, queries, tables, windows and aggregations. In a
        notebook its display follows the app."""
        app = self.runtime
        disk = disk_of(self.home, app.life, self.deployment.retention)
        sinks = () if app.sinks is None else app.sinks.figures()
        with app.progress.changed:
            found = stats_of(self.name, self.plan, self.state, app.life, app.inbox, app.progress, disk)
        sources = () if app.intakes is None else app.intakes.figures()
        return replace(
            found,
            sinks=sinks,
            sources=sources,
            clock_kind=self.deployment.clock,
            live=LiveStats(self.stats, self.on_commit, app.view_state),
        )

    def note(self, line: str) -> None:
        """Adds a line to the logs."""
        self.runtime.progress.say(line)

    @property
    def logs(self) -> list[str]:
        """The last lines that `#log` and `log` sinks wrote, and notes: on the deployment files, on events that were set
        aside, and on queries that were started again."""
        return list(self.runtime.progress.logs)


def check_feed(plan: Plan, stream: str, source: Any, reading: Reading = AS_IT_IS) -> Shape:
    """The shape of a feed of an app of `plan`. Raises SparkStreamError if `App.feed` would refuse these arguments.
    Nothing starts."""
    if stream not in plan.streams:
        raise Misuse(nearest(f"{plan.name or 'the app'} has no stream '{stream}'", stream, plan.streams))
    return check_source(source, reading.shape(stream, plan.schema(stream)))

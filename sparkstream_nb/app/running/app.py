"""A running app and its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from ...argument_types import explain_arguments
from ...errors import Misuse, nearest
from ...nodes.distributed import Distributed
from ...plan import explain
from ...plan.nodes import Plan
from ...plan.reports.app_graph import graph_of
from ...plan.reports.repair import repairs
from ...plan.reports.split_graph import split_graph
from ...sources.feed_check import check_source
from ...stores import Store
from ...stores.sql_session import SqlQuery
from ...types import Schema
from ..deployment.deployment import Deployment
from ..results.answers import Errors, FeedReport, LiveStats, Stats
from ..results.frontend import Displayed
from ..results.sql_answer import SQL_ROWS, SqlAnswer, answer_sql
from ..results.text_answers import AppGraph, PlanText, RepairList
from ..results.traces import PatternTrace, WindowTrace
from ..tracing.tracing import TraceOptions, trace_plan
from ..views.controls import Cluster
from .app_connections import AppConnections
from .app_inputs import FeedArguments, Inputs
from .app_relations import AppQuestions, AppRelations
from .app_scaling import scale_app
from .app_script import AppScript
from .app_stats import read_disk, read_stats
from .app_waits import AppWaits
from .background import Feed
from .graph_flows import flow_of
from .input_recording import AppRecording
from .moments import Moments
from .output_frames import OutputFrames
from .part_method import PartAttribute, PartMethod, PartProperty
from .rejections import Rejections
from .replays import Replays
from .retrievals import Retrievals
from .runtime import AppRuntime
from .selecting import Selecting
from .source_reading import AS_IT_IS, Reading
from .source_shapes import shape_of
from .stream_reader import StreamReader
from .wall import WALL

if TYPE_CHECKING:
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
        self.inputs, self.rejections = Inputs(runtime), Rejections(runtime)
        self.queries, self.outputs = Retrievals(runtime), StreamReader(runtime)
        self.waits = runtime.waits
        self.frames = OutputFrames(runtime, self.queries)
        self.replays = Replays(runtime, lambda way: self.moments.source(way), self.stats)
        self.moments = Moments(runtime, self.replays)
        questions = AppQuestions(self.stats, lambda: self.moments.at(), lambda: self.replays.divergence())
        self.script = AppScript(runtime)
        self.relations = AppRelations(runtime, self.queries, questions)
        self.selecting = Selecting(runtime, self.relations, self.outputs)

    # --------------------------------------------------------------------------------------------------- properties

    connections = PartAttribute[AppConnections]("runtime", "The sources and sinks of the app.")
    name = PartProperty("runtime", AppRuntime.name)
    mode = PartProperty("runtime", AppRuntime.mode)
    routing = PartProperty("runtime", AppRuntime.routing)
    shard_ids = PartProperty("runtime", AppRuntime.shard_ids)
    nodes = PartProperty("runtime", AppRuntime.nodes)
    home = PartProperty("runtime", AppRuntime.home)
    deployment = PartAttribute[Deployment](
        "runtime", "Everything that was asked for in `deploy`, with defaults filled in."
    )
    plan = PartAttribute[Plan]("runtime", "The plan of the first node.")
    schemas = PartAttribute[Mapping[str, Schema]]("runtime", "The schema of each stream.")
    store = PartAttribute[Store]("runtime", "The store of the aggregations.")
    warnings = PartAttribute[list[str]](
        "runtime", "Warnings that the card shows, about stores that other deployments share."
    )
    emptied = PartAttribute[Sequence[str]](
        "runtime", "Removals of `fresh` from stores outside the app's folder, a sentence for each."
    )
    redeployed = PartAttribute[str | None](
        "runtime", "A sentence about the state of an earlier deployment, which the app continues."
    )

    @property
    def runner_note(self) -> str | None:
        """A note on the Spark that the app runs on; None for a tested version."""
        return self.runtime.session.about

    closed = PartProperty("runtime", AppRuntime.closed)
    state = PartProperty("runtime", AppRuntime.state)
    away = PartProperty("connections", AppConnections.away)
    feeds = PartProperty("runtime", AppRuntime.feeds)
    remembered_variable = PartProperty("runtime", AppRuntime.remembered_variable)

    def summary(self) -> str:
        return f"<App {self.name}: {self.state}, {self.nodes} node{'s' if self.nodes > 1 else ''}, {self.mode}>"

    # ------------------------------------------------------------------------------------------------------- running

    start = PartMethod("runtime", AppRuntime.start)
    stop = PartMethod("runtime", AppRuntime.stop)
    interrupt = PartMethod("runtime", AppRuntime.interrupt)
    close = PartMethod("runtime", AppRuntime.close)
    wait_tried = PartMethod("connections", AppConnections.wait_tried)

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
        scale_app(self.runtime, nodes, shard_ids, conf)
        return self

    on_commit = PartMethod("runtime", AppRuntime.on_commit)
    flush = PartMethod("waits", AppWaits.flush)
    drain = PartMethod("waits", AppWaits.drain)
    catch_up = PartMethod("waits", AppWaits.catch_up)
    finish = PartMethod("waits", AppWaits.finish)
    remember = PartMethod("runtime", AppRuntime.remember)

    # ----------------------------------------------------------------------------------------------------- events in

    send = PartMethod("inputs", Inputs.send)
    tick = PartMethod("runtime", AppRuntime.tick)

    if TYPE_CHECKING:  # a parameter specification takes one overload alone

        @overload
        def feed(
            self,
            stream: str | Path | Mapping[str, Any],
            source: Any = None,
            *,
            background: Literal[False] = False,
            **arguments: Unpack[FeedArguments],
        ) -> FeedReport: ...

        @overload
        def feed(
            self,
            stream: str | Path | Mapping[str, Any],
            source: Any = None,
            *,
            background: Literal[True],
            **arguments: Unpack[FeedArguments],
        ) -> Feed: ...

        def feed(self, stream: Any, source: Any = None, **arguments: Any) -> FeedReport | Feed: ...

    else:
        feed = PartMethod("inputs", Inputs.feed)

    @property
    def recording(self) -> AppRecording:
        """The recorded input, to be saved as a file that `feed`, `study`, `divergence`, `failover` and `sparkstream
        audit` take. Raises `Misuse` if the app is closed."""
        return AppRecording.of(self.runtime)

    @property
    def errors(self) -> Errors:
        """Rows and events that the app could not take, each with its reason."""
        return self.rejections.errors

    replay = PartMethod("rejections", Rejections.replay)

    # ------------------------------------------------------------------------------------------------------- answers

    query = PartMethod("queries", Retrievals.query)
    aggregation = PartMethod("queries", Retrievals.aggregation)
    view = PartMethod("queries", Retrievals.view)
    output = PartMethod("outputs", StreamReader.output)
    stream = PartMethod("frames", OutputFrames.stream)
    table = PartMethod("frames", OutputFrames.table)
    tail = PartMethod("outputs", StreamReader.tail)
    chart = PartMethod("outputs", StreamReader.chart)
    select = PartMethod("selecting", Selecting.select)
    selection = PartProperty("selecting", Selecting.selection)

    def sql(self, text: str, *, frames: Mapping[str, Any] | None = None, limit: int = SQL_ROWS) -> SqlAnswer:
        """Answers an SQL query by DuckDB over this app, as `sparkstream_nb.sql` does over all: names need no app before
        them, as in `select * from outputs.Alerts`, nor a schema, as in `from Alerts`."""
        return answer_sql(SqlQuery(text, [self.relations], {} if frames is None else frames, self.name, limit))

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
        scripts = self.deployment.request.allow_scripts
        options = TraceOptions.of({"time": time}, start, until, limit, labels=labels)
        return trace_plan(self.plan, query, feed, options, allow_scripts=scripts)

    # ------------------------------------------------------------------------------------------------------ the past

    divergence = PartMethod("replays", Replays.divergence)
    at = PartMethod("moments", Moments.at)
    until = PartMethod("moments", Moments.until)
    follow = PartMethod("moments", Moments.follow)
    why_not = PartMethod("moments", Moments.why_not)
    compare = PartMethod("replays", Replays.compare)
    sweep = PartMethod("replays", Replays.sweep)
    profile = PartMethod("replays", Replays.profile)

    @property
    def cluster(self) -> Cluster:
        """The nodes of an app in mode ha, scalable or distributed, to be looked at, killed, restarted, paused and cut
        off. Raises `Misuse` in other modes."""
        return self.replays.cluster

    @property
    def placement(self) -> dict[str, list[str]]:
        """The nodes that run each partial app of mode distributed, at the app's clock; empty in other modes."""
        return self.replays.placement

    failover = PartMethod("replays", Replays.failover)
    failover_study = PartMethod("replays", Replays.failover_study)
    study = PartMethod("replays", Replays.study)

    # ------------------------------------------------------------------------------------------------- about the app

    save = PartMethod("script", AppScript.save)
    export_job = PartMethod("script", AppScript.export_job)

    def explain(self) -> PlanText:
        """The plan: where each part runs, and the effect of routing on each query."""
        clock = "clock: this machine's, from the deployment on\n" if self.deployment.request.clock == WALL else ""
        return PlanText(clock + explain(self.plan, self.lines_before))

    def repair(self) -> RepairList:
        """Repairs that make each query right on several nodes, and the app's text with the possible rewrites."""
        repair_list = repairs(self.plan, self.plan.text, self.deployment.connections.references.variables)
        return RepairList(repair_list, self.lines_before)

    def graph(self) -> AppGraph:
        """Streams, queries, tables and the rest as a picture, marked by the effect of routing; in mode distributed the
        execution groups, their contents, and the topics between them. In a notebook its edges have the present rates.
        """
        groups = self.deployment.groups
        graph = split_graph(self.plan, groups.split) if isinstance(groups, Distributed) else graph_of(self.plan)
        return AppGraph(graph, flow=flow_of(self.runtime, graph))

    def stats(self) -> Stats:
        """The app's progress and speed, and the figures of its nodes, queries, tables, windows and aggregations. In a
        notebook its display follows the app."""
        stats = read_stats(self.runtime, read_disk(self.runtime))
        return replace(stats, live=LiveStats(self.stats, self.on_commit, self.runtime.view_state))

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
    return check_source(source, shape_of(reading, stream, plan.schema(stream)))

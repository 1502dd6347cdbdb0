"""A running app and its answers."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd

from ... import argument_checks
from ...engine.expressions import Context
from ...engine.scripts import scripts_of
from ...engine.state.batch import InputBatch, RetrievalAnswer
from ...errors import Misuse, SiddhiRuntimeError, SparkStreamError, nearest, shown
from ...ingest.value_formats import ValueFormat
from ...journal.entries import Ask
from ...journal.results import QueryFailed
from ...nodes.distributed import Distributed
from ...outputs.arrivals import InboxReader
from ...outputs.reach import cuts
from ...outputs.retrieval import Retrieved, merge_nodes, retrieve, rows_wanted, select_all
from ...plan import compile_retrieval, explain
from ...plan.nodes import AggDuration, AggregationDef, Plan, Ref, Retrieval
from ...plan.reports.graph import graph_of
from ...plan.reports.repair import repairs
from ...plan.reports.split_graph import split_graph
from ...sources.feed_check import check_source
from ...types import Type
from ..results import frontend
from ..results.answers import SHARD, Errors, Events, InputCounts, LiveStats, Result, Stats, frame_of
from ..results.buckets import ALWAYS, AggregationReader, InputStream
from ..results.figures import disk_of, stats_of
from ..results.frontend import View
from ..results.hints import hint_of, what_is_cut
from ..results.rejected import ReplayContext, Replayed, errors_of, select_errors, to_events
from ..results.stream_ends import ArrivalEnds, OutputEnds
from ..results.stream_tail import StreamEnds, Tail, TailShape
from ..results.text_answers import AppGraph, PlanText, RepairList
from .replays import ReplayedApp
from .source_reading import AS_IT_IS, Reading
from .wall import WALL

_DRAIN_SECONDS = 5.0
"""Seconds that sinks get to send their backlog when an app ends."""
ARRIVALS = 1_000
"""Default number of events of an input stream that `App.output` reads."""


class App(ReplayedApp):
    """A deployed app. Made by `deploy`, or found by `get`; a notebook shows it as a card.

    Times are ms since 1970. Nodes are numbered from 1.
    """

    def query(self, text: str, *, limit: int | None = None, as_wso2: bool = False) -> Result:
        """Answers an on-demand query when everything sent is committed.

        Over an aggregation: merged over shards, and `by_shard` the rows of each. Over a node's own tables and windows,
        with several nodes: the select works on the rows of all. `limit` is the number of rows to show. `as_wso2`: the
        answer of WSO2's servers over an aggregation partitioned by id, which do not see the bucket of the finest
        duration that is open on each node. Raises SiddhiError, with a caret, for a wrong query.
        """
        self._check_open()
        argument_checks.require_str("the query", text)
        argument_checks.optional_int("limit", limit, 0)
        retrieval = compile_retrieval(text, self.plan)
        if self.deployment.groups is not None:
            return self._of_groups(retrieval, text, limit)
        if retrieval.source is not None and retrieval.source.kind == "aggregation" and retrieval.output is None:
            self.flush()
            now = self._now()
            answer = _merge_answers(retrieve(self.plan, retrieval, self.store, now=now, as_wso2=as_wso2), limit)
            return replace(answer, hint=hint_of(self.plan, retrieval, self.store, now=now, empty=not len(answer)))
        if retrieval.shared:
            self.flush()  # one node answers, and the others may take their turn with the table later
        among = self._holders(retrieval)
        if len(among) == 1 or retrieval.output is not None or retrieval.shared:
            first = next(iter(self._ask(text, among).values()))
            return Result(first.columns, first.rows, limit=limit)
        answers = {self._life.shards[n]: a for n, a in self._ask(rows_wanted(text), among).items()}
        context = self._context()
        return _merge_answers(merge_nodes(retrieval, answers, context, self._now()), limit)

    def _context(self) -> Context:
        """The context for evaluating a select over several nodes' rows."""
        return Context(scripts=scripts_of(self.plan, self.deployment.allow_scripts), limits=self.deployment.limits)

    def _holders(self, retrieval: Retrieval) -> Sequence[int]:
        """The numbers of the nodes that have the sources of a retrieval: all, or the leader alone."""
        asked = {retrieval.source.id} if retrieval.source is not None else set()
        if retrieval.output is not None:
            asked.add(retrieval.output.target.id)
        leader = self._life.leader
        return self._life.over if leader is None or asked.isdisjoint(self._parts.state) else (leader,)

    def _ask(self, text: str, among: Sequence[int]) -> dict[int, RetrievalAnswer]:
        """Puts a query to all nodes in its place among the events; the answers of those `among` them, by node."""
        answers = self._ask_nodes(text)
        out: dict[int, RetrievalAnswer] = {}
        for node in among:
            answer = answers[node]
            if isinstance(answer, QueryFailed):
                raise SiddhiRuntimeError(answer.message)
            out[node] = answer
        return out

    def _ask_nodes(self, text: str) -> dict[int, RetrievalAnswer | QueryFailed]:
        with self._lock:
            self.start()
            seq = self._inbox.append([Ask(text=text)])
        with self._cancel_on_interrupt():
            self._stream.wait(seq)
        with self._progress.changed:
            return self._progress.answers.pop(seq)

    def _of_groups(self, retrieval: Retrieval, text: str, limit: int | None) -> Result:
        """The answer of the active node; of several groups, the select over the rows of all of their active nodes."""
        if not self._is_divided(retrieval) or retrieval.output is not None:
            first = next(iter(self._active(text).values()))
            return Result(first.columns, first.rows, limit=limit, hint=self._cut_in_groups(retrieval))
        found = merge_nodes(retrieval, self._active(rows_wanted(text)), self._context(), self._now())
        return replace(_merge_answers(found, limit), hint=self._cut_in_groups(retrieval))

    def _cut_in_groups(self, retrieval: Retrieval) -> str | None:
        """The hint about an aggregation that active nodes have in their memory."""
        source = retrieval.source
        if source is None or source.kind != "aggregation" or retrieval.output is not None:
            return None

        def holds(per: AggDuration, start: int, end: int) -> bool:
            asked = f"from {source.id} within {start}L, {end}L per '{per}' select * limit 1"
            return any(answer.rows for answer in self._active(asked).values())

        return "; ".join(map(what_is_cut, cuts(self.plan, retrieval, holds, now=self._now()))) or None

    def _is_divided(self, retrieval: Retrieval) -> bool:
        """True if several nodes of groups each have a part of a retrieval's source."""
        groups = self.deployment.groups
        if isinstance(groups, Distributed):
            asked = None if retrieval.source is None else retrieval.source.id
            return any(asked in g.elements and g.parallel > 1 for g in groups.split.groups)
        return groups is not None and len(groups.pairs) > 1

    def _active(self, text: str) -> dict[str, RetrievalAnswer]:
        """The answer of each group's active node, the first one where two take themselves for it, by node. Raises
        SiddhiRuntimeError if a group has none."""
        groups = self.deployment.groups
        assert groups is not None
        if isinstance(groups, Distributed):
            found = {self._life.shards[n]: a for n, a in self._ask_nodes(text).items()}
            failed = next((a.message for a in found.values() if isinstance(a, QueryFailed)), None)
            if failed is not None:
                raise SiddhiRuntimeError(failed)
            return {n: a for n, a in found.items() if isinstance(a, RetrievalAnswer)}
        answers = {self._life.shards[n]: a for n, a in self._ask_nodes(text).items() if n in self._life.over}
        out: dict[str, RetrievalAnswer] = {}
        for pair in groups.pairs:
            own = [(n, answers[n]) for n in pair.nodes]
            active = next(((n, a) for n, a in own if isinstance(a, RetrievalAnswer)), None)
            if active is None:
                said = [a.message for _, a in own if isinstance(a, QueryFailed)]
                raise SiddhiRuntimeError("; ".join(dict.fromkeys(said)))
            out[active[0]] = active[1]
        return out

    def aggregation(
        self, name: str, per: str = "sec", within: Sequence[Any] | str | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """All of an aggregation's buckets of a duration: (merged over shards, by shard with SHARD_ID first).

        `within`: one text with wildcards, or two bounds (texts or ms). Raises `Misuse` for an unknown name, and
        SparkStreamError for a duration that the aggregation does not have.
        """
        self._check_open()
        self._aggregation(name)
        self.flush()
        if not (within is None or isinstance(within, str) or (isinstance(within, Sequence) and len(within) == 2)):
            raise Misuse(f"within is one text or two bounds, not {shown(within)}")
        bounds = ALWAYS if within is None else (within,) if isinstance(within, str) else tuple(within)
        if self.deployment.groups is not None:
            return self._in_memory(name, per, bounds)
        wanted = select_all(self.plan, name, per, bounds)  # type: ignore[arg-type]
        found = _merge_answers(retrieve(self.plan, wanted, self.store, now=self._now()))
        frame = found.frame
        if found.by_shard is not None:
            return frame, found.by_shard
        alone = frame.copy()
        alone.insert(0, SHARD, self._writers(name)[0])
        return frame, alone

    def _in_memory(self, name: str, per: str, bounds: Sequence[Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """An aggregation of groups, which their active nodes have."""
        within = ", ".join(f"{b}L" if isinstance(b, int) else f"'{b}'" for b in bounds)
        found = self._active(f"from {name} within {within} per '{per}' select *")
        frames = {shard: frame_of(answer) for shard, answer in found.items()}
        by_shard = [frame.assign(**{SHARD: shard})[[SHARD, *frame.columns]] for shard, frame in frames.items()]
        return pd.concat(frames.values(), ignore_index=True), pd.concat(by_shard, ignore_index=True)

    def view(self, name: str | None = None, *, per: str | None = None, measure: str | None = None) -> View:
        """Draws an aggregation by shard and merged, by duration, group and measure.

        `name` may be left out if there is one. `per` and `measure` are its first choice. Raises `Misuse` for names that
        the app does not have, and SparkStreamError if no front end is connected.
        """
        if self.deployment.groups is not None:
            raise Misuse(f"{self.name} has mode {self.mode}, where a node has all of an aggregation: query it instead")
        known = list(self.plan.aggregations)
        if name is None:
            if len(known) != 1:
                raise Misuse(nearest(f"{self.name} has {len(known)} aggregations: name one", "", known))
            name = known[0]
        self._aggregation(name)
        definition = self.plan.aggregations[name]
        reader = AggregationReader(
            definition,
            self._input_of(definition),
            lambda: self._writers(name),
            self.store,
            zone=self.plan.aggregation_zone,
            follow=self.on_commit,
            settle=self._settle_briefly,
            state=self._state_for_views,
        )
        return frontend.current().view(reader, per=per, measure=measure)

    def _input_of(self, aggregation: AggregationDef) -> InputStream:
        """The stream that an aggregation reads; for a derived one, the app's first defined stream."""
        defined = [s for s, d in self.plan.streams.items() if d.kind == "defined"]
        own = aggregation.input.source.id
        stream = own if own in defined or not defined else defined[0]
        by = aggregation.by
        time = by.name if isinstance(by, Ref) and by.name in self.schemas[stream].names else None
        return InputStream(self.name, stream, self.schemas[stream], time)

    def _aggregation(self, name: str) -> None:
        argument_checks.require_str("name", name)
        if name not in self.plan.aggregations:
            raise Misuse(nearest(f"{self.name} has no aggregation '{name}'", name, self.plan.aggregations))

    def output(self, stream: str, *, last: int | None = None, limit: int | None = None) -> Events:
        """The outputs of a derived stream so far; only the `last` events if given. Events that were sent before are
        waited for, but not a feed in the background, nor anything if the app is stopped: `waiting` counts those.

        Of a stream that no query writes to: its input, the `last` events (by default 1,000). The deployment's
        `retention` says how much of the past is kept; events no longer kept are counted. `limit` is the number of rows
        to show. Raises `Misuse` for an unknown stream.
        """
        argument_checks.optional_int("last", last, 0)
        argument_checks.optional_int("limit", limit, 0)
        if self._only_comes_in(stream):
            found = self._arrivals().last(stream, ARRIVALS if last is None else last)
            return Events(self.name, stream, found.frame, limit, InputCounts(found.total, found.gone))
        if self.state == "running":
            self._settle_briefly()
        arrived = self._inbox.arrived
        waiting = arrived.total - arrived.through(self._progress.last)
        with self._outputs.tidying:
            frame = self._outputs.frame(stream, self._schema(stream).names, self._progress.batch, last)
            gone = 0 if last is not None and len(frame) >= last else self._outputs.dropped_events.get(stream, 0)
        return Events(self.name, stream, frame, limit, dropped=gone, waiting=waiting)

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
        self._check_open()
        argument_checks.optional_int("last", last, 1)
        schema = self._schema(stream)
        if latest is not None and number is not None:
            raise Misuse("a tail shows the latest event of each key or one number: give latest or number, not both")
        if newest not in ("first", "last"):
            raise Misuse(f"newest is 'first' or 'last', not {shown(newest)}")
        for what, name in (("latest", latest), ("number", number)):
            if name is not None and name not in schema.names:
                raise Misuse(nearest(f"{what}: {self.name}.{stream} has no attribute '{name}'", name, schema.names))
        if latest is not None and schema.types[schema.names.index(latest)] is Type.OBJECT:
            raise Misuse(f"latest: '{latest}' of {self.name}.{stream} is an object: give an attribute of another type")
        ends: StreamEnds
        if self._only_comes_in(stream):
            ends = ArrivalEnds(self._arrivals, stream, lambda: self._inbox.position.events.get(stream, 0))
        else:
            ends = OutputEnds(lambda: self._outputs, self._progress, stream, schema.names)
        shape = TailShape(last, newest, latest, number)
        return Tail(self.name, stream, shape, ends, self.on_commit, self._state_for_views)

    def _arrivals(self) -> InboxReader:
        return InboxReader(self._inbox.folder, self.schemas, self._life.shards, self._life.began, self._life.entries)

    def _only_comes_in(self, stream: str) -> bool:
        """True if a stream has only events that are sent to it."""
        written = {q.output.target.id for q in self.plan.queries}
        self._schema(stream)
        return self.plan.streams[stream].kind == "defined" and stream not in written

    @property
    def errors(self) -> Errors:
        """Rows and events that the app could not take, each with its reason."""
        self._check_open()
        return replace(errors_of(self.name, self.store), dropped=self._progress.dropped_errors, away=self.away)

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
        self._check_open()
        written = ValueFormat.of(decimal, missing)
        with self._lock:
            wanted = select_errors(self.errors, errors, self.schemas)
            sources = self.deployment.sources
            messages_of = (lambda name: None) if sources is None else sources.messages_of
            reached = self._inbox.position.clock if self._wall is None else None
            now = self._now() if reached is None else reached
            given_again = ReplayContext(now, self._latest(), self.deployment.limits, messages_of, written)
            events: dict[int, InputBatch] = {}
            left: dict[int, str] = {}
            for error in wanted:
                try:
                    events[error.id] = to_events(error, self.schemas[error.stream], given_again)
                except SparkStreamError as e:
                    left[error.id] = str(e)
            if events:
                self.start()
                self._append([self._inbox.batch(e, self.routing) for e in events.values()])
                self.store.forget_errors(self.name, list(events))
        timeless = sum(error.at is None for error in wanted if error.id in events)
        return Replayed(self.name, len(events), left, timeless, now)

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
        disk = disk_of(self.home, self._life, self.deployment.retention)
        sinks = () if self._sinks is None else self._sinks.figures()
        with self._progress.changed:
            found = stats_of(self.name, self.plan, self.state, self._life, self._inbox, self._progress, disk)
        sources = () if self._intakes is None else self._intakes.figures()
        return replace(
            found,
            sinks=sinks,
            sources=sources,
            clock_kind=self.deployment.clock,
            live=LiveStats(self.stats, self.on_commit, self._state_for_views),
        )

    def remember(self, *, variable: str | None, lines_before: int) -> None:
        """Keeps which variable of the notebook holds the app, and the lines above its text, for `attach`."""
        with self._lock:
            record = self._life.deployed
            if record is not None:
                changed = replace(record, variable=variable, lines_before=lines_before)
                self._life = replace(self._life, deployed=changed)
                self._life.write(self.home)

    @property
    def remembered_variable(self) -> str | None:
        """The variable of the notebook that held the app, from its folder."""
        return None if self._life.deployed is None else self._life.deployed.variable

    def finish(self, seconds: float = 60.0) -> None:
        """Takes nothing more in, and waits until all that came in is committed and Spark is done with it, and a while
        for the sinks; then stops.

        Raises SparkStreamError if that fails, or takes Spark longer than `seconds` after the last commit."""
        with self._lock:
            self._stop_clock()
            self._end_feeds()
            self._stop_sources()
            if not self._is_finished() and not self._stream.active:
                self._stream.wait_for_end()
                self._stream.start()
        self._commit_all()
        if self._sinks is not None:  # outputs of a stream whose attributes change are not sent later
            self._sinks.start()
            self._sinks.drain(_DRAIN_SECONDS)
            self._commit_all()  # events that a sink could not deliver may come in again
        end = clock.monotonic() + seconds
        while not self._is_finished():  # Spark notes a batch as done after its commit
            if clock.monotonic() > end or not self._stream.active:
                raise SparkStreamError(f"{self.name}: Spark did not finish its last micro-batch")
            clock.sleep(0.02)
        self.stop()

    def _is_finished(self) -> bool:
        """True if Spark is done with all that came in."""
        spark = self._stream.checkpoint.read_progress()
        return spark.planned == spark.done and spark.reached == self._inbox.position.seq

    def _commit_all(self) -> None:
        last = self._inbox.position.seq - 1
        if self._progress.last < last:
            with self._cancel_on_interrupt():
                self._stream.wait(last)

    def note(self, line: str) -> None:
        """Adds a line to the logs."""
        self._progress.say(line)

    @property
    def logs(self) -> list[str]:
        """The last lines that `#log` and `log` sinks wrote, and notes on the deployment files."""
        return list(self._progress.logs)


def check_feed(plan: Plan, stream: str, source: Any, reading: Reading = AS_IT_IS) -> None:
    """Raises SparkStreamError if `App.feed` of an app of `plan` would refuse these arguments. Nothing starts."""
    if stream not in plan.streams:
        raise Misuse(nearest(f"{plan.name or 'the app'} has no stream '{stream}'", stream, plan.streams))
    check_source(source, reading.shape(stream, plan.schema(stream)))


def _merge_answers(found: Retrieved, limit: int | None = None) -> Result:
    read = found.read_by_shard
    by_shard = None if read is None else (lambda: frame_of(read()))
    return Result(found.merged.columns, found.merged.rows, by_shard, limit)

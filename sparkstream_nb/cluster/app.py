"""A running app: events in, answers out."""

from __future__ import annotations

import contextlib
import threading
import time as clock
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from ..engine.batch import Answer, InputBatch, StreamRows
from ..engine.expressions import Context
from ..engine.scripts import scripts_of
from ..errors import Misuse, SiddhiRuntimeError, SparkStreamError, did_you_mean, nearest, shown
from ..plan import compile_retrieval, explain, placement
from ..plan.graph import graph_of
from ..plan.leader import LEADER, Parts
from ..plan.nodes import AggregationDef, Plan, Ref, Retrieval
from ..plan.repair import repairs
from ..simulation.faults import Fault, Scenario, members_of
from ..spark import feeds
from ..spark.arrivals import InboxReader
from ..spark.commit import Commit, Progress
from ..spark.entries import Ask, Entry, FaultEntry, Reject
from ..spark.failover import items_of, pair_outcome, truth_of
from ..spark.feed_check import check_source
from ..spark.inbox import Inbox
from ..spark.ingest import columns_of, too_late
from ..spark.marks import Marks
from ..spark.merging import Merging
from ..spark.outputs import OutputFiles
from ..spark.private import private_folder
from ..spark.processor import NodeSpec
from ..spark.reach import missed
from ..spark.replay import NOT_KEPT, Nodes, Way, planned_faults
from ..spark.results import Failed, error_lines
from ..spark.retrieval import Retrieved, merge_nodes, retrieve, rows_wanted, select_all
from ..spark.routing import Route
from ..spark.stream import Stream, interrupt
from ..spark.study import Input
from ..spark.tables import packed
from ..stores import Store, shard_warnings
from ..stores.sql import Patience
from ..types import Schema
from . import feeding, frontend, given
from .answers import (
    SHARD,
    AppGraph,
    Came,
    Errors,
    Events,
    FeedReport,
    PlanText,
    RepairList,
    Result,
    Stats,
    frame_of,
)
from .buckets import ALWAYS, AggregationReader, InputStream
from .conf import node_files
from .controls import Cluster, Told
from .deployment import HA, MOST_NODES, Deployment, milliseconds
from .divergence import Divergence, Truth
from .failover import Failover
from .feeding import Feed
from .figures import disk_of, stats_of
from .folder import Life
from .frontend import Displayed, View
from .hints import why_empty
from .idle import IdleTicker
from .listeners import CommitListeners, OnCommit
from .owner import Ownership
from .progress import OnProgress
from .rejected import again, chosen, errors_of
from .scaling import scaled, wanted_ids
from .stores import open_store, prepare_tables
from .study import Material, Study, material, study
from .whole import Found, check_whole

_SETTLE_SECONDS = 10.0
"""How long a view waits for events that were sent, at most."""

ARRIVALS = 1_000
"""Events of an input stream that `App.output` reads where it is not told how many."""


class App(Displayed):
    """A deployed app. Made by `deploy`, or found by `get`; a notebook shows it as a card.

    Times are ms since 1970. Nodes are numbered from 1. `lines_before`: lines above the app's text where a person sees
    it, as the line `%%siddhi` of its cell; numbers of lines include them.
    """

    lines_before = 0
    owner: Ownership | None = None
    """The ownership of the app's folder, which `close` gives up."""

    def __init__(
        self, deployment: Deployment, plans: Sequence[Plan], life: Life, session: Any, redeployed: str | None = None
    ) -> None:
        """`plans`: one for each node. `redeployed`: what became of the state of an earlier deployment."""
        self.redeployed = redeployed
        self._session = session
        self._lock = threading.RLock()
        self._closed = False
        self._progress = Progress()
        self._listeners = CommitListeners(deployment.name, self._progress)
        self._open(deployment, plans, life)

    def _open(self, deployment: Deployment, plans: Sequence[Plan], life: Life) -> None:
        """Opens the app's files, with the nodes that it has from now on."""
        self.deployment, self._plans, self.plan, self._life = deployment, list(plans), plans[0], life
        self._parts = Parts(plans[0], deployment.led)
        self.schemas: dict[str, Schema] = {s: d.source.schema for s, d in self.plan.streams.items()}
        self._stopped = False
        self._known_truth: Truth | None = None
        self.store = self._open_store()
        prepare_tables(deployment.tables, Patience(tell=self._progress.say))
        tables = packed(deployment.tables.items()) if deployment.tables else b""
        self.warnings = [
            w
            for a in self.plan.aggregations.values()
            if a.partitioned
            for w in shard_warnings(self.store, a.id, self._writers(a.id))
        ]
        folder = life.folder(self.home)
        self._inbox = Inbox(folder / "inbox", over=life.over)
        self._outputs = OutputFiles(folder / "outputs", life.shards)
        by_shard = dict(zip(self.shard_ids, plans, strict=True))
        # A node that was removed is still there for what was sent before.
        specs = [
            NodeSpec.of(
                i, s, self._parts.own(by_shard.get(s, plans[0]), leads=i == life.leader),
                scripts=deployment.allow_scripts, index=i, count=life.began, start=deployment.start, tables=tables,
                duty=self._parts.duty if i == life.leader else None, scenario=deployment.scenario,
            )
            for i, s in enumerate(life.shards)
        ]  # fmt: skip
        merging = Merging(self._outputs, deployment.retention)
        commit = Commit(
            self.name, life.run, life.shards, self.store, self._outputs, self._progress, self.plan, merging=merging
        )
        self._stream = Stream(
            self._session, self.name, folder, life.run, specs, self.schemas, commit,
            deployment.rows_per_micro_batch, deployment.retention,
        )  # fmt: skip
        self._check_whole(folder)
        self._progress.batch, self._progress.last = self._stream.committed()
        self._target = feeding.Target(
            self.name, self.nodes, self._inbox, self._stream, self._session, self._lock,
            self.start, self._append, self._now,
            self._marks(),
        )  # fmt: skip
        idle = self.plan.idle_clock
        self._idle = None if idle is None else IdleTicker(idle, self._advance)

    def _marks(self) -> Marks:
        """How far the nodes, and the tasks before them, are within a micro-batch."""
        if self.deployment.scenario is not None:  # its nodes do all of it themselves
            return Marks(self._inbox.folder, self.nodes, tasks=False)
        ahead, rest = placement.split(self._parts.own(self.plan, leads=False))
        return Marks(self._inbox.folder, 0 if placement.idle(rest) else self.nodes, tasks=ahead is not None)

    def _check_whole(self, folder: Path) -> None:
        """Raises `Misuse` where the app's folder lacks what it had. What is open then is closed."""
        spark = self._stream.checkpoint()
        # A server's Spark is ahead of the store until its owner has taken in what was handed over.
        known = self.deployment.store != ":memory:" and self._stream.intake is None
        ledger = self.store.committed(self.name, self._life.run) if known else None
        outputs = folder / "outputs"
        if spark.done < 0:
            private_folder(outputs)
        try:
            check_whole(self.home, Found(self._inbox.position.seq, spark, ledger, outputs.is_dir()))
        except Misuse:
            self._close_files()
            raise

    def _open_store(self) -> Store:
        """The store of the aggregations; emptied where one that is not in the app's folder is to be fresh.

        Of a database that others may share, the rows of this deployment's shards go.
        """
        d, aggregations = self.deployment, self.plan.aggregations
        patience = Patience(tell=self._progress.say)
        store = open_store(self.home / "store.duckdb" if d.store is None else d.store, d.databases, patience)
        outside = [a for a in aggregations.values() if a.id in d.databases or d.store is not None]
        if d.fresh and outside:
            store.prepare(outside)
            for aggregation in outside:
                if aggregation.partitioned and aggregation.id in d.databases:
                    for shard in self._writers(aggregation.id):
                        store.delete_shard(aggregation.id, shard)
                else:
                    store.drop(aggregation.id)
        store.prepare(aggregations.values())
        return store

    # --------------------------------------------------------------------------------------------------- what it is

    @property
    def name(self) -> str:
        """The name under which it was deployed."""
        return self.deployment.name

    @property
    def mode(self) -> str:
        """ "single", "active-active" or "ha"."""
        return self.deployment.mode

    @property
    def routing(self) -> str:
        """Which node gets an event: "round_robin", "hash:ATTRIBUTE", "node:K", "random:SEED" or "sticky"."""
        return self.deployment.routing

    @property
    def shard_ids(self) -> tuple[str, ...]:
        """The shard id of each node, in order."""
        return self.deployment.shard_ids

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.deployment.nodes

    @property
    def home(self) -> Path:
        """The app's folder."""
        return self.deployment.home

    @property
    def closed(self) -> bool:
        """Whether it is of no use any more, as it was deployed again or all apps were stopped."""
        return self._closed

    @property
    def state(self) -> str:
        """ "running", "stopped" (by `stop` or `interrupt`) or "failed"."""
        if self._stopped:
            return "stopped"
        if self._stream.active:
            return "running"
        return "failed" if self._stream.failure() else "stopped"

    def summary(self) -> str:
        return f"<App {self.name}: {self.state}, {self.nodes} node{'s' if self.nodes > 1 else ''}, {self.mode}>"

    # ------------------------------------------------------------------------------------------------------- running

    def start(self) -> None:
        """Starts the app, or starts it again where it left off. Raises SparkStreamError where Spark refuses to."""
        with self._lock:
            self._check_open()
            if self._stopped:
                self._stream.ended()  # Spark may still be busy ending what was stopped
            if not self._stream.active:
                self._target.marks.clear()
            self._stream.start()
            self._stopped = False
            if self._idle is not None:
                self._idle.start()

    def stop(self) -> None:
        """Cancels the app's Spark work, within 2 s, and stops its feeds in the background.

        State, outputs and aggregations stay; an event or a query starts it again.
        """
        with self._lock:
            self._stop_idle_clock()
            self._end_feeds()
            self._stopped = True
            self._stream.stop()

    def interrupt(self) -> None:
        """Stops the app as `stop` does, and takes back the events that it had not begun with.

        The app starts again with the next event or query; a micro-batch that was under way is then carried through.
        """
        with self._lock:
            self._stop_idle_clock()
            ended = self._end_feeds()
            interrupt(self._session, self._target.tag)
            self._stopped = True
            if self._stream.stop():
                seq = max(self._stream.planned(), self._progress.last + 1)
                self._inbox.truncate(seq)
                for feed in ended:
                    feed.withdraw(seq)

    def _end_feeds(self) -> list[Feed]:
        """Stops the feeds in the background; those that were running."""
        running = [f for f in self.feeds.values() if f.active]
        for feed in running:
            feed.end()
        return running

    @property
    def feeds(self) -> feeding.Feeds:
        """The feeds in the background since the app was deployed, by their numbers."""
        return feeding.feeds_of(self._target)

    def close(self) -> None:
        """Lets go of the files of a stopped app. It is of no use afterwards, and says so."""
        self._closed = True
        self._stream.ended()
        for feed in self.feeds.values():
            feed.join()
        self._listeners.clear()
        self._close_files()
        if self.owner is not None:
            self.owner.release()

    def _close_files(self) -> None:
        self._inbox.close()
        self.store.close()

    def scale(
        self,
        nodes: int | None = None,
        *,
        shard_ids: Sequence[str] | None = None,
        conf: str | Path | Sequence[str | Path] | None = None,
    ) -> App:
        """Changes the number of nodes of a running active-active deployment, and returns the app.

        `nodes`: how many there are from now on; the last ones go, new ones get the next shard ids. Or `shard_ids`, or
        the deployment files `conf` of all nodes. What was sent before is committed with the nodes of then. The state of
        nodes that stay goes on; of those that go, what was stored stays; one that comes back under its shard id goes on
        where it left off. Raises `Misuse` for an app on a single node, or ids that do not differ.
        """
        if self.mode != "active-active":
            raise Misuse(f"{self.name} has mode {self.mode}; deploy it with mode='active-active' to scale it")
        given.texts("shard_ids", shard_ids)
        files = () if conf is None else tuple(node_files(conf))
        ids = [f.shard_id for f in files] if files else shard_ids
        wanted = wanted_ids(self.shard_ids, self._life.shards, nodes, ids)
        if self._life.leader is not None and LEADER in wanted:
            raise Misuse(f"'{LEADER}' is the shard id of the leader: give the shard another")
        if wanted == self.shard_ids:
            return self
        if any(feed.active for feed in self.feeds.values()):
            raise Misuse(f"{self.name} has feeds in the background: stop them, or wait for them, before it is scaled")
        deployment, plans = scaled(self.deployment, self._plans, wanted, files)
        Route.parse(deployment.routing, len(wanted))
        with self._lock:
            self.flush()
            self.stop()
            self._stream.ended()
            self._close_files()
            life = self._life.scaled(wanted)
            life.write(self.home)
            self._open(replace(deployment, fresh=False), plans, life)
            self.start()
        return self

    def _check_open(self) -> None:
        """Raises `Misuse` where this app was closed: a variable may still hold it after a new deployment."""
        if self._closed:
            raise Misuse(
                f"this app '{self.name}' is closed, as it was deployed again or all apps were stopped. "
                f"sparkstream_nb.get('{self.name}') is the one that runs"
            )

    def on_commit(self, callback: OnCommit) -> Callable[[], None]:
        """Calls `callback(n)` after each committed micro-batch, where `n` of the app are; returns what ends that.

        It is called on a thread of its own, outside all locks, so it may ask the app and takes the time it needs:
        commits meanwhile are told in one call. Its exceptions are logged. It ends with `close`, thus when the app is
        deployed again.
        """
        if not callable(callback):
            raise Misuse(f"callback is a function, not {shown(callback)}")
        return self._listeners.add(callback)

    def flush(self) -> None:
        """Waits until everything sent is committed. Raises SparkStreamError where the app failed."""
        with self._cancelling():
            self._settle(None)

    def _settle(self, tell: Callable[[], None] | None) -> None:
        last = self._inbox.position.seq - 1
        if self._progress.last < last:
            self.start()
            self._stream.wait(last, tell=tell)

    @contextlib.contextmanager
    def _cancelling(self) -> Iterator[None]:
        """Ctrl-C and a notebook's Stop button inside cancel what Spark does for the app.

        Where feeds run in the background, they end the waiting alone.
        """
        try:
            yield
        except KeyboardInterrupt:
            if not any(f.active for f in self.feeds.values()):
                self.interrupt()
            raise

    # ----------------------------------------------------------------------------------------------------- events in

    def send(
        self, stream: str, values: Any, *, at: int | str | datetime | None = None, node: int | None = None
    ) -> None:
        """Sends an event, or a list of events at once: one chunk, as Siddhi's `InputHandler.send(Event[])`.

        An event is a list of values in the stream's order, null for those it lacks, or a dict by attribute. `at` is
        its time: ms since 1970, a datetime or an ISO text; without it that of this machine, or the app's clock if that
        is ahead. An event whose time is too far ahead (`max_ahead` of `deploy`) becomes an error of the app. `node`
        (from 1) overrides the routing. Returns when the event is in the inbox; `flush` waits for what it causes. Raises
        `Misuse` for an unknown stream, and SparkStreamError for values that do not fit.
        """
        schema = self._schema(stream)
        several = isinstance(values, list | tuple) and bool(values) and isinstance(values[0], list | tuple | dict)
        rows = [_row(stream, schema, v) for v in (values if several else [values])]
        columns = columns_of(schema, rows, stream)
        route = self.routing if node is None else f"node:{node}"
        Route.parse(route, self.nodes)
        with self._lock:
            ts = self._now() if at is None else milliseconds(at, "at")
            latest = self._latest()
            if latest is not None and ts > latest and at is not None:
                errors = error_lines([[stream, ts, row, too_late(ts, latest)] for row in rows])
                self.start()
                self._append([Reject(file=self._inbox.write(f"late-{uuid.uuid4().hex[:12]}", errors))])
                return
            times = np.full(len(rows), ts, np.int64)
            batch = InputBatch(times[:1], {stream: StreamRows(np.zeros(len(rows), np.int64), times, columns)})
            self.start()
            self._append([self._inbox.batch(batch, route)])

    def tick(self, ms: int) -> None:
        """Moves the app's clock to `ms` with no event, so that windows and timers run."""
        to = milliseconds(ms, "ms")
        with self._lock:
            self.start()
            self._append([self._tick(to)])

    def _tick(self, ms: int) -> Entry:
        return self._inbox.batch(InputBatch(np.array([ms], np.int64)), self.routing)

    def _append(self, entries: Sequence[Entry]) -> None:
        """Puts what a person sent into the inbox."""
        self._inbox.append(entries)
        if self._idle is not None:
            self._idle.sent()

    def _advance(self, increment: int) -> None:
        """Moves the clock on by `increment` ms, if the app runs and has a clock by now."""
        with self._lock:
            now = self._inbox.position.clock
            if self._stream.active and not self._stopped and now is not None:
                self._inbox.append([self._tick(now + increment)])

    def _stop_idle_clock(self) -> None:
        if self._idle is not None:
            self._idle.stop()

    @overload
    def feed(
        self,
        stream: str,
        source: Any,
        *,
        time: str | None = None,
        route: str | None = None,
        limit: int | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        progress: OnProgress | None = None,
        background: Literal[False] = False,
    ) -> FeedReport: ...

    @overload
    def feed(
        self,
        stream: str,
        source: Any,
        *,
        time: str | None = None,
        route: str | None = None,
        limit: int | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        progress: OnProgress | None = None,
        background: Literal[True],
    ) -> Feed: ...

    def feed(
        self,
        stream: str,
        source: Any,
        *,
        time: str | None = None,
        route: str | None = None,
        limit: int | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        progress: OnProgress | None = None,
        background: bool = False,
    ) -> FeedReport | Feed:
        """Feeds `stream` from a frame (pandas, Arrow, Spark) or a `.csv` or `.parquet` file, until all is committed.

        `time` names the column of event times (ms, datetime, or text): events are put in their order, ties in the
        feed's. Without it events keep the feed's order, 1 ms apart. `route` overrides the routing. `limit`: only the
        first so many rows. `columns` maps attributes to source columns, or lists these in the attributes' order. Rows
        that do not fit are counted and kept in `errors`. `progress` is called when the reading begins, and then several
        times a second until all is committed; by default the front end shows how far the feed is. With `background` the
        call returns at once: a `Feed`, which can be paused, stopped and waited for. Raises `Misuse` for an unknown
        stream, SparkStreamError for a source that is no feed.
        """
        schema = self._schema(stream)
        given.text("time", time)
        given.whole("limit", limit, 0)
        if progress is not None and not callable(progress):
            raise Misuse(f"progress is a function, not {shown(progress)}")
        if columns is not None and not isinstance(columns, Mapping):
            given.texts("columns", columns)
        elif columns is not None:
            given.mapping("columns", columns)
        if isinstance(source, str | Path):
            given.path("the feed", source)
        shape = feeds.Shape(stream, schema, time, _mapped(schema, columns), latest=self._latest())
        Route.parse(route or self.routing, self.nodes, {stream: schema} if route else None)
        check_source(source, shape)
        followed = len(self._listeners) > 0
        request = feeding.Request(source, shape, route or self.routing, limit, followed)
        if background:
            return feeding.start_feed(self._target, request)
        if progress is not None:
            return self._feed(request, progress)
        with contextlib.closing(frontend.current().progress()) as display:
            return self._feed(request, display)

    def _feed(self, request: feeding.Request, progress: OnProgress) -> FeedReport:
        try:
            return feeding.feed(self._target, request, self._settle, progress)
        except KeyboardInterrupt:
            self.interrupt()
            raise

    def _now(self) -> int:
        """This machine's time (ms), or the app's clock where it is ahead."""
        return max(int(clock.time() * 1000), self._inbox.position.clock or 0)

    def _latest(self) -> int | None:
        """The last time (ms) at which an event is taken; None where all are."""
        most = self.deployment.max_ahead
        return None if most is None else int(clock.time() * 1000) + most

    def _schema(self, stream: str) -> Schema:
        given.a_text("stream", stream)
        if stream not in self.schemas:
            raise Misuse(nearest(f"{self.name} has no stream '{stream}'", stream, self.schemas))
        return self.schemas[stream]

    # --------------------------------------------------------------------------------------------------- answers out

    def query(self, text: str, *, limit: int | None = None, as_wso2: bool = False) -> Result:
        """Answers an on-demand query when everything sent is committed.

        Over an aggregation: merged over shards, and `by_shard` what each holds. Over a node's own tables and windows,
        with several nodes: the select works on the rows of all. `limit` is how many rows to show. `as_wso2`: what
        WSO2's servers would answer over an aggregation partitioned by id, which do not see the bucket of the finest
        duration that is open on each node. Raises SiddhiError, with a caret, for a wrong query.
        """
        self._check_open()
        given.a_text("the query", text)
        given.whole("limit", limit, 0)
        retrieval = compile_retrieval(text, self.plan)
        if self.mode == HA:
            found = self._ask_active(text)
            return Result(found.columns, found.rows, limit=limit)
        if retrieval.source is not None and retrieval.source.kind == "aggregation" and retrieval.output is None:
            self.flush()
            now = self._now()
            answer = _merged(retrieve(self.plan, retrieval, self.store, now=now, as_wso2=as_wso2), limit)
            unreached = None if len(answer) else missed(self.plan, retrieval, self.store, now=now)
            return answer if unreached is None else replace(answer, hint=why_empty(unreached))
        if retrieval.shared:
            self.flush()  # one node answers, and the others may take their turn with the table later
        among = self._holders(retrieval)
        if len(among) == 1 or retrieval.output is not None or retrieval.shared:
            first = next(iter(self._ask(text, among).values()))
            return Result(first.columns, first.rows, limit=limit)
        answers = {self._life.shards[n]: a for n, a in self._ask(rows_wanted(text), among).items()}
        context = Context(scripts=scripts_of(self.plan, self.deployment.allow_scripts))
        return _merged(merge_nodes(retrieval, answers, context, self._now()), limit)

    def _holders(self, retrieval: Retrieval) -> Sequence[int]:
        """The numbers of the nodes that have what a retrieval asks for: all, or the leader alone."""
        asked = {retrieval.source.id} if retrieval.source is not None else set()
        if retrieval.output is not None:
            asked.add(retrieval.output.target.id)
        leader = self._life.leader
        return self._life.over if leader is None or asked.isdisjoint(self._parts.state) else (leader,)

    def _ask(self, text: str, among: Sequence[int]) -> dict[int, Answer]:
        """Puts a query to all nodes in its place among the events; the answers of those `among` them, by node."""
        answers = self._asked(text)
        out: dict[int, Answer] = {}
        for node in among:
            answer = answers[node]
            if isinstance(answer, Failed):
                raise SiddhiRuntimeError(answer.message)
            out[node] = answer
        return out

    def _asked(self, text: str) -> dict[int, Answer | Failed]:
        with self._lock:
            self.start()
            seq = self._inbox.append([Ask(text=text)])
        with self._cancelling():
            self._stream.wait(seq)
        with self._progress.changed:
            return self._progress.answers.pop(seq)

    def _ask_active(self, text: str) -> Answer:
        """The answer of the active node of a pair; of the first one where two take themselves for it."""
        answers = self._asked(text)
        found = [answers[n] for n in self._life.over]
        for answer in found:
            if isinstance(answer, Answer):
                return answer
        raise SiddhiRuntimeError("; ".join(dict.fromkeys(a.message for a in found if isinstance(a, Failed))))

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
        if self.mode == HA:
            return self._in_memory(name, per, bounds)
        wanted = select_all(self.plan, name, per, bounds)  # type: ignore[arg-type]
        found = _merged(retrieve(self.plan, wanted, self.store, now=self._now()))
        frame = found.frame
        if found.by_shard is not None:
            return frame, found.by_shard
        alone = frame.copy()
        alone.insert(0, SHARD, self._writers(name)[0])
        return frame, alone

    def _in_memory(self, name: str, per: str, bounds: Sequence[Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """An aggregation of a pair, which the active node has."""
        within = ", ".join(f"{b}L" if isinstance(b, int) else f"'{b}'" for b in bounds)
        answers = self._asked(f"from {name} within {within} per '{per}' select *")
        found = {self._life.shards[n]: a for n in self._life.over if isinstance(a := answers[n], Answer)}
        if not found:
            self._ask_active(f"from {name} within {within} per '{per}' select *")
        frames = {shard: frame_of(answer) for shard, answer in found.items()}
        by_shard = [frame.assign(**{SHARD: shard})[[SHARD, *frame.columns]] for shard, frame in frames.items()]
        return next(iter(frames.values())), pd.concat(by_shard, ignore_index=True)

    def view(self, name: str | None = None, *, per: str | None = None, measure: str | None = None) -> View:
        """Draws an aggregation by shard and merged, by duration, group and measure.

        `name` may be left out where there is one. `per` and `measure` are what it begins with. Raises `Misuse` for
        names that the app does not have, and SparkStreamError where no front end is connected.
        """
        if self.mode == HA:
            raise Misuse(f"{self.name} has mode {HA}, where one node has all of an aggregation: query it instead")
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
        )
        return frontend.current().view(reader, per=per, measure=measure)

    def _writers(self, aggregation: str) -> tuple[str, ...]:
        """The shard ids under which an aggregation is stored."""
        duty = self._parts.duty
        return self.shard_ids if duty is None or aggregation not in duty.aggregations else (LEADER,)

    def _input_of(self, aggregation: AggregationDef) -> InputStream:
        """The stream that an aggregation reads; where that is derived, the app's first defined stream."""
        defined = [s for s, d in self.plan.streams.items() if d.kind == "defined"]
        own = aggregation.input.source.id
        stream = own if own in defined or not defined else defined[0]
        by = aggregation.by
        time = by.name if isinstance(by, Ref) and by.name in self.schemas[stream].names else None
        return InputStream(self.name, stream, self.schemas[stream], time)

    def _settle_briefly(self) -> None:
        """Waits until what was sent is committed. A feed is not waited for: it goes on after a micro-batch."""
        last, batch = self._inbox.position.seq - 1, self._progress.batch
        if self._progress.last >= last:
            return
        self.start()
        end = clock.monotonic() + _SETTLE_SECONDS
        with self._cancelling():
            while not self._stream.wait(last, timeout=1.0):
                if self._progress.batch > batch or clock.monotonic() > end:
                    return

    def _aggregation(self, name: str) -> None:
        given.a_text("name", name)
        if name not in self.plan.aggregations:
            raise Misuse(nearest(f"{self.name} has no aggregation '{name}'", name, self.plan.aggregations))

    def output(self, stream: str, *, last: int | None = None, limit: int | None = None) -> Events:
        """What a derived stream put out so far, as far as it is committed; the `last` so many events where given.

        Of a stream that no query writes to: what came in, the last 1,000 events or the `last` so many. How much of the
        past is kept is the deployment's `retention`; what is not is counted. `limit` is how many rows to show. Raises
        `Misuse` for an unknown stream.
        """
        given.whole("last", last, 0)
        given.whole("limit", limit, 0)
        if self._only_comes_in(stream):
            reader = InboxReader(self._inbox.folder, self.schemas, self._life.shards, self._life.began)
            found = reader.last(stream, ARRIVALS if last is None else last)
            return Events(self.name, stream, found.frame, limit, Came(found.total, found.gone))
        with self._outputs.tidying:
            frame = self._outputs.frame(stream, self._schema(stream).names, self._progress.batch, last)
            gone = 0 if last is not None and len(frame) >= last else self._outputs.dropped.get(stream, 0)
        return Events(self.name, stream, frame, limit, dropped=gone)

    def _only_comes_in(self, stream: str) -> bool:
        """Whether a stream has nothing but what is sent to it."""
        written = {q.output.target.id for q in self.plan.queries}
        self._schema(stream)
        return self.plan.streams[stream].kind == "defined" and stream not in written

    @property
    def errors(self) -> Errors:
        """Rows and events that the app could not take, each with its reason."""
        self._check_open()
        return errors_of(self.name, self.store)

    def replay(self, errors: pd.DataFrame | Sequence[int] | None = None) -> int:
        """Sends rows and events of `errors` once more, and takes them off the list; returns how many.

        `errors`: their ids, or rows of `errors.frame`, whose values and timestamps may have been edited; by default all
        that came in on a stream. An event keeps its time. They enter together, or none does: raises `Misuse` for an id
        that is not there, and SparkStreamError for values that do not fit their stream. Where the process ends in
        between, they are sent and still on the list.
        """
        self._check_open()
        with self._lock:
            wanted = chosen(self.errors, errors, self.schemas)
            events = [again(e, self.schemas[e.stream], self._now()) for e in wanted]
            for event in events:
                if (latest := self._latest()) is not None and event.at > latest:
                    raise SparkStreamError(f"error {event.id}: {too_late(event.at, latest)}")
            if events:
                self.start()
                self._append([self._inbox.batch(e.batch, self.routing) for e in events])
                self.store.forget_errors(self.name, [e.id for e in events])
        return len(events)

    def divergence(self, nodes: int | None = None, routing: str | None = None) -> Divergence:
        """What the nodes put out, held against the truth: one node that takes all that came in, in the same order.

        With `nodes` or `routing`: what so many nodes would have put out under that routing. Every output is the same,
        lost, spurious, late or duplicated, and what is not the same has its cause: the events that it was made of, and
        the nodes that they went to. What came in is replayed here, without Spark. Raises SparkStreamError where its
        beginning is not kept any more, or a table is in a database.
        """
        if self.mode == HA and nodes is None and routing is None:
            raise Misuse(f"{self.name} has mode {HA}: failover() holds what its pair put out against one node")
        return self._truth().against(self._way(nodes, routing))

    @property
    def cluster(self) -> Cluster:
        """The nodes of an app in mode ha, to be killed, restarted, paused and cut off. Raises `Misuse` in other
        modes."""
        scenario = self._pair()

        def told() -> Told:
            try:
                first, faults = planned_faults(self._inbox.folder, self.schemas)
            except FileNotFoundError:
                raise SparkStreamError(NOT_KEPT) from None
            return Told(first, self._inbox.position.clock, faults)

        def add(fault: Fault) -> None:
            with self._lock:
                self.start()
                self._append([FaultEntry(fault=members_of(fault))])

        return Cluster(scenario, told, add)

    def failover(self) -> Failover:
        """What the pair of mode ha put out, held against one node that takes all that came in and never fails: who took
        over when, which events were lost or processed twice, which outputs are lost, spurious or duplicated.

        What came in is replayed here, without Spark. Raises `Misuse` in other modes, SparkStreamError where the
        beginning of what came in is not kept any more.
        """
        scenario, nodes = self._pair(), self._replayed_nodes()
        self.flush()
        items = items_of(self._recorded().read(), self.plan)
        outcome = pair_outcome(items, scenario, nodes, truth_of(items, nodes))
        return Failover(self.name, scenario, outcome, self._writers_of_streams())

    def _pair(self) -> Scenario:
        self._check_open()
        if self.deployment.scenario is None:
            raise Misuse(f"{self.name} has mode {self.mode}: deploy it with mode='{HA}' for nodes that take over")
        return self.deployment.scenario

    def _writers_of_streams(self) -> dict[str, str]:
        streams = dict.fromkeys(q.output.target.id for q in self.plan.queries)
        return {s: ", ".join(q.name for q in self.plan.queries if q.output.target.id == s) for s in streams}

    def _way(self, nodes: int | None, routing: str | None) -> Way:
        if nodes is None and routing is None:
            return Way(len(self._life.shards))
        given.whole("nodes", nodes, 1, MOST_NODES)
        count = self.nodes if nodes is None else nodes
        Route.parse(routing or self.routing, count, self.schemas)
        return Way(count, routing or self.routing)

    def _truth(self) -> Truth:
        """The truth of all that came in; the last one again where nothing came in since."""
        self._check_open()
        nodes = self._replayed_nodes()
        self.flush()
        source = self._recorded()
        if self._known_truth is None or self._known_truth.source != source:
            self._known_truth = Truth(self.name, source, nodes, self._life.shards)
        return self._known_truth

    def _recorded(self) -> Input:
        return Input(str(self._inbox.folder), self.schemas, self._life.began, self._inbox.position.seq - 1)

    def _replayed_nodes(self) -> Nodes:
        stored = [t.source.id for t in self.plan.tables.values() if t.stored]
        if stored:
            raise SparkStreamError(
                f"{self.name} cannot be replayed: table '{stored[0]}' is in a database, and what it held at each time "
                "is not known any more. Leave @store out of the app to study it"
            )
        return Nodes(self.plan, self.deployment.start, self.deployment.allow_scripts, self.deployment.led)

    def study(
        self,
        nodes: int | Iterable[int] = range(1, 17),
        routings: Sequence[str] | None = None,
        *,
        feed: Mapping[str, Any] | None = None,
        time: str | None = None,
    ) -> Study:
        """What the outputs would be on other numbers of nodes under other routings: how many are lost, spurious or
        duplicated against one node's, for every combination, computed by one Spark job.

        `routings`: by default round robin, random, each input stream to one node, and by each attribute that could be a
        key. What came in so far is replayed; or `feed`, frames or files by stream, put in order by `time` as in `feed`.
        A study is without a leader: it tells what needs one. Raises `Misuse` for an impossible combination,
        SparkStreamError as `divergence` and `feed` do.
        """
        self._check_open()
        for count in [nodes] if isinstance(nodes, int | str) else (nodes := list(nodes)):
            given.whole("nodes", count, 1, MOST_NODES)
        replayed = replace(self._replayed_nodes(), led=None)
        if feed is None:
            self.flush()
            came_in = Material(self._recorded(), f"{self._life.run} {self._inbox.position.seq}")
        else:
            if not isinstance(feed, Mapping):
                raise Misuse(f"feed is a dict of frames or files by stream, not {shown(feed)}")
            for stream in feed:
                self._schema(stream)
            self.start()
            came_in = material(self._target, feed, time, self.schemas)
        return study(self._target, replayed, came_in, nodes, routings)

    def explain(self) -> PlanText:
        """The plan: what runs where, and what routing does to each query."""
        return PlanText(explain(self.plan, self.lines_before))

    def repair(self) -> RepairList:
        """What would make each query right on several nodes, and the app's text with what can be rewritten."""
        found = repairs(self.plan, self.plan.text, self.deployment.references.variables)
        return RepairList(found, self.lines_before)

    def graph(self) -> AppGraph:
        """Streams, queries, tables and the rest as a picture, marked by what routing does to them."""
        return AppGraph(graph_of(self.plan))

    def stats(self) -> Stats:
        """How far the app is, and the figures of its nodes, queries, tables, windows and aggregations."""
        disk = disk_of(self.home, self._life, self.deployment.retention)
        with self._progress.changed:
            return stats_of(self.name, self.plan, self.state, self._life, self._inbox.position, self._progress, disk)

    def note(self, line: str) -> None:
        """Adds a line to the logs."""
        self._progress.say(line)

    @property
    def logs(self) -> list[str]:
        """The last lines that `#log` and `log` sinks wrote, and what there is to know of the deployment files."""
        return list(self._progress.logs)


def check_feed(plan: Plan, stream: str, source: Any, *, time: str | None = None) -> None:
    """Raises SparkStreamError where `App.feed` of an app of `plan` would refuse these arguments. Nothing starts."""
    if stream not in plan.streams:
        raise Misuse(nearest(f"{plan.name or 'the app'} has no stream '{stream}'", stream, plan.streams))
    check_source(source, feeds.Shape(stream, plan.schema(stream), time, {}))


def _mapped(schema: Schema, columns: Mapping[str, str] | Sequence[str] | None) -> dict[str, str]:
    """The source column of each attribute that has one of another name."""
    if not columns:
        return {}
    if not isinstance(columns, Mapping):
        return dict(zip(schema.names, columns, strict=False))
    for name in columns:
        if name not in schema.names:
            raise Misuse(nearest(f"columns: there is no attribute '{name}'", name, schema.names))
    return dict(columns)


def _row(stream: str, schema: Schema, values: Any) -> list[Any]:
    """An event's values in the order of `schema`, null where a list has too few. Raises SparkStreamError for a dict
    that lacks attributes or has unknown ones."""
    if isinstance(values, Mapping):
        for name in values:
            if name not in schema.names:
                hint = did_you_mean(str(name), schema.names) or ""
                raise SparkStreamError(f"{stream} has no attribute '{name}'. {hint}".strip())
        missing = [n for n in schema.names if n not in values]
        if missing:
            raise SparkStreamError(f"{stream}: the event lacks {', '.join(missing)}.")
        return [values[n] for n in schema.names]
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise SparkStreamError(f"{stream}: an event is a list of values {schema} or a dict by attribute.")
    return [*values, *[None] * (len(schema) - len(values))]


def _merged(found: Retrieved, limit: int | None = None) -> Result:
    read = found.read_by_shard
    by_shard = None if read is None else (lambda: frame_of(read()))
    return Result(found.merged.columns, found.merged.rows, by_shard, limit)

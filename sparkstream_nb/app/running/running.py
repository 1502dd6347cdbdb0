"""The running of an app: its files and its stream of micro-batches, incoming events, and waiting for their effects."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time as clock
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self, overload

import numpy as np

from ... import argument_checks
from ...engine.state.batch import InputBatch, StreamRows
from ...errors import Misuse, SparkStreamError, nearest, shown
from ...ingest.ingest import columns_of, too_late
from ...interrupts import deferred, interruptible
from ...journal.entries import Entry, Reject
from ...journal.inbox import Inbox, Ticket
from ...journal.kept import JournalRetention, clear_unnamed, list_missing
from ...journal.marks import Marks
from ...journal.mirror import Mirror
from ...journal.planning import ROWS_PER_TRIGGER
from ...journal.private import private_folder
from ...journal.results import error_lines, errors_of
from ...journal.routing import Route, assign
from ...nodes.distributed import Distributed
from ...outputs.commit import AfterCommit, Commit, ErrorLimit, Progress
from ...outputs.last_reports import LastReports
from ...outputs.merging import Merging
from ...outputs.outputs import OutputFiles
from ...plan.arrival_time import ByArrival
from ...plan.distributed import placement
from ...plan.distributed.leader import LEADER, Parts
from ...plan.nodes import Plan
from ...plan.state_units import state_tokens
from ...request import DAY
from ...runners.database_tables import pack_tables
from ...runners.node_spec import NodeSpec
from ...runners.protocol import Job, Session
from ...runners.spark.handover import left
from ...runners.stream import Stream
from ...sinks.delivery import DeliverySource
from ...sinks.target import OutputPlace
from ...sources.feed_check import check_source
from ...sources.intake import Entrance, Intakes
from ...stores import Store, shard_warnings
from ...stores.address import MEMORY
from ...stores.patience import Patience
from ...stores.protocol import ErrorRow
from ...types import Schema
from ..config.conf import node_files
from ..config.idle import IdleTicker
from ..connectors.sinks import Deliveries
from ..connectors.stores import open_store, prepare_tables
from ..deployment.changing import purge_dropped
from ..deployment.deployment import Deployment, milliseconds
from ..deployment.emptied import outside_stores
from ..deployment.folder import AppRun
from ..deployment.owner import Ownership
from ..deployment.scaling import scale_deployment, wanted_ids
from ..deployment.whole import Found, check_whole
from ..results import frontend
from ..results.answers import FeedReport, Sent
from ..results.divergence import Truth
from ..results.frontend import Displayed
from ..results.listeners import CommitListeners, OnCommit
from ..results.progress import OnProgress
from . import feeding
from .feeding import Feed
from .sent import row_of
from .source_reading import Reading
from .undelivered import FaultStreams
from .wall import WALL, TickSink, WallClock, WallTicker

_LOOK_SECONDS = 0.1
_TRIED_SECONDS = 0.5
"""The longest wait of a deployment for its sources (s)."""
_SETTLE_SECONDS = 10.0
"""The longest wait of a view for events that were sent (s)."""


class RunningApp(Displayed):
    """An app with its files and its nodes, which takes events. `lines_before`: lines above the app's text where a
    person sees it, as the line `%%siddhi` of its cell; numbers of lines include them."""

    lines_before = 0
    owner: Ownership | None = None
    """The ownership of the app's folder, which `close` gives up."""
    emptied: Sequence[str] = ()
    """Removals of `fresh` from stores outside the app's folder, a sentence for each."""
    _sinks: Deliveries | None = None
    _intakes: Intakes | None = None

    def __init__(
        self,
        deployment: Deployment,
        plans: Sequence[Plan],
        life: AppRun,
        session: Session,
        redeployed: str | None = None,
    ) -> None:
        """`plans`: one for each node. `redeployed`: a sentence about the state of an earlier deployment."""
        self.redeployed = redeployed
        self._session = session
        self._lock = threading.RLock()
        self._closed = False
        self._progress = Progress()
        self._wall = WallClock() if deployment.clock == WALL else None
        self._listeners = CommitListeners(deployment.name, self._progress)
        self._open(deployment, plans, life)
        clear_unnamed(self._inbox.folder)  # here: nothing feeds the app yet

    def _open(self, deployment: Deployment, plans: Sequence[Plan], life: AppRun) -> None:
        """Opens the app's files, with the nodes that it has from now on."""
        self.deployment, self._plans, self.plan, self._life = deployment, list(plans), plans[0], life
        self._parts = Parts(plans[0], deployment.led)
        self.schemas: dict[str, Schema] = {s: d.source.schema for s, d in self.plan.streams.items()}
        self._stopped = False
        self._known_truth: Truth | None = None
        purge_dropped(self.home, self.name, self._life, own_store=deployment.store is None)
        self.store = self._open_store()
        prepare_tables(deployment.tables, Patience(tell=self._progress.say))
        tables = pack_tables(deployment.tables.items()) if deployment.tables else b""
        tokens = state_tokens(self.plan, life.units) if life.units else None
        self.warnings = [
            *self.emptied,
            *(
                w
                for a in self.plan.aggregations.values()
                if a.partitioned
                for w in shard_warnings(self.store, a.id, self._writers(a.id))
            ),
        ]
        folder = life.folder(self.home)
        try:
            self._inbox = Inbox(folder / "inbox", over=life.over)
        except SparkStreamError:
            self.store.close()
            raise
        self._mirror = self._open_mirror(deployment, life)
        self._outputs = OutputFiles(folder / "outputs", life.shards)
        by_shard = dict(zip(self.shard_ids, plans, strict=True))
        # A node that was removed still has to process events that were sent before.
        specs = [
            NodeSpec(
                i, s, pickle.dumps(self._parts.own(by_shard.get(s, plans[0]), leads=i == life.leader)),
                scripts=deployment.allow_scripts, index=i, count=life.began, start=deployment.start, tables=tables,
                duty=self._parts.duty if i == life.leader else None, groups=deployment.groups, limits=deployment.limits,
                tokens=tokens,
            )
            for i, s in enumerate(life.shards)
        ]  # fmt: skip
        merging = Merging(self._outputs, deployment.retention)
        self._reports = None if deployment.groups is None else LastReports(folder / "nodes.json")
        self._error_limit = ErrorLimit(self.store, self.name, deployment.retention.errors, self._progress)
        after = AfterCommit(merging, self._reports, self._error_limit, self._inbox.folder, self._inbox.arrived)
        commit = Commit(
            self.name, life.run, life.shards, self.store, self._outputs, self._progress, self.plan, after,
            shared=None if self._mirror is None else self._mirror.shared,
        )  # fmt: skip
        try:
            job = Job(
                self.name, folder, life.run, specs, self.schemas, commit,
                deployment.rows_per_micro_batch or ROWS_PER_TRIGGER, deployment.retention, self._mirror,
                life.partitions,
            )  # fmt: skip
            self._stream = Stream(job, self._session.runner(job))
        except SparkStreamError:
            self._inbox.close()
            self.store.close()
            raise
        self._inbox.tell = self._stream.runner.notify_arrival
        self._check_whole(folder)
        self._progress.batch, self._progress.last = self._stream.last_commit()
        if not self._progress.rows:  # figures of an earlier process
            self._progress.rows = self._outputs.totals()
            self._progress.faulty = Counter(self.store.errors(self.name)["stream"].to_pylist())
            self._progress.errors = self._progress.faulty.total()
        arrived = self._inbox.arrived
        self._progress.throughput.begin(arrived.total, arrived.through(self._progress.last))
        self._sinks = self._deliveries(folder)
        self._target = feeding.FeedTarget(
            self.name, self.nodes, self._inbox, self._stream, self._session, self._lock,
            self.start, self._append, self._now,
            self._marks(), spacing_ms=1 if self._wall is None else 0, by_arrival=ByArrival.of(self.plan),
        )  # fmt: skip
        self._intakes = self._sources()
        self._ticker = self._ticks()

    def _open_mirror(self, deployment: Deployment, life: AppRun) -> Mirror | None:
        """The mirror of the inbox at a shared address, if there is one."""
        shared = life.shared_folder
        if shared is None:
            return None
        retention, progress = deployment.retention, self._progress
        kept = JournalRetention(self._inbox.folder, retention.recording, retention.days)
        return Mirror(self._inbox.folder, shared, kept, lambda: progress.last, progress.say)

    def _ticks(self) -> IdleTicker | WallTicker | None:
        """The ticker that moves the app's clock besides events."""
        if self._wall is not None:
            nodes = self._life.over if self._life.leader is None else (*self._life.over, self._life.leader)
            return WallTicker(
                self._wall,
                self._progress,
                TickSink(
                    lock=self._lock,
                    running=lambda: self._stream.active and not self._stopped,
                    append=lambda clocks: self._inbox.append([self._tick(*clocks)]),
                    reached=lambda: self._inbox.position.clock,
                    nodes=nodes,
                ),
            )
        idle = self.plan.idle_clock
        return None if idle is None else IdleTicker(idle, self._advance)

    def _deliveries(self, folder: Path) -> Deliveries | None:
        """The sinks of the app, which continue where they were. New ones begin with the next micro-batch."""
        if not self.deployment.sinks:
            return None
        run = self._life.run
        begin = max(self._progress.batch, self.store.last_committed(self.name, run)) + 1
        fault = FaultStreams(self._lock, self._inbox, self._life, self.routing)
        source = DeliverySource(self._outputs, self._progress, self._keep_errors, fault, folder / "sinks")
        try:
            return Deliveries(self.deployment.sinks.setups(run), source, begin)
        except SparkStreamError:
            self._close_files()
            raise

    def _sources(self) -> Intakes | None:
        """The sources of the app, which continue from their positions in the inbox."""
        if not self.deployment.sources:
            return None
        entrance = Entrance(
            self._inbox, self._progress, self._lock, self.routing,
            lambda: not (self._stopped or self._closed), self._append, self._now, self._latest,
        )  # fmt: skip
        return Intakes(self.deployment.sources.setups(self._latest), entrance)

    def _keep_errors(self, sink: str, place: OutputPlace, errors: Sequence[Sequence[Any]]) -> None:
        """Keep the events that a sink could not deliver. The ledger names those that were kept before a crash."""
        rows = [ErrorRow(*found) for found in errors_of(error_lines(errors))]
        if self.store.commit(self.name, f"{self._life.run}/{sink}", place.batch << 32 | place.row, {}, rows):
            with self._progress.changed:
                self._progress.errors += len(rows)
                self._progress.faulty.update(r.stream for r in rows)
            self._error_limit.count_added(len(rows))

    def _marks(self) -> Marks:
        """The progress of nodes and tasks within a micro-batch."""
        if self.deployment.groups is not None:  # its nodes do all of it themselves
            working = 1 if isinstance(self.deployment.groups, Distributed) else self.nodes
            return Marks(self._inbox.folder, working, tasks=False)
        ahead, rest = placement.split(self._parts.own(self.plan, leads=False))
        return Marks(self._inbox.folder, 0 if placement.idle(rest) else self.nodes, tasks=ahead is not None)

    def _check_whole(self, folder: Path) -> None:
        """Raise SparkStreamError if parts of the app's folder are missing. Open files are closed then."""
        try:
            check_whole(self.home, self._found(folder))
        except SparkStreamError:
            self._close_files()
            raise

    def _found(self, folder: Path) -> Found:
        """The contents of the app's folder. Raises SparkStreamError if the checkpoint or the journal cannot be
        read."""
        checkpoint, entries = self._stream.checkpoint, self._inbox.position.seq
        spark = checkpoint.read_progress()
        # A Connect server is ahead of the store until the owner has committed the batches handed over.
        known = self.deployment.store != MEMORY and self._stream.runner.commits_here
        ledger = self.store.last_committed(self.name, self._life.run) if known else None
        outputs = folder / "outputs"
        if spark.done < 0:
            private_folder(outputs)
        whole = entries >= spark.reached
        gone = list_missing(self._inbox.folder, checkpoint.done_offset()) if whole else ()
        handed = ledger is not None and ledger < spark.done and bool(left(folder, self._life.shared_folder))
        return Found(entries, spark, ledger, outputs.is_dir(), gone, handed, self._outputs.describe_lacking())

    def _open_store(self) -> Store:
        """The store of the aggregations; emptied where one that is not in the app's folder is to be fresh."""
        d, aggregations = self.deployment, self.plan.aggregations
        patience = Patience(tell=self._progress.say)
        trash = self.home / "trash" / self._life.run
        outside = outside_stores(d, aggregations.values(), trash) if d.fresh else ()
        for place in outside:
            place.copy_to_trash()
        threads = 1 if self._session.cores == 1 else None  # for work on one core a second thread only costs
        store = open_store(self.home / "store.duckdb" if d.store is None else d.store, d.databases, patience, threads)
        self.emptied = [said for place in outside if (said := place.empty(store, self._writers)) is not None]
        store.prepare(aggregations.values())
        return store

    def _writers(self, aggregation: str) -> tuple[str, ...]:
        """The shard ids under which an aggregation is stored."""
        duty = self._parts.duty
        return self.shard_ids if duty is None or aggregation not in duty.aggregations else (LEADER,)

    # --------------------------------------------------------------------------------------------------- properties

    @property
    def name(self) -> str:
        """The name under which it was deployed."""
        return self.deployment.name

    @property
    def mode(self) -> str:
        """ "single", "active-active", "ha", "scalable" or "distributed"."""
        return self.deployment.mode

    @property
    def routing(self) -> str:
        """The rule that gives an event its node: "round_robin", "hash:ATTRIBUTE", "node:K", "random:SEED" or
        "sticky"."""
        return self.deployment.routing

    @property
    def shard_ids(self) -> tuple[str, ...]:
        """The shard id of each node, in order."""
        return self.deployment.shard_ids

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.deployment.nodes

    @property
    def home(self) -> Path:
        """The app's folder."""
        return self.deployment.home

    @property
    def runner_note(self) -> str | None:
        """A note on the Spark that the app runs on; None for a tested version."""
        return self._session.about

    @property
    def closed(self) -> bool:
        """True if it can no longer be used, because it was deployed again or all apps were stopped."""
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

    @deferred()
    def start(self) -> None:
        """Starts the app, or starts it again where it left off. Raises SparkStreamError if that cannot be."""
        with self._lock:
            self._check_open()
            if self._stopped:
                self._stream.wait_for_end()  # it may still be busy ending the stopped query
            if not self._stream.active:
                self._target.marks.clear()
            self._stream.start()
            if self._mirror is not None:
                self._mirror.start()
            if self._sinks is not None:
                self._sinks.start()
            self._stopped = False
            if self._intakes is not None:
                self._intakes.start()
            if self._ticker is not None:
                self._ticker.start()

    @deferred()
    def stop(self) -> None:
        """Cancels the app's work, within 2 s, and stops its feeds in the background.

        State, outputs and aggregations stay; an event or a query starts it again.
        """
        with self._lock:
            self._stop_clock()
            self._end_feeds()
            self._stopped = True
            self._stop_sources()
            self._stream.stop()
            if self._sinks is not None:
                self._sinks.stop()

    @deferred()
    def interrupt(self) -> dict[str, int]:
        """Stops the app as `stop` does, and takes back events of feeds and queries that it had not begun to process;
        returns their number by stream, which is also in `logs`. Events that were sent stay.

        The app starts again with the next event or query; a micro-batch that was under way is then carried through.
        """
        with self._lock:
            self._stop_clock()
            ended = self._end_feeds()
            self._session.interrupt(self._target.tag)
            self._stopped = True
            self._stop_sources()
            if self._sinks is not None:
                self._sinks.stop()
            if not self._stream.stop():
                return {}
            seq = max(self._stream.next_unplanned(), self._progress.last + 1)
            with contextlib.nullcontext() if self._mirror is None else self._mirror.taking_back(seq):
                retracted = self._inbox.take_back(seq)
            for feed in ended:
                feed.withdraw(seq)
            if retracted:
                self._progress.say(retraction(retracted))
            return retracted

    def _stop_sources(self) -> None:
        if self._intakes is not None:
            self._intakes.stop()

    def _end_feeds(self) -> list[Feed]:
        """Stops the feeds in the background; those that were running."""
        running = [f for f in self.feeds.values() if f.active]
        for feed in running:
            feed.end()
        return running

    def wait_tried(self) -> None:
        """Waits a little until it is known which sources are away."""
        if self._intakes is not None:
            self._intakes.wait_tried(_TRIED_SECONDS)

    @property
    def away(self) -> list[str]:
        """The sources that cannot be read and the sinks that could not deliver last, each with the reason."""
        sources = () if self._intakes is None else self._intakes.figures()
        sinks = () if self._sinks is None else self._sinks.figures()
        found = [f"Source {s.name} ({s.origin}) is away: {s.last_error}." for s in sources if s.last_error]
        return found + [f"Sink {s.name} ({s.target}): {s.last_error}." for s in sinks if s.last_error]

    @property
    def feeds(self) -> feeding.Feeds:
        """The feeds in the background since the app was deployed, by their numbers."""
        return feeding.feeds_of(self._target)

    @deferred()
    def close(self) -> None:
        """Close the files of a stopped app. It cannot be used afterwards; calls raise an error."""
        self._closed = True
        self._stream.wait_for_end()
        for feed in self.feeds.values():
            feed.join()
        self._listeners.clear()
        self._close_files()
        if self.owner is not None:
            self.owner.release()

    def _close_files(self) -> None:
        self._stop_sources()
        if self._sinks is not None:
            self._sinks.close()
        if self._mirror is not None:
            self._mirror.stop()
        self._inbox.close()
        self.store.close()

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
        if self.mode != "active-active":
            raise Misuse(f"{self.name} has mode {self.mode}; deploy it with mode='active-active' to scale it")
        argument_checks.optional_str_list("shard_ids", shard_ids)
        files = () if conf is None else tuple(node_files(conf, references=self.deployment.references))
        ids = [f.shard_id for f in files] if files else shard_ids
        wanted = wanted_ids(self.shard_ids, self._life.shards, nodes, ids)
        if self._life.leader is not None and LEADER in wanted:
            raise Misuse(f"'{LEADER}' is the shard id of the leader: give the shard another")
        if wanted == self.shard_ids:
            return self
        if any(feed.active for feed in self.feeds.values()):
            raise Misuse(f"{self.name} has feeds in the background: stop them, or wait for them, before it is scaled")
        deployment, plans = scale_deployment(self.deployment, self._plans, wanted, files)
        Route.parse(deployment.routing, len(wanted))
        with self._lock, deferred():
            with interruptible():
                self.flush()
            self.stop()
            self._stream.wait_for_end()
            self._close_files()
            life = self._life.with_nodes(wanted)
            if life.deployed is not None:
                life = replace(life, deployed=life.deployed.with_nodes(wanted, conf))
            life.write(self.home)
            self._open(replace(deployment, fresh=False), plans, life)
            self.start()
        return self

    def _check_open(self) -> None:
        """Raises `Misuse` if this app was closed: a variable may still hold it after a new deployment."""
        if self._closed:
            raise Misuse(
                f"this app '{self.name}' is closed, as it was deployed again or all apps were stopped. "
                f"sparkstream_nb.get('{self.name}') is the one that runs"
            )

    def on_commit(self, callback: OnCommit) -> Callable[[], None]:
        """Calls `callback(n)` after each committed micro-batch, where `n` of the app are; returns a function that ends
        that.

        It is called on a thread of its own, outside all locks, so it may ask the app and takes the time it needs:
        commits meanwhile are reported in one call. Its exceptions are logged. It ends with `close`, thus when the app
        is deployed again.
        """
        if not callable(callback):
            raise Misuse(f"callback is a function, not {shown(callback)}")
        return self._listeners.add(callback)

    def flush(self) -> None:
        """Waits until everything sent is committed. Raises SparkStreamError if the app failed."""
        with self._cancel_on_interrupt():
            self._settle(None)

    def drain(self, seconds: float = 30.0) -> int:
        """Waits as `flush` does, and then until the sinks have delivered all outputs, for `seconds` at most; returns
        the number still to be sent. They are sent later, also after the app was stopped and started again.
        """
        argument_checks.check_number("seconds", seconds)
        self.flush()
        with self._cancel_on_interrupt():
            return 0 if self._sinks is None else self._sinks.drain(seconds)

    def catch_up(self, seconds: float = 60.0) -> bool:
        """Wait until the sources have read everything available, and all of it is committed, for `seconds` at most;
        returns whether they have. Raises SparkStreamError if the app failed.
        """
        argument_checks.check_number("seconds", seconds)
        self.start()
        began = clock.monotonic()
        while not (self._intakes is None or self._intakes.caught_up(began)):
            left = began + seconds - clock.monotonic()
            if left <= 0:
                return False
            with self._progress.changed:
                self._progress.changed.wait(min(left, _LOOK_SECONDS))
        with self._cancel_on_interrupt():
            last, left = self._inbox.position.seq - 1, began + seconds - clock.monotonic()
            return self._stream.wait(last, timeout=max(left, 0.0))

    def _settle(self, tell: Callable[[], None] | None) -> None:
        last = self._inbox.position.seq - 1
        if self._progress.last < last:
            self.start()
            self._stream.wait(last, tell=tell)

    def _settle_briefly(self) -> None:
        """Wait until sent events are committed. A feed is not waited for: it continues after a micro-batch."""
        last, batch = self._inbox.position.seq - 1, self._progress.batch
        if self._progress.last >= last:
            return
        self.start()
        end = clock.monotonic() + _SETTLE_SECONDS
        with self._cancel_on_interrupt():
            while not self._stream.wait(last, timeout=1.0):
                if self._progress.batch > batch or clock.monotonic() > end:
                    return

    @contextlib.contextmanager
    def _cancel_on_interrupt(self) -> Iterator[None]:
        """Ctrl-C and a notebook's Stop button inside cancel the app's work; events that were sent stay.

        If feeds run in the background, only the waiting ends.
        """
        try:
            yield
        except KeyboardInterrupt as stop:
            if not any(f.active for f in self.feeds.values()):
                self._stop_and_report(stop)
            raise

    def _stop_and_report(self, stop: KeyboardInterrupt) -> None:
        """Stop the app, and name the events that were taken back in the interrupt."""
        retracted = self.interrupt()
        if retracted:
            stop.add_note(retraction(retracted))

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
        if not wait:
            return self._send(stream, values, at, node)
        with self._progress.changed:
            before = dict(self._progress.rows)
        sent = self._send(stream, values, at, node)
        last = self._inbox.position.seq - 1
        self._settle_briefly()
        with self._progress.changed:
            if self._progress.last < last:
                return sent
            after = dict(self._progress.rows)
        return replace(sent, outputs={s: n - before.get(s, 0) for s, n in after.items() if n > before.get(s, 0)})

    def _send(self, stream: str, values: Any, at: int | str | datetime | None, node: int | None) -> Sent:
        schema = self._schema(stream)
        several = isinstance(values, list | tuple) and bool(values) and isinstance(values[0], list | tuple | dict)
        rows = [row_of(stream, schema, v) for v in (values if several else [values])]
        columns = columns_of(schema, rows, stream, self.deployment.limits)
        route = self.routing if node is None else f"node:{node}"
        Route.parse(route, self.nodes)
        with self._lock:
            clock = self._inbox.position.clock
            ts = self._now() if at is None else milliseconds(at, "at")
            behind = at is None and self._wall is None and clock is not None and ts - clock > DAY
            sent = Sent(
                self.name, stream, len(rows), ts, clock=clock if behind else None, started=self._stopped
            )
            latest = self._latest()
            if latest is not None and ts > latest and at is not None:
                errors = error_lines([[stream, ts, row, too_late(ts, latest)] for row in rows])
                self.start()
                file = self._inbox.write(f"late-{uuid.uuid4().hex[:12]}", errors)
                self._append([Reject(file=file, sent=True)])
                return sent
            times = np.full(len(rows), ts, np.int64)
            batch = InputBatch(times[:1], {stream: StreamRows(np.zeros(len(rows), np.int64), times, columns)})
            self.start()
            taking = self._taking_nodes(batch, route)
            ticket = self._put([self._inbox.batch(batch, route)])
        self._inbox.settle(ticket)  # without the lock: others put more in meanwhile, for the next wait
        return replace(sent, nodes=taking)

    def _taking_nodes(self, batch: InputBatch, route: str) -> tuple[str, ...]:
        """The shard ids of the nodes that take a batch which comes in next; none if nodes take turns."""
        if self.deployment.groups is not None:
            return ()
        over = self._life.over or tuple(range(self._life.began))
        parsed = Route.parse(route, len(over))
        found = assign(batch, parsed, self.schemas, len(over), self._inbox.position.request)
        return tuple(self._life.shards[over[n]] for n in sorted({int(n) for a in found.values() for n in a}))

    def tick(self, ms: int) -> None:
        """Moves the app's clock to `ms` with no event, so that windows and timers run."""
        to = milliseconds(ms, "ms")
        with self._lock:
            self.start()
            self._append([self._tick(to)])

    def _tick(self, *clocks: int) -> Entry:
        return self._inbox.batch(InputBatch(np.array(clocks, np.int64)), self.routing)

    def _append(self, entries: Sequence[Entry]) -> None:
        """Put a user's events into the inbox, and wait until they are on the disk."""
        self._inbox.settle(self._put(entries))

    def _put(self, entries: Sequence[Entry]) -> Ticket:
        """`_append` without waiting for the disk."""
        ticket = self._inbox.put(entries)
        if self._ticker is not None:
            self._ticker.sent()
        return ticket

    def _advance(self, increment: int) -> None:
        """Moves the clock on by `increment` ms, if the app runs and has a clock by now."""
        with self._lock:
            now = self._inbox.position.clock
            if self._stream.active and not self._stopped and now is not None:
                self._inbox.append([self._tick(now + increment)])

    def _stop_clock(self) -> None:
        if self._ticker is not None:
            self._ticker.stop()

    @overload
    def feed(
        self,
        stream: str,
        source: Any,
        *,
        time: str | None = None,
        time_format: str | None = None,
        time_zone: str | None = None,
        route: str | None = None,
        limit: int | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        decimal: str | None = None,
        missing: Sequence[str] | None = None,
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
        time_format: str | None = None,
        time_zone: str | None = None,
        route: str | None = None,
        limit: int | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        decimal: str | None = None,
        missing: Sequence[str] | None = None,
        progress: OnProgress | None = None,
        background: Literal[True],
    ) -> Feed: ...

    def feed(
        self,
        stream: str,
        source: Any,
        *,
        time: str | None = None,
        time_format: str | None = None,
        time_zone: str | None = None,
        route: str | None = None,
        limit: int | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        decimal: str | None = None,
        missing: Sequence[str] | None = None,
        progress: OnProgress | None = None,
        background: bool = False,
    ) -> FeedReport | Feed:
        """Feeds `stream` from a frame (pandas, Arrow, Spark) or a `.csv` or `.parquet` file, until all is committed.

        `time` names the column of event times (ms, datetime, or text): events are put in their order, ties in the
        feed's. Without it events keep the feed's order, 1 ms apart. `time_format`: how these times are written, as
        Python's `strptime` takes it, or "s", "ms", "us" or "ns" for numbers since 1970 (default: ms, or ISO 8601).
        `time_zone`: that of times that name none (default: UTC). Of a time that its clocks showed twice the first is
        taken; one that they left out is as much later as they went forward. `route` overrides the routing. `limit`:
        only this many rows, the first ones. `columns` maps attributes to source columns, or lists these in the
        attributes' order. Of texts, `decimal=","` reads numbers such as 1.234,5, and `missing` are those that mean
        null, besides an empty cell. Rows that do not fit are counted, and as many as `retention` says are kept in
        `errors`. `progress` is called when the reading begins, and then several times a second until all is committed;
        by default the front end shows how far the feed is. With `background` the call returns at once: a `Feed`, which
        can be paused, stopped and waited for. Raises `Misuse` for an unknown stream, SparkStreamError for a source that
        is no feed.
        """
        schema = self._schema(stream)
        argument_checks.optional_int("limit", limit, 0)
        if progress is not None and not callable(progress):
            raise Misuse(f"progress is a function, not {shown(progress)}")
        if isinstance(source, str | Path):
            argument_checks.check_path("the feed", source)
        reading = Reading(time, time_format, time_zone, columns, decimal, missing)
        d = self.deployment
        shape = reading.shape(stream, schema)
        shape = replace(shape, latest=self._latest(), limits=d.limits, kept=d.retention.errors)
        Route.parse(route or self.routing, self.nodes, {stream: schema} if route else None)
        check_source(source, shape)
        followed = len(self._listeners) > 0
        request = feeding.FeedRequest(source, shape, route or self.routing, limit, followed, self._stopped)
        if background:
            return feeding.start_feed(self._target, request)
        if progress is not None:
            return self._feed_request(request, progress)
        with contextlib.closing(frontend.current().progress()) as display:
            return self._feed_request(request, display)

    def _feed_request(self, request: feeding.FeedRequest, progress: OnProgress) -> FeedReport:
        try:
            return feeding.feed(self._target, request, self._settle, progress)
        except KeyboardInterrupt as stop:
            self._stop_and_report(stop)
            raise

    def _now(self) -> int:
        """This machine's time (ms), or the app's clock if it is ahead."""
        if self._wall is not None:
            return self._wall.now(self._inbox.position.clock)
        return max(int(clock.time() * 1000), self._inbox.position.clock or 0)

    def _latest(self) -> int | None:
        """The last time (ms) at which an event is taken; None if all are."""
        most = self.deployment.max_ahead
        return None if most is None else int(clock.time() * 1000) + most

    def _schema(self, stream: str) -> Schema:
        argument_checks.require_str("stream", stream)
        if stream not in self.schemas:
            raise Misuse(nearest(f"{self.name} has no stream '{stream}'", stream, self.schemas))
        return self.schemas[stream]


def retraction(events: Mapping[str, int]) -> str:
    """The line that says which events, counted by stream, an interrupt took back."""
    counted = ", ".join(f"{n:,} of {stream}" for stream, n in events.items())
    return f"Interrupted: events of feeds that were not begun with were taken back: {counted}. Feed them again."
